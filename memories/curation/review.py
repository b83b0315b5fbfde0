"""What operators decide about suggestions: each verb rechecks under a lock, writes a revision and an audit event."""

import uuid
from datetime import datetime

from memories.audit import Actor
from memories.curation.fact_changes import change_fact, lift_refusals, refusals_of, refuse
from memories.exceptions import Conflict
from memories.models import Fact, Status

UNAPPROVED = (Status.PENDING, Status.REJECTED)


def approve_fact(
    *, fact_id: uuid.UUID, actor: Actor, now: datetime, expected_version: int | None = None, reason: str = ""
) -> Fact:
    """An operator lets a suggestion be served, also one turned down before; its trust stays.

    Errors: NotFound, PreconditionFailed, Conflict, DuplicateFact (another live fact says the same).
    """

    def change(fact: Fact) -> None:
        _must_be(fact, *UNAPPROVED)
        if fact.status == Status.REJECTED:
            lift_refusals(fact)
        fact.status, fact.flags, fact.last_confirmed_at = Status.ACTIVE, [], now

    return change_fact(
        fact_id, None, "approve", change, actor=actor, now=now, expected_version=expected_version, reason=reason
    )


def reject_fact(
    *, fact_id: uuid.UUID, actor: Actor, now: datetime, expected_version: int | None = None, reason: str = ""
) -> Fact:
    """An operator turns a suggestion down; its text and key are refused for good. Errors: as approve_fact()."""

    def change(fact: Fact) -> None:
        _must_be(fact, Status.PENDING)
        fact.status = Status.REJECTED
        refuse(fact, refusals_of(fact), now=now)

    return change_fact(
        fact_id, None, "reject", change, actor=actor, now=now, expected_version=expected_version, reason=reason
    )


def reconsider_fact(
    *, fact_id: uuid.UUID, actor: Actor, now: datetime, expected_version: int | None = None, reason: str = ""
) -> Fact:
    """An operator takes a rejection back: the suggestion waits again, nothing refuses it. Errors: as approve_fact()."""

    def change(fact: Fact) -> None:
        _must_be(fact, Status.REJECTED)
        lift_refusals(fact)
        fact.status = Status.PENDING

    return change_fact(
        fact_id, None, "reconsider", change, actor=actor, now=now, expected_version=expected_version, reason=reason
    )


def _must_be(fact: Fact, *statuses: str) -> None:
    if fact.status not in statuses:
        raise Conflict(f"The fact is {fact.status}, not {' or '.join(statuses)}.")
