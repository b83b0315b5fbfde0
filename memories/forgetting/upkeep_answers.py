"""Which removals and merges of a model's answer count: those of facts shown for that; pure (rules.md, 7.5)."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from memories.conf import Rules
from memories.forgetting.upkeep_candidates import UpkeepFact
from memories.llm.prompts.fact_upkeep import FactUpkeep, MergedFacts, StaleFact
from memories.text.cleaning import clean
from memories.text.secrets.redaction import redact_text

LONGEST_REASON = 500
_LEAST_SOURCES = 2


@dataclass(frozen=True)
class Removal:
    """A stale fact as it was shown, and why it no longer holds."""

    shown: UpkeepFact
    reason: str


@dataclass(frozen=True)
class Merge:
    """Facts of one group as they were shown, and the text that replaces them."""

    shown: Sequence[UpkeepFact]
    content: str
    confidence: float
    reason: str


@dataclass
class UpkeepDecisions:
    """What is to be done, each fact in one place only, and how many items were refused by reason."""

    removals: list[Removal] = field(default_factory=list)
    merges: list[Merge] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)

    @property
    def removed(self) -> set[UpkeepFact]:
        return {removal.shown for removal in self.removals}

    @property
    def sources(self) -> set[UpkeepFact]:
        return {shown for merge in self.merges for shown in merge.shown}


def judge(answer: FactUpkeep, shown: Sequence[UpkeepFact], rules: Rules) -> UpkeepDecisions:
    """First stale facts, then merges in their order; one bad item loses no good one."""
    decisions = UpkeepDecisions()
    _each(decisions, answer.stale, lambda raw: _remove(decisions, raw, shown, rules))
    _each(decisions, answer.merged, lambda raw: _merge(decisions, raw, shown, rules))
    return decisions


def _each(decisions: UpkeepDecisions, items: Iterable[Any], take: Callable[[Any], str]) -> None:
    for raw in items:
        try:
            reason = take(raw)
        except ValidationError:
            reason = "malformed"
        decisions.refused.update([reason] if reason else [])


def _remove(decisions: UpkeepDecisions, raw: Any, shown: Sequence[UpkeepFact], rules: Rules) -> str:
    """Take the removal, or return why not."""
    named = StaleFact.model_validate(raw)
    fact = _numbered(named.fact, [one if one.is_stale else None for one in shown])
    reason = _cleaned(named.reason)
    if fact is None:
        return "unknown_fact"
    if not reason:
        return "no_reason"
    if fact in decisions.removed:
        return "repeated"
    if len(decisions.removals) >= rules.stale_most:
        return "too_many"
    decisions.removals.append(Removal(fact, reason))
    return ""


def _merge(decisions: UpkeepDecisions, raw: Any, shown: Sequence[UpkeepFact], rules: Rules) -> str:
    """Take the merge, or return why not. A text that was made of a removed fact is not used at all."""
    named = MergedFacts.model_validate(raw)
    offered = [fact if fact.group else None for fact in shown]
    found = {number: _numbered(number, offered) for number in named.facts}
    known = [fact for fact in found.values() if fact]
    # A fact that an earlier merge took counts there only.
    sources = [fact for fact in known if fact not in decisions.sources]
    decisions.refused.update(unknown_fact=len(found) - len(known), repeated=len(known) - len(sources))
    if decisions.removed.intersection(sources):
        return "both_stale_and_merged"
    if len({fact.group for fact in sources}) > 1:
        return "mixed_facts"
    if len(sources) < _LEAST_SOURCES:
        return "too_few_facts"
    if len(sources) > rules.merged_most:
        return "too_many_facts"
    decisions.merges.append(Merge(sources, named.content, named.confidence, _cleaned(named.reason)))
    return ""


def _numbered(number: int, offered: Sequence[UpkeepFact | None]) -> UpkeepFact | None:
    return offered[number - 1] if 1 <= number <= len(offered) else None


def _cleaned(reason: str) -> str:
    return redact_text(clean(reason))[0][:LONGEST_REASON]
