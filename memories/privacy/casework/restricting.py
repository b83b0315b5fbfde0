"""Whom a case is about, and what their cases mean for one another: the restriction lasts as long as one wants it, and
no case erases what another one holds."""

from datetime import datetime

from memories.models import CLOSED, RESTRICTING, CaseState, CaseType, EndUser, PrivacyCase, PrivacyCaseQuerySet
from memories.privacy.casework.errors import CaseElsewhereErased, CaseElsewhereHeld

_AT_WORK = (CaseState.APPROVED, CaseState.RUNNING, CaseState.VERIFYING)


def locked_person_of(case: PrivacyCase) -> EndUser | None:
    """Whom the case is about, locked after it: nobody merges, parts or erases them before the transaction ends."""
    while found := case.find_person():
        rows = EndUser.objects.select_for_update(of=("self",), no_key=True).select_related("tenant")
        locked = rows.filter(pk=found.pk).first()
        # Merged, parted or erased while we waited.
        if locked and locked == case.find_person():
            return locked
    return None


def cases_of(person: EndUser) -> PrivacyCaseQuerySet:
    """Their cases, with those of the names that lead to them."""
    return PrivacyCase.objects.filter(end_user__in=EndUser.objects.behind(person).values("pk"))


def check_unheld(case: PrivacyCase) -> None:
    """Before an erasure may run. Errors: CaseElsewhereHeld."""
    person = locked_person_of(case)
    if person and cases_of(person).filter(state=CaseState.ON_HOLD).exclude(pk=case.pk).exists():
        raise CaseElsewhereHeld


def check_holds(case: PrivacyCase) -> None:
    """Before a hold is promised. Errors: CaseElsewhereErased."""
    # With the same lock: of an approval and a hold of two cases, the second sees the first.
    person = locked_person_of(case)
    at_work = {"type": CaseType.ERASURE, "state__in": _AT_WORK}
    if person and cases_of(person).filter(**at_work).exclude(pk=case.pk).exists():
        raise CaseElsewhereErased


def restrict(case: PrivacyCase, *, now: datetime) -> None:
    """From now on nothing is stored or told of the person, if the case is of a type that wants it."""
    if case.type not in RESTRICTING:
        return
    person = locked_person_of(case)
    if person and not person.restricted_at:
        person.restricted_at = now
        person.save(update_fields=["restricted_at"])


def lift(case: PrivacyCase) -> None:
    """End the restriction by a case that has just been closed, unless another one keeps it up."""
    if case.type not in RESTRICTING or case.state not in CLOSED:
        return
    # Of two cases that end at the same time, the second to get the lock sees that the first has ended.
    person = locked_person_of(case)
    if person is None or cases_of(person).restricting().exclude(pk=case.pk).exists():
        return
    person.restricted_at = None
    person.save(update_fields=["restricted_at"])
