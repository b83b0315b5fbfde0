"""The profile of a person: a page with all six sections, and a page for each with its history and its verbs."""

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from django import forms
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memories.admin.people.views import PersonViews
from memories.admin.site import reasons
from memories.admin.site.fields import TextField
from memories.admin.site.page import VerbForm, address, address_of_section, require, show_again
from memories.admin.site.reasons import ReasonField
from memories.admin.site.segments import Segment, diff
from memories.admin.site.undo import UndoViews
from memories.admin.site.wording import CUT_OUT
from memories.admin.trail.authors import names_of
from memories.audit import Actor
from memories.curation.people.external_ids import LONGEST_ID
from memories.curation.profile.sections import release_profile_section, restore_profile_section, write_profile_section
from memories.exceptions import NotFound
from memories.models import EndUser, ProfileRevision, ProfileSection, ReviewItem, Section
from memories.text.cleaning import clean_lines
from memories.verbs import undone_of

REVISIONS_SHOWN = 10
PURPOSES: dict[str, Promise] = {
    Section.WORK_CONTEXT: _("Role, company, projects and tools."),
    Section.PERSONAL_CONTEXT: _("Languages, tone and interests."),
    Section.TOP_OF_MIND: _("Current activities and concerns."),
    Section.RECENT_MONTHS: _("Events of the last months."),
    Section.EARLIER_CONTEXT: _("Events of three to twelve months ago."),
    Section.LONG_TERM_BACKGROUND: _("Stable facts: origin, education, long-standing habits."),
}


@dataclass(frozen=True)
class ShownSection:
    """A section as the pages show it; `row` is None when nobody has written it, `author` who wrote it. It is the
    agent's, or the person's own.
    """

    agent_id: str
    name: str
    label: str
    purpose: Promise
    row: ProfileSection | None
    author: str

    @classmethod
    def of(cls, section: Section, row: ProfileSection | None, agent_id: str = "") -> "ShownSection":
        author = row.get_actor_kind_display() if row else ""
        return cls(agent_id, section.value, str(section.label), PURPOSES[section], row, author)


@dataclass(frozen=True)
class SectionDiff:
    """A version of a section: its text as a diff to the version before, who made it, whether a restore changes it."""

    revision: ProfileRevision
    segments: list[Segment]
    actor: str
    restorable: bool


class SectionForm(VerbForm):
    """A verb on one section, with the version that the operator saw."""

    needs_permissions = ("memories.view_fact",)
    # The agent whose section it is; empty: the person's own.
    agent_id = forms.CharField(widget=forms.HiddenInput, required=False, max_length=LONGEST_ID, strip=False)
    section = forms.ChoiceField(choices=Section.choices, widget=forms.HiddenInput)
    version = forms.IntegerField(widget=forms.HiddenInput)
    record: EndUser

    def look_at(self, shown: ShownSection) -> None:
        """Start from the section as it is."""
        version = shown.row.version if shown.row else 0
        self.initial = {"agent_id": shown.agent_id, "section": shown.name, "version": version}
        if self.is_bound:
            show_again(self)

    def leads_to(self) -> str:
        return address_of_section(self.record.pk, self.cleaned_data["section"], self.cleaned_data["agent_id"])

    def label(self) -> str:
        return str(Section(self.cleaned_data["section"]).label)


class WriteSectionForm(SectionForm):
    summary = TextField(
        label=_("Corrected text"),
        required=False,
        max_length=4000,
        rows=6,
        help_text=_("Leave empty to serve nothing here. No job fills it."),
    )
    reason = ReasonField(*reasons.CORRECT)

    def look_at(self, shown: ShownSection) -> None:
        super().look_at(shown)
        self.initial["summary"] = shown.row.summary if shown.row else ""

    def clean_summary(self) -> str:
        # A browser sends each end of a line as two characters: the text would differ from itself.
        return clean_lines(self.cleaned_data["summary"])

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        data = dict(self.cleaned_data)
        data["expected_version"] = data.pop("version")
        row = write_profile_section(end_user=self.record, **data, actor=actor, now=now)
        cut = row is not None and row.summary != data["summary"]
        written = gettext("%(section)s is saved. Jobs and applications can no longer change it.")
        emptied = gettext("%(section)s is empty. Jobs and applications can no longer change it.")
        return (written if row else emptied) % {"section": self.label()} + (CUT_OUT if cut else "")


class RestoreSectionForm(SectionForm):
    revision = forms.UUIDField(widget=forms.HiddenInput)
    reason = ReasonField(*reasons.RESTORE)

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        data = self.cleaned_data
        named = {name: data[name] for name in ("agent_id", "section")}
        revisions = ProfileRevision.objects.filter(end_user=self.record, **named)
        revision = revisions.filter(pk=data["revision"]).select_related("extraction").first()
        if revision is None:
            raise NotFound
        restore_profile_section(
            revision=revision, expected_version=data["version"], reason=data["reason"], actor=actor, now=now
        )
        done = gettext("%(section)s is restored to version %(version)s. Jobs and applications can no longer change it.")
        return done % {"section": self.label(), "version": revision.version}


class ReleaseSectionForm(SectionForm):
    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        data = dict(self.cleaned_data)
        data["expected_version"] = data.pop("version")
        release_profile_section(end_user=self.record, **data, actor=actor, now=now)
        return gettext("%(section)s is released. The next extraction can rewrite it.") % {"section": self.label()}


class ProfileViews(UndoViews, PersonViews):
    """A page of people whose profile can be read and written section by section."""

    undo_field = "end_user"
    undo_verbs = undone_of("ProfileSection")
    undo_leads_to = "profile_all"
    undo_permissions = SectionForm.needs_permissions

    verbs: ClassVar[dict[str, type[VerbForm]]] = {
        "write_section": WriteSectionForm,
        "restore_section": RestoreSectionForm,
        "release_section": ReleaseSectionForm,
    }

    @address("<uuid:object_id>/profile/", "profile_all")
    def sections_view(self, request: HttpRequest, object_id: uuid.UUID) -> HttpResponse:
        """All six of the person or of an agent, each with the form that writes it."""
        person = self.find(request, str(object_id), may_change=False)
        require(request, *SectionForm.needs_permissions)
        page = self.render_tab(request, person, "memories/person_profile.html", {"tab": "profile"})
        shown = page.context_data or {}
        agent_id = _agent_of(request)
        rows: list[tuple[ShownSection, WriteSectionForm | None]] = []
        for section in sections_of(person, agent_id) if agent_id else shown["profile"]:
            form = WriteSectionForm(record=person) if shown["forms"] else None
            if form:
                # The forms of six sections stand on one page.
                form.auto_id = f"{section.name}_%s"
                form.look_at(section)
            rows.append((section, form))
        of_agents = ProfileSection.objects.filter(end_user=person).exclude(agent_id="").order_by("agent_id")
        agents = list(of_agents.values_list("agent_id", flat=True).distinct())
        named = {"rows": rows, "agent_id": agent_id, "agents": agents}
        page.context_data = {**shown, **named, **self.also_shown(person)}
        return page

    def also_shown(self, person: EndUser) -> dict[str, Any]:
        """What else stands on the page of the profile."""
        return {}

    @address("<uuid:object_id>/profile/<str:section>/", "profile")
    def section_view(self, request: HttpRequest, object_id: uuid.UUID, section: str) -> HttpResponse:
        person = self.find(request, str(object_id), may_change=False)
        require(request, *SectionForm.needs_permissions)
        if section not in Section.values:
            raise Http404
        if request.method not in ("GET", "HEAD"):
            return HttpResponse(status=405, headers={"Allow": "GET, HEAD"})
        return self._show_section(request, super().show(request, person), section, _agent_of(request))

    def show(
        self, request: HttpRequest, record: Any, *, tried: VerbForm | None = None, status: int = 200
    ) -> TemplateResponse:
        """The page of the person; after a refused verb on a section, the page of that section."""
        page = super().show(request, record, tried=tried, status=status)
        section = tried.data.get("section") if isinstance(tried, SectionForm) else None
        if section not in Section.values:
            return page
        return self._show_section(request, page, section, tried.data.get("agent_id", "") if tried else "")

    def _show_section(
        self, request: HttpRequest, page: TemplateResponse, section: str, agent_id: str
    ) -> TemplateResponse:
        """Turn the page of a person into that of one section."""
        shown = page.context_data or {}
        person: EndUser = shown["original"]
        named = {"agent_id": agent_id, "section": section}
        row = ProfileSection.objects.filter(end_user=person, **named).select_related("extraction__session").first()
        one = ShownSection.of(Section(section), row, agent_id)
        for form in shown["forms"].values():
            if isinstance(form, SectionForm):
                form.look_at(one)
        # A proposed text has no version; it is among the waiting.
        versions = ProfileRevision.objects.filter(end_user=person, **named).exclude(version=None)
        newest_first = versions.select_related("extraction").order_by("-version", "-id")
        history = Paginator(newest_first, REVISIONS_SHOWN).get_page(request.GET.get("page"))
        proposed = {f"proposed_section__{name}": value for name, value in named.items()}
        waiting = ReviewItem.objects.waiting().filter(end_user=person, **proposed)
        page.template_name = "memories/person_section.html"
        page.context_data = {
            **shown,
            "section": one,
            "page": history,
            "changes": _changes(list(history), row),
            "waiting": waiting.count(),
        }
        return page


def sections_of(person: EndUser, agent_id: str = "") -> list[ShownSection]:
    """All six in their order, with the runs and sessions that they rest on; one query."""
    written = ProfileSection.objects.filter(end_user=person, agent_id=agent_id).select_related("extraction__session")
    rows = {row.section: row for row in written}
    return [ShownSection.of(section, rows.get(section), agent_id) for section in Section]


def _agent_of(request: HttpRequest) -> str:
    """The agent whose profile the page shows; empty: the person's own."""
    return request.GET.get("agent", "")[:LONGEST_ID].replace("\0", "")


def _changes(revisions: list[ProfileRevision], row: ProfileSection | None) -> list[SectionDiff]:
    names = names_of(revisions)
    return [
        SectionDiff(
            revision=revision,
            segments=diff(revision.before, revision.after),
            actor=names.get(revision.actor_id, revision.get_actor_kind_display()),
            restorable=row is not None and revision.after not in ("", row.summary),
        )
        for revision in revisions
    ]
