"""Cases to export, claimed as workers do."""

from memories.models import CaseState, PrivacyCase
from memories.privacy import running


def claimed(case: PrivacyCase) -> running.Work:
    """The case at work under a lease of ours."""
    PrivacyCase.objects.filter(pk=case.pk).update(state=CaseState.RUNNING)
    work = running.claim(case.pk)
    assert work
    return work
