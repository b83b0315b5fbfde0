"""Trends: what was served, made of facts, decided and paid over some days, of all tenants or of one.

They come from sums per day where there are some, and are fetched after the page.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from datetime import time as clock_time
from decimal import Decimal
from functools import partial
from typing import Any

from django.db.models import Count, F, Q, QuerySet, Sum
from django.db.models.functions import TruncDate
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memories.admin.access.tenant_scope import tenants_of, within
from memories.admin.dashboard.charts import Chart, Series, stacked
from memories.admin.dashboard.figures import Within
from memories.models import (
    DailySpending,
    ExtractionRun,
    Fact,
    LanguageModel,
    ModelUse,
    ReviewItem,
    ServedDay,
    Status,
    Tenant,
)
from memories.models.conversations.serving import BUCKETS, CONTEXT_MS
from memories.models.ids import parse_uuid
from memories.queue import spending

PERIODS = (7, 30, 90)
DEFAULT_PERIOD = 30
TENANTS_SHOWN = 8
OUTCOMES = (
    (Series("served", _("Active")), (Status.ACTIVE,)),
    (Series("gone", _("Superseded")), (Status.SUPERSEDED,)),
    (Series("written", _("Forgotten")), (Status.ARCHIVED, Status.TRASHED)),
    (Series("waiting", _("Pending")), (Status.PENDING,)),
    (Series("rejected", _("Rejected")), (Status.REJECTED,)),
)
TOKENS = (Series("served", _("Read by the model")), Series("written", _("Written by the model")))
RECALLS = (Series("served", _("Recalls")),)
P95 = (Series("written", _("p95 in ms")),)
APPROVED = (ReviewItem.State.APPROVED, ReviewItem.State.MERGED, ReviewItem.State.KEPT_BOTH)


@dataclass(frozen=True)
class TrendPeriod:
    """The days of a trend in the operator's time zone, today last, and the midnight that starts the first."""

    days: list[date]
    start: datetime

    @classmethod
    def of(cls, length: int, *, now: datetime) -> "TrendPeriod":
        today = timezone.localdate(now)
        days = [today - timedelta(days=back) for back in reversed(range(length))]
        return cls(days, timezone.make_aware(datetime.combine(days[0], clock_time.min)))


@dataclass(frozen=True)
class DecisionCounts:
    """What became of the items that operators decided."""

    approved: int
    rejected: int

    @property
    def percent(self) -> int | None:
        """Approved of a hundred; None where nothing was decided."""
        decided = self.approved + self.rejected
        return round(100 * self.approved / decided) if decided else None


@dataclass(frozen=True)
class Cost:
    """What a tenant's calls took: in the period, and of its cap today; None where there is no cap."""

    tenant: Tenant
    tokens: int
    cost: Decimal
    today: spending.Day

    @property
    def cap(self) -> tuple[Decimal, Decimal] | None:
        """What is used of the daily cap and the cap, in dollars or else in tokens."""
        if self.today.most_cost is not None:
            return self.today.cost, self.today.most_cost
        if self.today.most_tokens is not None:
            return Decimal(self.today.tokens), Decimal(self.today.most_tokens)
        return None


def shown(request: HttpRequest, *, now: datetime) -> dict[str, Any]:
    """The context of the trends. What the operator may not see is not computed; an unknown choice is the usual one."""
    tenants = tenants_of(request.user).order_by("slug")
    tenant_id = parse_uuid(request.GET.get("tenant", ""))
    chosen = tenants.filter(pk=tenant_id).first() if tenant_id else None
    length = next((days for days in PERIODS if str(days) == request.GET.get("days")), DEFAULT_PERIOD)
    period = TrendPeriod.of(length, now=now)
    rows = partial(_within, partial(within, request.user), chosen)
    context: dict[str, Any] = {"periods": PERIODS, "length": length, "tenants": list(tenants), "tenant": chosen}
    for permission, name, read in TRENDS:
        if request.user.has_perm(permission):
            context[name] = read(rows, period, now)
    return context


def served(within: Within, period: TrendPeriod, _now: datetime) -> dict[str, Any]:
    """Recalls and the contexts' time by day (UTC): the limit that 95 of 100 contexts kept, in milliseconds."""
    rows = within(ServedDay.objects.filter(day__gte=period.days[0])).order_by()
    recalls: dict[date, tuple[int]] = {}
    times: dict[date, list[int]] = {}
    for day, context_times, count in rows.values_list("day", "context_times", "recalls"):
        recalls[day] = (recalls.get(day, (0,))[0] + count,)
        times[day] = _added(times.get(day), context_times)
    whole: list[int] | None = None
    for counts in times.values():
        whole = _added(whole, counts)
    per_day = {day: (percentile(counts) or 0,) for day, counts in times.items()}
    return {
        "recalls": stacked(period.days, RECALLS, recalls),
        "p95": stacked(period.days, P95, per_day),
        "p95_of_all": percentile(whole) if whole else None,
        "contexts": sum(whole) if whole else 0,
    }


def percentile(counts: Sequence[int], *, share: float = 0.95) -> int | None:
    """The upper limit of the bucket that has this share of all below it or in it; None of nothing.

    Beyond the last limit it is the last one.
    """
    wanted, seen = share * sum(counts), 0
    for limit, count in zip((*CONTEXT_MS, CONTEXT_MS[-1]), counts, strict=True):
        seen += count
        if seen and seen >= wanted:
            return limit
    return None


def facts_by_outcome(within: Within, period: TrendPeriod, _now: datetime) -> Chart:
    """The facts made on each day, by what has become of them."""
    created = within(Fact.objects.filter(created_at__gte=period.start)).order_by()
    # count(*) instead of a column: an index-only scan answers it.
    rows = created.annotate(day=TruncDate("created_at")).values_list("day", "status").annotate(count=Count("*"))
    counts = {(day, status): count for day, status, count in rows}
    values = {
        day: [sum(counts.get((day, status), 0) for status in statuses) for _series, statuses in OUTCOMES]
        for day in period.days
    }
    return stacked(period.days, [series for series, _statuses in OUTCOMES], values)


def decided(within: Within, period: TrendPeriod, _now: datetime) -> DecisionCounts:
    """What operators decided; what settled itself does not count."""
    by_operators = ReviewItem.objects.exclude(decided_by="").filter(decided_at__gte=period.start)
    rows = within(by_operators).order_by()
    return DecisionCounts(
        **rows.aggregate(
            approved=Count("pk", filter=Q(state__in=APPROVED)),
            rejected=Count("pk", filter=Q(state=ReviewItem.State.REJECTED)),
        )
    )


def tokens_per_day(within: Within, period: TrendPeriod, _now: datetime) -> dict[str, Any]:
    """The tokens of each day, and the total of calls and of cost. The cost is None where no price is set."""
    runs = within(ExtractionRun.objects.filter(started_at__gte=period.start)).order_by()
    # Summaries and upkeep: ModelUse holds sums per day in UTC.
    others = within(ModelUse.objects.filter(day__gte=period.days[0])).order_by()
    sums = {
        "call_count": Sum("calls"),
        "read": Sum("prompt_tokens"),
        "written": Sum("completion_tokens"),
        "spent": Sum("cost"),
    }
    rows = [*runs.annotate(on=TruncDate("started_at")).values("on").annotate(**sums)]
    rows += others.annotate(on=F("day")).values("on").annotate(**sums)
    tokens: dict[date, tuple[int, int]] = {}
    for row in rows:
        read, written = tokens.get(row["on"], (0, 0))
        tokens[row["on"]] = (read + row["read"], written + row["written"])
    costs = [row["spent"] for row in rows if row["spent"] is not None]
    return {
        "chart": stacked(period.days, TOKENS, tokens),
        "calls": sum(row["call_count"] for row in rows),
        "cost": sum(costs) if costs else None,
    }


def cost_per_tenant(within: Within, period: TrendPeriod, now: datetime) -> list[Cost]:
    """The tenants whose calls cost most, and those with a cap; by the days of their own time zones."""
    spent = within(DailySpending.objects.filter(day__gte=period.days[0])).order_by()
    sums = {
        row["tenant"]: (row["used"], row["paid"])
        for row in spent.values("tenant").annotate(used=Sum("tokens"), paid=Sum("cost"))
    }
    caps = within(LanguageModel.objects.exclude(daily_tokens=None, daily_cost=None)).values_list("tenant", flat=True)
    tenants = Tenant.objects.filter(pk__in={*sums, *caps}).order_by("slug")
    today = spending.days_of(tenants, now=now)
    found = [Cost(tenant, *sums.get(tenant.pk, (0, Decimal(0))), today[tenant.pk]) for tenant in tenants]
    return sorted(found, key=lambda one: (-one.cost, -one.tokens, one.tenant.slug))[:TENANTS_SHOWN]


Read = Callable[[Within, TrendPeriod, datetime], Any]
# The permission that each trend needs, its name in the template, and what reads it.
TRENDS: Sequence[tuple[str, str, Read]] = (
    ("memories.view_session", "served", served),
    ("memories.view_fact", "facts", facts_by_outcome),
    ("memories.view_reviewitem", "decided", decided),
    ("memories.view_extractionrun", "tokens", tokens_per_day),
    ("memories.view_extractionrun", "costs", cost_per_tenant),
)


def _within(scope: Within, tenant: Tenant | None, rows: QuerySet[Any], path: str = "tenant") -> QuerySet[Any]:
    visible = scope(rows, path)
    return visible if tenant is None else visible.filter(**{path: tenant})


def _added(sums: Sequence[int] | None, more: Sequence[int]) -> list[int]:
    return [a + b for a, b in zip(sums or [0] * BUCKETS, more, strict=True)]
