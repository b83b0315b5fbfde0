"""A person's timeline: turns, facts, episodes and edits, newest first, one page after the other behind a cursor.

`read` merges the newest rows of all sources into a page. `days_of` groups a page by days and adds what only edits show:
the author, the text as a diff, and the other fields that changed.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from itertools import groupby
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import DateTimeField, Q, QuerySet
from django.db.models.functions import Left, Length
from django.utils import timezone
from django.utils.dateparse import parse_date
from django.utils.translation import gettext_lazy as _

from memories.admin.facts.detail import FieldChange, changes_of, text_diff
from memories.admin.site.segments import Segment, diff
from memories.admin.trail.authors import names_of
from memories.admin.trail.redactions import sign_redactions
from memories.models import SAID_AT, AuditEvent, EndUser, Episode, Fact, FactRevision, ProfileRevision, Section, Turn
from memories.models.keyset import beyond

PAGE = 50
CLIP = 1_000
# None of the values of a cursor contains it.
CURSOR_SEPARATOR = "~"
# Kind → the label of its filter.
KINDS = {"": _("All"), "turn": _("Turns"), "fact": _("Facts"), "episode": _("Episodes"), "edit": _("Edits")}
# Of an edited fact the timeline shows these fields; the page of the fact shows the others, too.
SHOWN_FIELDS = ("status", "category", "confidence", "importance", "pinned", "locked", "scope", "key", "value", "tags")


@dataclass(frozen=True)
class TimelineSource:
    """Rows of one table, sorted by `order` downwards; its first field is the moment. `person` names their person."""

    name: str
    kind: str
    permission: str
    rows: QuerySet[Any]
    person: str = "end_user"
    order: tuple[str, ...] = ("created_at", "id")


@dataclass
class TimelineItem:
    """One thing that happened. `actor` and what follows are filled for edits alone."""

    source: TimelineSource
    row: Any
    actor: str = ""
    segments: Sequence[Segment] = ()
    others: Sequence[FieldChange] = ()
    section: str = ""

    @property
    def moment(self) -> datetime:
        moment: datetime = getattr(self.row, self.source.order[0])
        return moment

    @property
    def template(self) -> str:
        return f"memories/timeline_{self.source.name}.html"


@dataclass(frozen=True)
class TimelinePage:
    """Some items, newest first; `older` is the cursor of the next page, empty at the end."""

    items: list[TimelineItem]
    older: str = ""


@dataclass(frozen=True)
class TimelineFilters:
    """What to show: a kind, what lies behind the cursor `before`, what happened up to a day."""

    kind: str = ""
    before: str = ""
    day: date | None = None

    @classmethod
    def of(cls, query: Any) -> "TimelineFilters":
        """From the query of an address; values that cannot be read do not filter."""
        kind = query.get("kind", "")
        return cls(kind if kind in KINDS else "", query.get("before", ""), _parse_day(query.get("day", "")))


def _parse_day(text: str) -> date | None:
    try:
        day = parse_date(text)
    except ValueError:
        return None
    # The last year has a day without a next one.
    return day if day and day.year < date.max.year else None


# Of what happened at one moment, rows of the former stand above those of the latter.
SOURCES = (
    TimelineSource("record", "edit", "view_auditevent", AuditEvent.objects.all(), "object_id"),
    # A text that was only proposed has no version.
    TimelineSource("profile", "edit", "view_fact", ProfileRevision.objects.filter(version__isnull=False)),
    # The first version is the fact itself.
    TimelineSource("revision", "edit", "view_fact", FactRevision.objects.filter(version__gt=1), "fact__end_user"),
    TimelineSource("fact", "fact", "view_fact", Fact.objects.defer("raw", "structured", "terms")),
    TimelineSource("episode", "episode", "view_episode", Episode.objects.defer("terms"), order=("ended_at", "id")),
    TimelineSource(
        "turn",
        "turn",
        "view_session",
        # By its own time: an imported one may be years old. The database clips the text: a message may hold a megabyte.
        Turn.objects.annotate(dated=SAID_AT, start=Left("content", CLIP), length=Length("content")).defer(
            "content", "parts", "terms", "tool_calls", "metadata"
        ),
        order=("dated", "session_id", "number"),
    ),
)
_POSITIONS = {source.name: position for position, source in enumerate(SOURCES)}


def sources_for(has_perm: Callable[[str], bool]) -> list[TimelineSource]:
    """Those that somebody with these permissions may see."""
    return [source for source in SOURCES if has_perm(f"memories.{source.permission}")]


def read(person: EndUser, sources: Iterable[TimelineSource], filters: TimelineFilters) -> TimelinePage:
    """A page of the person's timeline; one query for each source of the kind."""
    found: list[TimelineItem] = []
    for source in sources:
        if filters.kind in ("", source.kind):
            mine = source.rows.filter(**{source.person: person.pk})
            rows = mine.filter(_bounds(source, filters)).order_by(*(f"-{name}" for name in source.order))
            found += [TimelineItem(source, row) for row in rows[: PAGE + 1]]
    # The sort is stable: items of one moment keep the order of their sources.
    found.sort(key=lambda item: item.moment, reverse=True)
    shown = found[:PAGE]
    return TimelinePage(shown, _cursor(shown[-1]) if len(found) > PAGE else "")


def _cursor(item: TimelineItem) -> str:
    moment, *rest = (getattr(item.row, name) for name in item.source.order)
    return CURSOR_SEPARATOR.join([item.source.name, moment.isoformat(), *map(str, rest)])


def _bounds(source: TimelineSource, filters: TimelineFilters) -> Q:
    """What lies behind the cursor, or without a cursor up to the end of the day."""
    name, *values = filters.before.split(CURSOR_SEPARATOR)
    if name not in _POSITIONS:
        if filters.day is None:
            return Q()
        end = datetime.combine(filters.day + timedelta(days=1), time.min, timezone.get_current_timezone())
        return Q(**{f"{source.order[0]}__lt": end})
    last = SOURCES[_POSITIONS[name]]
    key = _parse_cursor(last, values)
    if key is None:
        return Q()
    if source is last:
        return beyond(source.order, key, "lt")
    return Q(**{f"{source.order[0]}__{'lte' if _POSITIONS[source.name] > _POSITIONS[name] else 'lt'}": key[0]})


def _parse_cursor(source: TimelineSource, values: Sequence[str]) -> list[Any] | None:
    """The values of a cursor; None when somebody made them up."""
    if len(values) != len(source.order):
        return None
    _moment, *names = source.order
    # All moments are alike, and a turn's is not a column.
    fields: list[Any] = [DateTimeField(), *(source.rows.model._meta.get_field(name) for name in names)]
    try:
        key = [field.to_python(value) for field, value in zip(fields, values, strict=True)]
    except (ValidationError, OverflowError):
        return None
    return key if timezone.is_aware(key[0]) else None


def days_of(page: TimelinePage) -> list[tuple[date, list[TimelineItem]]]:
    """The items by days of the time zone in force, edits with their details; two queries where there are edits."""
    edits = [item for item in page.items if item.source.kind == "edit"]
    names = names_of(item.row for item in edits) if edits else {}
    for item in edits:
        _describe_edit(item, names)
    sign_redactions(item.row for item in page.items if isinstance(item.row, Turn))
    days = groupby(page.items, key=lambda item: timezone.localtime(item.moment).date())
    return [(day, list(items)) for day, items in days]


def _describe_edit(item: TimelineItem, names: dict[str, str]) -> None:
    row = item.row
    item.actor = names.get(row.actor_id, row.get_actor_kind_display())
    if isinstance(row, FactRevision):
        item.segments = text_diff(row)
        item.others = changes_of(row, SHOWN_FIELDS)
    elif isinstance(row, ProfileRevision):
        # A first text does not change another.
        item.segments = diff(row.before, row.after) if row.before else [Segment(row.after)]
        item.section = " · ".join(name for name in (row.agent_id, str(Section(row.section).label)) if name)
