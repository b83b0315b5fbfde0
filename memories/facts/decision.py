"""What becomes of a candidate beside what it meets, by the policy of who states it: pure, and the only place that says.

The rules are asked in this order; the first that says something decides.
"""

from collections.abc import Callable, Iterator, Sequence
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
    SKIP = "Nothing is stored."
    REPORT_DUPLICATE = "Nothing is stored, and the caller gets the id of the fact with this text or external id."
    REPORT_REFUSED = "Nothing is stored, and the caller is told that it was refused."


@dataclass(frozen=True)
class Decision:
    """What is done, and to which facts: `target` is the one that it repeats, or waits beside, for this `reason`;
    `supersedes` are those whose place it takes. `ends_refusals` are refused no more."""

    action: Action
    reason: Reason | None = None
    target: Fact | None = None
    supersedes: Sequence[Fact] = ()
    interval: Interval | None = None
    ends_refusals: Sequence[RefusalKey] = ()


Rule = Callable[[Candidate, Comparison, Policy], Decision | None]


def decide(candidate: Candidate, compared: Comparison, policy: Policy, *, trusts_assistant: bool) -> Decision:
    """What becomes of the candidate. `trusts_assistant` is the tenant's choice."""
    rules: tuple[Rule, ...] = (_exists, _refused, _proposed, _weaker, _flagged)
    for rule in rules:
        if decision := rule(candidate, compared, policy):
            return decision
    if policy.flagged == Flagged.WAITS and not _is_believed(candidate, trusts_assistant):
        return _hold(REASON_OF_TRUST[candidate.trust], _beside(candidate, compared))
    return _keep(candidate, compared, policy)


def _exists(candidate: Candidate, compared: Comparison, policy: Policy) -> Decision | None:
    """A live fact has its text, or its external id."""
    # The one of its own agent first: that one it would double.
    same_text = sorted(compared.same_text, key=lambda fact: fact.agent_id != candidate.agent_id)
    same = next(iter([*same_text, *compared.same_id]), None)
    if same is None:
        return None
    is_reported = policy.same_text == Repeated.REPORT
    return Decision(Action.REPORT_DUPLICATE if is_reported else Action.SKIP, target=same)


def _refused(candidate: Candidate, compared: Comparison, policy: Policy) -> Decision | None:
    """Who refused it and who states it again decide."""
    if compared.refusal == RefusalOutcome.DROP:
        return Decision(Action.REPORT_REFUSED if policy.reports_dropped else Action.SKIP)
    is_held = compared.refusal == RefusalOutcome.HOLD and not candidate.proposed_as
    return _hold(Reason.REFUSED_BEFORE, candidate.beside) if is_held else None


def _proposed(candidate: Candidate, _compared: Comparison, policy: Policy) -> Decision | None:
    """An operator decides about a proposal, unless its text is flagged as well and nobody shall read it."""
    if not candidate.proposed_as:
        return None
    reason = Reason(candidate.proposed_as)
    is_dropped = policy.flagged == Flagged.DROP and any(REASON_OF_FLAG[flag] != reason for flag in candidate.flags)
    return None if is_dropped else _hold(reason, candidate.beside)


def _weaker(candidate: Candidate, compared: Comparison, policy: Policy) -> Decision | None:
    """What it contradicts is stronger."""
    if policy.weaker == Weaker.WAITS_BESIDE and candidate.beside:
        reason = _outranked_by(candidate.beside, candidate) or (Reason.IMPORTED if candidate.is_import else None)
        return _hold(reason, candidate.beside) if reason else None
    if policy.weaker != Weaker.WAITS:
        return None
    reason, fact = next(_stronger(candidate, compared), (None, None))
    return _hold(reason, fact) if reason else None


def _flagged(candidate: Candidate, compared: Comparison, policy: Policy) -> Decision | None:
    """Its text is flagged; of several flags the gravest is the reason."""
    if policy.flagged == Flagged.SERVED or not candidate.flags:
        return None
    if policy.flagged == Flagged.DROP:
        return Decision(Action.SKIP)
    reason = next(reason for flag, reason in REASON_OF_FLAG.items() if flag in candidate.flags)
    return _hold(reason, _beside(candidate, compared))


def _keep(candidate: Candidate, compared: Comparison, policy: Policy) -> Decision:
    """It is kept: as another statement of a fact, as one that is over, or as a new one that takes others' places."""
    interval, is_binding = compared.interval, policy.same_value == SameValue.BINDS
    beaten = [] if interval else [one for one in compared.rivals if _can_be_superseded(one, candidate)]
    ended = compared.refused_keys if compared.refusal == RefusalOutcome.LIFT and not interval else ()
    restated = None if is_binding else compared.restated
    if restated:
        return Decision(Action.REINFORCE, target=restated, supersedes=beaten, interval=interval, ends_refusals=ended)
    if interval:
        return Decision(Action.CLOSE, interval=interval)
    return Decision(Action.STORE, supersedes=[*beaten, *candidate.merges], ends_refusals=ended)


def _stronger(candidate: Candidate, compared: Comparison) -> Iterator[tuple[Reason, Fact]]:
    """The facts for whose sake it waits, each with the reason; of those beside its interval their trust alone."""
    for fact in compared.rivals:
        if reason := _lost_to(fact, candidate, is_late=compared.interval is not None):
            yield reason, fact
    for fact in compared.interval.neighbours if compared.interval else ():
        if reason := _blocked_by(fact, candidate):
            yield reason, fact
    for kind, fact in candidate.relations:
        if kind == RelationType.CONTRADICTS and fact.protected and fact.status == Status.ACTIVE:
            yield Reason.OPERATORS_WORD, fact


def _lost_to(fact: Fact, candidate: Candidate, *, is_late: bool) -> Reason | None:
    """Why it may not take the fact's place; None when it may. On a tie the newer wins."""
    if reason := _blocked_by(fact, candidate):
        return reason
    if candidate.is_import:
        return Reason.IMPORTED
    if is_late:
        return None
    is_certain = candidate.trust == Trust.USER and candidate.confidence >= CERTAIN
    return None if is_certain or candidate.confidence >= fact.stated_confidence else Reason.LESS_SURE


def _blocked_by(fact: Fact, candidate: Candidate) -> Reason | None:
    """Why it may say nothing against the fact, however old or sure it is."""
    if states_value(fact, candidate):
        return None
    return Reason.OPERATORS_WORD if fact.protected else _outranked_by(fact, candidate)


def _outranked_by(fact: Fact, candidate: Candidate) -> Reason | None:
    return Reason.OUTRANKED if rank(candidate.trust) < rank(fact.trust) else None


def _can_be_superseded(fact: Fact, candidate: Candidate) -> bool:
    return not fact.protected and fact.agent_id == candidate.agent_id


def _is_believed(candidate: Candidate, trusts_assistant: bool) -> bool:
    return is_believed(candidate.trust, trusts_assistant=trusts_assistant, is_import=candidate.is_import)


def _beside(candidate: Candidate, compared: Comparison) -> Fact | None:
    """What it is shown beside, where it waits for its own sake."""
    return candidate.beside or next(iter(compared.rivals), None)


def _hold(reason: Reason, target: Fact | None) -> Decision:
    return Decision(Action.HOLD, reason=reason, target=target)
