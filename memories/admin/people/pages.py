"""End users: the list, and the page of each with its tabs."""

import uuid
from datetime import datetime
from typing import Any, ClassVar

from django import forms
from django.core.exceptions import PermissionDenied
from django.db.models import Count, IntegerField, OuterRef, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldBooleanSwitchWidget

from memories.admin.cases.board import cards
from memories.admin.dreams.forms import DreamNowForm, ReflectNowForm
from memories.admin.files.tree import FileTreeViews
from memories.admin.graph.drawing import GraphViews
from memories.admin.imports.told import imports_of
from memories.admin.lists import cells
from memories.admin.lists.columns import column
from memories.admin.people import timeline
from memories.admin.people.adding import RecordFields
from memories.admin.people.clearing import PersonClearingViews
from memories.admin.people.own_profiles import OwnProfileViews
from memories.admin.people.profile import sections_of
from memories.admin.people.views import MEMORY, tabs_for
from memories.admin.recall.live_context import LiveContextViews
from memories.admin.site.mentions import mention
from memories.admin.site.page import VerbForm, address
from memories.admin.site.wording import CUT_OUT
from memories.audit import Actor
from memories.curation.people.records import state_of_person, update_person
from memories.models import (
    DiaryEntry,
    EndUser,
    Episode,
    EpisodeStatus,
    ExtractionRun,
    Fact,
    MemoryGroup,
    ReviewItem,
    Session,
    Status,
)
from memories.privacy.casework.restriction import cases_of

SESSIONS_SHOWN = 25
RUNS_SHOWN = 25
ENTRIES_SHOWN = 50


class PersonForm(RecordFields, VerbForm):
    """What an operator may set of a person; never the ids."""

    capture = forms.BooleanField(
        required=False,
        widget=UnfoldBooleanSwitchWidget,
        label=gettext_lazy("Store turns"),
        help_text=gettext_lazy("If off: turns are not stored."),
    )
    serve = forms.BooleanField(
        required=False,
        widget=UnfoldBooleanSwitchWidget,
        label=gettext_lazy("Serve memory"),
        help_text=gettext_lazy("If off: contexts are empty."),
    )
    expected = forms.CharField(required=False, widget=forms.HiddenInput)

    def values_of(self, record: EndUser) -> dict[str, Any]:
        columns = self.base_fields.keys() - {"expected"}
        return {**{name: getattr(record, name) for name in columns}, "expected": state_of_person(record)}

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        expected = self.cleaned_data.pop("expected") or None
        changes = {name: value for name, value in self.cleaned_data.items() if value != getattr(self.record, name)}
        if not changes:
            return _("Nothing was changed.")
        person = update_person(end_user=self.record, changes=changes, expected=expected, actor=actor, now=now)
        cut = any(value != getattr(person, name) for name, value in changes.items())
        done = _("%(person)s is saved.") % {"person": mention(person)}
        return f"{done}{CUT_OUT if cut else ''}"


class PersonPage(PersonClearingViews, LiveContextViews, FileTreeViews, GraphViews, OwnProfileViews):
    page_template = "memories/person_timeline.html"
    verbs: ClassVar[dict[str, type[VerbForm]]] = {
        "update": PersonForm,
        "dream": DreamNowForm,
        "reflect": ReflectNowForm,
        **OwnProfileViews.verbs,
    }
    csv_columns = (
        "id", "tenant__slug", "external_id", "display_name", "language", "time_zone", "capture", "serve",
        "restricted_at", "created_at", "last_seen_at",
    )  # fmt: skip
    list_display = ("person", "tenant", "facts_active", "sessions_held", "last_seen")
    list_filter = ("tenant",)
    list_select_related = ("tenant",)
    search_fields = ("external_id", "display_name")
    search_help_text = gettext_lazy("Search by id or name")
    ordering = ("-last_seen_at",)
    empty_title = gettext_lazy("No end users yet")
    empty_hint = gettext_lazy(
        "End users appear when an application posts their turns. Create an API key, then POST /api/v1/turns."
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[EndUser]:
        people: QuerySet[EndUser] = super().get_queryset(request)
        return people.annotate(
            facts_held=_count(Fact.objects.filter(status=Status.ACTIVE)), sessions_count=_count(Session.objects.all())
        )

    @column(gettext_lazy("End user"))
    def person(self, person: EndUser) -> SafeString:
        return cells.person(person)

    @column(gettext_lazy("Active facts"))
    def facts_active(self, person: Any) -> int:
        return int(person.facts_held)

    @column(gettext_lazy("Sessions"))
    def sessions_held(self, person: Any) -> int:
        return int(person.sessions_count)

    @column(gettext_lazy("Last seen"), ordering="last_seen_at")
    def last_seen(self, person: EndUser) -> SafeString | str:
        return cells.moment(person.last_seen_at)

    def gather(self, request: HttpRequest, record: EndUser) -> dict[str, Any]:
        """What all tabs show: who the person is, and how much is stored of them."""
        has_perm = request.user.has_perm
        shown: dict[str, Any] = {"person": record, "tabs": tabs_for(has_perm), "may_recall": all(map(has_perm, MEMORY))}
        if has_perm("memories.view_fact"):
            profile = sections_of(record)
            written = any(section.row and section.row.summary for section in profile)
            by_status = Fact.objects.filter(end_user=record).order_by().values_list("status")
            counts = dict(by_status.annotate(number=Count("pk")))
            # Those that are not active come with their labels, too.
            others = [status for status in Status if status in counts and status != Status.ACTIVE]
            rest = [(status.value, status.label, counts[status]) for status in others]
            shown |= {"profile": profile, "written": written, "fact_counts": counts, "fact_rest": rest}
        if has_perm("memories.view_reviewitem"):
            # What waits is counted as its list shows it: not each item is about a pending fact.
            shown["to_review"] = ReviewItem.objects.waiting().filter(end_user=record).count()
        if has_perm("memories.view_episode"):
            shown["episode_count"] = Episode.objects.filter(end_user=record, status=EpisodeStatus.ACTIVE).count()
        if has_perm("memories.view_session"):
            shown |= record.sessions.aggregate(turn_count=Sum("turn_count", default=0), session_count=Count("pk"))
        if has_perm("memories.view_memorygroup"):
            shown["groups"] = MemoryGroup.objects.present().filter(members__end_user=record).order_by("name", "pk")
        if has_perm("memories.view_privacycase"):
            now = timezone.now()
            shown["open_cases"] = cards(cases_of(record).unanswered(now), now=now)
        return shown

    def show(
        self, request: HttpRequest, record: Any, *, tried: VerbForm | None = None, status: int = 200
    ) -> TemplateResponse:
        """The timeline, unless a refused verb leads to another page. A script fetches older days alone."""
        page = super().show(request, record, tried=tried, status=status)
        if page.template_name != self.page_template:
            return page
        filters = timeline.TimelineFilters.of(request.GET)
        sources = timeline.sources_for(request.user.has_perm)
        # Filters by kind that lead to something; with a single kind there is nothing to filter.
        visible = {"", *(source.kind for source in sources)}
        kinds = [(kind, str(label)) for kind, label in timeline.KINDS.items() if kind in visible]
        items = timeline.read(record, sources, filters)
        page.context_data = {
            **(page.context_data or {}),
            "tab": "timeline",
            "filters": filters,
            "kinds": kinds if len(kinds) > 2 else [],
            "days": timeline.days_of(items),
            "older": items.older,
            "clip": timeline.CLIP,
        }
        if request.user.has_perm("memories.view_import"):
            page.context_data["imports"] = imports_of(record)
        if request.headers.get("X-Fragment") == "timeline":
            page.template_name = "memories/timeline_days.html"
        return page

    @address("<uuid:object_id>/sessions/", "sessions")
    def sessions_view(self, request: HttpRequest, object_id: uuid.UUID) -> HttpResponse:
        """The newest sessions of a person and the newest runs over them."""
        person = self.find(request, str(object_id), may_change=False)
        if not request.user.has_perm("memories.view_session"):
            raise PermissionDenied
        sessions = person.sessions.select_related("queue", "tenant").order_by("-last_turn_at")
        shown: dict[str, Any] = {"tab": "sessions", "sessions": sessions[:SESSIONS_SHOWN]}
        if request.user.has_perm("memories.view_extractionrun"):
            shown["runs"] = ExtractionRun.objects.filter(end_user=person).select_related("end_user")[:RUNS_SHOWN]
        return self.render_tab(request, person, "memories/person_sessions.html", shown)

    @address("<uuid:object_id>/diary/", "diary")
    def diary_view(self, request: HttpRequest, object_id: uuid.UUID) -> HttpResponse:
        """What agents noted about a person, one agent's at a time; deleted entries are in the list."""
        person = self.find(request, str(object_id), may_change=False)
        if not request.user.has_perm("memories.view_diaryentry"):
            raise PermissionDenied
        entries = DiaryEntry.objects.of(person.tenant, person).present()
        counted = entries.order_by("agent_id").values("agent_id").annotate(present=Count("pk"))
        agents: Any = list(counted)
        names = [one["agent_id"] for one in agents]
        chosen = request.GET.get("agent", names[0] if names else "")
        newest = list(entries.filter(agent_id=chosen).order_by("-created_at", "-id")[: ENTRIES_SHOWN + 1])
        shown: dict[str, Any] = {"tab": "diary", "agents": agents, "agent_id": chosen, "most": ENTRIES_SHOWN}
        shown |= {"entries": newest[:ENTRIES_SHOWN], "more": len(newest) > ENTRIES_SHOWN}
        return self.render_tab(request, person, "memories/person_diary.html", shown)


def _count(rows: QuerySet[Any]) -> Coalesce:
    """The number of rows of each person, as a subquery: computed for the 25 people that are shown."""
    mine = rows.filter(end_user=OuterRef("pk")).order_by().values("end_user").annotate(number=Count("pk"))
    return Coalesce(Subquery(mine.values("number"), output_field=IntegerField()), 0)
