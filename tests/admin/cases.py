"""Privacy cases for the tests of their pages: in any state, signed by somebody."""

from datetime import timedelta
from typing import Any

from django.utils import timezone

from memories.models import CaseState, EndUser, PrivacyCase
from memories.models.ids import new_id
from memories.privacy import receipts
from tests import factories

PREVIEW = {"memories.Turn": 1_284, "memories.Fact": 212, "memories.EpisodeVector": 0}


def case_of(person: EndUser, state: str = "received", *, days: float = 20, **over: Any) -> PrivacyCase:
    """Due in so many days; what `over` does not name was done by accounts that are gone."""
    now = timezone.now()
    given: dict[str, Any] = {"opened_kind": "operator", "opened_by": str(new_id())}
    if state not in (CaseState.RECEIVED, CaseState.REFUSED):
        given["verified_by"] = str(new_id())
    if state in (CaseState.APPROVED, CaseState.RUNNING, CaseState.VERIFYING, CaseState.COMPLETED, CaseState.FAILED):
        given["approved_by"] = str(new_id())
    if state == CaseState.ON_HOLD:
        given |= {"held_from": "verified", "held_at": now, "hold_review_on": timezone.localdate() + timedelta(days=9)}
    if state in (CaseState.COMPLETED, CaseState.REFUSED):
        given["completed_at"] = now
    if state not in (CaseState.RECEIVED, CaseState.VERIFIED, CaseState.REFUSED, CaseState.ON_HOLD):
        given |= {"scoped_at": now, "preview": PREVIEW}
    due = now + timedelta(days=days)
    times = {"received_at": due - timedelta(days=30), "due_at": due, "created_at": due - timedelta(days=30)}
    return factories.privacy_case(person, state=state, **{**times, **given, **over})


def with_receipt(person: EndUser, **over: Any) -> PrivacyCase:
    """An erasure that came to its end; the person is kept, so that the pages have somebody to show."""
    findings = {"tables": 46, "rows": 18_220, "bytes": 9_000_000, "hits": {}, "mentions": {}}
    case = case_of(person, "completed", counts=PREVIEW, findings=findings, **over)
    receipts.issue(case, now=timezone.now())
    case.save()
    return case
