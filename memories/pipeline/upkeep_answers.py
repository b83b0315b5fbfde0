"""What of a model's answer counts: removals and merges of facts that it was shown for that; pure (rules.md, 7.5)."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from memories.conf import Rules
from memories.llm.prompts.fact_upkeep import FactUpkeep, MergedFacts, StaleFact
from memories.pipeline.cleaning import clean
from memories.pipeline.redaction import redact_text
from memories.pipeline.upkeep_candidates import Shown

LONGEST_REASON = 500
_LEAST_SOURCES = 2


@dataclass(frozen=True)
class Removal:
    """A stale fact as it was shown, and why it no longer holds."""

    shown: Shown
    reason: str


@dataclass(frozen=True)
class Merge:
    """Facts of one group as they were shown, and the text that says what they say."""

    shown: Sequence[Shown]
    content: str
    confidence: float
    reason: str


@dataclass
class Judged:
    """What may be done, each fact in one place only, and the counts of what was refused by reason."""

    removals: list[Removal] = field(default_factory=list)
    merges: list[Merge] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)

    @property
    def removed(self) -> set[Shown]:
        return {removal.shown for removal in self.removals}

    @property
    def sources(self) -> set[Shown]:
        return {shown for merge in self.merges for shown in merge.shown}


def judge(answer: FactUpkeep, shown: Sequence[Shown], rules: Rules) -> Judged:
    """One bad item loses no good one; what is named stale first, then merges in their order."""
    judged = Judged()
    _each(judged, answer.stale, lambda raw: _remove(judged, raw, shown, rules))
    _each(judged, answer.merged, lambda raw: _merge(judged, raw, shown, rules))
    return judged


def _each(judged: Judged, items: Iterable[Any], take: Callable[[Any], str]) -> None:
    for raw in items:
        try:
            reason = take(raw)
        except ValidationError:
            reason = "malformed"
        judged.refused.update([reason] if reason else [])


def _remove(judged: Judged, raw: Any, shown: Sequence[Shown], rules: Rules) -> str:
    """Take the removal, or say why not."""
    named = StaleFact.model_validate(raw)
    fact = _numbered(named.fact, [one if one.is_stale else None for one in shown])
    reason = _told(named.reason)
    if fact is None:
        return "unknown_fact"
    if not reason:
        return "no_reason"
    if fact in judged.removed:
        return "repeated"
    if len(judged.removals) >= rules.stale_most:
        return "too_many"
    judged.removals.append(Removal(fact, reason))
    return ""


def _merge(judged: Judged, raw: Any, shown: Sequence[Shown], rules: Rules) -> str:
    """Take the merge, or say why not; a text that was made of facts that go otherwise is not used at all."""
    named = MergedFacts.model_validate(raw)
    sources = _sources(judged, named.facts, [one if one.group else None for one in shown])
    if judged.removed.intersection(sources):
        return "both_stale_and_merged"
    if len({fact.group for fact in sources}) > 1:
        return "mixed_facts"
    if len(sources) < _LEAST_SOURCES:
        return "too_few_facts"
    if len(sources) > rules.merged_most:
        return "too_many_facts"
    judged.merges.append(Merge(sources, named.content, named.confidence, _told(named.reason)))
    return ""


def _sources(judged: Judged, numbers: Iterable[int], offered: Sequence[Shown | None]) -> list[Shown]:
    """Those of the numbers that were shown for it; one that an earlier merge takes counts there."""
    named = {number: _numbered(number, offered) for number in numbers}
    known = [fact for fact in named.values() if fact]
    free = [fact for fact in known if fact not in judged.sources]
    judged.refused.update(unknown_fact=len(named) - len(known), repeated=len(known) - len(free))
    return free


def _numbered(number: int, offered: Sequence[Shown | None]) -> Shown | None:
    return offered[number - 1] if 1 <= number <= len(offered) else None


def _told(reason: str) -> str:
    return redact_text(clean(reason))[0][:LONGEST_REASON]
