"""A person added by hand, and another id for one: pages that say what it means before it is done."""

from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldBooleanSwitchWidget

from memories import curation
from memories.admin.fields import LineField
from memories.admin.naming import called
from memories.admin.page import RecordPage, actor_of, said_of, url_of
from memories.admin.person_fields import RecordFields
from memories.admin.reach import tenants_of
from memories.exceptions import InvalidInput, MemoryHubError
from memories.models import EndUser, Tenant

LONGEST_ID = 255


class AddForm(RecordFields):
    field_order = ("tenant", "external_id")
    tenant = forms.ModelChoiceField(
        Tenant.objects.none(),
        label=gettext_lazy("Tenant"),
        widget=UnfoldAdminSelectWidget,
        empty_label=gettext_lazy("Choose a tenant"),
    )
    external_id = LineField(
        label=gettext_lazy("External id"),
        max_length=LONGEST_ID,
        help_text=gettext_lazy("What the application calls this person: user_id in the API."),
    )

    def __init__(self, request: HttpRequest) -> None:
        super().__init__(request.POST if request.method == "POST" else None)
        self.fields["tenant"].queryset = tenants_of(request.user)  # type: ignore[attr-defined]


class IdForm(forms.Form):
    # What the operator saw: another id by now is to be seen first.
    was = forms.CharField(widget=forms.HiddenInput, strip=False)
    external_id = LineField(
        label=gettext_lazy("New id"),
        max_length=LONGEST_ID,
        help_text=gettext_lazy("What the application calls this person from now on."),
    )
    keeps_old = forms.BooleanField(
        label=gettext_lazy("The old id leads here, too"),
        required=False,
        initial=True,
        widget=UnfoldBooleanSwitchWidget,
        help_text=gettext_lazy("Off: the next turn under the old id makes a new person."),
    )


def refuse(form: forms.Form, error: MemoryHubError) -> int:
    """Tell why it was not done beside what was typed; the status of the answer."""
    if isinstance(error, InvalidInput) and error.faults:
        form.add_error(error.faults[0].pointer, error.faults[0].detail)
    else:
        form.add_error(None, said_of(error))
    return error.status


class AddingPages(RecordPage):
    """A page of people with an Add button and the verb that changes an id."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("memories.add_enduser")

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The form; a valid one leads to the page of the new person."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = AddForm(request)
        status = 400 if form.is_bound else 200
        if form.is_valid():
            given = dict(form.cleaned_data)
            named = {name: given.pop(name) for name in ("tenant", "external_id")}
            try:
                person = curation.add_person(**named, record=given, actor=actor_of(request), now=timezone.now())
            except MemoryHubError as error:
                status = refuse(form, error)
            else:
                messages.success(request, _("%(person)s is added.") % {"person": called(person)})
                return HttpResponseRedirect(url_of(person))
        return self.page(request, "memories/person_add.html", _("New end user"), status=status, form=form)

    def change_id(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The form with what it means; a valid one leads back to the person."""
        person: EndUser = self.find(request, object_id, may_change=True)
        form = IdForm(request.POST if request.method == "POST" else None, initial={"was": person.external_id})
        status = 400 if form.is_bound else 200
        if form.is_valid():
            person.external_id = form.cleaned_data["was"]
            wanted = {name: form.cleaned_data[name] for name in ("external_id", "keeps_old")}
            try:
                curation.change_external_id(end_user=person, **wanted, actor=actor_of(request), now=timezone.now())
            except MemoryHubError as error:
                status = refuse(form, error)
            else:
                messages.success(request, _("%(person)s has another id now.") % {"person": called(person)})
                return HttpResponseRedirect(url_of(person))
            person = self.find(request, object_id, may_change=True)
            form.data = {**form.data.dict(), "was": person.external_id}  # type: ignore[attr-defined]
        names = person.names.order_by("created_at")
        return self.page(
            request,
            "memories/person_change_id.html",
            _("Change an id"),
            status=status,
            form=form,
            person=person,
            names=names,
        )

    def page(
        self, request: HttpRequest, template: str, title: str, *, status: int = 200, **shown: Any
    ) -> TemplateResponse:
        """One of our pages about people."""
        context = {**self.admin_site.each_context(request), "title": title, "opts": self.opts, **shown}
        return TemplateResponse(request, template, context, status=status)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.change_id)
        own = path("<uuid:object_id>/change_id/", view, name="memories_enduser_change_id")
        return [own, *super().get_urls()]
