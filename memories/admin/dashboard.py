"""The first page: how much is held, what waits, what failed and why, what it cost, and the latest runs."""

from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import Count, Min, OuterRef, Q, Subquery, Sum

from memories.models import (
    DecayPass,
    EndUser,
    ExtractionRun,
    Fact,
    Operator,
    ReviewItem,
    SessionQueue,
    Status,
    Tenant,
    WorkingMemory,
)

RUNS_SHOWN = 10
WEEK = timedelta(days=7)
DAY = timedelta(days=1)
FAILED = (ExtractionRun.Status.FAILED, ExtractionRun.Status.PARKED)


def overview(operator: Operator | AnonymousUser, *, now: datetime) -> dict[str, Any]:
    """The figures of the dashboard; the runs only for those who may see runs."""
    tenants, facts = _tenants(), _facts(now)
    figures: dict[str, Any] = {
        "people": EndUser.objects.count(),
        "tenants": tenants["count"],
        "fading": {"facts": facts.pop("fading"), "held": tenants["held"]},
        "facts": facts,
        "review": ReviewItem.objects.waiting().aggregate(waiting=Count("pk"), oldest=Min("created_at")),
        "queue": _queue(now),
        "windows_parked": WorkingMemory.objects.filter(parked_at__isnull=False).count(),
        "failed_today": ExtractionRun.objects.filter(status__in=FAILED, started_at__gte=now - DAY).count(),
    }
    if not operator.has_perm("memories.view_extractionrun"):
        return figures
    runs = ExtractionRun.objects.select_related("end_user", "tenant")
    latest = runs.order_by("-started_at", "-id")[:RUNS_SHOWN]
    return {**figures, "runs": latest, "failures": _failures(now), "spent": _spent(now)}


def _failures(now: datetime) -> list[dict[str, Any]]:
    """This week's failed runs by reason, the commonest first."""
    failed = ExtractionRun.objects.filter(status__in=FAILED, started_at__gte=now - WEEK)
    reasons = failed.values("failure").annotate(count=Count("pk")).order_by("-count", "failure")
    return [dict(reason) for reason in reasons]


def _spent(now: datetime) -> dict[str, Any]:
    """This week's model calls, tokens and US dollars; None where nothing was reported."""
    this_week = ExtractionRun.objects.filter(started_at__gte=now - WEEK)
    return this_week.aggregate(
        calls=Sum("calls"), prompt=Sum("prompt_tokens"), completion=Sum("completion_tokens"), cost=Sum("cost")
    )


def _facts(now: datetime) -> dict[str, int]:
    active = Q(status=Status.ACTIVE)
    # Those of people under restriction stay.
    faded = Fact.objects.faded(now=now).filter(end_user__restricted_at=None)
    return Fact.objects.aggregate(
        active=Count("pk", filter=active),
        this_week=Count("pk", filter=active & Q(created_at__gte=now - WEEK)),
        fading=Count("pk", filter=Q(pk__in=faded.values("pk"))),
    )


def _tenants() -> dict[str, int]:
    """How many there are, and of how many the newest pass of forgetting waits for somebody to confirm it."""
    newest = DecayPass.objects.filter(tenant=OuterRef("pk")).values("state")[:1]
    held = Count("pk", filter=Q(newest=DecayPass.State.HELD))
    return Tenant.objects.annotate(newest=Subquery(newest)).aggregate(count=Count("pk"), held=held)


def _queue(now: datetime) -> dict[str, Any]:
    waiting = Q(due_at__isnull=False, parked_at=None)
    return SessionQueue.objects.aggregate(
        waiting=Count("pk", filter=waiting),
        due=Count("pk", filter=waiting & Q(due_at__lte=now)),
        oldest=Min("due_at", filter=waiting & Q(due_at__lte=now)),
        parked=Count("pk", filter=Q(parked_at__isnull=False)),
    )
