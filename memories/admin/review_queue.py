"""The queue of what waits for a decision: filters with counts, a window of the list, and what comes next."""

import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from memories.models import BatchEntry, Operator, ReviewItem

PER_PAGE = 25
# How long the key for it takes a decision back; afterwards the page of the item still does.
RECENT = timedelta(days=1)
Rows = QuerySet[ReviewItem]
# What the list shows of an item.
LISTED = (
    "kind", "state", "created_at", "fact__content", "fact__confidence", "known__content", "known__confidence",
    "proposed_section__after", "episode__summary", "episode__quality", "end_user__display_name",
    "end_user__external_id",
)  # fmt: skip
LISTED_OF = ("fact", "known", "proposed_section", "episode", "end_user")


@dataclass(frozen=True)
class Filters:
    """What the list is narrowed to, codes and ids of ours; empty: not by this."""

    kind: str = ""
    reason: str = ""
    tenant: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "Filters":
        """Those that the query names; what is none of ours is passed over."""
        kind, reason = query.get("kind", ""), query.get("reason", "")
        return cls(
            kind=kind if kind in ReviewItem.Kind else "",
            reason=reason if reason in ReviewItem.Reason else "",
            tenant=str(id_of(query.get("tenant", "")) or ""),
        )

    def named(self) -> dict[str, str]:
        return {name: value for name, value in vars(self).items() if value}

    def query(self, **more: Any) -> str:
        """The query of an address with its question mark, or nothing."""
        given = {**self.named(), **{name: value for name, value in more.items() if value}}
        return f"?{urlencode(given)}" if given else ""

    def narrow(self, rows: Rows) -> Rows:
        return rows.filter(**self.named()) if self.named() else rows


@dataclass(frozen=True)
class Option:
    """A value that one filter may have, how it reads, and how many items would be left."""

    value: str
    label: str
    count: int
    chosen: bool


@dataclass(frozen=True)
class Facet:
    """One filter: its name in the address, how it reads when it does not filter, and its values, the most first."""

    name: str
    label: str
    everything: str
    options: Sequence[Option]


@dataclass(frozen=True)
class Window:
    """Some items of the list in their order, and with which item the windows before and after begin."""

    items: Sequence[ReviewItem]
    earlier: ReviewItem | None = None
    later: ReviewItem | None = None


@dataclass(frozen=True)
class Counts:
    """How many items wait, of each kind, reason and tenant; read once."""

    rows: Sequence[tuple[str, str, uuid.UUID, str, int]]

    @property
    def everything(self) -> int:
        return sum(row[-1] for row in self.rows)

    def left(self, filters: Filters) -> int:
        return sum(row[-1] for row in self._fitting(filters))

    def facets(self, filters: Filters) -> list[Facet]:
        """One filter for each of the three, counted with the other two; a filter with one value only is none."""
        kinds, reasons = dict(ReviewItem.Kind.choices), dict(ReviewItem.Reason.choices)
        slugs = {str(row[2]): row[3] for row in self.rows}
        facets = [
            self._facet("kind", 0, kinds, filters, (_("Kind"), _("All kinds"))),
            self._facet("reason", 1, reasons, filters, (_("Reason"), _("All reasons"))),
            self._facet("tenant", 2, slugs, filters, (_("Tenant"), _("All tenants"))),
        ]
        return [facet for facet in facets if len(facet.options) > 1 or any(one.chosen for one in facet.options)]

    def _facet(
        self, name: str, place: int, labels: Mapping[str, Any], filters: Filters, words: tuple[str, str]
    ) -> Facet:
        counted: Counter[str] = Counter()
        for row in self._fitting(replace(filters, **{name: ""})):
            counted[str(row[place])] += row[-1]
        chosen = getattr(filters, name)
        if chosen in labels:
            counted.setdefault(chosen, 0)
        options = [Option(key, str(labels[key]), count, key == chosen) for key, count in counted.most_common()]
        return Facet(name, words[0], words[1], options)

    def _fitting(self, filters: Filters) -> Iterable[tuple[str, str, uuid.UUID, str, int]]:
        wanted = (filters.kind, filters.reason, filters.tenant)
        return (row for row in self.rows if all(not one or one == str(row[at]) for at, one in enumerate(wanted)))


def id_of(text: str) -> uuid.UUID | None:
    """The id that the text is; None when it is none."""
    try:
        return uuid.UUID(text)
    except ValueError:
        return None


def counts(rows: Rows) -> Counts:
    """Of the waiting ones among the rows; one query."""
    waiting = rows.filter(state=ReviewItem.State.OPEN).order_by()
    told = waiting.values_list("kind", "reason", "tenant_id", "tenant__slug").annotate(count=Count("pk"))
    return Counts(list(told))


def window(rows: Rows, start: ReviewItem | None) -> Window:
    """The list from `start` on, the oldest first; two queries. `start` may have been decided meanwhile."""
    listed = rows.select_related(None).select_related(*LISTED_OF).only(*LISTED)
    onwards = listed.filter(Q(pk=start.pk) | _after(start)) if start else listed
    found = list(onwards.order_by("created_at", "pk")[: PER_PAGE + 1])
    before = rows.filter(_before(start)).order_by("-created_at", "-pk") if start else rows.none()
    back = list(before.only("pk", "created_at").select_related(None)[:PER_PAGE])
    later = found[PER_PAGE] if len(found) > PER_PAGE else None
    return Window(found[:PER_PAGE], back[-1] if back else None, later)


def following(rows: Rows, item: ReviewItem) -> ReviewItem | None:
    return rows.filter(_after(item)).order_by("created_at", "pk").first()


def previous(rows: Rows, item: ReviewItem) -> ReviewItem | None:
    return rows.filter(_before(item)).order_by("-created_at", "-pk").first()


def next_of(rows: Rows, item: ReviewItem) -> ReviewItem | None:
    """What to look at once the item is decided: the next, or from the beginning what was passed over."""
    return following(rows, item) or rows.order_by("created_at", "pk").first()


@dataclass(frozen=True)
class Latest:
    """The operator's own last decision, and the batch that it was made in, if it was made in one."""

    item: ReviewItem
    batch_id: uuid.UUID | None


def latest(rows: Rows, operator: Operator, *, now: datetime) -> Latest | None:
    """What an undo would take back: of the last day, each decision once; two queries."""
    own = rows.filter(decided_by=str(operator.pk), decided_at__gt=now - RECENT).exclude(change_set=None)
    item = own.order_by("-decided_at", "-pk").first()
    if item is None:
        return None
    entries = BatchEntry.objects.filter(item=item, change_set=item.change_set, undone=False)
    return Latest(item, entries.values_list("batch", flat=True).first())


def _after(item: ReviewItem) -> Q:
    return Q(created_at__gt=item.created_at) | Q(created_at=item.created_at, pk__gt=item.pk)


def _before(item: ReviewItem) -> Q:
    return Q(created_at__lt=item.created_at) | Q(created_at=item.created_at, pk__lt=item.pk)
