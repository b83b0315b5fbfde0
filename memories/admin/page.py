"""What every page shares: nothing is deleted or bulk-edited by raw forms, 25 rows, and verbs as small POST forms."""

import uuid
from datetime import datetime
from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin

from memories.admin import export, fresh, saved_filters
from memories.admin.lists import HubChangeList
from memories.admin.naming import called, many_of
from memories.admin.reach import TenantFilter, within
from memories.audit import Actor, kept_request_id
from memories.exceptions import MemoryHubError, PreconditionFailed
from memories.models import Operator

LOOK_AGAIN = _("Somebody changed this meanwhile: look again. What you typed is kept; sending it again applies it.")


def said_of(error: MemoryHubError) -> str:
    """What to tell an operator of it: to look again, when it was somebody else who was faster."""
    return str(LOOK_AGAIN) if isinstance(error, PreconditionFailed) else error.detail


def actor_of(request: HttpRequest) -> Actor:
    """The signed-in operator as the actor of a verb."""
    if not isinstance(request.user, Operator):
        raise PermissionDenied
    return Actor.operator(request.user, request_id=kept_request_id(getattr(request, "request_id", "")))


def url_of(record: Model, name: str = "change") -> str:
    """Where the page of this record is, or one of its verbs."""
    return reverse(f"admin:{record._meta.app_label}_{record._meta.model_name}_{name}", args=[record.pk])


class Page(ModelAdmin):  # type: ignore[misc]  # Unfold has no types
    actions = None
    # A link from a searched list would carry the search, perhaps a name, into the address of every record.
    preserve_filters = False
    list_per_page = 25
    empty_value_display = "–"
    list_max_show_all = 25
    # The count of the whole table beside the filtered one: a query and, on big tables, a slow one.
    show_full_result_count = False
    list_before_template = "memories/list_tabs.html"
    # Pages that belong to the list: title, icon, name of the address, permission.
    list_links: ClassVar[tuple[tuple[str | Promise, str, str, str], ...]] = ()
    empty_title: str | Promise = _("Nothing here yet")
    empty_hint: str | Promise = ""
    # From a row to its tenant; None: rows of no tenant, for whoever has the permission.
    tenant_path: ClassVar[str | None] = "tenant"

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[HubChangeList]:
        return HubChangeList

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)
        return within(request.user, rows, self.tenant_path) if self.tenant_path else rows

    def get_list_filter(self, request: HttpRequest) -> list[Any]:
        return [("tenant", TenantFilter) if name == "tenant" else name for name in super().get_list_filter(request)]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        if "\x00" in "".join(value for values in dict(request.GET).values() for value in map(str, values)):
            # No text in PostgreSQL holds it, and a filter that asks for it would be a server error.
            return HttpResponse(status=400)
        links = [link for link in self.list_links if request.user.has_perm(link[3])]
        # Django's own title of a list is what to do on it; in a tab of the browser its name is read.
        title = str(capfirst(many_of(self.model)))
        extra = {"title": title, "may_export": export.may(self, request), "list_links": links, **(extra_context or {})}
        return super().changelist_view(request, extra)  # type: ignore[no-any-return]

    def get_urls(self) -> list[URLPattern]:
        return [*self._list_urls(), *super().get_urls()]

    def _list_urls(self) -> list[URLPattern]:
        """The acts of a list, before the address of a record can be taken for one of them."""
        name, view = f"{self.opts.app_label}_{self.opts.model_name}", self.admin_site.admin_view
        return [
            path("save-filter/", view(self.save_filter), name=f"{name}_save_filter"),
            path("forget-filter/<uuid:object_id>/", view(self.forget_filter), name=f"{name}_forget_filter"),
            path("export/", view(self.export), name=f"{name}_export"),
        ]

    def save_filter(self, request: HttpRequest) -> HttpResponse:
        return saved_filters.save(self, request, actor=actor_of(request))

    def forget_filter(self, request: HttpRequest, object_id: uuid.UUID) -> HttpResponse:
        return saved_filters.forget(self, request, object_id, actor=actor_of(request))

    def export(self, request: HttpRequest) -> HttpResponseBase:
        return export.answer(self, request, actor=actor_of(request))

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


class VerbForm(forms.Form):
    """The input of one verb, and the call of it."""

    # Whether it is hard to take back: then the operator gives the password once more.
    needs_fresh_password: ClassVar[bool] = False

    def __init__(self, data: Any = None, *, record: Any) -> None:
        self.record = record
        # Several forms stand on one page: their labels must not name each other's fields.
        super().__init__(data, auto_id=f"{type(self).__name__.lower()}_%s")

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        """Call the verb and say what was done, without content. Errors: MemoryHubError."""
        raise NotImplementedError

    def refuse(self, error: MemoryHubError) -> None:
        """Tell the operator why the verb was not carried out; nothing typed is lost."""
        self.add_error(None, said_of(error))

    def leads_to(self) -> str:
        """The address to go on at once it is done."""
        return url_of(self.record)

    def see(self, record: Any) -> None:
        """Take the record as it is now for the next attempt."""
        self.record = record


class RecordPage(Page):
    """A record shown by a template of ours and changed only through its verbs."""

    page_template: ClassVar[str]
    list_select_related: ClassVar[tuple[str, ...]] = ()
    verbs: ClassVar[dict[str, type[VerbForm]]] = {}
    # How the record's id is written in addresses.
    id_kind: ClassVar[str] = "uuid"

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        records: QuerySet[Any] = super().get_queryset(request)
        return records.select_related(*self.list_select_related)

    def gather(self, request: HttpRequest, record: Any) -> dict[str, Any]:
        """What the template shows of the record."""
        raise NotImplementedError

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        record = self.find(request, object_id, may_change=False)
        if request.method not in ("GET", "HEAD"):
            return HttpResponse(status=405, headers={"Allow": "GET, HEAD"})
        return self.show(request, record)

    def find(self, request: HttpRequest, object_id: str, *, may_change: bool) -> Any:
        """The record. Errors: PermissionDenied, Http404."""
        allowed = self.has_change_permission if may_change else self.has_view_permission
        if not allowed(request):
            raise PermissionDenied
        record = self.get_object(request, object_id)
        if record is None:
            raise Http404
        return record

    def show(
        self, request: HttpRequest, record: Any, *, tried: VerbForm | None = None, status: int = 200
    ) -> TemplateResponse:
        """The page; `tried` is a form that was refused and is shown again with what was typed."""
        may_change = self.has_change_permission(request, record)
        forms_of_page = {name: form(record=record) for name, form in self.verbs.items()} if may_change else {}
        for name, form in self.verbs.items():
            if tried is not None and isinstance(tried, form):
                forms_of_page[name] = tried
        context = {
            **self.admin_site.each_context(request),
            "title": called(record),
            "opts": self.opts,
            "original": record,
            "forms": forms_of_page,
            "tried": tried,
            **self.gather(request, record),
        }
        return TemplateResponse(request, self.page_template, context, status=status)

    def carry_out(self, request: HttpRequest, object_id: str, verb: str) -> HttpResponse:
        """One verb: 400 for bad input, the error's own status when it is refused, else back to the page."""
        record = self.find(request, object_id, may_change=True)
        if request.method != "POST":
            return HttpResponseRedirect(url_of(record))
        if self.verbs[verb].needs_fresh_password and (asked := fresh.required(request)):
            return asked
        form = self.verbs[verb](request.POST, record=record)
        status = 400
        if form.is_valid():
            try:
                done = form.carry_out(actor=actor_of(request), now=timezone.now())
            except MemoryHubError as error:
                form.refuse(error)
                status = error.status
            else:
                return self.answer(request, form, done)
        record = self.find(request, object_id, may_change=True)
        form.see(record)
        return self.show(request, record, tried=form, status=status)

    def answer(self, request: HttpRequest, form: VerbForm, done: str) -> HttpResponse:
        """After a verb that was carried out."""
        messages.success(request, done)
        return HttpResponseRedirect(form.leads_to())

    def get_urls(self) -> list[URLPattern]:
        own = [self._verb_url(verb) for verb in self.verbs]
        return [*own, *super().get_urls()]

    def _verb_url(self, verb: str) -> URLPattern:
        def view(request: HttpRequest, object_id: Any) -> HttpResponse:
            return self.carry_out(request, str(object_id), verb)

        name = f"{self.opts.app_label}_{self.opts.model_name}_{verb}"
        pattern: URLPattern = path(f"<{self.id_kind}:object_id>/{verb}/", self.admin_site.admin_view(view), name=name)
        return pattern
