"""What operators keep, and until when: pin, lock, and a date at which a fact expires."""

import uuid
from datetime import datetime

from django.utils.translation import gettext as _

from memories.audit import Actor
from memories.curation.facts.changing import changing_fact, must_be_live
from memories.exceptions import Conflict
from memories.models import Fact, MemoryScope, Source, Trust


def pin_fact(
    *, fact_id: uuid.UUID, actor: Actor, now: datetime, expected_version: int | None = None, reason: str = ""
) -> Fact:
    """An operator keeps a live fact: it does not fade, no capacity limit archives it, and no key changes it.

    Errors: NotFound, PreconditionFailed, Conflict.
    """
    with changing_fact(
        fact_id, None, "pin", actor=actor, now=now, expected_version=expected_version, reason=reason
    ) as fact:
        must_be_live(fact)
        fact.pinned = fact.binding = True
    return fact


def unpin_fact(
    *, fact_id: uuid.UUID, actor: Actor, now: datetime, expected_version: int | None = None, reason: str = ""
) -> Fact:
    """An operator unpins a fact; it fades again, unless something else keeps it. Errors: as pin_fact()."""
    with changing_fact(
        fact_id, None, "unpin", actor=actor, now=now, expected_version=expected_version, reason=reason
    ) as fact:
        if not fact.pinned:
            raise Conflict(_("The fact is not pinned."))
        fact.pinned = False
        fact.binding = _stays_binding(fact)
    return fact


def lock_fact(
    *, fact_id: uuid.UUID, actor: Actor, now: datetime, expected_version: int | None = None, reason: str = ""
) -> Fact:
    """An operator locks a live fact: no job and no key changes anything of it, nor its expiry.

    Errors: as pin_fact().
    """
    with changing_fact(
        fact_id, None, "lock", actor=actor, now=now, expected_version=expected_version, reason=reason
    ) as fact:
        must_be_live(fact)
        fact.locked = fact.binding = True
    return fact


def unlock_fact(
    *, fact_id: uuid.UUID, actor: Actor, now: datetime, expected_version: int | None = None, reason: str = ""
) -> Fact:
    """An operator lets jobs and keys change a locked fact, unless it is kept otherwise. Errors: as pin_fact()."""
    with changing_fact(
        fact_id, None, "unlock", actor=actor, now=now, expected_version=expected_version, reason=reason
    ) as fact:
        if not fact.locked:
            raise Conflict(_("The fact is not locked."))
        fact.locked = False
        fact.binding = _stays_binding(fact)
    return fact


def expire_fact(
    *,
    fact_id: uuid.UUID,
    expires_at: datetime | None,
    actor: Actor,
    now: datetime,
    expected_version: int | None = None,
    reason: str = "",
) -> Fact:
    """An operator sets when a live fact expires; None: never. The next decay pass after that moment trashes it.

    Errors: as pin_fact(); Conflict for a moment in the past, and for a locked fact, which no pass trashes.
    """
    with changing_fact(
        fact_id, None, "expire", actor=actor, now=now, expected_version=expected_version, reason=reason
    ) as fact:
        must_be_live(fact)
        if fact.locked and expires_at:
            raise Conflict(_("The fact is locked, so it cannot expire."))
        if expires_at and expires_at <= now:
            raise Conflict(_("This time has passed. Forget the fact instead."))
        fact.expires_at = expires_at
    return fact


def _stays_binding(fact: Fact) -> bool:
    """Whether the fact is an operator's word, or the person's own, without the pin or the lock that is lifted."""
    is_word = fact.trust == Trust.OPERATOR or fact.source == Source.PERSON
    return fact.pinned or fact.locked or is_word or fact.scope == MemoryScope.PUBLIC
