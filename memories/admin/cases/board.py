"""The board of privacy cases: a column for each stage, the most urgent cases first, and those closed lately."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db.models import Count, F, Q, Window
from django.db.models.functions import RowNumber
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memories.admin.access.tenant_scope import tenants_of
from memories.admin.cases.wording import TYPE_ICONS, DaysLeft, days_left
from memories.admin.site.page import RecordPage, address, render_page
from memories.models import CLOSED, CaseState, CaseType, PrivacyCase, PrivacyCaseQuerySet, waits_for_handover
from memories.models.ids import parse_uuid
from memories.privacy.casework.workflow import URGENT_DAYS

# A column shows as many; the list has them all.
MOST = 40
CLOSED_SHOWN = timedelta(days=30)
# Each column with the states in it, and the query of the list that has the same cases. Of the unanswered cases those
# that are completed wait to be handed over.
Stage = tuple[str | Promise, tuple[CaseState, ...], str]
FLOW: tuple[Stage, ...] = (
    (CaseState.RECEIVED.label, (CaseState.RECEIVED,), "state__exact=received"),
    (CaseState.VERIFIED.label, (CaseState.VERIFIED,), "state__exact=verified"),
    (CaseState.SCOPED.label, (CaseState.SCOPED,), "state__exact=scoped"),
    (CaseState.APPROVED.label, (CaseState.APPROVED,), "state__exact=approved"),
    (gettext_lazy("Running"), (CaseState.RUNNING, CaseState.VERIFYING), "tab=running"),
    (gettext_lazy("To hand over"), (CaseState.COMPLETED,), "tab=handover"),
)
STOPPED: tuple[Stage, ...] = (
    (CaseState.FAILED.label, (CaseState.FAILED,), "state__exact=failed"),
    (CaseState.ON_HOLD.label, (CaseState.ON_HOLD,), "state__exact=on_hold"),
)


@dataclass(frozen=True)
class BoardFilters:
    """What the board is narrowed to; an empty value does not filter."""

    type: str = ""
    tenant: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "BoardFilters":
        """From the query of an address; values that do not exist do not filter."""
        case_type = query.get("type", "")
        tenant = str(parse_uuid(query.get("tenant", "")) or "")
        return cls(type=case_type if case_type in CaseType else "", tenant=tenant)

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
class BoardColumn:
    """Cases at one stage, the soonest due first; `count`: all of them, also those that are not shown, which the list
    with this `query` has.
    """

    title: str
    query: str
    count: int
    cards: Sequence[Card]

    @property
    def more(self) -> int:
        return self.count - len(self.cards)


@dataclass(frozen=True)
class Board:
    flow: Sequence[BoardColumn]
    stopped: Sequence[BoardColumn]
    closed: Sequence[Card]
    overdue: int
    urgent: int

    @property
    def open(self) -> int:
        return sum(column.count for column in (*self.flow, *self.stopped))


class BoardViews(RecordPage):
    """A page of cases with the board beside the list."""

    @address("board/")
    def board(self, request: HttpRequest) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method not in ("GET", "HEAD"):
            return HttpResponse(status=405, headers={"Allow": "GET, HEAD"})
        filters, cases = BoardFilters.of(request.GET), self.get_queryset(request)
        narrowed = cases.filter(**filters.named())
        tenants = list(tenants_of(request.user))
        types = [(one.value, str(one.label), filters.query(type=one.value)) for one in CaseType]
        shown = {
            "title": _("Privacy cases"),
            "opts": self.opts,
            "board": board(narrowed, now=timezone.now()),  # type: ignore[arg-type]  # it is of cases
            "filters": filters,
            "types": [("", _("All"), filters.query(type="")), *types],
            "tenants": tenants,
            "one_tenant": len(tenants) == 1,
            "is_empty": not filters.named() and not cases.exists(),
            "urgent_days": URGENT_DAYS,
        }
        return render_page(request, "memories/case_board.html", **shown)


def board(cases: PrivacyCaseQuerySet, *, now: datetime) -> Board:
    """The unanswered cases and those closed lately; three queries."""
    counts = _counts(cases, now)
    # Of each state the cases that are due first, at most MOST.
    number = Window(RowNumber(), partition_by=[F("state")], order_by=[F("due_at").asc(), F("pk").asc()])
    soonest = cases.unanswered(now).alias(place=number).filter(place__lte=MOST).order_by("due_at", "pk")
    lately = cases.exclude(waits_for_handover(now)).filter(state__in=CLOSED, completed_at__gte=now - CLOSED_SHOWN)
    closed = lately.order_by("-completed_at", "-pk")
    shown = cards(soonest, now=now)

    def column(title: str | Promise, states: Sequence[CaseState], query: str) -> BoardColumn:
        count = sum(counts[state] for state in states)
        return BoardColumn(str(title), query, count, [card for card in shown if card.case.state in states])

    return Board(
        flow=[column(*one) for one in FLOW],
        stopped=[stopped for one in STOPPED if (stopped := column(*one)).count],
        closed=cards(closed[:MOST], now=now),
        overdue=counts["overdue"],
        urgent=counts["urgent"],
    )


def _counts(cases: PrivacyCaseQuerySet, now: datetime) -> Counter[str]:
    """How many are unanswered in each state, and how many of all are overdue or urgent."""
    late, soon = Q(due_at__lt=now), Q(due_at__gte=now, due_at__lte=now + timedelta(days=URGENT_DAYS))
    counts: dict[str, Any] = {"count": Count("pk"), "late": Count("pk", filter=late), "soon": Count("pk", filter=soon)}
    rows, found = cases.unanswered(now).order_by(), Counter[str]()
    for state, count, overdue, urgent in rows.values_list("state").annotate(**counts):
        found.update({state: count, "overdue": overdue, "urgent": urgent})
    return found


def cards(cases: Iterable[PrivacyCase], *, now: datetime) -> list[Card]:
    return [Card(case, days_left(case, now=now)) for case in cases]
