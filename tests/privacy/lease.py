"""Cases to export, claimed as workers do."""

from memories.models import CaseState, PrivacyCase
from memories.privacy import case_leases


def claimed(case: PrivacyCase) -> case_leases.ClaimedCase:
    """The case at work under a lease of ours."""
    PrivacyCase.objects.filter(pk=case.pk).update(state=CaseState.RUNNING)
    work = case_leases.claim(case.pk)
    assert work
    return work
