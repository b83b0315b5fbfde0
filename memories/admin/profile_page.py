"""The sections of a person's profile on the person's page, and a page for each: its text, its history, its verbs."""

import uuid
from dataclasses import dataclass
from typing import Any, ClassVar

from django.core.exceptions import PermissionDenied
from django.core.paginator import Page as Leaf
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from memories.admin.authors import names_of, unnamed
from memories.admin.page import VerbForm
from memories.admin.person_views import PersonViews
from memories.admin.profile_forms import ReleaseSectionForm, RestoreSectionForm, SectionForm, WriteSectionForm
from memories.admin.segments import Segment, diff
from memories.models import EndUser, ProfileRevision, ProfileSection, ReviewItem, Section

REVISIONS_SHOWN = 10
PURPOSES: dict[str, Promise] = {
    Section.WORK_CONTEXT: _("Role, company, projects and tools."),
    Section.PERSONAL_CONTEXT: _("Languages, tone and interests."),
    Section.TOP_OF_MIND: _("What they are busy with these days."),
    Section.RECENT_MONTHS: _("What went on in the last months."),
    Section.EARLIER_CONTEXT: _("What went on three to twelve months ago."),
    Section.LONG_TERM_BACKGROUND: _("What hardly changes: origin, training, long-standing ways."),
}


@dataclass(frozen=True)
class Shown:
    """A section as the pages show it; `row` is None when nobody has written it, `author` who wrote it."""

    name: str
    label: str
    purpose: Promise
    row: ProfileSection | None
    author: str


@dataclass(frozen=True)
class Change:
    """One version of a section: its text as a diff to the one before, who made it, and whether to go back to it."""

    revision: ProfileRevision
    segments: list[Segment]
    actor: str
    restorable: bool


def sections(person: EndUser) -> list[Shown]:
    """All six in their order, with the runs and sessions that they rest on; one query."""
    written = ProfileSection.objects.filter(end_user=person).select_related("extraction__session")
    rows = {row.section: row for row in written}
    return [_shown(section, rows.get(section)) for section in Section]


class ProfilePages(PersonViews):
    """A page of people whose profile can be read and written section by section."""

    verbs: ClassVar[dict[str, type[VerbForm]]] = {
        "write_section": WriteSectionForm,
        "restore_section": RestoreSectionForm,
        "release_section": ReleaseSectionForm,
    }

    def sections_view(self, request: HttpRequest, object_id: uuid.UUID) -> HttpResponse:
        """All six, each with the form that writes it."""
        person = self.find(request, str(object_id), may_change=False)
        _must_see_memory(request)
        page = self.framed(request, person, "memories/person_profile.html", {"tab": "profile"})
        shown = page.context_data or {}
        rows = [(one, _writing(one, person) if shown["forms"] else None) for one in shown["profile"]]
        page.context_data = {**shown, "rows": rows}
        return page

    def section_view(self, request: HttpRequest, object_id: uuid.UUID, section: str) -> HttpResponse:
        person = self.find(request, str(object_id), may_change=False)
        _must_see_memory(request)
        if section not in Section.values:
            raise Http404
        if request.method not in ("GET", "HEAD"):
            return HttpResponse(status=405, headers={"Allow": "GET, HEAD"})
        return self._show_section(request, super().show(request, person), section)

    def carry_out(self, request: HttpRequest, object_id: str, verb: str) -> HttpResponse:
        if issubclass(self.verbs[verb], SectionForm):
            _must_see_memory(request)
        return super().carry_out(request, object_id, verb)

    def show(
        self, request: HttpRequest, record: Any, *, tried: VerbForm | None = None, status: int = 200
    ) -> TemplateResponse:
        """The person's page; after a refused verb of a section the page of that."""
        page = super().show(request, record, tried=tried, status=status)
        section = tried.data.get("section") if isinstance(tried, SectionForm) else None
        return self._show_section(request, page, section) if section in Section.values else page

    def _show_section(self, request: HttpRequest, page: TemplateResponse, section: str) -> TemplateResponse:
        """The page of a person turned into that of one section."""
        shown = page.context_data or {}
        person: EndUser = shown["original"]
        row = ProfileSection.objects.filter(end_user=person, section=section).select_related("extraction__session")
        about = _shown(Section(section), row.first())
        for form in shown["forms"].values():
            if isinstance(form, SectionForm):
                form.look_at(section, about.row)
        leaf = _versions(person, section, request.GET.get("page"))
        page.template_name = "memories/person_section.html"
        about_history = {"page": leaf, "changes": _changes(leaf, about.row), "waiting": _waiting(person, section)}
        page.context_data = {**shown, "section": about, **about_history}
        return page

    def get_urls(self) -> list[URLPattern]:
        name = f"{self.opts.app_label}_{self.opts.model_name}_profile"
        one, all_six = self.admin_site.admin_view(self.section_view), self.admin_site.admin_view(self.sections_view)
        return [
            path("<uuid:object_id>/profile/", all_six, name="memories_enduser_profile_all"),
            path("<uuid:object_id>/profile/<str:section>/", one, name=name),
            *super().get_urls(),
        ]


def _writing(section: Shown, person: EndUser) -> WriteSectionForm:
    """The form of a section that stands beside those of the others."""
    form = WriteSectionForm(record=person)
    form.auto_id = f"{section.name}_%s"
    form.look_at(section.name, section.row)
    return form


def _must_see_memory(request: HttpRequest) -> None:
    if not request.user.has_perm("memories.view_fact"):
        raise PermissionDenied


def _shown(section: Section, row: ProfileSection | None) -> Shown:
    author = unnamed(row.actor_kind) if row else ""
    return Shown(name=section.value, label=str(section.label), purpose=PURPOSES[section], row=row, author=author)


def _versions(person: EndUser, section: str, number: str | None) -> Leaf[ProfileRevision]:
    """Newest first; what was only proposed is not among them."""
    rows = ProfileRevision.objects.filter(end_user=person, section=section).exclude(version=None)
    rows = rows.select_related("extraction").order_by("-version", "-id")
    return Paginator(rows, REVISIONS_SHOWN).get_page(number)


def _waiting(person: EndUser, section: str) -> int:
    """How many proposed texts a person is to decide."""
    return ReviewItem.objects.waiting().filter(end_user=person, proposed_section__section=section).count()


def _changes(leaf: Leaf[ProfileRevision], row: ProfileSection | None) -> list[Change]:
    rows = list(leaf)
    names = names_of(rows)
    return [
        Change(
            revision=one,
            segments=diff(one.before, one.after),
            actor=names.get(one.actor_id, unnamed(one.actor_kind)),
            restorable=row is not None and one.after not in ("", row.summary),
        )
        for one in rows
    ]
