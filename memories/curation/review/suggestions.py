"""Operators' decisions about one suggested fact: approve it, reject it, or take the rejection back."""

import uuid
from datetime import datetime

from django.utils.translation import gettext as _

from memories.audit import Actor
from memories.curation.change_sets import Changes, refusals_against
from memories.curation.facts.approving import approve_suggestion
from memories.curation.facts.changing import deciding_fact
from memories.curation.review import item_states
from memories.exceptions import Conflict
from memories.models import Fact, ReviewItem, Status

UNAPPROVED = (Status.PENDING, Status.REJECTED)


def approve_fact(
    *, fact_id: uuid.UUID, actor: Actor, now: datetime, expected_version: int | None = None, reason: str = ""
) -> Fact:
    """An operator lets a suggestion be served, also one that was rejected before; its trust stays.

    Open review items about it are decided with it, and it supersedes what contradicts it. What was said later stays:
    then the suggestion is kept as what held until then.
    Errors: NotFound, PreconditionFailed, Conflict, DuplicateFact (another live fact says the same).
    """
    with deciding_fact(
        fact_id, None, "approve", actor=actor, now=now, expected_version=expected_version, reason=reason
    ) as (fact, changes):
        _must_be(fact, *UNAPPROVED)
        approve_suggestion(fact, changes)
        item_states.close_all(fact, ReviewItem.State.APPROVED, changes)
    return fact


def reject_fact(
    *, fact_id: uuid.UUID, actor: Actor, now: datetime, expected_version: int | None = None, reason: str = ""
) -> Fact:
    """An operator rejects a suggestion; its text and key are refused for good, and its open items are decided.

    Errors: as approve_fact().
    """
    with deciding_fact(
        fact_id, None, "reject", actor=actor, now=now, expected_version=expected_version, reason=reason
    ) as (fact, changes):
        _must_be(fact, Status.PENDING)
        with changes.changing(fact, "reject"):
            turn_down(fact, changes)
        item_states.close_all(fact, ReviewItem.State.REJECTED, changes)
    return fact


def reconsider_fact(
    *, fact_id: uuid.UUID, actor: Actor, now: datetime, expected_version: int | None = None, reason: str = ""
) -> Fact:
    """An operator takes a rejection back: the suggestion waits again, nothing refuses it. Errors: as approve_fact()."""
    with (
        deciding_fact(
            fact_id, None, "reconsider", actor=actor, now=now, expected_version=expected_version, reason=reason
        ) as (fact, changes),
        changes.changing(fact, "reconsider"),
    ):
        _must_be(fact, Status.REJECTED)
        changes.remove_refusals_of(fact)
        fact.status = Status.PENDING
    return fact


def turn_down(fact: Fact, changes: Changes) -> None:
    """Reject the suggestion, and refuse what it says."""
    fact.status = Status.REJECTED
    changes.refuse(fact, refusals_against(fact))


def _must_be(fact: Fact, *statuses: str) -> None:
    if fact.status not in statuses:
        # The page offers only the verbs that fit: this is for whoever was too late.
        message = _("The fact is %(status)s, so this decision is not possible.")
        raise Conflict(message % {"status": fact.get_status_display().lower()})
