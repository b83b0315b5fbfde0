"""What operators keep, and until when: pin, lock, and a date at which a fact expires."""

import uuid
from datetime import datetime

from django.utils.translation import gettext as _

from memories.audit import Actor
from memories.curation.change_sets import ChangeSet
from memories.curation.fact_changes import change_fact, must_be_live
from memories.exceptions import Conflict
from memories.models import Fact, MemoryScope, Trust


def pin_fact(
    *, fact_id: uuid.UUID, actor: Actor, now: datetime, expected_version: int | None = None, reason: str = ""
) -> Fact:
    """An operator keeps a live fact: it does not fade, no capacity takes it, and no key changes it.

    Errors: NotFound, PreconditionFailed, Conflict.
    """

    def change(fact: Fact, _changes: ChangeSet) -> None:
        must_be_live(fact)
        fact.pinned = fact.binding = True

    return change_fact(
        fact_id, None, "pin", change, actor=actor, now=now, expected_version=expected_version, reason=reason
    )


def unpin_fact(
    *, fact_id: uuid.UUID, actor: Actor, now: datetime, expected_version: int | None = None, reason: str = ""
) -> Fact:
    """An operator lets a pinned fact go; it fades again, unless something else keeps it. Errors: as pin_fact()."""

    def change(fact: Fact, _changes: ChangeSet) -> None:
        if not fact.pinned:
            raise Conflict(_("The fact is not pinned."))
        fact.pinned = False
        fact.binding = _is_their_word(fact)

    return change_fact(
        fact_id, None, "unpin", change, actor=actor, now=now, expected_version=expected_version, reason=reason
    )


def lock_fact(
    *, fact_id: uuid.UUID, actor: Actor, now: datetime, expected_version: int | None = None, reason: str = ""
) -> Fact:
    """An operator closes a live fact: no job and no key changes it in any way, its expiry included.

    Errors: as pin_fact().
    """

    def change(fact: Fact, _changes: ChangeSet) -> None:
        must_be_live(fact)
        fact.locked = fact.binding = True

    return change_fact(
        fact_id, None, "lock", change, actor=actor, now=now, expected_version=expected_version, reason=reason
    )


def unlock_fact(
    *, fact_id: uuid.UUID, actor: Actor, now: datetime, expected_version: int | None = None, reason: str = ""
) -> Fact:
    """An operator opens a locked fact to jobs and keys, unless it is kept otherwise. Errors: as pin_fact()."""

    def change(fact: Fact, _changes: ChangeSet) -> None:
        if not fact.locked:
            raise Conflict(_("The fact is not locked."))
        fact.locked = False
        fact.binding = _is_their_word(fact)

    return change_fact(
        fact_id, None, "unlock", change, actor=actor, now=now, expected_version=expected_version, reason=reason
    )


def expire_fact(
    *,
    fact_id: uuid.UUID,
    expires_at: datetime | None,
    actor: Actor,
    now: datetime,
    expected_version: int | None = None,
    reason: str = "",
) -> Fact:
    """An operator says until when a live fact holds; None: for ever. The next pass after it takes it to the trash.

    Errors: as pin_fact(); Conflict for a moment that is over and for a locked fact, which no pass takes.
    """

    def change(fact: Fact, _changes: ChangeSet) -> None:
        must_be_live(fact)
        if fact.locked and expires_at:
            raise Conflict(_("The fact is locked: nothing lets it expire."))
        if expires_at and expires_at <= now:
            raise Conflict(_("This moment is over: forget the fact instead."))
        fact.expires_at = expires_at

    return change_fact(
        fact_id, None, "expire", change, actor=actor, now=now, expected_version=expected_version, reason=reason
    )


def _is_their_word(fact: Fact) -> bool:
    """Whether an operator's word holds it without the pin or the lock that is lifted."""
    kept = fact.pinned or fact.locked
    return kept or fact.trust == Trust.OPERATOR or fact.scope == MemoryScope.PUBLIC
