"""What a statement contradicts: refusals, and facts with another value of the same key (rules.md, 5.2 and 5.5)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from memories.audit import Actor
from memories.curation.facts import older
from memories.curation.statements.voices import IMPORTED
from memories.exceptions import RefusedBefore
from memories.models import EndUser, Fact, FactRefusal, ReviewItem, Trust
from memories.models.folding import fold
from memories.models.memories.refusals import Mark, Repeated, marks_of
from memories.reconcile.decision import CERTAIN
from memories.reconcile.gate import rank
from memories.reconcile.timeline import Gap

Reason = ReviewItem.Reason


@dataclass(frozen=True)
class Met:
    """What the statement met: facts that it supersedes, facts that agree with it, and why it has to wait, if so.

    `known` is the fact for whose sake it waits; a refusal has none. `forgiven` is what a key refused, and what this
    statement undoes when it is served. `place` is where it belongs if something else was said later: then it supersedes
    nothing, and is closed.
    """

    beaten: Sequence[Fact] = ()
    agreeing: Sequence[Fact] = ()
    reason: ReviewItem.Reason | None = None
    known: Fact | None = None
    forgiven: Sequence[Mark] = ()
    place: Gap | None = None


def meet(
    end_user: EndUser, stated: Fact, *, actor: Actor, now: datetime, waits: ReviewItem.Reason | None = None
) -> Met:
    """Compare the statement with the person's facts, and lock those of its key; the caller holds the person's row.

    `waits` is why it has to wait whatever it meets, if so. An operator's statement never waits.
    Errors: RefusedBefore for what an operator refused and an agent or a tool states again.
    """
    others = _of_the_key(end_user, stated, now=now)
    agreeing = [fact for fact in others if fold(fact.value) == fold(stated.value)]
    rivals = [fact for fact in others if fact not in agreeing]
    place = older.place_of(end_user, stated, now=now)
    lost = [] if stated.binding else list(_lost(rivals, stated, place))
    refusals = {} if stated.binding else FactRefusal.objects.found(end_user, _marks(stated))
    is_import = stated.extractor == IMPORTED
    outcomes = {row.repeated(trust=stated.trust, key_id=actor.id, is_import=is_import) for row in refusals}
    if Repeated.DROPPED in outcomes:
        raise RefusedBefore
    if Repeated.WAITS in outcomes:
        return Met(reason=Reason.REFUSED_BEFORE)
    if lost:
        return Met(agreeing=agreeing, reason=lost[0][0], known=lost[0][1])
    if waits:
        return Met(agreeing=agreeing, reason=waits, known=next(iter(rivals), None))
    if place:
        return Met(agreeing=older.same_beside(place, stated), place=place)
    beaten = [fact for fact in rivals if not fact.protected and fact.agent_id == stated.agent_id]
    return Met(beaten=beaten, agreeing=agreeing, forgiven=list(refusals.values()))


def _marks(stated: Fact) -> list[Mark]:
    return marks_of(stated.content, category=stated.category, key=stated.key)


def _of_the_key(end_user: EndUser, stated: Fact, *, now: datetime) -> list[Fact]:
    """Active facts with a value for its key: those of its agent, and what staff stated for all agents."""
    if not (stated.key and stated.value):
        return []
    facts = Fact.objects.of(end_user.tenant, end_user).active(now=now).exclude(value="")
    facts = facts.filter(category=stated.category, key=stated.key, agent_id__in={"", stated.agent_id})
    counted = Q(agent_id=stated.agent_id) | Q(binding=True) | Q(pinned=True) | Q(locked=True)
    return list(facts.filter(counted).select_for_update(no_key=True).order_by("pk"))


def _lost(rivals: Sequence[Fact], stated: Fact, place: Gap | None) -> Iterator[tuple[ReviewItem.Reason, Fact]]:
    """The facts for whose sake the statement waits, each with the reason; of those beside its place their trust."""
    for fact in rivals:
        if reason := _lost_to(fact, stated, is_older=place is not None):
            yield reason, fact
    for fact in place.neighbours if place else ():
        if reason := _forbids(fact, stated):
            yield reason, fact


def _forbids(fact: Fact, stated: Fact) -> ReviewItem.Reason | None:
    """Why the statement may say nothing against the fact, however old or sure it is."""
    if fold(fact.value) == fold(stated.value):
        return None
    if fact.protected:
        return Reason.OPERATORS_WORD
    return Reason.OUTRANKED if rank(stated.trust) < rank(fact.trust) else None


def _lost_to(fact: Fact, stated: Fact, *, is_older: bool) -> ReviewItem.Reason | None:
    """Why the statement may not take the fact's place; None when it may. On a tie the newer wins."""
    if reason := _forbids(fact, stated):
        return reason
    if stated.extractor == IMPORTED:
        return Reason.IMPORTED
    if is_older:
        return None
    is_certain = stated.trust == Trust.USER and stated.confidence >= CERTAIN
    return None if is_certain or stated.confidence >= fact.stated_confidence else Reason.LESS_SURE
