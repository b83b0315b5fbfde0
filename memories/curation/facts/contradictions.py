"""What a statement contradicts: refusals, and facts with another value of the same key (rules.md, 5.2 and 5.5)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from memories.audit import Actor
from memories.curation.facts import older
from memories.curation.statements.voices import IMPORTED
from memories.exceptions import DuplicateFact, RefusedBefore, ReviewNeeded
from memories.facts.timeline import Interval
from memories.models import EndUser, Fact, FactQuerySet, FactRefusal, RelationType, ReviewItem, Status, Trust
from memories.models.folding import fold
from memories.models.memories.refusals import RefusalKey, Repeated, refusal_keys
from memories.reconcile.decision import CERTAIN
from memories.trust import rank

Reason = ReviewItem.Reason
# What a fact says by its key.
_KEYED = ("category", "key", "value")
# Fact.protected, in a query.
PROTECTED = Q(binding=True) | Q(pinned=True) | Q(locked=True)


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
    forgiven: Sequence[RefusalKey] = ()
    place: Interval | None = None


def meet(
    end_user: EndUser,
    stated: Fact,
    *,
    actor: Actor,
    now: datetime,
    waits: ReviewItem.Reason | None = None,
    related: Iterable[tuple[str, Fact]] = (),
) -> Met:
    """Compare the statement with the person's facts, and lock those of its key; the caller holds the person's row.

    `waits` is why it has to wait whatever it meets, if so; `related` are the facts that it names, by type of relation.
    An operator's statement never waits.
    Errors: RefusedBefore for what an operator refused and an agent or a tool states again.
    """
    others = _of_the_key(end_user, stated, now=now)
    agreeing = [fact for fact in others if _agree(fact, stated)]
    rivals = [fact for fact in others if fact not in agreeing]
    place = older.place_of(end_user, stated, now=now)
    lost = [] if stated.binding else [*_lost(rivals, stated, place), *_contradicted_words(related)]
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


def protected_twin(end_user: EndUser, stated: Fact) -> Fact | None:
    """The protected fact of others that has the same text: the person's own repeats none of an agent's."""
    same = _protected_beside(end_user, stated).filter(content_hash=stated.content_hash)
    return same.order_by("pk").first()


def check_words(fact: Fact, before: Fact, *, now: datetime, related: Iterable[tuple[str, Fact]] = ()) -> None:
    """Check what a key has made of a fact, before it is saved: what is active cannot wait beside what it contradicts.

    `related` are the facts that it is said to relate to, by type of relation. Errors: ReviewNeeded where a protected
    fact gives its new key or value another one, or is said to be contradicted; DuplicateFact where one has its new
    text.
    """
    if fact.status != Status.ACTIVE:
        return
    if any(_contradicted_words(related)):
        raise ReviewNeeded
    is_reworded = bytes(fact.content_hash) != bytes(before.content_hash)
    if is_reworded and (twin := protected_twin(fact.end_user, fact)):
        raise DuplicateFact(fact_id=twin.pk)
    if any(getattr(fact, name) != getattr(before, name) for name in _KEYED) and words_against(fact, now=now):
        raise ReviewNeeded


def words_against(fact: Fact, *, now: datetime) -> list[Fact]:
    """The protected facts that give its key another value, or none any more because somebody corrected them."""
    found = [one for one in _of_the_key(fact.end_user, fact, now=now) if one.pk != fact.pk]
    return [one for one in found if one.protected and not _agree(one, fact)]


def _marks(stated: Fact) -> list[RefusalKey]:
    return refusal_keys(stated.content, category=stated.category, key=stated.key)


def _of_the_key(end_user: EndUser, stated: Fact, *, now: datetime) -> list[Fact]:
    """Active facts that give its key a value: those of its agent, and the protected ones that it meets.

    A protected one counts without a value, too: it was corrected, and whatever is stated for its key would take its
    place. The same facts meet what is extracted (reconcile/existing_facts.py).
    """
    if not stated.key:
        return []
    facts = Fact.objects.of(end_user.tenant, end_user).active(now=now)
    facts = facts.filter(category=stated.category, key=stated.key)
    counted = PROTECTED & _met_by(stated)
    if stated.value:
        counted |= Q(agent_id=stated.agent_id) & ~Q(value="")
    return list(facts.filter(counted).select_for_update(no_key=True).order_by("pk"))


def _protected_beside(end_user: EndUser, stated: Fact) -> FactQuerySet:
    """The live protected facts of others that the statement meets."""
    live = Fact.objects.of(end_user.tenant, end_user).filter(status__in=[Status.ACTIVE, Status.PENDING])
    return live.filter(PROTECTED & _met_by(stated)).exclude(agent_id=stated.agent_id)


def _met_by(stated: Fact) -> Q:
    """Whose facts it meets: what is the person's own, those of all agents; an agent's, its own and the person's."""
    return Q(agent_id__in={"", stated.agent_id}) if stated.agent_id else Q()


def _agree(fact: Fact, stated: Fact) -> bool:
    return bool(stated.value) and fold(fact.value) == fold(stated.value)


def _contradicted_words(related: Iterable[tuple[str, Fact]]) -> Iterator[tuple[ReviewItem.Reason, Fact]]:
    """The protected facts that the statement itself says it contradicts."""
    for kind, fact in related:
        if kind == RelationType.CONTRADICTS and fact.protected and fact.status == Status.ACTIVE:
            yield Reason.OPERATORS_WORD, fact


def _lost(rivals: Sequence[Fact], stated: Fact, place: Interval | None) -> Iterator[tuple[ReviewItem.Reason, Fact]]:
    """The facts for whose sake the statement waits, each with the reason; of those beside its place their trust."""
    for fact in rivals:
        if reason := _lost_to(fact, stated, is_older=place is not None):
            yield reason, fact
    for fact in place.neighbours if place else ():
        if reason := _forbids(fact, stated):
            yield reason, fact


def _forbids(fact: Fact, stated: Fact) -> ReviewItem.Reason | None:
    """Why the statement may say nothing against the fact, however old or sure it is."""
    if _agree(fact, stated):
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
