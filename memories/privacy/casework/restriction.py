"""What the cases of one person mean for one another: the person is restricted as long as one case needs it, and no case
erases what another one holds."""

from datetime import datetime

from memories.models import CLOSED, RESTRICTING, CaseState, CaseType, EndUser, PrivacyCase, PrivacyCaseQuerySet
from memories.privacy.casework.errors import CaseElsewhereErased, CaseElsewhereHeld

_ERASING = (CaseState.APPROVED, CaseState.RUNNING, CaseState.VERIFYING)


def cases_of(person: EndUser) -> PrivacyCaseQuerySet:
    """The person's cases, with those of the aliases that lead to them."""
    return PrivacyCase.objects.filter(end_user__in=EndUser.objects.with_aliases(person).values("pk"))


def check_not_held(case: PrivacyCase) -> None:
    """Before an erasure may run. Errors: CaseElsewhereHeld."""
    person = _lock_person(case)
    if person and cases_of(person).filter(state=CaseState.ON_HOLD).exclude(pk=case.pk).exists():
        raise CaseElsewhereHeld


def check_not_erased(case: PrivacyCase) -> None:
    """Before a hold is promised. Errors: CaseElsewhereErased."""
    # The same lock as check_not_held: of an approval and a hold of two cases, the second sees the first.
    person = _lock_person(case)
    erasing = {"type": CaseType.ERASURE, "state__in": _ERASING}
    if person and cases_of(person).filter(**erasing).exclude(pk=case.pk).exists():
        raise CaseElsewhereErased


def restrict(case: PrivacyCase, *, now: datetime) -> None:
    """From now on nothing about the person is stored or served, if the case is of a restricting type."""
    if case.type not in RESTRICTING:
        return
    person = _lock_person(case)
    if person and not person.restricted_at:
        person.restricted_at = now
        person.save(update_fields=["restricted_at"])


def lift(case: PrivacyCase) -> None:
    """End the restriction by a case that has just been closed, unless another open case needs it."""
    if case.type not in RESTRICTING or case.state not in CLOSED:
        return
    # Of two cases that end at the same time, the second to get the lock sees that the first has ended.
    person = _lock_person(case)
    if person is None or cases_of(person).restricting().exclude(pk=case.pk).exists():
        return
    person.restricted_at = None
    person.save(update_fields=["restricted_at"])


def _lock_person(case: PrivacyCase) -> EndUser | None:
    """Lock the person after the case: nobody merges, parts or erases them before the transaction ends."""
    while found := case.find_person():
        rows = EndUser.objects.select_for_update(of=("self",), no_key=True).select_related("tenant")
        locked = rows.filter(pk=found.pk).first()
        # A merge, its undo or an erasure can come while we wait.
        if locked and locked == case.find_person():
            return locked
    return None
