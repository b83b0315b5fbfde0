"""Reminds of privacy cases whose day is near or over: webhooks are told 7 and 2 days before, and when the day is over.

A look that finds the same again tells nothing: an endpoint is told each of the three once.
"""

from datetime import datetime, timedelta

from memories import outbox
from memories.models import Event, PrivacyCase
from memories.outbox import WebhookEvent
from memories.privacy.casework.workflow import SOON_DAYS, level_of

TASK = "memories.tasks.remind"
# A case that is overdue for longer was told of, unless the tenant has its webhook since then.
LOOK_BACK = timedelta(days=7)


def near(*, now: datetime) -> list[PrivacyCase]:
    """Cases to be answered within a week, or overdue since a week at most, with their tenants."""
    around = {"due_at__gt": now - LOOK_BACK, "due_at__lte": now + timedelta(days=SOON_DAYS)}
    return list(PrivacyCase.objects.unanswered(now).filter(**around).select_related("tenant").order_by("due_at", "pk"))


def publish_due_cases(*, now: datetime) -> int:
    """Tell webhooks of cases that are near their day; how many cases are."""
    cases = near(now=now)
    for case in cases:
        level = level_of(case, now)
        data = {"case_id": case.pk, "type": case.type, "due_at": case.due_at, "level": str(level)}
        # An extension moves the day, and it comes near once more.
        once = f"due:{case.pk.hex}:{case.due_at.date()}:{level}"
        outbox.publish(case.tenant_id, [WebhookEvent(Event.CASE_DUE, data, once=once)], now=now, tenant=case.tenant)
    return len(cases)
