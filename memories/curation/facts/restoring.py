"""Restoring a fact: from the trash as it was, or to the text of an earlier version."""

import uuid
from datetime import datetime

from django.utils.translation import gettext as _

from memories.audit import Actor
from memories.curation.change_sets import Changes, refusals_of, still_ahead
from memories.curation.facts.changing import deciding_fact, supersede_rivals
from memories.curation.review.suggestions import UNAPPROVED
from memories.curation.statements import guarding
from memories.curation.statements.write_trust import AS_USER, WriteTrust
from memories.exceptions import Conflict, DuplicateFact, NotFound, OperatorWord
from memories.facts.existing import protected_twin, rivals_of
from memories.models import ActorKind, Fact, FactRefusal, FactRevision, Source, Status, Tenant, Trust

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
    "triples",
)


def restore_fact(
    *,
    fact_id: uuid.UUID,
    tenant: Tenant | None,
    actor: Actor,
    now: datetime,
    version: int | None = None,
    reason: str = "",
    expected_version: int | None = None,
    write_trust: WriteTrust = AS_USER,
) -> Fact:
    """Bring a fact back from the trash or from the archive of a removal as it was, or to the text of an earlier
    version; its refusal is lifted.

    It fades anew from now on, and an expiry date that has passed is dropped. A key cannot approve: a fact that waits
    for review, or was rejected, stays so. It cannot restore what an operator refused, nor a fact whose key another fact
    gives another value.

    Errors: NotFound, Conflict, PreconditionFailed, OperatorWord, DuplicateFact, ReviewNeeded as edit_fact().
    """
    with deciding_fact(
        fact_id, tenant, "restore", actor=actor, now=now, expected_version=expected_version, reason=reason
    ) as (fact, changes):
        with changes.changing(fact, "restore"):
            _bring_back(fact, changes, version=version, write_trust=write_trust)
        if fact.status == Status.ACTIVE:
            # One key has one value at a time. A rival makes way for an operator's choice, not for a key's.
            if not actor.is_operator and (twin := protected_twin(fact)):
                raise DuplicateFact(fact_id=twin.pk)
            if not actor.is_operator and rivals_of([fact], now=now)[fact.pk]:
                raise Conflict(
                    _("Another active fact gives this key a different value. Only an operator can restore this fact.")
                )
            supersede_rivals(fact, changes)
    return fact


def _bring_back(fact: Fact, changes: Changes, *, version: int | None, write_trust: WriteTrust) -> None:
    if version is None and fact.status != Status.TRASHED and not _was_removed(fact):
        message = _("The fact is %(status)s, not in the trash. Give the version to go back to.")
        raise Conflict(message % {"status": fact.get_status_display().lower()})
    texts_before = guarding.texts_of(fact)
    _lift_refusals(fact, changes)
    status = Status.ACTIVE if _was_removed(fact) else _status_before_trash(fact)
    if version is not None:
        _take_texts_of(fact, version, actor=changes.actor)
        _lift_refusals(fact, changes)
        status = status if status in UNAPPROVED and not changes.actor.is_operator else Status.ACTIVE
    fact.status, fact.trashed_at, fact.last_confirmed_at = status, None, changes.now
    fact.expires_at = still_ahead(fact.expires_at, now=changes.now)
    if status == Status.ACTIVE:
        fact.valid_to, fact.superseded_by = None, None
    if not changes.actor.is_operator:
        guarding.check_fact(fact, texts_before, write_trust)


def _was_removed(fact: Fact) -> bool:
    """Whether extraction archived it because a conversation said that it is over."""
    if fact.status != Status.ARCHIVED:
        return False
    last = FactRevision.objects.filter(fact=fact).order_by("-version").first()
    return last is not None and last.verb == "remove"


def _lift_refusals(fact: Fact, changes: Changes) -> None:
    """Errors: OperatorWord where an operator refused it, and a key would lift that."""
    refusals = FactRefusal.objects.against(fact.end_user, refusals_of(fact))
    if changes.actor.kind == ActorKind.KEY and refusals.exclude(actor_kind=ActorKind.KEY).exists():
        raise OperatorWord
    changes.remove_refusals_of(fact)


def _status_before_trash(fact: Fact) -> str:
    """The fact's status, or the one that it had before it went to the trash."""
    if fact.status != Status.TRASHED:
        return fact.status
    trashed = FactRevision.objects.filter(fact=fact, before__has_key="status").first()
    return trashed.before["status"] if trashed else Status.ACTIVE


def _take_texts_of(fact: Fact, version: int, *, actor: Actor) -> None:
    revision = FactRevision.objects.filter(fact=fact, version=version).first()
    if revision is None:
        raise NotFound(_("This fact has no version %(version)s.") % {"version": version})
    for name in RESTORED_FIELDS:
        setattr(fact, name, revision.after.get(name))
    fact.set_text(fact.content)
    if actor.is_operator:
        # An operator who chooses a text states it, as in a correction.
        fact.binding, fact.source, fact.trust = True, Source.CORRECTED, Trust.OPERATOR
