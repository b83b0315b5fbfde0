"""A person's timeline: turns, facts, episodes and edits, newest first, read page by page behind a cursor."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from itertools import groupby
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Model, Q, QuerySet
from django.db.models.functions import Left, Length
from django.utils import timezone
from django.utils.dateparse import parse_date
from django.utils.translation import gettext_lazy as _

from memories.models import AuditEvent, EndUser, Episode, Fact, FactRevision, ProfileRevision, Turn

PAGE = 50
CLIP = 1_000
# Between the values of a cursor; none of them holds it.
BETWEEN = "~"
# Kind → the label of its filter.
KINDS = {"": _("All"), "turn": _("Turns"), "fact": _("Facts"), "episode": _("Episodes"), "edit": _("Edits")}


@dataclass(frozen=True)
class Source:
    """Rows of one table: `order` is what they are sorted by, newest first; its first field says when."""

    name: str
    kind: str
    permission: str
    model: type[Model]
    rows: Callable[[EndUser], QuerySet[Any]]
    order: tuple[str, ...] = ("created_at", "id")

    def key(self, row: Any) -> list[Any]:
        return [getattr(row, name) for name in self.order]


@dataclass(frozen=True)
class Item:
    """One thing that happened."""

    source: Source
    row: Any

    @property
    def moment(self) -> datetime:
        moment: datetime = getattr(self.row, self.source.order[0])
        return moment

    @property
    def template(self) -> str:
        return f"memories/timeline_{self.source.name}.html"


@dataclass(frozen=True)
class Leaf:
    """Some of the items, newest first; `older` is the cursor of those behind them, empty at the end."""

    items: list[Item]
    older: str = ""

    def days(self) -> list[tuple[date, list[Item]]]:
        """By the days of the time zone in force."""
        return [(day, list(items)) for day, items in groupby(self.items, key=lambda item: local_day(item.moment))]


@dataclass(frozen=True)
class Wish:
    """What of the timeline is asked for; what cannot be read asks for its beginning."""

    kind: str = ""
    before: str = ""
    day: date | None = None

    @classmethod
    def of(cls, given: Any) -> "Wish":
        """From the query of an address."""
        kind = given.get("kind", "")
        return cls(kind if kind in KINDS else "", given.get("before", ""), _day(given.get("day", "")))


def local_day(moment: datetime) -> date:
    return timezone.localtime(moment).date()


def read(person: EndUser, sources: Iterable[Source], wish: Wish) -> Leaf:
    """A page of what the sources tell of the person; a query for each source of the kind."""
    found: list[Item] = []
    for source in sources:
        if wish.kind in ("", source.kind):
            rows = source.rows(person).filter(_bounds(source, wish)).order_by(*(f"-{name}" for name in source.order))
            found += [Item(source, row) for row in rows[: PAGE + 1]]
    # Stable: of one moment what came of a turn stands above it, as the sources do.
    found.sort(key=lambda item: item.moment, reverse=True)
    shown = found[:PAGE]
    return Leaf(shown, _cursor(shown[-1]) if len(found) > PAGE else "")


def sources_for(may: Callable[[str], bool]) -> list[Source]:
    """Those that somebody with these permissions may see."""
    return [source for source in SOURCES if may(f"memories.{source.permission}")]


def _turns(person: EndUser) -> QuerySet[Turn]:
    """The text of each clipped in the database: a message may hold a megabyte."""
    clipped = Turn.objects.filter(end_user=person).annotate(start=Left("content", CLIP), length=Length("content"))
    return clipped.defer("content", "parts", "terms", "tool_calls", "metadata")


def _facts(person: EndUser) -> QuerySet[Fact]:
    return Fact.objects.filter(end_user=person).defer("raw", "structured", "terms")


def _fact_edits(person: EndUser) -> QuerySet[FactRevision]:
    """Without the first version, which is the fact itself."""
    return FactRevision.objects.filter(fact__end_user=person, version__gt=1)


def _profile_edits(person: EndUser) -> QuerySet[ProfileRevision]:
    """Without what was proposed only."""
    return ProfileRevision.objects.filter(end_user=person, version__isnull=False)


def _events(person: EndUser) -> QuerySet[AuditEvent]:
    return AuditEvent.objects.filter(object_id=person.pk)


def _episodes(person: EndUser) -> QuerySet[Episode]:
    return Episode.objects.filter(end_user=person).defer("terms")


# Of what happened at one moment the former stand above the latter.
SOURCES = (
    Source("record", "edit", "view_auditevent", AuditEvent, _events),
    Source("profile", "edit", "view_fact", ProfileRevision, _profile_edits),
    Source("revision", "edit", "view_fact", FactRevision, _fact_edits),
    Source("fact", "fact", "view_fact", Fact, _facts),
    Source("episode", "episode", "view_episode", Episode, _episodes, ("ended_at", "id")),
    Source("turn", "turn", "view_session", Turn, _turns, ("created_at", "session_id", "number")),
)
_RANKS = {source.name: rank for rank, source in enumerate(SOURCES)}


def _cursor(item: Item) -> str:
    values = item.source.key(item.row)
    return BETWEEN.join([item.source.name, values[0].isoformat(), *map(str, values[1:])])


def _bounds(source: Source, wish: Wish) -> Q:
    """What lies behind the cursor, or up to the end of the day."""
    name, *values = wish.before.split(BETWEEN)
    if name not in _RANKS:
        return _until(source, wish.day)
    at = SOURCES[_RANKS[name]]
    key = _parsed(at, values)
    if key is None:
        return Q()
    if source is at:
        return _behind(source.order, key)
    return Q(**{f"{source.order[0]}__{'lte' if _RANKS[source.name] > _RANKS[name] else 'lt'}": key[0]})


def _behind(order: Sequence[str], key: Sequence[Any]) -> Q:
    """Rows that come after `key` where all are sorted by `order`, downwards."""
    behind = Q(**{f"{order[-1]}__lt": key[-1]})
    for name, value in zip(reversed(order[:-1]), reversed(key[:-1]), strict=True):
        behind = Q(**{f"{name}__lt": value}) | Q(**{name: value}) & behind
    # Said again, for an index is read up to it.
    return Q(**{f"{order[0]}__lte": key[0]}) & behind


def _parsed(source: Source, values: Sequence[str]) -> list[Any] | None:
    """The values of a cursor; None when somebody made them up."""
    if len(values) != len(source.order):
        return None
    fields: list[Any] = [source.model._meta.get_field(name) for name in source.order]
    try:
        key = [field.to_python(value) for field, value in zip(fields, values, strict=True)]
    except (ValidationError, OverflowError):
        return None
    return key if timezone.is_aware(key[0]) else None


def _until(source: Source, day: date | None) -> Q:
    if day is None:
        return Q()
    end = datetime.combine(day + timedelta(days=1), time.min, timezone.get_current_timezone())
    return Q(**{f"{source.order[0]}__lt": end})


def _day(text: str) -> date | None:
    """The day; None for none, for what is none, and for the end of the calendar."""
    try:
        day = parse_date(text)
    except ValueError:
        return None
    return day if day and day.year < date.max.year else None
