"""Feedback on a fact: whether it helped the agent that was served it."""

import uuid
from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from memories.audit import Actor
from memories.curation.facts.changing import changing_fact
from memories.curation.statements import guarding
from memories.curation.statements.write_trust import AS_USER, WriteTrust
from memories.curation.writing import locked_row
from memories.exceptions import Conflict, PersonRestricted
from memories.models import Fact, Status, Tenant

# Twice as much down as up: what misleads must go sooner than what helps stays.
HELPED, MISLED = 0.05, -0.1


def give_feedback(
    *, fact_id: uuid.UUID, tenant: Tenant, useful: bool, actor: Actor, now: datetime, write_trust: WriteTrust = AS_USER
) -> Fact:
    """A useful fact counts as confirmed now and matters more (importance + 0.05), another less (− 0.1): it fades later
    or sooner. A protected fact stays as it is. Errors: NotFound, PersonRestricted, Conflict when it is not active,
    ReviewNeeded where it would let a fact fade sooner that has more trust than the `write_trust`.
    """
    with transaction.atomic():
        fact = locked_row(Fact, fact_id, tenant=tenant)
        if fact.status != Status.ACTIVE:
            message = _("The fact is %(status)s, so no context contains it.")
            raise Conflict(message % {"status": fact.get_status_display().lower()})
        if fact.protected:
            if fact.end_user.restricted_at:
                raise PersonRestricted
            return fact
        if not useful:
            guarding.check_outranks(fact.trust, write_trust)
        reason = "useful" if useful else "not useful"
        with changing_fact(
            fact_id, tenant, "feedback", actor=actor, now=now, expected_version=None, reason=reason
        ) as fact:
            step = HELPED if useful else MISLED
            fact.importance = round(min(1.0, max(0.0, fact.importance + step)), 6)
            fact.last_confirmed_at = now if useful else fact.last_confirmed_at
        return fact
