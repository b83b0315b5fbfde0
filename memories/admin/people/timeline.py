"""A person's timeline: turns, facts, episodes and edits, newest first, one page after the other behind a cursor.

`read` merges the newest rows of all sources into a page. Where turns and all else are shown, what came of a turn stands
below it and nowhere else. `days_of` groups a page by days and adds what only edits show: the author, the text as a
diff, and the other fields that changed.
"""

import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from itertools import groupby
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import DateTimeField, Func, IntegerField, OuterRef, Q, QuerySet, Subquery, UUIDField
from django.db.models.functions import Coalesce, Left, Length
from django.utils import timezone
from django.utils.dateparse import parse_date
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memories.admin.facts.detail import FieldChange, changes_of, text_diff
from memories.admin.review.wording import headline
from memories.admin.site.segments import Segment, diff
from memories.admin.trail.authors import names_of
from memories.admin.trail.redactions import sign_redactions
from memories.admin.trail.sentences import sentence_of
from memories.models import (
    SENT_AT,
    AuditEvent,
    EndUser,
    Episode,
    Fact,
    FactEvidence,
    FactRevision,
    LoggedContext,
    ProfileRevision,
    ReviewItem,
    Section,
    Turn,
)
from memories.models.keyset import beyond

PAGE = 50
CLIP = 1_000
# None of the values of a cursor contains it.
CURSOR_SEPARATOR = "~"
# Kind → the label of its filter.
KINDS = {
    "": _("All"),
    "turn": _("Turns"),
    "fact": _("Facts"),
    "episode": _("Episodes"),
    "context": _("Contexts"),
    "review": _("Review"),
    "edit": _("Edits"),
}
# Of an edited fact the timeline shows these fields; the page of the fact shows the others, too.
SHOWN_FIELDS = ("status", "category", "confidence", "importance", "pinned", "locked", "scope", "key", "value", "tags")


@dataclass(frozen=True)
class TimelineSource:
    """Rows of one table, sorted by `order` downwards; its first field is the moment. `person` names their person.

    `turn` finds the id of the turn that a row came of, below which it stands; without it a row stands by itself. `near`
    finds by indexes what may have come of some turns, so that not every row of the person takes that look-up.
    `stay`: the rows of people who were merged into somebody stay with them.
    """

    name: str
    kind: str
    permission: str
    rows: QuerySet[Any]
    person: str = "end_user"
    order: tuple[str, ...] = ("created_at", "id")
    turn: Subquery | Coalesce | None = None
    near: Callable[[Sequence[Turn]], Q] | None = None
    stay: bool = False


@dataclass
class TimelineItem:
    """One thing that happened, and what `came` of it. `told` and what follows are filled for edits alone."""

    source: TimelineSource
    row: Any
    came: list["TimelineItem"] = field(default_factory=list)
    # What a question is about, unless that stands above it.
    about: str = ""
    # Who did what.
    told: str = ""
    segments: Sequence[Segment] = ()
    others: Sequence[FieldChange] = ()

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


def _turn_of_fact(fact: str) -> Subquery:
    """The last turn of those that a fact was first made of. What confirmed it later does not move it."""
    cited = FactEvidence.objects.filter(fact=OuterRef(fact), turn__end_user=OuterRef("end_user"))
    return Subquery(cited.order_by("created_at", "-turn_number").values("turn")[:1], output_field=UUIDField())


def _turn_of_range(session: str, last: str) -> Subquery:
    """The last turn of what an episode or a run read."""
    turns = Turn.objects.filter(session=OuterRef(session), number=OuterRef(last), end_user=OuterRef("end_user"))
    return Subquery(turns.values("pk")[:1], output_field=UUIDField())


def _reviews_near(turns: Sequence[Turn]) -> Q:
    sessions = {turn.session_id for turn in turns}
    by_fact = Q(fact__in=_cited(turns))
    return by_fact | Q(episode__session__in=sessions) | Q(extraction__session__in=sessions)


def _cited(turns: Sequence[Turn]) -> QuerySet[Any]:
    return FactEvidence.objects.filter(turn__in=[turn.pk for turn in turns]).order_by().values("fact")


# Of what happened at one moment, rows of the former stand above those of the latter.
SOURCES = (
    TimelineSource("record", "edit", "view_auditevent", AuditEvent.objects.all(), "object_id"),
    # A text that was only proposed has no version.
    TimelineSource("profile", "edit", "view_fact", ProfileRevision.objects.filter(version__isnull=False)),
    # The first version is the fact itself.
    TimelineSource("revision", "edit", "view_fact", FactRevision.objects.filter(version__gt=1), "fact__end_user"),
    TimelineSource(
        "review",
        "review",
        "view_reviewitem",
        ReviewItem.objects.all(),
        turn=Coalesce(
            _turn_of_fact("fact"),
            _turn_of_range("episode__session", "episode__last_number"),
            _turn_of_range("extraction__session", "extraction__last_number"),
        ),
        near=_reviews_near,
    ),
    TimelineSource(
        "fact",
        "fact",
        "view_fact",
        Fact.objects.defer("raw", "structured", "triples", "terms"),
        turn=_turn_of_fact("pk"),
        near=lambda turns: Q(pk__in=_cited(turns)),
    ),
    TimelineSource(
        "episode",
        "episode",
        "view_episode",
        Episode.objects.defer("terms"),
        order=("ended_at", "id"),
        turn=_turn_of_range("session", "last_number"),
        near=lambda turns: Q(
            session__in={turn.session_id for turn in turns}, last_number__in={turn.number for turn in turns}
        ),
    ),
    TimelineSource(
        "turn",
        "turn",
        "view_session",
        # By its own time: an imported one may be years old. The database clips the text: a message may hold a megabyte.
        Turn.objects.annotate(dated=SENT_AT, start=Left("content", CLIP), length=Length("content")).defer(
            "content", "parts", "terms", "tool_calls", "metadata"
        ),
        order=("dated", "session_id", "number"),
    ),
    TimelineSource(
        "context",
        "context",
        "view_loggedcontext",
        LoggedContext.objects.annotate(
            held=Func("items", function="jsonb_array_length", output_field=IntegerField())
        ).defer("items", "query", "memory", "rests_on"),
        stay=True,
    ),
)
_POSITIONS = {source.name: position for position, source in enumerate(SOURCES)}


def sources_for(has_perm: Callable[[str], bool]) -> list[TimelineSource]:
    """Those that somebody with these permissions may see."""
    return [source for source in SOURCES if has_perm(f"memories.{source.permission}")]


def read(person: EndUser, sources: Iterable[TimelineSource], filters: TimelineFilters) -> TimelinePage:
    """A page of the person's timeline; one query for each source of the kind, and one for what came of its turns."""
    chosen = [source for source in sources if filters.kind in ("", source.kind)]
    is_grouped = not filters.kind and any(source.name == "turn" for source in chosen)
    read_of: dict[str, list[TimelineItem]] = {}
    # What is older than a full page of the sources before is not on this page: rows that stand below turns, which take
    # a look-up each, are read of this span alone. Turns go first: they are most of a timeline.
    since: datetime | None = None
    for source in sorted(chosen, key=lambda source: source.name != "turn"):
        mine = _rows_of(source, person).filter(_bounds(source, filters))
        if since:
            mine = mine.filter(**{f"{source.order[0]}__gte": since})
        if is_grouped and source.turn:
            mine = mine.filter(came_of=None)
        rows = mine.order_by(*(f"-{name}" for name in source.order))
        items = read_of[source.name] = [TimelineItem(source, row) for row in rows[: PAGE + 1]]
        if len(items) > PAGE:
            since = items[-1].moment
    found = [item for source in chosen for item in read_of[source.name]]
    # The sort is stable: items of one moment keep the order of their sources.
    found.sort(key=lambda item: item.moment, reverse=True)
    shown = found[:PAGE]
    if is_grouped:
        _put_below_turns(person, shown, chosen)
    _read_subjects(shown)
    _name_subjects(shown)
    return TimelinePage(shown, _cursor(shown[-1]) if len(found) > PAGE else "")


def _rows_of(source: TimelineSource, person: EndUser) -> QuerySet[Any]:
    whose = EndUser.objects.with_aliases(person).values("pk") if source.stay else [person.pk]
    mine = source.rows.filter(**{f"{source.person}__in": whose})
    return mine.annotate(came_of=source.turn) if source.turn else mine


def _put_below_turns(person: EndUser, shown: Iterable[TimelineItem], sources: Iterable[TimelineSource]) -> None:
    """Give the turns what came of them, first made first, each memory before the questions about it."""
    turns = {item.row.pk: item for item in shown if isinstance(item.row, Turn)}
    if not turns:
        return
    found: dict[uuid.UUID, list[TimelineItem]] = defaultdict(list)
    for source in sources:
        if source.near:
            rows = _rows_of(source, person).filter(source.near([item.row for item in turns.values()]))
            for row in rows.filter(came_of__in=list(turns)).order_by(*source.order):
                found[row.came_of].append(TimelineItem(source, row))
    for turn, items in found.items():
        memories = {item.row.pk: item for item in items if not isinstance(item.row, ReviewItem)}
        below = turns[turn].came = list(memories.values())
        for item in items:
            if isinstance(item.row, ReviewItem):
                memory = memories.get(item.row.fact_id or item.row.episode_id)
                (memory.came if memory else below).append(item)


def _read_subjects(items: Iterable[TimelineItem]) -> None:
    """Read what the questions on the page are about. With these joins PostgreSQL would plan the search for what came of
    a turn ten times as long as it takes to run.
    """
    questions = [one for item in items for one in _with_what_came(item) if isinstance(one.row, ReviewItem)]
    if not questions:
        return
    whole = ReviewItem.objects.select_related("fact", "known", "episode", "proposed_section")
    rows = whole.in_bulk([item.row.pk for item in questions])
    for item in questions:
        # Deleted meanwhile, it is shown as it was.
        item.row = rows.get(item.row.pk, item.row)


def _with_what_came(item: TimelineItem) -> Iterator[TimelineItem]:
    yield item
    for one in item.came:
        yield from _with_what_came(one)


def _name_subjects(items: Iterable[TimelineItem]) -> None:
    """Let each question that does not stand below its memory say what it is about."""
    for item in items:
        if isinstance(item.row, ReviewItem):
            item.about = headline(item.row)
        elif isinstance(item.row, Turn):
            _name_subjects(item.came)


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
    who, kind, what = names.get(row.actor_id, row.get_actor_kind_display()), "Fact", ""
    if isinstance(row, FactRevision):
        item.segments = text_diff(row)
        item.others = changes_of(row, SHOWN_FIELDS)
    elif isinstance(row, ProfileRevision):
        # A first text does not change another.
        item.segments = diff(row.before, row.after) if row.before else [Segment(row.after)]
        section = " · ".join(name for name in (row.agent_id, str(Section(row.section).label)) if name)
        kind, what = "ProfileSection", gettext("Profile › %(section)s") % {"section": section}
    else:
        kind, what = "EndUser", gettext("this end user")
    item.told = sentence_of(who=who, verb=row.verb, object_type=kind, what=what)
