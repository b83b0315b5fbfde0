"""Adding a person by hand, and changing the external id of one: each page explains the effect beforehand."""

from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldBooleanSwitchWidget

from memories.admin.access.tenant_scope import tenants_of
from memories.admin.site.fields import LineField, TenantField, check_language, check_zone
from memories.admin.site.mentions import mention
from memories.admin.site.page import RecordPage, actor_of, address, message_of, render_page, show_again, url_of
from memories.curation.people.external_ids import CHANGE_ID, change_external_id
from memories.curation.people.records import add_person
from memories.curation.reverting import revert
from memories.exceptions import InvalidInput, MemoryHubError
from memories.models import ChangeSet, EndUser
from memories.models.ids import parse_uuid

LONGEST_ID = 255


class RecordFields(forms.Form):
    """What an operator may enter about a person besides the ids."""

    display_name = LineField(label=gettext_lazy("Display name"), required=False, max_length=255)
    time_zone = LineField(
        label=gettext_lazy("Time zone"),
        required=False,
        max_length=64,
        validators=[check_zone],
        help_text=gettext_lazy("Such as Asia/Shanghai. Leave empty to use the tenant's."),
    )
    language = LineField(
        label=gettext_lazy("Language"),
        required=False,
        max_length=35,
        validators=[check_language],
        help_text=gettext_lazy("Such as zh-CN."),
    )


class AddPersonForm(RecordFields):
    field_order = ("tenant", "external_id")
    tenant = TenantField()
    external_id = LineField(
        label=gettext_lazy("External id"),
        max_length=LONGEST_ID,
        help_text=gettext_lazy("The id that the application uses (user_id in the API)."),
    )

    def __init__(self, request: HttpRequest) -> None:
        super().__init__(request.POST if request.method == "POST" else None)
        self.fields["tenant"].queryset = tenants_of(request.user)  # type: ignore[attr-defined]


class ChangeIdForm(forms.Form):
    # The id that the operator saw. The verb refuses when it is another one by now.
    was = forms.CharField(widget=forms.HiddenInput, strip=False)
    external_id = LineField(
        label=gettext_lazy("New id"),
        max_length=LONGEST_ID,
        help_text=gettext_lazy("The id that the application uses from now on."),
    )
    keeps_old = forms.BooleanField(
        label=gettext_lazy("Keep the old id as an alias"),
        required=False,
        initial=True,
        widget=UnfoldBooleanSwitchWidget,
        help_text=gettext_lazy("If off: the next turn with the old id creates a new end user."),
    )


def add_refusal(form: forms.Form, error: MemoryHubError) -> int:
    """Show why the verb refused, beside what was typed. Returns the status of the answer."""
    if isinstance(error, InvalidInput) and error.faults:
        form.add_error(error.faults[0].pointer.strip("/"), error.faults[0].detail)
    else:
        form.add_error(None, message_of(error))
    return error.status


class PersonAddingViews(RecordPage):
    """A page of people with an Add button and the verb that changes an id."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("memories.add_enduser")

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = AddPersonForm(request)
        status = 400 if form.is_bound else 200
        if form.is_valid():
            record = dict(form.cleaned_data)
            named = {name: record.pop(name) for name in ("tenant", "external_id")}
            try:
                person = add_person(**named, record=record, actor=actor_of(request), now=timezone.now())
            except MemoryHubError as error:
                status = add_refusal(form, error)
            else:
                messages.success(request, _("%(person)s is added.") % {"person": mention(person)})
                return HttpResponseRedirect(url_of(person))
        shown = {"title": _("New end user"), "opts": self.opts, "form": form}
        return render_page(request, "memories/person_add.html", status=status, **shown)

    @address("<uuid:object_id>/change_id/")
    def change_id(self, request: HttpRequest, object_id: str) -> HttpResponse:
        person: EndUser = self.find(request, object_id, may_change=True)
        made = ChangeSet.objects.filter(end_user=person, verb=CHANGE_ID, undone_at=None)
        if "undo" in request.POST:
            return self._undo_change_id(request, get_object_or_404(made, pk=parse_uuid(request.POST["undo"])))
        form = ChangeIdForm(request.POST if request.method == "POST" else None, initial={"was": person.external_id})
        status = 400 if form.is_bound else 200
        if form.is_valid():
            person.external_id = form.cleaned_data["was"]
            changes = {name: form.cleaned_data[name] for name in ("external_id", "keeps_old")}
            try:
                change_external_id(end_user=person, **changes, actor=actor_of(request), now=timezone.now())
            except MemoryHubError as error:
                status = add_refusal(form, error)
            else:
                messages.success(request, _("The id of %(person)s is changed.") % {"person": mention(person)})
                return HttpResponseRedirect(url_of(person))
            person = self.find(request, object_id, may_change=True)
            form.initial = {"was": person.external_id}
            show_again(form)
        shown = {"title": _("Change id"), "opts": self.opts, "form": form, "person": person}
        names = person.names.order_by("created_at")
        return render_page(
            request, "memories/person_change_id.html", status=status, **shown, names=names, last=made.first()
        )

    def _undo_change_id(self, request: HttpRequest, made: ChangeSet) -> HttpResponse:
        try:
            revert(change_set=made.pk, actor=actor_of(request), now=timezone.now())
        except MemoryHubError as error:
            messages.error(request, message_of(error))
        else:
            messages.success(request, _("The previous id is restored; later changes were kept."))
        return HttpResponseRedirect(request.path)
