"""Triples that a key or an operator states, ends, or replaces.

Each verb locks the person first, as the verbs of facts do: two about one triple follow each other, and an erasure
comes before or after.
"""

import uuid
from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import Q
from django.utils.translation import gettext as _

from memories import audit, conf, content_policy
from memories.audit import Actor
from memories.content_policy import Road
from memories.curation.statements import guarding
from memories.curation.statements.provenance import ResolvedEvidence
from memories.curation.statements.scrubbing import scrubbed_fact
from memories.curation.statements.write_trust import AS_USER, WriteTrust
from memories.curation.writing import WriteResult, open_write
from memories.exceptions import (
    BeyondTrust,
    Conflict,
    InvalidInput,
    OperatorWord,
    ReviewNeeded,
    TripleOfFact,
)
from memories.graph import naming
from memories.models import EndUser, GraphTriple, GraphTripleQuerySet, Tenant, TripleStatus, Trust, Turn
from memories.models.memories.graph import LONGEST_ENTITY, LONGEST_PREDICATE, LONGEST_TYPE
from memories.text.injection import detection
from memories.text.secrets.scrubbing import scrubbed_text
from memories.trust import rank


@dataclass(frozen=True)
class TripleRelation:
    """What stands in which relation to what, and whose triple it is ("": the person's own)."""

    subject: str
    predicate: str
    object: str
    agent_id: str = ""


@dataclass(frozen=True)
class TripleDraft:
    """What a caller states: the relation, when it holds (None: not known since when; still), and what it rests on."""

    relation: TripleRelation
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    confidence: float = 0.9
    subject_type: str = ""
    object_type: str = ""
    turn_id: uuid.UUID | None = None


def add_triple(
    *, end_user: EndUser, draft: TripleDraft, actor: Actor, now: datetime, write_trust: WriteTrust = AS_USER
) -> WriteResult[GraphTriple]:
    """Store a stated triple, without secrets; one that is open already, or has the same interval, is answered itself.

    A key's statement waits for an operator when it speaks to a model or when its `write_trust` is not believed.

    Errors: InvalidInput (an inverted interval, an unknown turn), NotFound, PersonMerged, PersonRestricted.
    """
    check_interval(draft.valid_from, draft.valid_to, at="/valid_to")
    draft = replace(draft, relation=clean(end_user, draft.relation))
    check_policy(end_user.tenant, draft.relation)
    with open_write(end_user, actor, turns=[draft.turn_id] if draft.turn_id else []):
        turn = _turn(end_user, draft.turn_id)
        write_trust = write_trust.lowered(ResolvedEvidence([turn]).trusts) if turn else write_trust
        if existing := _same(end_user, draft):
            return WriteResult(existing, is_new=False)
        return WriteResult(_insert(end_user, draft, turn, write_trust, actor=actor, now=now))


def end_triples(
    *,
    end_user: EndUser,
    relation: TripleRelation,
    ended: datetime,
    actor: Actor,
    now: datetime,
    write_trust: WriteTrust = AS_USER,
) -> list[GraphTriple]:
    """End the open triples of this relation at that moment; returns them. None is open: nothing happens.

    Errors: InvalidInput (it began later), TripleOfFact, OperatorWord, ReviewNeeded, NotFound, PersonMerged,
    PersonRestricted.
    """
    relation = clean(end_user, relation)
    with open_write(end_user, actor):
        found = list(_relating(end_user, relation).open())
        for triple in found:
            check_may_change(triple, actor=actor, write_trust=write_trust)
            check_interval(triple.valid_from, ended, at="/ended")
        for triple in found:
            close(triple, ended=ended, actor=actor, now=now)
    return found


def supersede_triple(
    *,
    end_user: EndUser,
    old: TripleRelation,
    draft: TripleDraft,
    at: datetime | None,
    actor: Actor,
    now: datetime,
    write_trust: WriteTrust = AS_USER,
) -> WriteResult[GraphTriple]:
    """End the open triple and open the new one at the same moment (None: now), both or neither. Done already: the
    new one as it is.

    Errors: InvalidInput (the same object; it began later), Conflict (none is open), TripleOfFact, OperatorWord,
    ReviewNeeded (what would have to wait cannot end what is served), NotFound, PersonMerged, PersonRestricted.
    """
    old, draft = clean(end_user, old), replace(draft, relation=clean(end_user, draft.relation))
    check_policy(end_user.tenant, draft.relation)
    if naming.digest_of(old.object) == naming.digest_of(draft.relation.object):
        raise InvalidInput.at("/new_object", _("Name another object than the old one."), code="same_object")
    with open_write(end_user, actor, turns=[draft.turn_id] if draft.turn_id else []):
        turn = _turn(end_user, draft.turn_id)
        write_trust = write_trust.lowered(ResolvedEvidence([turn]).trusts) if turn else write_trust
        ending = list(_relating(end_user, old).open())
        if not ending:
            return WriteResult(_superseded_before(end_user, old, draft.relation, at), is_new=False)
        moment = at or now
        for triple in ending:
            check_may_change(triple, actor=actor, write_trust=write_trust)
            check_interval(triple.valid_from, moment, at="/at")
        if not actor.is_operator and (
            _flags(draft.relation, write_trust) or not write_trust.is_believed(conf.rules(end_user.tenant))
        ):
            raise ReviewNeeded
        for triple in ending:
            close(triple, ended=moment, actor=actor, now=now)
        draft = replace(draft, valid_from=moment, valid_to=None)
        if existing := _same(end_user, draft):
            return WriteResult(existing, is_new=False)
        return WriteResult(_insert(end_user, draft, turn, write_trust, actor=actor, now=now))


def check_interval(start: datetime | None, end: datetime | None, *, at: str) -> None:
    """Errors: InvalidInput when it would end before it begins. A moment alone, which never holds, is a date."""
    if start and end and end < start:
        raise InvalidInput.at(at, _("It would end before it begins: no moment is inside of it."), code="inverted")


def check_policy(tenant: Tenant, said: TripleRelation) -> None:
    """Errors: ContentForbidden."""
    predicate = said.predicate.replace("_", " ")
    content_policy.check(tenant, Road.GRAPH, [f"{said.subject} {predicate} {said.object}", said.object])


def check_may_change(triple: GraphTriple, *, actor: Actor, write_trust: WriteTrust = AS_USER) -> None:
    """Errors: TripleOfFact; for a key OperatorWord, and BeyondTrust when its words have less trust."""
    if triple.fact_id:
        raise TripleOfFact
    if actor.is_operator:
        return
    if triple.trust == Trust.OPERATOR:
        raise OperatorWord
    is_believed = write_trust.is_believed(conf.rules(triple.tenant)) or triple.status != TripleStatus.ACTIVE
    if not is_believed or rank(write_trust.trust) < rank(triple.trust):
        raise BeyondTrust


def close(triple: GraphTriple, *, ended: datetime, actor: Actor, now: datetime) -> None:
    """End a locked triple, and write the audit event."""
    triple.valid_to, triple.updated_at, triple.version = ended, now, triple.version + 1
    triple.save(update_fields=["valid_to", "updated_at", "version"])
    audit.record(actor=actor, verb="end", target=triple, now=now)


def clean(person: EndUser, relation: TripleRelation) -> TripleRelation:
    """The relation without secrets, as it is stored. Errors: InvalidInput for a predicate that is too long by then."""
    # A predicate such as "password" announces its object.
    texts = scrubbed_fact({"key": relation.predicate, "value": relation.object})
    predicate = naming.predicate_of(texts["key"])
    if not 0 < len(predicate) <= LONGEST_PREDICATE:
        raise InvalidInput.at("/predicate", _("Give a predicate of 1 to 100 characters."), code="max_length")
    return TripleRelation(
        subject=_entity(person, scrubbed_text(relation.subject), at="/subject"),
        predicate=predicate,
        object=_entity(person, texts["value"], at="/object"),
        agent_id=relation.agent_id,
    )


def _entity(person: EndUser, name: str, *, at: str) -> str:
    called = naming.own_name(person, name)[:LONGEST_ENTITY]
    if not called.strip():
        raise InvalidInput.at(at, _("Give a name that is not empty."), code="blank")
    return called


def _flags(relation: TripleRelation, write_trust: WriteTrust) -> list[str]:
    """Why the words must be reviewed before they are served: as a context shows them, and one by one by phrases: the
    meaning of a lone name is a matter of chance."""
    words = (relation.subject, relation.predicate.replace("_", " "), relation.object)
    found = {*guarding.flags_of_text(" ".join(words), write_trust)}
    if any(detection.speaks_to_model(text) for text in words):
        found.add(detection.INSTRUCTIONS)
    return sorted(found)


def _insert(
    person: EndUser, draft: TripleDraft, turn: Turn | None, write_trust: WriteTrust, *, actor: Actor, now: datetime
) -> GraphTriple:
    relation = draft.relation
    entities = naming.ensure(person.tenant_id, person.pk, [relation.subject, relation.object], now=now)
    subject, object_ = (entities[naming.digest_of(name)] for name in (relation.subject, relation.object))
    for entity, stated_type in ((subject, draft.subject_type), (object_, draft.object_type)):
        # A mark of what was cut out can be longer than that.
        kind = scrubbed_text(stated_type, longest=LONGEST_TYPE)
        if kind and kind != entity.type:
            entity.type = kind
            entity.save(update_fields=["type"])
    flags = [] if actor.is_operator else _flags(relation, write_trust)
    waits = not actor.is_operator and (flags or not write_trust.is_believed(conf.rules(person.tenant)))
    triple = GraphTriple.objects.create(
        tenant=person.tenant,
        end_user=person,
        agent_id=relation.agent_id,
        subject=subject,
        predicate=relation.predicate,
        object=object_,
        valid_from=draft.valid_from,
        valid_to=draft.valid_to,
        dated_at=draft.valid_from or now,
        confidence=draft.confidence,
        status=TripleStatus.PENDING if waits else TripleStatus.ACTIVE,
        flags=flags,
        trust=Trust.OPERATOR if actor.is_operator else write_trust.trust,
        extractor="operator" if actor.is_operator else write_trust.extractor,
        actor_kind=actor.kind,
        actor_id=actor.id,
        turn=turn,
        created_at=now,
        updated_at=now,
    )
    audit.record(actor=actor, verb="add", target=triple, object_id=triple.pk, tenant=person.tenant, now=now)
    return triple


def _turn(person: EndUser, turn_id: uuid.UUID | None) -> Turn | None:
    """Errors: InvalidInput for a turn of somebody else, like for one that never existed."""
    if turn_id is None:
        return None
    found = Turn.objects.filter(tenant=person.tenant, end_user=person, pk=turn_id).first()
    if found is None:
        raise InvalidInput.at("/turn_id", _("The person has no turn with this id."), code="does_not_exist")
    return found


def _relating(person: EndUser, relation: TripleRelation) -> GraphTripleQuerySet:
    """Triples of this relation, by any names of its entities, locked; what waits among them."""
    sides = [naming.find(person, name) for name in (relation.subject, relation.object)]
    triples = GraphTriple.objects.of(person.tenant, person).exclude(status=TripleStatus.TRASHED)
    if None in sides:
        return triples.none()
    subjects, objects = (naming.names_of(side) for side in sides if side)
    rows = triples.filter(subject__in=subjects, predicate=relation.predicate, object__in=objects)
    rows = rows.filter(agent_id=relation.agent_id).select_related("tenant", "subject", "object")
    return rows.order_by("dated_at", "pk")


def _same(person: EndUser, draft: TripleDraft) -> GraphTriple | None:
    """The triple that says this already: an open one if the new one is open, else one of the same interval."""
    rows = _relating(person, draft.relation)
    if draft.valid_to is None:
        return rows.open().first()
    began = Q(valid_from=draft.valid_from) if draft.valid_from else Q(valid_from=None)
    return rows.filter(began, valid_to=draft.valid_to).first()


def _superseded_before(person: EndUser, old: TripleRelation, new: TripleRelation, at: datetime | None) -> GraphTriple:
    """The open triple that has taken the place of the old one at that moment. Errors: Conflict."""
    moments = _relating(person, old).exclude(valid_to=None).values_list("valid_to", flat=True)
    if at:
        moments = moments.filter(valid_to=at)
    found = _relating(person, new).open().filter(valid_from__in=list(moments)).first()
    if found is None:
        raise Conflict(_("No open triple says so: it has ended, or never began. Look at it again."))
    return found
