"""The board of privacy cases: what is open, by how far it is, the most urgent first; what was closed, folded."""

import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db.models import Count, F, Q, Window
from django.db.models.functions import RowNumber
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memories.admin.case_wording import TYPE_ICONS, DaysLeft, days_left
from memories.admin.page import RecordPage
from memories.admin.reach import tenants_of
from memories.models import CLOSED, CaseState, CaseType, PrivacyCase, PrivacyCaseQuerySet
from memories.privacy.casework.stages import URGENT_DAYS

# Of a column as many are shown; the list has them all.
MOST = 40
CLOSED_SHOWN = timedelta(days=30)
# Each column with the states in it.
FLOW: tuple[tuple[str | Promise, tuple[CaseState, ...]], ...] = (
    (CaseState.RECEIVED.label, (CaseState.RECEIVED,)),
    (CaseState.VERIFIED.label, (CaseState.VERIFIED,)),
    (CaseState.SCOPED.label, (CaseState.SCOPED,)),
    (CaseState.APPROVED.label, (CaseState.APPROVED,)),
    (gettext_lazy("Running"), (CaseState.RUNNING, CaseState.VERIFYING)),
)
STOPPED: tuple[tuple[str | Promise, tuple[CaseState, ...]], ...] = (
    (CaseState.FAILED.label, (CaseState.FAILED,)),
    (CaseState.ON_HOLD.label, (CaseState.ON_HOLD,)),
)


@dataclass(frozen=True)
class Filters:
    """What the board is narrowed to, codes and ids of ours; empty: not by this."""

    type: str = ""
    tenant: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "Filters":
        """Those that the query names; what is none of ours is passed over."""
        asked = query.get("type", "")
        return cls(type=asked if asked in CaseType else "", tenant=_id_of(query.get("tenant", "")))

    def named(self) -> dict[str, str]:
        return {name: value for name, value in vars(self).items() if value}

    def query(self, **over: str) -> str:
        """The query of an address with its question mark, or nothing."""
        given = {name: value for name, value in {**self.named(), **over}.items() if value}
        return f"?{urlencode(given)}" if given else ""


@dataclass(frozen=True)
class Card:
    case: PrivacyCase
    left: DaysLeft | None

    @property
    def icon(self) -> str:
        return TYPE_ICONS[self.case.type]


@dataclass(frozen=True)
class Column:
    """Cases that are equally far, the soonest due first; `count`: all of them, also those that are not shown."""

    title: str
    states: Sequence[CaseState]
    count: int
    cards: Sequence[Card]

    @property
    def more(self) -> int:
        return self.count - len(self.cards)


@dataclass(frozen=True)
class Board:
    flow: Sequence[Column]
    stopped: Sequence[Column]
    closed: Sequence[Card]
    overdue: int
    urgent: int
    counts: Mapping[str, int]

    @property
    def open(self) -> int:
        return sum(column.count for column in (*self.flow, *self.stopped))


def board(cases: PrivacyCaseQuerySet, *, now: datetime) -> Board:
    """All that is open among the cases, and what was closed lately: three queries, whatever there is."""
    counts = _counts(cases, now)
    shown = cards(_soonest(cases.open()), now=now)
    return Board(
        flow=[_column(one, counts, shown) for one in FLOW],
        stopped=[column for column in (_column(one, counts, shown) for one in STOPPED) if column.count],
        closed=cards(_lately_closed(cases, now), now=now),
        overdue=counts["overdue"],
        urgent=counts["urgent"],
        counts=counts,
    )


def cards(cases: Iterable[PrivacyCase], *, now: datetime) -> list[Card]:
    return [Card(case, days_left(case, now=now)) for case in cases]


class BoardViews(RecordPage):
    """What the page of the cases adds for the board."""

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.board)
        return [path("board/", view, name="memories_privacycase_board"), *super().get_urls()]

    def board(self, request: HttpRequest) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method not in ("GET", "HEAD"):
            return HttpResponse(status=405, headers={"Allow": "GET, HEAD"})
        filters, cases = Filters.of(request.GET), self.get_queryset(request)
        narrowed = cases.filter(**filters.named())
        tenants = list(tenants_of(request.user))
        context = {
            **self.admin_site.each_context(request),
            "title": _("Privacy cases"),
            "opts": self.opts,
            "board": board(narrowed, now=timezone.now()),  # type: ignore[arg-type]  # it is of cases
            "filters": filters,
            "types": [("", _("All"), filters.query(type="")), *_types(filters)],
            "tenants": tenants,
            "one_tenant": len(tenants) == 1,
            "is_empty": not filters.named() and not cases.exists(),
            "urgent_days": URGENT_DAYS,
        }
        return TemplateResponse(request, "memories/case_board.html", context)


def _types(filters: Filters) -> list[tuple[str, str, str]]:
    return [(one.value, str(one.label), filters.query(type=one.value)) for one in CaseType]


def _counts(cases: PrivacyCaseQuerySet, now: datetime) -> Counter[str]:
    """How many are open in each state, and how many of all are overdue or nearly."""
    late, soon = Q(due_at__lt=now), Q(due_at__gte=now, due_at__lte=now + timedelta(days=URGENT_DAYS))
    told: dict[str, Any] = {"count": Count("pk"), "late": Count("pk", filter=late), "soon": Count("pk", filter=soon)}
    found: Counter[str] = Counter()
    for state, count, overdue, urgent in cases.open().order_by().values_list("state").annotate(**told):
        found += Counter({state: count, "overdue": overdue, "urgent": urgent})
    return found


def _soonest(cases: PrivacyCaseQuerySet) -> PrivacyCaseQuerySet:
    """Of each state those that are due first, MOST at most."""
    place = Window(RowNumber(), partition_by=[F("state")], order_by=[F("due_at").asc(), F("pk").asc()])
    return cases.alias(place=place).filter(place__lte=MOST).order_by("due_at", "pk")


def _lately_closed(cases: PrivacyCaseQuerySet, now: datetime) -> PrivacyCaseQuerySet:
    closed = cases.filter(state__in=CLOSED, completed_at__gte=now - CLOSED_SHOWN)
    return closed.order_by("-completed_at", "-pk")[:MOST]


def _column(one: tuple[str | Promise, Sequence[CaseState]], counts: Mapping[str, int], cards: Sequence[Card]) -> Column:
    title, states = one
    count = sum(counts.get(state, 0) for state in states)
    return Column(str(title), states, count, [card for card in cards if card.case.state in states])


def _id_of(text: str) -> str:
    try:
        return str(uuid.UUID(text))
    except ValueError:
        return ""
