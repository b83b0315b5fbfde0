"""Visibility: only operators make a fact public to all people of the tenant, or private again, or an agent's fact the
person's own."""

import uuid
from collections.abc import Collection
from datetime import datetime

from django.utils.translation import gettext as _

from memories.audit import Actor
from memories.curation.facts.changing import changing_fact, deciding_fact, must_be_live, supersede_rivals
from memories.exceptions import Conflict
from memories.models import Fact, MemoryScope, Status


def publish_fact(
    *,
    fact_id: uuid.UUID,
    actor: Actor,
    now: datetime,
    expected_version: int | None = None,
    reason: str = "",
    confirmed: Collection[str] = (),
) -> Fact:
    """An operator makes an active fact public. It becomes binding: else a key could change what everybody is served.

    Errors: NotFound, PreconditionFailed, Conflict; ConfirmationNeeded with the flags of its text, unless they are all
    `confirmed` and there is a reason.
    """
    with changing_fact(
        fact_id,
        None,
        "publish",
        actor=actor,
        now=now,
        expected_version=expected_version,
        reason=reason,
        confirmed=confirmed,
    ) as fact:
        if fact.status != Status.ACTIVE or fact.scope == MemoryScope.PUBLIC:
            raise Conflict(_("Only an active fact that is not yet public can be published."))
        fact.scope, fact.binding = MemoryScope.PUBLIC, True
    return fact


def withdraw_fact(
    *, fact_id: uuid.UUID, actor: Actor, now: datetime, expected_version: int | None = None, reason: str = ""
) -> Fact:
    """An operator makes a public fact private to its person again; it stays binding. Errors: as publish_fact()."""
    with changing_fact(
        fact_id, None, "withdraw", actor=actor, now=now, expected_version=expected_version, reason=reason
    ) as fact:
        if fact.scope != MemoryScope.PUBLIC:
            raise Conflict(_("The fact is not public."))
        fact.scope = MemoryScope.PRIVATE
    return fact


def promote_fact(
    *, fact_id: uuid.UUID, actor: Actor, now: datetime, expected_version: int | None = None, reason: str = ""
) -> Fact:
    """An operator makes an agent's live fact the person's own: every agent of theirs is told. It takes the place of
    what gave its key another value there.

    Errors: NotFound, PreconditionFailed, Conflict, DuplicateFact when the person's own memory says the same already.
    """
    with deciding_fact(
        fact_id, None, "promote", actor=actor, now=now, expected_version=expected_version, reason=reason
    ) as (fact, changes):
        must_be_live(fact)
        if not fact.agent_id:
            raise Conflict(_("The fact is the person's own already."))
        with changes.changing(fact, "promote"):
            fact.agent_id = ""
        if fact.status == Status.ACTIVE:
            supersede_rivals(fact, changes)
    return fact
