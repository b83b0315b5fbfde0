"""What operators decide about suggestions: each verb rechecks under a lock, writes a revision and an audit event."""

import uuid
from datetime import datetime

from memories.audit import Actor
from memories.curation import item_states
from memories.curation.change_sets import ChangeSet, refusals_against
from memories.curation.fact_changes import change_fact, make_active, make_way
from memories.exceptions import Conflict
from memories.models import Fact, ReviewItem, Status

UNAPPROVED = (Status.PENDING, Status.REJECTED)


def approve_fact(
    *, fact_id: uuid.UUID, actor: Actor, now: datetime, expected_version: int | None = None, reason: str = ""
) -> Fact:
    """An operator lets a suggestion be served, also one turned down before; its trust stays.

    What waits about it is decided with it, and what it stands against is superseded by it.
    Errors: NotFound, PreconditionFailed, Conflict, DuplicateFact (another live fact says the same).
    """

    def change(fact: Fact, changes: ChangeSet) -> None:
        _must_be(fact, *UNAPPROVED)
        changes.lift_refusals(fact)
        make_active(fact, changes)

    def then(fact: Fact, changes: ChangeSet) -> None:
        make_way(fact, changes)
        item_states.close_all(fact, ReviewItem.State.APPROVED, changes)

    return change_fact(
        fact_id,
        None,
        "approve",
        change,
        then=then,
        actor=actor,
        now=now,
        expected_version=expected_version,
        reason=reason,
    )


def reject_fact(
    *, fact_id: uuid.UUID, actor: Actor, now: datetime, expected_version: int | None = None, reason: str = ""
) -> Fact:
    """An operator turns a suggestion down; its text and key are refused for good, and what waits about it is decided.

    Errors: as approve_fact().
    """

    def change(fact: Fact, changes: ChangeSet) -> None:
        _must_be(fact, Status.PENDING)
        turn_down(fact, changes)

    def then(fact: Fact, changes: ChangeSet) -> None:
        item_states.close_all(fact, ReviewItem.State.REJECTED, changes)

    return change_fact(
        fact_id,
        None,
        "reject",
        change,
        then=then,
        actor=actor,
        now=now,
        expected_version=expected_version,
        reason=reason,
    )


def reconsider_fact(
    *, fact_id: uuid.UUID, actor: Actor, now: datetime, expected_version: int | None = None, reason: str = ""
) -> Fact:
    """An operator takes a rejection back: the suggestion waits again, nothing refuses it. Errors: as approve_fact()."""

    def change(fact: Fact, changes: ChangeSet) -> None:
        _must_be(fact, Status.REJECTED)
        changes.lift_refusals(fact)
        fact.status = Status.PENDING

    return change_fact(
        fact_id,
        None,
        "reconsider",
        change,
        actor=actor,
        now=now,
        expected_version=expected_version,
        reason=reason,
    )


def turn_down(fact: Fact, changes: ChangeSet) -> None:
    """Reject it, and refuse what it says."""
    fact.status = Status.REJECTED
    changes.refuse(fact, refusals_against(fact))


def _must_be(fact: Fact, *statuses: str) -> None:
    if fact.status not in statuses:
        raise Conflict(f"The fact is {fact.status}, not {' or '.join(statuses)}.")
