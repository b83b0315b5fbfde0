"""What becomes of a candidate beside what it meets, by the policy of who states it: pure, and the only place that says.

The rules are asked in this order; the first that says something decides.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from memories.facts.candidate import Candidate
from memories.facts.existing import Comparison, states_value
from memories.facts.policies import Flagged, Policy, Repeated, SameValue, Weaker
from memories.facts.refusals import RefusalOutcome
from memories.facts.review_items import REASON_OF_FLAG, REASON_OF_TRUST
from memories.facts.timeline import Interval
from memories.models import Fact, RelationType, ReviewItem, Status
from memories.models.memories.refusals import RefusalKey
from memories.trust import Trust, is_believed, rank

Reason = ReviewItem.Reason
# A person who states something as plainly as this always wins (rules.md, 5.2).
CERTAIN = 0.95


class Action(Enum):
    """What is done with a candidate."""

    STORE = "It becomes an active fact."
    HOLD = "It becomes a fact that waits for review."
    CLOSE = "It becomes a fact that is over: something else was said later."
    REINFORCE = "An existing fact was stated again."
    REFINE = "An existing fact takes its more exact words."
    SKIP = "Nothing is stored."
    REPORT_DUPLICATE = "Nothing is stored, and the caller gets the id of the fact with this text or external id."
    REPORT_REFUSED = "Nothing is stored, and the caller is told that it was refused."


@dataclass(frozen=True)
class Decision:
    """What is done, and to which facts: `target` is the one that it repeats, refines, or waits beside, for this
    `reason`; `joins` is a suggestion of the same text, which becomes what the candidate would. `supersedes` are those
    whose place it takes; those that it `contradicts` and is `related` to stay. `ends_refusals` are refused no more."""

    action: Action
    reason: Reason | None = None
    target: Fact | None = None
    joins: Fact | None = None
    supersedes: Sequence[Fact] = ()
    contradicts: Sequence[Fact] = ()
    related: Sequence[Fact] = ()
    interval: Interval | None = None
    ends_refusals: Sequence[RefusalKey] = ()


Rule = Callable[[Candidate, Comparison, Policy, bool], Decision | None]


def decide(candidate: Candidate, compared: Comparison, policy: Policy, *, trusts_assistant: bool) -> Decision:
    """What becomes of the candidate. `trusts_assistant` is the tenant's choice."""
    believed = is_believed(candidate.trust, trusts_assistant=trusts_assistant, is_import=candidate.is_import)
    waits = policy.waits and bool(candidate.flags or not believed)
    rules: tuple[Rule, ...] = (_exists, _refused, _proposed, _known, _blocked, _outranked, _flagged, _less_sure)
    for rule in rules:
        if decision := rule(candidate, compared, policy, waits):
            return decision
    return _keep(candidate, compared, policy)


def _exists(candidate: Candidate, compared: Comparison, policy: Policy, _waits: bool) -> Decision | None:
    """A live fact has its text, or its external id."""
    # The one of its own agent first: that one it would double.
    same_text = sorted(compared.same_text, key=lambda fact: fact.agent_id != candidate.agent_id)
    same = next(iter([*same_text, *compared.same_id]), None)
    if same is None:
        return None
    is_reported = policy.same_text == Repeated.REPORT
    return Decision(Action.REPORT_DUPLICATE if is_reported else Action.SKIP, target=same)


def _refused(candidate: Candidate, compared: Comparison, policy: Policy, _waits: bool) -> Decision | None:
    """Who refused it and who states it again decide."""
    if compared.refusal == RefusalOutcome.DROP:
        return Decision(Action.REPORT_REFUSED if policy.reports_dropped else Action.SKIP)
    if compared.refusal != RefusalOutcome.HOLD or candidate.proposed_as:
        return None
    word = next((fact for fact in [*compared.rivals, *compared.refines] if fact.protected), compared.corrected)
    beside = word if policy.is_heard else candidate.beside
    return Decision(Action.HOLD, Reason.REFUSED_BEFORE, beside, joins=compared.suggestion)


def _proposed(candidate: Candidate, _compared: Comparison, policy: Policy, _waits: bool) -> Decision | None:
    """An operator decides about a proposal, unless its text is flagged as well and nobody shall read it."""
    if not candidate.proposed_as:
        return None
    reason = Reason(candidate.proposed_as)
    is_dropped = policy.flagged == Flagged.DROP and any(REASON_OF_FLAG[flag] != reason for flag in candidate.flags)
    return None if is_dropped else Decision(Action.HOLD, reason, candidate.beside)


def _known(_candidate: Candidate, compared: Comparison, policy: Policy, waits: bool) -> Decision | None:
    """What is heard again adds nothing to a protected fact, and nothing to any if nobody vouches for it."""
    if policy.flagged != Flagged.WAITS_IF_NEW:
        return None
    word = next((fact for fact in compared.same if fact.protected), None)
    known = word or (compared.same[0] if waits and compared.same else None)
    return Decision(Action.SKIP, target=known) if known else None


def _blocked(candidate: Candidate, compared: Comparison, policy: Policy, _waits: bool) -> Decision | None:
    """It would change an operator's word, or is near what was refused."""
    if policy.weaker != Weaker.WAITS:
        return None
    stated = [target for kind, target in candidate.relations if kind == RelationType.CONTRADICTS]
    beside = compared.interval.neighbours if compared.interval and not compared.restated else []
    others = [fact for fact in beside if not states_value(fact, candidate)]
    for fact in [*compared.rivals, *compared.refines, *stated, *others]:
        if fact.protected and (fact.status in Status.LIVE or fact in others):
            return _hold(Reason.OPERATORS_WORD, fact, compared, policy, opposed=fact not in compared.refines)
    return _hold(Reason.NEAR_REFUSED, compared.near_refused, compared, policy) if compared.near_refused else None


def _outranked(candidate: Candidate, compared: Comparison, policy: Policy, waits: bool) -> Decision | None:
    """What it would change has more trust, or it is a record of another system. Beside what was said later only what
    it would come between counts."""
    if policy.weaker == Weaker.WAITS_BESIDE:
        against: Sequence[Fact] = [candidate.beside] if candidate.beside else []
    elif policy.weaker != Weaker.WAITS:
        return None
    elif compared.interval and not waits:
        against = [] if compared.restated else compared.interval.neighbours
    else:
        against = compared.rivals or ([] if waits else compared.refines[:1])
    for fact in against:
        if rank(candidate.trust) < rank(fact.trust) and not states_value(fact, candidate):
            return _hold(Reason.OUTRANKED, fact, compared, policy, opposed=fact not in compared.refines)
    imported = against if policy.weaker == Weaker.WAITS_BESIDE else compared.rivals
    return _hold(Reason.IMPORTED, imported[0], compared, policy) if candidate.is_import and imported else None


def _flagged(candidate: Candidate, compared: Comparison, policy: Policy, waits: bool) -> Decision | None:
    """Its text is flagged; of several flags the gravest is the reason. Or nobody believes whoever states it."""
    if policy.flagged == Flagged.DROP and candidate.flags:
        return Decision(Action.SKIP)
    if not waits:
        return None
    flagged = (reason for flag, reason in REASON_OF_FLAG.items() if flag in candidate.flags)
    reason = next(flagged, None) or REASON_OF_TRUST[candidate.trust]
    beside = candidate.beside or next(iter(compared.rivals), None)
    return Decision(Action.HOLD, reason, beside, joins=compared.suggestion)


def _less_sure(candidate: Candidate, compared: Comparison, policy: Policy, _waits: bool) -> Decision | None:
    """What it contradicts was stated more surely. On a tie the newer wins, and so does what a person is certain of."""
    is_certain = candidate.trust == Trust.USER and candidate.confidence >= CERTAIN
    if policy.weaker != Weaker.WAITS or compared.interval or candidate.is_decisive or is_certain:
        return None
    surer = next((fact for fact in compared.rivals if candidate.confidence < fact.stated_confidence), None)
    return _hold(Reason.LESS_SURE, surer, compared, policy, opposed=True) if surer else None


def _keep(candidate: Candidate, compared: Comparison, policy: Policy) -> Decision:
    """It is kept: as another statement of a fact, as one that is over, or as a new one that takes others' places."""
    interval, suggestion = compared.interval, compared.suggestion
    takes_all = policy.weaker == Weaker.SUPERSEDES_ALL
    rivals = [] if interval else [one for one in compared.rivals if takes_all or not one.protected]
    beaten = [one for one in rivals if takes_all or one.agent_id == candidate.agent_id]
    ended = compared.refused_keys if compared.refusal == RefusalOutcome.LIFT and not interval else ()
    restated = None if policy.same_value == SameValue.BINDS else compared.restated
    if restated:
        return Decision(Action.REINFORCE, target=restated, supersedes=beaten, interval=interval, ends_refusals=ended)
    if suggestion and (interval or compared.is_contested):
        # It states the same as a suggestion that a person has yet to decide.
        return Decision(Action.HOLD, joins=suggestion)
    if interval:
        return Decision(Action.CLOSE, interval=interval)
    refined = next((fact for fact in compared.refines if fact.agent_id == candidate.agent_id), None)
    if refined and not compared.rivals and not suggestion:
        return Decision(Action.REFINE, target=refined)
    return Decision(
        Action.STORE,
        joins=suggestion,
        supersedes=[*beaten, *candidate.merges],
        contradicts=[one for one in rivals if one not in beaten],
        related=compared.namesakes,
        ends_refusals=ended,
    )


def _hold(reason: Reason, target: Fact, compared: Comparison, policy: Policy, *, opposed: bool = False) -> Decision:
    """It waits beside the target; what is heard is related to what it contradicts."""
    contradicts = [target] if opposed and policy.is_heard else []
    return Decision(Action.HOLD, reason, target, joins=compared.suggestion, contradicts=contradicts)
