"""End users: the list, and a page with all that is known of one person."""

from datetime import datetime
from typing import Any, ClassVar

from django import forms
from django.db.models import Count, IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.widgets import UnfoldBooleanSwitchWidget

from memories import curation
from memories.admin import cells
from memories.admin.columns import column
from memories.admin.fields import LineField, check_language, check_zone
from memories.admin.page import VerbForm
from memories.admin.profile_page import ProfilePages, sections
from memories.admin.wording import CUT_OUT
from memories.audit import Actor
from memories.models import EndUser, Episode, EpisodeStatus, ExtractionRun, Fact, Session, Status

SHOWN = 10
FACTS_SHOWN = 25


class PersonForm(VerbForm):
    """What an operator may set of a person; never the ids."""

    display_name = LineField(required=False, max_length=255)
    time_zone = LineField(
        required=False, max_length=64, validators=[check_zone], help_text="Like Asia/Shanghai; empty: the tenant's."
    )
    language = LineField(required=False, max_length=35, validators=[check_language], help_text="Like zh-CN.")
    capture = forms.BooleanField(
        required=False, widget=UnfoldBooleanSwitchWidget, label="Store turns", help_text="Off: turns are not stored."
    )
    serve = forms.BooleanField(
        required=False, widget=UnfoldBooleanSwitchWidget, label="Serve memory", help_text="Off: contexts are empty."
    )

    def __init__(self, data: Any = None, *, record: EndUser) -> None:
        super().__init__(data, record=record)
        for name, field in self.fields.items():
            field.initial = getattr(record, name)

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        changes = {name: value for name, value in self.cleaned_data.items() if value != getattr(self.record, name)}
        if not changes:
            return "Nothing was changed."
        person = curation.update_person(end_user=self.record, changes=changes, actor=actor, now=now)
        cut = any(value != getattr(person, name) for name, value in changes.items())
        return f"{person} is saved.{CUT_OUT if cut else ''}"


class PersonPage(ProfilePages):
    page_template = "memories/person.html"
    verbs: ClassVar[dict[str, type[VerbForm]]] = {"update": PersonForm, **ProfilePages.verbs}
    list_display = ("person", "tenant", "facts_active", "sessions_held", "seen")
    list_filter = ("tenant",)
    list_select_related = ("tenant",)
    search_fields = ("external_id", "display_name")
    search_help_text = "Search by id or name"
    ordering = ("-last_seen_at",)
    empty_title = "No end users yet"
    empty_hint = "They appear when an application posts their turns: make it an API key, then POST /api/v1/turns."

    def get_queryset(self, request: HttpRequest) -> QuerySet[EndUser]:
        people: QuerySet[EndUser] = super().get_queryset(request)
        return people.annotate(
            facts_held=_count(Fact.objects.filter(status=Status.ACTIVE)), sessions_count=_count(Session.objects.all())
        )

    @column("End user")
    def person(self, person: EndUser) -> SafeString:
        return cells.person(person)

    @column("Active facts")
    def facts_active(self, person: Any) -> int:
        return int(person.facts_held)

    @column("Sessions")
    def sessions_held(self, person: Any) -> int:
        return int(person.sessions_count)

    @column("Last seen", ordering="last_seen_at")
    def seen(self, person: EndUser) -> SafeString | str:
        return cells.moment(person.last_seen_at)

    def gather(self, request: HttpRequest, record: EndUser) -> dict[str, Any]:
        shown: dict[str, Any] = {"person": record}
        if request.user.has_perm("memories.view_fact"):
            shown |= _memory(record)
        if request.user.has_perm("memories.view_episode"):
            active = Episode.objects.filter(end_user=record, status=EpisodeStatus.ACTIVE)
            shown |= {"episodes": active[:SHOWN], "episode_count": active.count()}
        if request.user.has_perm("memories.view_session"):
            shown["sessions"] = record.sessions.select_related("queue", "tenant").order_by("-last_turn_at")[:SHOWN]
        if request.user.has_perm("memories.view_extractionrun"):
            shown["runs"] = ExtractionRun.objects.filter(end_user=record)[:SHOWN]
        return shown


def _count(rows: QuerySet[Any]) -> Coalesce:
    """The number of rows of each person, as a subquery: computed for the 25 that are shown."""
    mine = rows.filter(end_user=OuterRef("pk")).order_by().values("end_user").annotate(number=Count("pk"))
    return Coalesce(Subquery(mine.values("number"), output_field=IntegerField()), 0)


def _memory(person: EndUser) -> dict[str, Any]:
    """The profile in its fixed order, the active facts, and the number of facts of each status."""
    profile = sections(person)
    counts = Fact.objects.filter(end_user=person).order_by().values("status").annotate(number=Count("pk"))
    active = Fact.objects.filter(end_user=person, status=Status.ACTIVE)
    return {
        "profile": profile,
        "profile_written": any(section.row for section in profile),
        "facts": active.order_by("-created_at", "-id")[:FACTS_SHOWN],
        "fact_counts": {row["status"]: row["number"] for row in counts},
    }
