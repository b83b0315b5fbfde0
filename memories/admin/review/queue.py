"""Queries of the review queue: filters with counts, a window of the list, neighbours, and the latest decision."""

import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Case, CharField, Count, Q, QuerySet, Value, When
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memories.models import ChangeSet, Operator, ReviewItem
from memories.models.ids import parse_uuid
from memories.models.keyset import beyond

PER_PAGE = 25
# So long the queue says what was decided last, and offers its undo; afterwards the page of the item still does.
RECENT = timedelta(minutes=15)
Rows = QuerySet[ReviewItem]
# What the list shows of an item.
LISTED = (
    "kind", "state", "created_at", "taken_by", "tenant", "fact__content", "fact__confidence",
    "known__content", "known__confidence", "proposed_section__after", "episode__summary", "episode__quality",
    "end_user__display_name", "end_user__external_id",
)  # fmt: skip
LISTED_OF = ("fact", "known", "proposed_section", "episode", "end_user")


ME, NOBODY, OTHERS = "me", "nobody", "others"
# Who has an item, for the operator who looks.
HOLDERS = {ME: gettext_lazy("With me"), NOBODY: gettext_lazy("Unassigned"), OTHERS: gettext_lazy("With others")}


@dataclass(frozen=True)
class QueueFilters:
    """What the list is narrowed to; an empty value does not filter."""

    kind: str = ""
    reason: str = ""
    tenant: str = ""
    holder: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "QueueFilters":
        """From the query of an address; values that do not exist do not filter."""
        kind, reason = query.get("kind", ""), query.get("reason", "")
        return cls(
            kind=kind if kind in ReviewItem.Kind else "",
            reason=reason if reason in ReviewItem.Reason else "",
            tenant=str(parse_uuid(query.get("tenant", "")) or ""),
            holder=query.get("holder", "") if query.get("holder", "") in HOLDERS else "",
        )

    def named(self) -> dict[str, str]:
        return {name: value for name, value in vars(self).items() if value}

    def query(self, **more: Any) -> str:
        """The query of an address with its question mark, or nothing."""
        given = {**self.named(), **{name: value for name, value in more.items() if value}}
        return f"?{urlencode(given)}" if given else ""

    def narrow(self, rows: Rows, operator: Operator) -> Rows:
        """The rows that fit, as this operator sees who has them."""
        columns = {name: value for name, value in self.named().items() if name != "holder"}
        return rows.filter(taken_by(self.holder, operator), **columns)


def taken_by(holder: str, operator: Operator) -> Q:
    """The condition of one of HOLDERS; of "" all."""
    mine, nobodys = Q(taken_by=str(operator.pk)), Q(taken_by="")
    return {ME: mine, NOBODY: nobodys, OTHERS: ~mine & ~nobodys}.get(holder, Q())


@dataclass(frozen=True)
class Option:
    """A value of a filter, its label, and how many items it would leave."""

    value: str
    label: str
    count: int
    chosen: bool


@dataclass(frozen=True)
class Facet:
    """A filter: its name in the address, its label, the label of no filter, and its values, the most frequent first."""

    name: str
    label: str
    everything: str
    options: Sequence[Option]


@dataclass(frozen=True)
class QueueCounts:
    """How many items wait, by kind, reason, tenant id, who has them (HOLDERS), and the tenant's slug."""

    rows: Sequence[tuple[str, str, uuid.UUID, str, str, int]]

    @property
    def everything(self) -> int:
        return sum(row[-1] for row in self.rows)

    def left(self, filters: QueueFilters) -> int:
        return sum(row[-1] for row in self._fitting(filters))

    def facets(self, filters: QueueFilters) -> list[Facet]:
        """A filter each for kind, reason, tenant and holder, counted with the others; none with a single value."""
        kinds, reasons = dict(ReviewItem.Kind.choices), dict(ReviewItem.Reason.choices)
        slugs = {str(row[2]): row[4] for row in self.rows}
        facets = [
            Facet("kind", _("Kind"), _("All kinds"), self._options("kind", 0, kinds, filters)),
            Facet("reason", _("Reason"), _("All reasons"), self._options("reason", 1, reasons, filters)),
            Facet("tenant", _("Tenant"), _("All tenants"), self._options("tenant", 2, slugs, filters)),
            Facet("holder", _("Assignment"), _("Everybody’s"), self._options("holder", 3, HOLDERS, filters)),
        ]
        return [facet for facet in facets if len(facet.options) > 1 or any(one.chosen for one in facet.options)]

    def _options(self, name: str, column: int, labels: Mapping[str, Any], filters: QueueFilters) -> list[Option]:
        counted: Counter[str] = Counter()
        for row in self._fitting(replace(filters, **{name: ""})):
            counted[str(row[column])] += row[-1]
        chosen = getattr(filters, name)
        if chosen in labels:
            counted.setdefault(chosen, 0)
        return [Option(key, str(labels[key]), count, key == chosen) for key, count in counted.most_common()]

    def _fitting(self, filters: QueueFilters) -> Iterable[tuple[str, str, uuid.UUID, str, str, int]]:
        wanted = (filters.kind, filters.reason, filters.tenant, filters.holder)
        return (row for row in self.rows if all(not one or one == str(row[at]) for at, one in enumerate(wanted)))


def counts(rows: Rows, operator: Operator) -> QueueCounts:
    """Of the waiting ones among the rows, as this operator sees who has them; one query."""
    holders = [When(taken_by(holder, operator), then=Value(holder)) for holder in (ME, NOBODY)]
    holder = Case(*holders, default=Value(OTHERS), output_field=CharField())
    waiting = rows.filter(state=ReviewItem.State.OPEN).order_by().annotate(holder=holder)
    grouped = waiting.values_list("kind", "reason", "tenant_id", "holder", "tenant__slug").annotate(count=Count("pk"))
    return QueueCounts(list(grouped))


@dataclass(frozen=True)
class QueuePage:
    """Some items of the list in their order, and the first items of the windows before and after."""

    items: Sequence[ReviewItem]
    earlier: ReviewItem | None = None
    later: ReviewItem | None = None


def window(rows: Rows, start: ReviewItem | None) -> QueuePage:
    """The list from `start` on, the oldest first; two queries. `start` may have been decided meanwhile."""
    listed = rows.select_related(None).select_related(*LISTED_OF).only(*LISTED)
    onwards = listed.filter(Q(pk=start.pk) | _after(start)) if start else listed
    found = list(onwards.order_by("created_at", "pk")[: PER_PAGE + 1])
    before = rows.filter(_before(start)).order_by("-created_at", "-pk") if start else rows.none()
    back = list(before.only("pk", "created_at").select_related(None)[:PER_PAGE])
    later = found[PER_PAGE] if len(found) > PER_PAGE else None
    return QueuePage(found[:PER_PAGE], back[-1] if back else None, later)


def following(rows: Rows, item: ReviewItem) -> ReviewItem | None:
    return rows.filter(_after(item)).order_by("created_at", "pk").first()


def previous(rows: Rows, item: ReviewItem) -> ReviewItem | None:
    return rows.filter(_before(item)).order_by("-created_at", "-pk").first()


def next_of(rows: Rows, item: ReviewItem) -> ReviewItem | None:
    """What to show once the item is decided: the next one, at the end the first that was skipped."""
    return following(rows, item) or rows.order_by("created_at", "pk").first()


def _after(item: ReviewItem) -> Q:
    return beyond(("created_at", "pk"), (item.created_at, item.pk), "gt")


def _before(item: ReviewItem) -> Q:
    return beyond(("created_at", "pk"), (item.created_at, item.pk), "lt")


@dataclass(frozen=True)
class LatestDecision:
    """The item that an operator decided last, and the batch if it was decided in one."""

    item: ReviewItem
    batch_id: uuid.UUID | None


def latest_decision(rows: Rows, operator: Operator, *, now: datetime) -> LatestDecision | None:
    """What an undo would take back: the operator's own, lately, and not undone; two queries."""
    own = rows.filter(decided_by=str(operator.pk), decided_at__gt=now - RECENT).exclude(change_set=None)
    item = own.order_by("-decided_at", "-pk").first()
    if item is None or item.change_set is None:
        return None
    return LatestDecision(item, ChangeSet.objects.filter(pk=item.change_set).values_list("batch", flat=True).first())
