"""Base classes and functions of all admin pages.

`HubModelAdmin` is a list: limited to the operator's tenants, with tabs, saved filters and export, without Django's raw
delete and bulk actions. `RecordPage` adds the page of one record, which changes only through verbs: small POST forms.
Pages without a model use `require()` and `render_page()`.
"""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from inspect import getmembers, isfunction
from types import ModuleType
from typing import Any, ClassVar, TypeVar

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.http import urlencode
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin

from memories.admin.access import fresh
from memories.admin.access.tenant_scope import TenantFilter, any_tenant, within
from memories.admin.lists import export, saved_filters, tabs
from memories.admin.lists.change_list import HubChangeList
from memories.admin.site.mentions import mention
from memories.admin.site.naming import list_of, named
from memories.audit import Actor, kept_request_id
from memories.exceptions import MemoryHubError, PreconditionFailed
from memories.models import Operator

LOOK_AGAIN = _(
    "Somebody else changed this in the meantime. Your input is kept. Check the page, then submit again to apply it."
)


def message_of(error: MemoryHubError) -> str:
    """The message for the operator: to look again if somebody else changed the record first."""
    return str(LOOK_AGAIN) if isinstance(error, PreconditionFailed) else error.detail


def actor_of(request: HttpRequest) -> Actor:
    """The signed-in operator as actor. Errors: PermissionDenied."""
    if not isinstance(request.user, Operator):
        raise PermissionDenied
    return Actor.operator(request.user, request_id=kept_request_id(getattr(request, "request_id", "")))


def address_of_section(person: uuid.UUID, section: str, agent_id: str) -> str:
    """The page of a section of the person, or of an agent's."""
    page = reverse("admin:memories_enduser_profile", args=[person, section])
    return f"{page}?{urlencode({'agent': agent_id})}" if agent_id else page


def url_of(record: Model, name: str = "change") -> str:
    """The address of the record's page, or of one of its verbs."""
    return reverse(f"admin:{record._meta.app_label}_{record._meta.model_name}_{name}", args=[record.pk])


def require(request: HttpRequest, *permissions: str) -> None:
    """Errors: PermissionDenied, if the operator lacks one of these permissions."""
    if not request.user.has_perms(permissions):
        raise PermissionDenied


def render_page(request: HttpRequest, template: str, *, status: int = 200, **context: Any) -> TemplateResponse:
    """A page in the admin's frame; the context has its `title`."""
    return TemplateResponse(request, template, {**admin.site.each_context(request), **context}, status=status)


View = TypeVar("View", bound=Callable[..., HttpResponseBase])


def address(route: str, name: str = "") -> Callable[[View], View]:
    """Give a view of a page an address below that of the list. Its URL name is `<app>_<model>_<name of the view>`."""

    def declare(view: View) -> View:
        view.address = route, name or view.__name__  # type: ignore[attr-defined]
        return view

    return declare


class HubModelAdmin(ModelAdmin):  # type: ignore[misc]  # Unfold has no types
    actions = None
    # With it, links from a search would carry the search, perhaps a name, in the address of every record.
    preserve_filters = False
    list_per_page = 25
    empty_value_display = "–"
    list_max_show_all = 25
    # It would count the whole table: one more query, and a slow one on big tables.
    show_full_result_count = False
    list_before_template = "memories/list_tabs.html"
    # Related pages: title, icon, URL name, permission.
    list_links: ClassVar[tuple[tuple[str | Promise, str, str, str], ...]] = ()
    empty_title: str | Promise = _("Nothing here yet")
    empty_hint: str | Promise = ""
    # Fields of the list's file; without any it has no export.
    csv_columns: ClassVar[tuple[str, ...]] = ()
    # Foreign keys that links from other pages may filter by, although the list offers no filter for them.
    linked_by: ClassVar[tuple[str, ...]] = ()
    # Path from a row to its tenant. None: rows have no tenant, and the permission alone decides.
    tenant_path: ClassVar[str | None] = "tenant"

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[HubChangeList]:
        return HubChangeList

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)
        return within(request.user, rows, self.tenant_path) if self.tenant_path else rows

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        with any_tenant(request.user):
            return super().get_object(request, object_id, from_field)

    def get_list_display(self, request: HttpRequest) -> list[str]:
        shown = list(super().get_list_display(request))
        tab = tabs.named(self.model, request.GET.get(tabs.TAB, ""))
        return [*shown[:-1], tab.column] if tab and tab.column else shown

    def get_ordering(self, request: HttpRequest) -> Any:
        tab = tabs.named(self.model, request.GET.get(tabs.TAB, ""))
        return (getattr(self, tab.column).admin_order_field,) if tab and tab.column else super().get_ordering(request)

    def get_list_filter(self, request: HttpRequest) -> list[Any]:
        return [("tenant", TenantFilter) if name == "tenant" else name for name in super().get_list_filter(request)]

    def linked_lookups(self) -> frozenset[str]:
        """The lookups that an address may use besides the declared filters."""
        return frozenset(f"{name}__id__exact" for name in self.linked_by)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        # HubChangeList.get_filters() decides, since it knows the parameters of the declared filters.
        return True

    def to_field_allowed(self, request: HttpRequest, to_field: str) -> bool:
        return False

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        if "\x00" in "".join(value for values in dict(request.GET).values() for value in map(str, values)):
            # PostgreSQL rejects NUL in texts: a filter with one would be a server error.
            return HttpResponse(status=400)
        links = [link for link in self.list_links if request.user.has_perm(link[3])]
        # Django's default title is "Select … to change"; a browser tab should show the list's name.
        title = list_of(self.model)
        extra = {
            "title": title,
            "may_export": export.can_export(self, request),
            "list_links": links,
            **(extra_context or {}),
        }
        return super().changelist_view(request, extra)  # type: ignore[no-any-return]

    def get_urls(self) -> list[URLPattern]:
        views = [getattr(self, name) for name, view in getmembers(type(self), isfunction) if hasattr(view, "address")]
        # First, since Django's pattern of a record's page matches these addresses, too.
        return [*(self._pattern(view, *view.address) for view in views), *super().get_urls()]

    def _pattern(self, view: Callable[..., HttpResponseBase], route: str, name: str) -> URLPattern:
        name = f"{self.opts.app_label}_{self.opts.model_name}_{name}"
        pattern: URLPattern = path(route, self.admin_site.admin_view(view), name=name)
        return pattern

    @address("save-filter/")
    def save_filter(self, request: HttpRequest) -> HttpResponse:
        return saved_filters.save(self, request, actor=actor_of(request))

    @address("forget-filter/<uuid:object_id>/")
    def forget_filter(self, request: HttpRequest, object_id: uuid.UUID) -> HttpResponse:
        return saved_filters.forget(self, request, object_id, actor=actor_of(request))

    @address("export/")
    def export(self, request: HttpRequest) -> HttpResponseBase:
        return export.answer(self, request, actor=actor_of(request))

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


def show_again(form: forms.BaseForm) -> None:
    """Prepare a rejected form for the next attempt: visible fields keep the input, hidden ones take `form.initial`.

    Hidden fields say which state of a record the operator saw. With the old one the form would be rejected for ever.
    """
    data: QueryDict = form.data.copy()  # type: ignore[attr-defined]  # of a request
    for name, value in form.initial.items():
        if name in form.fields and form.fields[name].widget.is_hidden:
            shown = form.fields[name].prepare_value(value)
            data.setlist(name, shown if isinstance(shown, list) else [shown])
    form.data = data


@dataclass(frozen=True)
class Button:
    """Offers a verb on the page of a record: it opens the verb's form, which is sent to the address `name`.

    `icon`: of Material Symbols. `text`: what follows. `danger`: the colour of what takes something away.
    """

    name: str
    icon: str
    label: Promise
    submit: Promise
    text: Promise
    danger: bool = False


class VerbForm(forms.Form):
    """One verb: its button, who may use it, its input, the function that it calls, and the message once it is done."""

    # None: the page's template shows the form in its own way.
    button: ClassVar[Button | None] = None
    # Besides the permission to change the record.
    needs_permissions: ClassVar[tuple[str, ...]] = ()
    # For verbs that are hard to undo: the operator must have entered the password recently.
    needs_fresh_password: ClassVar[bool] = False
    calls: ClassVar[Callable[..., Any]]
    # It quotes no memory. It can name the record by its model, as in %(fact)s.
    done: ClassVar[str | Promise]
    # When attempt() called it: a change set that it made has this time.
    carried_out_at: datetime

    def __init__(self, data: Any = None, *, record: Any) -> None:
        self.record = record
        # A page has several forms: the ids of their fields must differ.
        super().__init__(data, initial=self.values_of(record), auto_id=f"{type(self).__name__.lower()}_%s")

    def values_of(self, record: Any) -> dict[str, Any]:
        """What the fields show of the record. Hidden ones say which state of it the operator saw."""
        return {}

    def offered(self) -> Button | None:
        """The button on the page of the record as it is; None: the verb does not fit it."""
        return self.button

    def arguments(self) -> dict[str, Any]:
        """What `calls` takes besides the actor and the time."""
        raise NotImplementedError

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        """Call the verb. Return the message. Errors: MemoryHubError."""
        self.calls(**self.arguments(), actor=actor, now=now)
        return str(self.done) % {self.record._meta.model_name: mention(self.record)}

    def refuse(self, error: MemoryHubError) -> None:
        """Show why the verb failed. The form keeps its input."""
        self.add_error(None, message_of(error))

    def leads_to(self) -> str:
        """The address to redirect to after success."""
        return url_of(self.record)

    def see(self, record: Any) -> None:
        """Use the current state of the record for the next attempt."""
        self.record, self.initial = record, self.values_of(record)
        show_again(self)


def verbs_of(module: ModuleType) -> dict[str, type[VerbForm]]:
    """The forms of a module that have a button, by its name, in the order in which pages show them."""
    found = [one for one in vars(module).values() if isinstance(one, type) and issubclass(one, VerbForm)]
    return {form.button.name: form for form in found if form.button}


def attempt(request: HttpRequest, form: VerbForm) -> tuple[str, HTTPStatus]:
    """Carry out a posted form: its message and 200, or "" and the status with which the page shows it again."""
    if not form.is_valid():
        return "", HTTPStatus.BAD_REQUEST
    form.carried_out_at = timezone.now()
    try:
        return form.carry_out(actor=actor_of(request), now=form.carried_out_at), HTTPStatus.OK
    except MemoryHubError as error:
        form.refuse(error)
        return "", HTTPStatus(error.status)


class VersionForm(VerbForm):
    """The input of a verb that is refused if the record has another version than the operator saw."""

    version = forms.IntegerField(widget=forms.HiddenInput)

    def values_of(self, record: Any) -> dict[str, Any]:
        return {"version": record.version}


class RecordPage(HubModelAdmin):
    """The page of a record, shown by our own template and changed only through its verbs."""

    page_template: ClassVar[str]
    list_select_related: ClassVar[tuple[str, ...]] = ()
    verbs: ClassVar[dict[str, type[VerbForm]]] = {}
    # Path converter of the record's id.
    id_kind: ClassVar[str] = "uuid"

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        records: QuerySet[Any] = super().get_queryset(request)
        return records.select_related(*self.list_select_related)

    def gather(self, request: HttpRequest, record: Any) -> dict[str, Any]:
        """The template's context of the record."""
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
        # For the way to the page, too, which has the record alone.
        record.page_name = named(record, request.user)
        return record

    def show(
        self, request: HttpRequest, record: Any, *, tried: VerbForm | None = None, status: int = 200
    ) -> TemplateResponse:
        """The page. `tried` is a rejected form, which is shown again with its input."""
        may_change = self.has_change_permission(request, record)
        verbs = {name: form for name, form in self.verbs.items() if request.user.has_perms(form.needs_permissions)}
        forms_of_page = {name: form(record=record) for name, form in verbs.items()} if may_change else {}
        for name, form in verbs.items():
            if tried is not None and isinstance(tried, form):
                forms_of_page[name] = tried
        context = {
            **self.admin_site.each_context(request),
            "title": record.page_name,
            "opts": self.opts,
            "original": record,
            "forms": forms_of_page,
            "offered": [
                (form, button, url_of(record, button.name))
                for form in forms_of_page.values()
                if (button := form.offered())
            ],
            "tried": tried,
            **self.gather(request, record),
        }
        return TemplateResponse(request, self.page_template, context, status=status)

    def carry_out(self, request: HttpRequest, object_id: str, verb: str) -> HttpResponse:
        """Run one verb: 400 for invalid input, the error's status if it fails, else `answer()`."""
        require(request, *self.verbs[verb].needs_permissions)
        record = self.find(request, object_id, may_change=True)
        if request.method != "POST":
            return HttpResponseRedirect(url_of(record))
        if self.verbs[verb].needs_fresh_password and (challenge := fresh.required(request)):
            return challenge
        form = self.verbs[verb](request.POST, record=record)
        done, status = attempt(request, form)
        if status == HTTPStatus.OK:
            return self.answer(request, form, done)
        record = self.find(request, object_id, may_change=True)
        form.see(record)
        return self.show(request, record, tried=form, status=status)

    def answer(self, request: HttpRequest, form: VerbForm, done: str) -> HttpResponse:
        """The response after success: back to the page with a message."""
        messages.success(request, done, extra_tags=self.tag_of(request, form))
        return HttpResponseRedirect(form.leads_to())

    def tag_of(self, request: HttpRequest, form: VerbForm) -> str:
        """The tag of the message after success."""
        return ""

    def get_urls(self) -> list[URLPattern]:
        return [*(self._verb_url(verb) for verb in self.verbs), *super().get_urls()]

    def _verb_url(self, verb: str) -> URLPattern:
        def view(request: HttpRequest, object_id: Any) -> HttpResponse:
            return self.carry_out(request, str(object_id), verb)

        return self._pattern(view, f"<{self.id_kind}:object_id>/{verb}/", verb)
