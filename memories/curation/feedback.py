"""Feedback on a fact: whether it helped the agent that was served it."""

import uuid
from datetime import datetime

from django.db import transaction

from memories.audit import Actor
from memories.curation.change_sets import ChangeSet
from memories.curation.fact_changes import change_fact, locked
from memories.exceptions import Conflict, PersonRestricted
from memories.models import Fact, Status, Tenant

# Twice as much down as up: what misleads must go sooner than what helps stays.
HELPED, MISLED = 0.05, -0.1
USEFUL, NOT_USEFUL = "useful", "not useful"


def give_feedback(*, fact_id: uuid.UUID, tenant: Tenant, useful: bool, actor: Actor, now: datetime) -> Fact:
    """A useful fact counts as confirmed now and matters more (importance + 0.05), another less (− 0.1): it fades later
    or sooner. An operator's word stays as it is. Errors: NotFound, PersonRestricted, Conflict when it is not active.
    """

    def change(fact: Fact, _: ChangeSet) -> None:
        step = HELPED if useful else MISLED
        fact.importance = round(min(1.0, max(0.0, fact.importance + step)), 6)
        fact.last_confirmed_at = now if useful else fact.last_confirmed_at

    with transaction.atomic():
        fact = locked(fact_id, tenant)
        if fact.status != Status.ACTIVE:
            raise Conflict(f"The fact is {fact.status}: it is served nowhere.")
        if fact.protected:
            if fact.end_user.restricted_at:
                raise PersonRestricted
            return fact
        reason = USEFUL if useful else NOT_USEFUL
        return change_fact(
            fact_id, tenant, "feedback", change, actor=actor, now=now, expected_version=None, reason=reason
        )
