"""What people and keys may do to a fact: each verb rechecks under a lock, writes a revision and an audit event."""

import uuid
from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from memories import audit
from memories.audit import Actor
from memories.curation.change_sets import ChangeSet, refusals_against, still_ahead
from memories.curation.fact_changes import change_fact, check_allowed, locked, make_way, must_be_live, rivals_of
from memories.curation.review import UNAPPROVED
from memories.curation.scrubbing import without_secrets
from memories.exceptions import Conflict, NotFound
from memories.models import Fact, FactRefusal, FactRevision, Source, Status, Tenant, Trust
from memories.models.folding import fold, refusal_of_text
from memories.pipeline import review_items
from memories.pipeline.redaction import redact_text

RESTORED_FIELDS = (
    "content",
    "category",
    "key",
    "value",
    "confidence",
    "importance",
    "tags",
    "source_error",
    "structured",
)


def edit_fact(
    *,
    fact_id: uuid.UUID,
    tenant: Tenant | None,
    changes: dict[str, Any],
    actor: Actor,
    now: datetime,
    expected_version: int | None = None,
    reason: str = "",
) -> Fact:
    """Set the named fields of a live fact; a key may change one that a key locked only when it lifts the lock.

    Errors: NotFound, PersonRestricted, OperatorWord, FactLocked, PreconditionFailed, Conflict, DuplicateFact.
    """
    stated = without_secrets(changes)

    def change(fact: Fact, _changes: ChangeSet) -> None:
        must_be_live(fact)
        for name, value in stated.items():
            setattr(fact, name, value)
        # Keys are compared as they stand.
        fact.key = fold(fact.key)
        fact.say(fact.content)
        fact.stated_confidence = stated.get("confidence", fact.stated_confidence)

    return change_fact(
        fact_id,
        tenant,
        "edit",
        change,
        actor=actor,
        now=now,
        expected_version=expected_version,
        reason=reason,
        unlocks=stated.get("locked") is False,
    )


def correct_fact(
    *,
    fact_id: uuid.UUID,
    tenant: Tenant | None,
    content: str,
    reason: str,
    actor: Actor,
    now: datetime,
    expected_version: int | None = None,
    category: str | None = None,
) -> Fact:
    """An operator sets a fact right; from now on no job and no key changes it, and no job says the old text again."""
    content = redact_text(content)[0]

    def change(fact: Fact, changes: ChangeSet) -> None:
        must_be_live(fact)
        if fold(content) != fold(fact.content):
            changes.refuse(fact, [(FactRefusal.Kind.TEXT, refusal_of_text(fact.content))])
        FactRefusal.objects.filter(end_user=fact.end_user, digest=refusal_of_text(content)).delete()
        fact.say(content)
        fact.category = category or fact.category
        # The value was that of the old text; the key stays, so that no other value takes this fact's place.
        fact.value = ""
        fact.status, fact.flags, fact.binding = Status.ACTIVE, [], True
        fact.source, fact.trust, fact.confidence, fact.stated_confidence = Source.CORRECTED, Trust.OPERATOR, 1.0, 1.0
        fact.last_confirmed_at = now

    return change_fact(
        fact_id, tenant, "correct", change, actor=actor, now=now, expected_version=expected_version, reason=reason
    )


def forget_fact(
    *,
    fact_id: uuid.UUID,
    tenant: Tenant | None,
    actor: Actor,
    now: datetime,
    reason: str = "",
    expected_version: int | None = None,
) -> Fact | None:
    """Move a fact to the trash and refuse its text and key for good (rules.md, 5.5). Already there: nothing happens,
    and None is returned."""

    def change(fact: Fact, changes: ChangeSet) -> None:
        fact.status, fact.trashed_at = Status.TRASHED, now
        changes.refuse(fact, refusals_against(fact))

    with transaction.atomic():
        if locked(fact_id, tenant).status == Status.TRASHED:
            return None
        return change_fact(
            fact_id, tenant, "forget", change, actor=actor, now=now, expected_version=expected_version, reason=reason
        )


def delete_fact(
    *, fact_id: uuid.UUID, tenant: Tenant | None, actor: Actor, now: datetime, expected_version: int | None = None
) -> None:
    """Delete a fact with its evidence and revisions: no text stays, the refusal does."""
    with transaction.atomic():
        fact = locked(fact_id, tenant)
        check_allowed(fact, actor=actor, expected_version=expected_version)
        ChangeSet(actor=actor, now=now).refuse(fact, refusals_against(fact))
        review_items.part([fact.pk])
        audit.record(actor=actor, verb="delete", target=fact, object_id=fact.pk, tenant=fact.tenant, now=now)
        fact.delete()


def restore_fact(
    *,
    fact_id: uuid.UUID,
    tenant: Tenant | None,
    actor: Actor,
    now: datetime,
    version: int | None = None,
    reason: str = "",
    expected_version: int | None = None,
) -> Fact:
    """Bring a fact back from the trash as it was, or to what an earlier version said; its refusal is lifted.

    It fades anew from now on, and a date at which it expired holds no longer.

    Errors: NotFound, Conflict, PreconditionFailed, OperatorWord, DuplicateFact. No key approves: in its hands a
    fact that waits for review, or was rejected, stays so, and what holds its key with another value by now stays too.
    """

    return change_fact(
        fact_id,
        tenant,
        "restore",
        partial(_bring_back, version=version),
        then=_take_place,
        actor=actor,
        now=now,
        expected_version=expected_version,
        reason=reason,
    )


def _bring_back(fact: Fact, changes: ChangeSet, *, version: int | None) -> None:
    if version is None and fact.status != Status.TRASHED:
        said = _("The fact is %(status)s, not in the trash: name the version to go back to.")
        raise Conflict(said % {"status": fact.get_status_display().lower()})
    changes.lift_refusals(fact)
    was = _status_outside_trash(fact)
    if version is not None:
        _take_back(fact, version, actor=changes.actor)
        changes.lift_refusals(fact)
        was = was if was in UNAPPROVED and not changes.actor.is_operator else Status.ACTIVE
    fact.status, fact.trashed_at, fact.last_confirmed_at = was, None, changes.now
    fact.expires_at = still_ahead(fact.expires_at, now=changes.now)
    if was == Status.ACTIVE:
        fact.valid_to, fact.superseded_by = None, None


def _take_place(fact: Fact, changes: ChangeSet) -> None:
    """No two values of one key are served: what holds it by now makes way for an operator's choice, not for a key's."""
    if fact.status != Status.ACTIVE:
        return
    if not changes.actor.is_operator and rivals_of(fact, now=changes.now):
        raise Conflict(_("Another active fact gives its key another value: only an operator can restore this one."))
    make_way(fact, changes)


def _status_outside_trash(fact: Fact) -> str:
    """The fact's status, or the one that it had before it went to the trash."""
    if fact.status != Status.TRASHED:
        return fact.status
    trashed = FactRevision.objects.filter(fact=fact, before__has_key="status").first()
    return trashed.before["status"] if trashed else Status.ACTIVE


def _take_back(fact: Fact, version: int, *, actor: Actor) -> None:
    revision = FactRevision.objects.filter(fact=fact, version=version).first()
    if revision is None:
        raise NotFound(_("This fact has no version %(version)s.") % {"version": version})
    for name in RESTORED_FIELDS:
        setattr(fact, name, revision.after[name])
    fact.say(fact.content)
    if actor.is_operator:
        # Choosing what a fact says is an operator's word, as a correction is.
        fact.binding, fact.source, fact.trust = True, Source.CORRECTED, Trust.OPERATOR
