"""Merging two people: choosing the other one, a preview, the merge, and a page of what it did with its undo."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from django import forms
from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memories.admin.access import fresh
from memories.admin.access.tenant_scope import within
from memories.admin.people.adding import LONGEST_ID, PersonAddingViews, add_refusal
from memories.admin.people.finding import find_person
from memories.admin.site import reasons
from memories.admin.site.fields import LineField, PersonField
from memories.admin.site.page import actor_of, address, render_page, require, show_again, url_of
from memories.admin.site.reasons import ReasonField
from memories.curation.people.merging.merge import PersonMergePreview, merge_people, preview_person_merge
from memories.curation.people.merging.profile import SectionOutcome
from memories.curation.people.merging.undo import may_undo_person_merge
from memories.curation.reverting import revert
from memories.exceptions import MemoryHubError
from memories.models import ChangeSet, EndUser, Section, Tenant
from memories.models.ids import parse_uuid

# A merge moves memories of all kinds, so the permission to edit a person's record is not enough.
MAY = ("memories.change_enduser", "memories.change_fact", "memories.change_session")
MERGES_SHOWN = 25

Words = str | Promise
# What the preview counts of each of the two → its label.
COUNT_LABELS: Mapping[str, Words] = {
    "sessions": _("Sessions"),
    "turns": _("Turns"),
    "active": _("Active facts"),
    "facts": _("All facts"),
    "episodes": _("Episodes"),
    "sections": _("Profile sections"),
    "questions": _("Pending review"),
    "refusals": _("Permanently refused"),
}
FIELD_LABELS: Mapping[str, Words] = {
    "display_name": _("Display name"),
    "time_zone": _("Time zone"),
    "language": _("Language"),
    "metadata": _("Metadata"),
    "capture": _("Turns are not stored"),
    "serve": _("Memory is not served"),
}
SAME_TEXTS = (_("Duplicate facts"), _("The stronger fact stays and supersedes the other."))
ASKED = (
    _("Items for the review queue"),
    _("Two facts with the same key, and facts that were refused for the other end user."),
)
RENAMED = (_("Sessions with the same id"), _("The merged end user's sessions get a new id."))
SECTION_EFFECTS = {
    SectionOutcome.MOVED: _("Moves: only the merged end user has it."),
    SectionOutcome.WRITTEN: _("The merged end user's text replaces it."),
    SectionOutcome.ASKED: _("The remaining end user's text stays. The other text waits for review."),
    SectionOutcome.LEFT: _("Unchanged: both are the same, or the other one is empty."),
}
EFFECTS_DONE: Mapping[str, tuple[Words, Words]] = {
    "sessions": (_("Sessions"), ""),
    "facts": (_("Facts"), ""),
    "twins": SAME_TEXTS,
    "asked": ASKED,
    "renamed": RENAMED,
    "sections": (_("Profile sections"), _("Moved, written, or sent to review.")),
    "refusals": (_("Permanently refused"), ""),
    "kept": (_("Kept as is"), _("Changed after the merge.")),
}


class OtherForm(forms.Form):
    """Whom to merge with: by the external id, which is posted and never in an address."""

    other = PersonField(
        label=_("External id of the other end user"),
        max_length=LONGEST_ID,
        help_text=_("Or the name, of an end user of the same tenant. The next page previews the merge."),
    )

    def __init__(self, data: Any = None, *, tenant: Tenant) -> None:
        super().__init__(data)
        self.fields["other"].within(tenant)  # type: ignore[attr-defined]

    def find(self, person: EndUser) -> EndUser | None:
        """The other person; None, with an error, when there is none."""
        found, why_not = find_person(person.tenant, self.cleaned_data["other"])
        if found is None:
            self.add_error("other", why_not)
        elif found.pk == person.pk:
            self.add_error("other", gettext("This is the same end user."))
            return None
        return found


class MergePeopleForm(forms.Form):
    """The confirmation: both people as the preview showed them, and the id of the one who goes, typed."""

    survivor = forms.UUIDField(widget=forms.HiddenInput)
    merged = forms.UUIDField(widget=forms.HiddenInput)
    generations = forms.RegexField(r"\A\d{1,9}-\d{1,9}\Z", widget=forms.HiddenInput)
    typed = LineField(label=_("Type the id of the end user to be merged"), required=False, max_length=LONGEST_ID)
    reason = ReasonField(*reasons.MERGE_PEOPLE, longest=500, help_text=_("Optional; recorded with every changed fact."))

    @classmethod
    def about(cls, survivor: EndUser, merged: EndUser) -> "MergePeopleForm":
        """Unbound, of these two as they are now."""
        return cls(initial=cls._hidden(survivor, merged))

    def see(self, survivor: EndUser, merged: EndUser) -> None:
        """Take both as they are now for the next attempt."""
        self.initial = self._hidden(survivor, merged)
        show_again(self)

    def expected(self) -> tuple[int, int]:
        ours, theirs = self.cleaned_data["generations"].split("-")
        return int(ours), int(theirs)

    @staticmethod
    def _hidden(survivor: EndUser, merged: EndUser) -> dict[str, str]:
        generations = f"{survivor.generation}-{merged.generation}"
        return {"survivor": str(survivor.pk), "merged": str(merged.pk), "generations": generations}


class Overlap(NamedTuple):
    """Something that both people have, how often (None: it is one), and what the merge does with it."""

    name: Words
    number: int | None
    says: Words


class PersonMergingViews(PersonAddingViews):
    """A page of people who can be merged. The id of somebody who was merged leads to the page of the survivor."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[EndUser]:
        people: QuerySet[EndUser] = super().get_queryset(request).filter(merged_into=None)
        return people

    def get_search_fields(self, request: HttpRequest) -> Sequence[str]:
        return [*super().get_search_fields(request), "names__external_id"]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        aliases = within(request.user, EndUser.objects.exclude(merged_into=None))
        alias = aliases.filter(pk=parse_uuid(object_id)).select_related("merged_into").first()
        if alias and self.has_view_permission(request):
            messages.info(request, gettext("This id is an alias of this end user, because of a merge or a changed id."))
            return HttpResponseRedirect(url_of(alias.merged_into))
        return super().change_view(request, object_id, form_url, extra_context)

    @address("<uuid:object_id>/merge/")
    def merge(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The form that asks for the other person; posted, a preview; confirmed, the merge."""
        person: EndUser = self.find(request, object_id, may_change=True)
        require(request, *MAY)
        if request.method == "POST" and "merged" in request.POST:
            return self._confirm(request, person)
        form = OtherForm(request.POST if request.method == "POST" else None, tenant=person.tenant)
        other = form.find(person) if form.is_valid() else None
        if other:
            return self._preview(request, person, person, other, MergePeopleForm.about(person, other))
        merges = ChangeSet.objects.filter(end_user=person, merged__isnull=False).select_related("merged")[:MERGES_SHOWN]
        shown = {"title": gettext("Merge end users"), "opts": self.opts, "person": person, "merges": merges}
        status = 400 if form.is_bound else 200
        return render_page(request, "memories/merge_people.html", status=status, **shown, form=form)

    def _preview(
        self,
        request: HttpRequest,
        person: EndUser,
        survivor: EndUser,
        merged: EndUser,
        form: MergePeopleForm,
        *,
        status: int = 200,
    ) -> HttpResponse:
        preview = preview_person_merge(survivor=survivor, merged=merged)
        counts = [(label, preview.survivor[name], preview.merged[name]) for name, label in COUNT_LABELS.items()]
        shown = {
            "title": gettext("Merge end users"),
            "opts": self.opts,
            "form": form,
            "person": person,
            "survivor": survivor,
            "merged": merged,
            "preview": preview,
            "rows": [row for row in counts if row[1] or row[2]],
            "overlaps": overlaps_of(preview),
            "taken": [FIELD_LABELS[name] for name in preview.taken],
        }
        return render_page(request, "memories/merge_people_preview.html", status=status, **shown)

    def _confirm(self, request: HttpRequest, person: EndUser) -> HttpResponse:
        form = MergePeopleForm(request.POST)
        if not form.is_valid():
            raise Http404
        survivor, merged = self._both(request, person, form)
        if "swap" in request.POST:
            return self._preview(request, person, merged, survivor, MergePeopleForm.about(merged, survivor))
        if form.cleaned_data["typed"] != merged.external_id:
            form.add_error("typed", gettext("This is not the id of the end user to be merged."))
            return self._preview(request, person, survivor, merged, form, status=400)
        if asked := fresh.required(request):
            return asked
        try:
            done = merge_people(
                survivor=survivor.pk,
                merged=merged.pk,
                expected=form.expected(),
                reason=form.cleaned_data["reason"],
                actor=actor_of(request),
                now=timezone.now(),
            )
        except MemoryHubError as error:
            status = add_refusal(form, error)
            form.see(survivor, merged)
            return self._preview(request, person, survivor, merged, form, status=status)
        messages.success(request, gettext("End users merged."))
        return HttpResponseRedirect(reverse("admin:memories_enduser_merged", args=[done.id]))

    def _both(self, request: HttpRequest, person: EndUser, form: MergePeopleForm) -> tuple[EndUser, EndUser]:
        """Survivor and merged person as they are now; one of the two is the person of the page. Errors: Http404."""
        ids = [form.cleaned_data[name] for name in ("survivor", "merged")]
        people = EndUser.objects.themselves().filter(tenant=person.tenant_id)
        found = within(request.user, people).select_related("tenant").in_bulk(ids)
        if person.pk not in found or len(found) != len(ids):
            raise Http404
        return found[ids[0]], found[ids[1]]

    @address("merges/<uuid:merge_id>/")
    def merged(self, request: HttpRequest, merge_id: uuid.UUID) -> HttpResponse:
        """What a merge did; posted, it is undone."""
        require(request, *MAY)
        merges = ChangeSet.objects.filter(merged__isnull=False).select_related("end_user__tenant", "merged__tenant")
        merge = get_object_or_404(within(request.user, merges), pk=merge_id)
        if request.method == "POST":
            if asked := fresh.required(request):
                return asked
            try:
                revert(change_set=merge.pk, actor=actor_of(request), now=timezone.now())
            except MemoryHubError as error:
                messages.error(request, error.detail)
            else:
                messages.success(request, gettext("Merge undone; later changes were kept."))
            return HttpResponseRedirect(request.path)
        shown = {
            "title": gettext("Merged end users"),
            "opts": self.opts,
            "merge": merge,
            "may_undo": may_undo_person_merge(merge),
            "counts": effects_of(merge),
        }
        return render_page(request, "memories/merge_people_done.html", **shown)


def effects_of(merge: ChangeSet) -> list[Overlap]:
    """What the merge changed, or its undo."""
    undone = ChangeSet.objects.filter(pk=merge.reverted_by).first() if merge.reverted_by else None
    counts = (undone or merge).counts
    return [Overlap(name, counts[code], says) for code, (name, says) in EFFECTS_DONE.items() if counts.get(code)]


def overlaps_of(merge: PersonMergePreview) -> list[Overlap]:
    """What both people have."""
    found = [
        Overlap(SAME_TEXTS[0], merge.same_texts, SAME_TEXTS[1]),
        Overlap(ASKED[0], merge.same_keys + merge.refused, ASKED[1]),
        Overlap(RENAMED[0], merge.same_sessions, RENAMED[1]),
    ]
    sections = [
        Overlap(f"{agent} · {Section(name).label}" if agent else Section(name).label, None, SECTION_EFFECTS[effect])
        for (agent, name), effect in merge.sections.items()
    ]
    return [*(overlap for overlap in found if overlap.number), *sections]
