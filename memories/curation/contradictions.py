"""What a statement meets: refusals, and facts that say otherwise of the same key (rules.md, 5.2 and 5.5)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from memories.models import EndUser, Fact, FactRefusal, ReviewItem
from memories.models.folding import fold, refusal_of_key, refusal_of_text
from memories.pipeline.gate import rank
from memories.pipeline.placing import CERTAIN

Reason = ReviewItem.Reason


@dataclass(frozen=True)
class Met:
    """Facts that give way to the statement, facts that say the same in other words, and why it has to wait, if so:
    for whose sake is told by `known`, which a refusal has not."""

    beaten: Sequence[Fact] = ()
    agreeing: Sequence[Fact] = ()
    reason: ReviewItem.Reason | None = None
    known: Fact | None = None


def meet(end_user: EndUser, stated: Fact, *, now: datetime) -> Met:
    """What the statement meets among the person's facts, which are locked; the caller holds the person's row.

    An operator's own statement waits for nobody.
    """
    others = _of_the_key(end_user, stated, now=now)
    agreeing = [fact for fact in others if fold(fact.value) == fold(stated.value)]
    rivals = [fact for fact in others if fact not in agreeing]
    lost = [] if stated.binding else [(reason, fact) for fact in rivals if (reason := _lost_to(fact, stated))]
    if not stated.binding and _is_refused(end_user, stated):
        return Met(reason=Reason.REFUSED_BEFORE)
    if lost:
        return Met(agreeing=agreeing, reason=lost[0][0], known=lost[0][1])
    beaten = [fact for fact in rivals if not fact.protected and fact.agent_id == stated.agent_id]
    return Met(beaten=beaten, agreeing=agreeing)


def _of_the_key(end_user: EndUser, stated: Fact, *, now: datetime) -> list[Fact]:
    """Facts in force with a value for its key: of its agent, and what staff said to all agents."""
    if not (stated.key and stated.value):
        return []
    facts = Fact.objects.of(end_user.tenant, end_user).active(now=now).exclude(value="")
    facts = facts.filter(category=stated.category, key=stated.key, agent_id__in={"", stated.agent_id})
    held = Q(agent_id=stated.agent_id) | Q(binding=True) | Q(pinned=True) | Q(locked=True)
    return list(facts.filter(held).select_for_update(no_key=True).order_by("pk"))


def _is_refused(end_user: EndUser, stated: Fact) -> bool:
    digests = [refusal_of_text(stated.content)]
    digests += [refusal_of_key(stated.category, stated.key)] if stated.key else []
    return FactRefusal.objects.filter(end_user=end_user, digest__in=digests).exists()


def _lost_to(fact: Fact, stated: Fact) -> ReviewItem.Reason | None:
    """Why the statement may not take the fact's place; None when it may. On a tie the newer wins."""
    if fact.protected:
        return Reason.OPERATORS_WORD
    if rank(stated.trust) < rank(fact.trust):
        return Reason.OUTRANKED
    sure = stated.confidence >= CERTAIN or stated.confidence >= fact.stated_confidence
    return None if sure else Reason.LESS_SURE
