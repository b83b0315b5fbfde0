"""What operators do to stated triples and to entities: each is a change set, with one undo."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Required, TypedDict, Unpack

from django.db import transaction
from django.utils.translation import gettext as _

from memories import audit
from memories.audit import Actor
from memories.curation.change_sets import Changes
from memories.curation.graph import stating, taking_back
from memories.curation.writing import lock_person
from memories.exceptions import Conflict, NotFound, PreconditionFailed
from memories.graph import naming
from memories.models import Change, GraphEntity, GraphTriple, TripleStatus, Trust
from memories.verbs import undone_of

VERBS = undone_of("GraphTriple") | undone_of("GraphEntity")


@dataclass(frozen=True)
class TripleCorrection:
    """What a triple says once an operator has corrected it."""

    relation: stating.TripleRelation
    valid_from: datetime | None
    valid_to: datetime | None


class Decision(TypedDict, total=False):
    """Who decides, when and why, and which version they were looking at (None: whichever it is)."""

    actor: Required[Actor]
    now: Required[datetime]
    expected_version: int | None
    reason: str


def approve_triple(*, triple_id: uuid.UUID, **by: Unpack[Decision]) -> Changes:
    """Serve a triple that waits. Errors: those of _deciding(), Conflict when it does not wait, ContentForbidden."""
    with _deciding(triple_id, "approve_triple", **by) as (triple, changes):
        if triple.status != TripleStatus.PENDING:
            raise Conflict(_("This triple does not wait any more."))
        said = stating.TripleRelation(triple.subject.name, triple.predicate, triple.object.name)
        stating.check_policy(triple.tenant, said)
        triple.status, triple.flags = TripleStatus.ACTIVE, []
    return changes


def end_triple(*, triple_id: uuid.UUID, ended: datetime, **by: Unpack[Decision]) -> Changes:
    """Let it hold until before that moment. Errors: those of _deciding(), InvalidInput when it began later."""
    with _deciding(triple_id, "end_triple", **by) as (triple, changes):
        stating.check_interval(triple.valid_from, ended, at="/ended")
        triple.valid_to = ended
    return changes


def correct_triple(*, triple_id: uuid.UUID, correction: TripleCorrection, **by: Unpack[Decision]) -> Changes:
    """Let it say this, as an operator's word, which no key changes. Errors: those of _deciding(), InvalidInput,
    Conflict when another triple says so, ContentForbidden."""
    stating.check_interval(correction.valid_from, correction.valid_to, at="/valid_to")
    with _deciding(triple_id, "correct_triple", **by) as (triple, changes):
        stated = stating.clean(triple.end_user, correction.relation)
        stating.check_policy(triple.tenant, stated)
        entities = naming.ensure(triple.tenant_id, triple.end_user_id, [stated.subject, stated.object], now=changes.now)
        triple.subject, triple.object = (entities[naming.digest_of(name)] for name in (stated.subject, stated.object))
        triple.predicate, triple.valid_from, triple.valid_to = (
            stated.predicate,
            correction.valid_from,
            correction.valid_to,
        )
        triple.dated_at = triple.valid_from or triple.created_at
        triple.status, triple.flags, triple.confidence = TripleStatus.ACTIVE, [], 1.0
        triple.trust, triple.extractor, triple.actor_kind, triple.actor_id = (
            Trust.OPERATOR, "operator", changes.actor.kind, changes.actor.id,
        )  # fmt: skip
        twins = GraphTriple.objects.filter(end_user=triple.end_user, agent_id=triple.agent_id, fact=None).open()
        twins = twins.filter(subject=triple.subject, predicate=triple.predicate, object=triple.object)
        if triple.valid_to is None and twins.exclude(pk=triple.pk).exclude(status=TripleStatus.TRASHED).exists():
            raise Conflict(_("Another triple says this already."))
    return changes


def forget_triple(*, triple_id: uuid.UUID, **by: Unpack[Decision]) -> Changes:
    """Move it to the trash. Errors: those of _deciding()."""
    with _deciding(triple_id, "forget_triple", **by) as (triple, changes):
        triple.status, triple.trashed_at = TripleStatus.TRASHED, changes.now
    return changes


def join_entities(*, entity_id: uuid.UUID, name: str, actor: Actor, now: datetime, reason: str = "") -> Changes:
    """Make the entity another name of the person's entity with this name. Errors: NotFound, Conflict (there is none; it
    is the entity's own name, or that of the person themself; one of the two is another name already)."""
    changes = Changes(actor=actor, now=now, reason=reason)
    with transaction.atomic():
        entity = GraphEntity.objects.filter(pk=entity_id).first()
        lock_person(entity.end_user_id if entity else None)
        entity = GraphEntity.objects.select_related("end_user", "tenant").filter(pk=entity_id).first()
        if entity is None:
            raise NotFound
        root = naming.find(entity.end_user, name)
        if root is None:
            raise Conflict(_("The graph has no entity of this name."))
        if naming.is_person(entity):
            raise Conflict(_("The end user stays who they are. Make the other entity another name of the end user."))
        if root.pk == entity.pk:
            raise Conflict(_("This is the entity's own name. Give the name of another entity."))
        if entity.merged_into_id or entity.aliases.exists():
            raise Conflict(_("One of the two is another name of something already."))
        entity.merged_into = root
        entity.save(update_fields=["merged_into"])
        before = {"merged_into": None, "left": str(root.pk)}
        changes.record_row_change(Change.Table.ENTITY, Change.Action.CHANGED, entity.pk, before=before)
        changes.save("join_entities", entity.end_user)
        audit.record(actor=actor, verb="join", target=entity, now=now)
    return changes


@contextmanager
def _deciding(
    triple_id: uuid.UUID,
    verb: str,
    *,
    actor: Actor,
    now: datetime,
    expected_version: int | None = None,
    reason: str = "",
) -> Iterator[tuple[GraphTriple, Changes]]:
    """Lock the person, check the triple, let the block change it, and keep what it was.

    Errors: NotFound (gone, or in the trash), TripleOfFact, PreconditionFailed.
    """
    changes = Changes(actor=actor, now=now, reason=reason)
    with transaction.atomic():
        rows = GraphTriple.objects.filter(pk=triple_id).exclude(status=TripleStatus.TRASHED)
        lock_person(rows.values_list("end_user", flat=True).first())
        triple = rows.select_related("tenant", "end_user", "subject", "object").first()
        if triple is None:
            raise NotFound
        stating.check_may_change(triple, actor=actor)
        if expected_version is not None and expected_version != triple.version:
            raise PreconditionFailed
        before = taking_back.snapshot(triple)
        yield triple, changes
        taking_back.save(triple, before, changes)
        changes.counts["triples"] = 1
        changes.save(verb, triple.end_user)
        audit.record(actor=actor, verb=verb.removesuffix("_triple"), target=triple, now=now)
