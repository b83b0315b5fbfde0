"""The figures of the dashboard. `Within` limits each to the tenants that the operator may see."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Min, OuterRef, Q, QuerySet, Subquery

from memories.admin.lists.tabs import DAY, FAILED, OVERDUE, WEEK
from memories.models import (
    DecayPass,
    EndUser,
    Episode,
    ExtractionRun,
    Fact,
    LanguageModel,
    PrivacyCase,
    ReviewItem,
    SessionQueue,
    Tenant,
    WorkingMemory,
)
from memories.privacy.casework.workflow import SOON_DAYS, URGENT_DAYS
from memories.queue import outages, spending

MOST_SHOWN = 6

# Limits rows to the operator's tenants: takes the rows, and the path from a row to its tenant.
Within = Callable[..., QuerySet[Any]]


def failures(within: Within, *, now: datetime) -> list[dict[str, Any]]:
    """This week's failed runs by reason, most frequent first. `today` counts the last 24 hours."""
    failed = within(ExtractionRun.objects.filter(status__in=FAILED, started_at__gte=now - WEEK)).order_by()
    today = Count("pk", filter=Q(started_at__gte=now - DAY))
    reasons = failed.values("failure").annotate(count=Count("pk"), today=today)
    return [dict(row) for row in reasons.order_by("-count", "failure")]


@dataclass(frozen=True)
class ToReview:
    """How many items wait for review, and since when the oldest does."""

    waiting: int
    oldest: datetime | None


def review(within: Within, *, waiting: int) -> ToReview:
    """With the number that the frame of the page has counted; the oldest is the first of an index."""
    items = within(ReviewItem.objects.waiting()).order_by("created_at", "id")
    return ToReview(waiting, items.values_list("created_at", flat=True).first() if waiting else None)


def most_to_review(within: Within, *, now: datetime) -> list[dict[str, Any]]:
    """The people with the most review items, with the counts of these and of active facts."""
    items = within(ReviewItem.objects.waiting()).order_by().values("end_user").annotate(waiting=Count("pk"))
    counts = {row["end_user"]: row["waiting"] for row in items.order_by("-waiting", "end_user")[:MOST_SHOWN]}
    people = EndUser.objects.in_bulk(list(counts))
    facts = Fact.objects.active(now=now).filter(end_user__in=people).order_by()
    active = dict(facts.values_list("end_user").annotate(count=Count("*")))
    # A person may have been deleted between the two queries.
    return [
        {"person": people[pk], "waiting": waiting, "active": active.get(pk, 0)}
        for pk, waiting in counts.items()
        if pk in people
    ]


def queue(within: Within, *, now: datetime) -> dict[str, Any]:
    """The extraction queue, and the number of parked working memories."""
    waiting = Q(due_at__isnull=False, parked_at=None)
    rows = within(SessionQueue.objects.filter(waiting | Q(parked_at__isnull=False)), "session__tenant")
    figures = rows.aggregate(
        waiting=Count("pk", filter=waiting),
        due=Count("pk", filter=waiting & Q(due_at__lte=now)),
        overdue=Count("pk", filter=waiting & Q(due_at__lte=now - OVERDUE)),
        oldest=Min("due_at", filter=waiting & Q(due_at__lte=now)),
        parked=Count("pk", filter=Q(parked_at__isnull=False)),
    )
    windows = within(WorkingMemory.objects.filter(parked_at__isnull=False), "session__tenant").count()
    return {**figures, "windows_parked": windows}


def model_waits(within: Within, *, now: datetime) -> dict[str, Any]:
    """Why extraction waits although nothing is wrong with the hub: endpoints that do not answer, and daily caps."""
    return {
        "outages": outages.outages(within(Tenant.objects.all(), "pk")),
        "capped": spending.capped(within(LanguageModel.objects.select_related("tenant")), now=now),
    }


def cases_by_days_left(within: Within, *, now: datetime) -> dict[str, Any]:
    """The unanswered privacy cases by how soon they are due, and the first due date."""
    urgent, soon = now + timedelta(days=URGENT_DAYS), now + timedelta(days=SOON_DAYS)
    rows = within(PrivacyCase.objects.unanswered(now))
    return rows.aggregate(
        open=Count("pk"),
        overdue=Count("pk", filter=Q(due_at__lt=now)),
        urgent=Count("pk", filter=Q(due_at__gte=now, due_at__lte=urgent)),
        soon=Count("pk", filter=Q(due_at__gt=urgent, due_at__lte=soon)),
        later=Count("pk", filter=Q(due_at__gt=soon)),
        next=Min("due_at", filter=Q(due_at__gte=now)),
    )


def fading(within: Within, *, now: datetime) -> list[dict[str, Any]]:
    """What the next decay pass would take of each tenant. Tenants whose newest pass is held come first."""
    newest = DecayPass.objects.filter(tenant=OuterRef("pk"))
    tenants = within(Tenant.objects.all(), "pk").annotate(
        newest=Subquery(newest.values("state")[:1]), newest_pass=Subquery(newest.values("pk")[:1])
    )
    due = {
        "facts": _by_tenant(within(Fact.objects.faded(now=now))),
        "episodes": _by_tenant(within(Episode.objects.faded(now=now))),
        "expired": _by_tenant(within(Fact.objects.expired(now=now)), within(Episode.objects.expired(now=now))),
    }
    rows = [
        {"tenant": tenant, **{name: counts.get(tenant.pk, 0) for name, counts in due.items()}} for tenant in tenants
    ]
    for row in rows:
        row["all"] = row["facts"] + row["episodes"] + row["expired"]
        row["held"] = row["tenant"].newest == DecayPass.PassState.HELD
    return sorted(rows, key=lambda row: (not row["held"], -row["all"], row["tenant"].slug))


def _by_tenant(*querysets: QuerySet[Any]) -> dict[Any, int]:
    """Rows per tenant of all querysets together, without people under restriction, whose memories stay."""
    counts: dict[Any, int] = {}
    for rows in querysets:
        free = rows.filter(end_user__restricted_at=None).order_by()
        for tenant, count in free.values_list("tenant").annotate(count=Count("pk")):
            counts[tenant] = counts.get(tenant, 0) + count
    return counts
