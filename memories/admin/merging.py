"""Two people merged: whom with, what it would do, and what it did, with its undo."""

import uuid
from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memories import curation
from memories.admin import fresh, room
from memories.admin.fields import LineField
from memories.admin.merging_wording import fields_taken, meetings, rows_of
from memories.admin.page import actor_of, url_of
from memories.admin.person_adding import LONGEST_ID, AddingPages, refuse
from memories.admin.reach import within
from memories.exceptions import MemoryHubError
from memories.models import EndUser, PersonMerge

# It moves memories of all kinds: who may only edit a person's record may not.
MAY = ("memories.change_enduser", "memories.change_fact", "memories.change_session")
MERGES_SHOWN = 25


class OtherForm(forms.Form):
    """Whom to merge with: by the caller's id, which is posted and never in an address."""

    other = LineField(
        label=gettext_lazy("External id of the other person"),
        max_length=LONGEST_ID,
        help_text=gettext_lazy("An end user of the same tenant. The next page says what a merge would do."),
    )

    def find(self, person: EndUser) -> EndUser | None:
        """The other one, as the tenant calls them; None, with an error, for nobody else."""
        found = EndUser.objects.called(person.tenant, self.cleaned_data["other"]).select_related("tenant").first()
        if found is None:
            self.add_error("other", _("This tenant has no end user of that id."))
        elif found.pk == person.pk:
            self.add_error("other", _("That is this person already."))
            return None
        return found


class MergeForm(forms.Form):
    """The confirmation: both as the preview had them, and the id that will only lead to the survivor, typed."""

    survivor = forms.UUIDField(widget=forms.HiddenInput)
    merged = forms.UUIDField(widget=forms.HiddenInput)
    generations = forms.RegexField(r"\A\d{1,9}-\d{1,9}\Z", widget=forms.HiddenInput)
    typed = LineField(label=gettext_lazy("Type the id of the person who goes"), required=False, max_length=LONGEST_ID)
    reason = LineField(
        label=gettext_lazy("Reason"),
        required=False,
        max_length=500,
        help_text=gettext_lazy("Kept with every change of a fact."),
    )

    @classmethod
    def about(cls, survivor: EndUser, merged: EndUser) -> "MergeForm":
        """Unbound, of these two as they are now."""
        return cls(initial=_pair(survivor, merged))

    def seen(self) -> tuple[int, int]:
        ours, theirs = self.cleaned_data["generations"].split("-")
        return int(ours), int(theirs)

    def see(self, survivor: EndUser, merged: EndUser) -> None:
        """Take both as they are now for the next attempt."""
        self.data = {**self.data.dict(), **_pair(survivor, merged)}  # type: ignore[attr-defined]


class MergingPages(AddingPages):
    """A page of people who can be merged; a name that leads to somebody leads to their page."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[EndUser]:
        people: QuerySet[EndUser] = super().get_queryset(request).filter(merged_into=None)
        return people

    def get_search_fields(self, request: HttpRequest) -> Sequence[str]:
        return [*super().get_search_fields(request), "names__external_id"]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        person = self._survivor_of(request, object_id)
        if person:
            messages.info(request, _("This id leads here: two people were merged, or an id was changed."))
            return HttpResponseRedirect(url_of(person))
        return super().change_view(request, object_id, form_url, extra_context)

    def merge(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Whom with; posted, what it would do; confirmed, it is done."""
        person: EndUser = self.find(request, object_id, may_change=True)
        room.check(request, *MAY)
        if request.method == "POST" and "merged" in request.POST:
            return self._confirmed(request, person)
        form = OtherForm(request.POST if request.method == "POST" else None)
        other = form.find(person) if form.is_valid() else None
        if other:
            return self._preview(request, person, person, other, MergeForm.about(person, other))
        merges = PersonMerge.objects.filter(survivor=person).select_related("merged")[:MERGES_SHOWN]
        return self.page(
            request,
            "memories/merge_people.html",
            _("Merge two people"),
            status=400 if form.is_bound else 200,
            form=form,
            person=person,
            merges=merges,
        )

    def merged(self, request: HttpRequest, merge_id: uuid.UUID) -> HttpResponse:
        """What a merge did; posted, it is undone."""
        room.check(request, *MAY)
        merge = get_object_or_404(
            within(request.user, PersonMerge.objects.select_related("survivor", "merged")), pk=merge_id
        )
        if request.method == "POST":
            return self._undo(request, merge)
        may_undo = curation.may_undo_person_merge(merge)
        counts = meetings(merge)
        return self.page(
            request,
            "memories/merge_people_done.html",
            _("Merged people"),
            merge=merge,
            may_undo=may_undo,
            counts=counts,
        )

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        own = [
            path("<uuid:object_id>/merge/", view(self.merge), name="memories_enduser_merge"),
            path("merges/<uuid:merge_id>/", view(self.merged), name="memories_enduser_merged"),
        ]
        return [*own, *super().get_urls()]

    def _confirmed(self, request: HttpRequest, person: EndUser) -> HttpResponse:
        form = MergeForm(request.POST)
        if not form.is_valid():
            raise Http404
        survivor, merged = self._both(request, person, form)
        if "swap" in request.POST:
            return self._preview(request, person, merged, survivor, MergeForm.about(merged, survivor))
        if form.cleaned_data["typed"] != merged.external_id:
            form.add_error("typed", _("This is not the id of the person who goes."))
            return self._preview(request, person, survivor, merged, form, status=400)
        if asked := fresh.required(request):
            return asked
        try:
            done = curation.merge_people(
                survivor=survivor.pk,
                merged=merged.pk,
                seen=form.seen(),
                reason=form.cleaned_data["reason"],
                actor=actor_of(request),
                now=timezone.now(),
            )
        except MemoryHubError as error:
            status = refuse(form, error)
            form.see(survivor, merged)
            return self._preview(request, person, survivor, merged, form, status=status)
        messages.success(request, _("The two are one now."))
        return HttpResponseRedirect(reverse("admin:memories_enduser_merged", args=[done.pk]))

    def _both(self, request: HttpRequest, person: EndUser, form: MergeForm) -> tuple[EndUser, EndUser]:
        """Who stays and who goes, as they are now; one of the two is the page's person. Errors: Http404."""
        ids = [form.cleaned_data[name] for name in ("survivor", "merged")]
        rows = within(request.user, EndUser.objects.themselves().filter(tenant=person.tenant_id)).select_related(
            "tenant"
        )
        found = rows.in_bulk(ids)
        if person.pk not in found or len(found) != len(ids):
            raise Http404
        return found[ids[0]], found[ids[1]]

    def _preview(
        self,
        request: HttpRequest,
        person: EndUser,
        survivor: EndUser,
        merged: EndUser,
        form: MergeForm,
        *,
        status: int = 200,
    ) -> HttpResponse:
        preview = curation.preview_person_merge(survivor=survivor, merged=merged)
        return self.page(
            request,
            "memories/merge_people_preview.html",
            _("Merge two people"),
            status=status,
            form=form,
            person=person,
            survivor=survivor,
            merged=merged,
            preview=preview,
            rows=rows_of(preview),
            meetings=meetings(preview),
            taken=fields_taken(preview),
        )

    def _undo(self, request: HttpRequest, merge: PersonMerge) -> HttpResponse:
        if asked := fresh.required(request):
            return asked
        try:
            curation.undo_person_merge(merge_id=merge.pk, actor=actor_of(request), now=timezone.now())
        except MemoryHubError as error:
            messages.error(request, error.detail)
        else:
            messages.success(request, _("They are two again, but for what changed since."))
        return HttpResponseRedirect(request.path)

    def _survivor_of(self, request: HttpRequest, object_id: str) -> EndUser | None:
        try:
            named = uuid.UUID(object_id)
        except ValueError:
            return None
        names = within(request.user, EndUser.objects.exclude(merged_into=None))
        name = names.filter(pk=named).select_related("merged_into").first()
        return name.merged_into if name and self.has_view_permission(request) else None


def _pair(survivor: EndUser, merged: EndUser) -> dict[str, str]:
    generations = f"{survivor.generation}-{merged.generation}"
    return {"survivor": str(survivor.pk), "merged": str(merged.pk), "generations": generations}
