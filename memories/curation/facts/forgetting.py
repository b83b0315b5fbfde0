"""Forgetting a fact: to the trash, from where an operator can restore it, or deleted at once."""

import uuid
from datetime import datetime

from django.db import transaction

from memories import audit, outbox
from memories.audit import Actor
from memories.curation.change_sets import Changes, refusals_against
from memories.curation.facts.changing import check_allowed, deciding_fact, is_own
from memories.curation.statements import guarding
from memories.curation.statements.write_trust import AS_USER, WriteTrust
from memories.curation.writing import locked_row
from memories.facts import review_items
from memories.models import Fact, Status, Tenant


def forget_fact(
    *,
    fact_id: uuid.UUID,
    tenant: Tenant | None,
    actor: Actor,
    now: datetime,
    reason: str = "",
    expected_version: int | None = None,
    write_trust: WriteTrust = AS_USER,
) -> Fact | None:
    """Move a fact to the trash and refuse its text and key (rules.md, 5.5).

    Returns None, and changes nothing, when it is there already. Errors: NotFound, PersonRestricted, OperatorWord,
    FactLocked, PreconditionFailed, ReviewNeeded where the `write_trust` may not end it.
    """
    with transaction.atomic():
        if locked_row(Fact, fact_id, tenant=tenant).status == Status.TRASHED:
            return None
        with (
            deciding_fact(
                fact_id, tenant, "forget", actor=actor, now=now, expected_version=expected_version, reason=reason
            ) as (fact, changes),
            changes.changing(fact, "forget"),
        ):
            guarding.check_ends(fact, write_trust, is_own=is_own(fact, actor))
            fact.status, fact.trashed_at = Status.TRASHED, now
            changes.refuse(fact, refusals_against(fact))
        return fact


def delete_fact(
    *,
    fact_id: uuid.UUID,
    tenant: Tenant | None,
    actor: Actor,
    now: datetime,
    expected_version: int | None = None,
    write_trust: WriteTrust = AS_USER,
) -> None:
    """Delete a fact with its evidence and revisions: no text stays, the refusal does. Errors: as forget_fact()."""
    with transaction.atomic():
        fact = locked_row(Fact, fact_id, tenant=tenant)
        check_allowed(fact, actor=actor, expected_version=expected_version)
        guarding.check_ends(fact, write_trust, is_own=is_own(fact, actor))
        Changes(actor=actor, now=now).refuse(fact, refusals_against(fact))
        review_items.detach_conflicts([fact.pk])
        audit.record(actor=actor, verb="delete", target=fact, now=now)
        if fact.status == Status.ACTIVE:
            outbox.facts_gone(fact.tenant, [(fact.pk, fact.end_user_id)], now=now)
        fact.delete()
