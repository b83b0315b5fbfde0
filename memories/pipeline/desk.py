"""What is done to facts while a batch is reconciled: each act writes, counts, and remembers what later ones need."""

import uuid
from collections import Counter
from dataclasses import dataclass, field, replace

from memories.models import Fact, RelationType, ReviewItem
from memories.pipeline import review_items
from memories.pipeline.fact_rows import Writer
from memories.pipeline.gate import Accepted, rank
from memories.pipeline.known import Known
from memories.pipeline.review_items import REASON_OF_FLAG, REASON_OF_TRUST, Question

Reason = ReviewItem.Reason
# With each near fact that nobody judged a person is asked about a pair: the nearest tell enough.
MOST_DUPLICATES = 2


@dataclass(frozen=True)
class Outcome:
    """What became of an answer: counts of what was done, and of refused items by reason."""

    done: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Desk:
    """One batch at work. `placed` are the active facts that candidates became or joined, by index; `touched` those that
    count no further mention; `over` those with questions that may be settled now."""

    writer: Writer
    known: Known
    outcome: Outcome = field(default_factory=Outcome)
    placed: dict[int, Fact] = field(default_factory=dict)
    touched: set[uuid.UUID] = field(default_factory=set)
    over: set[uuid.UUID] = field(default_factory=set)

    @property
    def grew(self) -> bool:
        """Whether there are more active facts than before."""
        return bool(self.outcome.done["stored"] or self.outcome.done["confirmed"])

    def count(self, what: str) -> None:
        self.outcome.done[what] += 1

    def refuse(self, reason: str) -> None:
        self.outcome.refusals[reason] += 1

    def ask(self, reason: Reason, *, fact: Fact | None = None, known: Fact | None = None) -> None:
        question = Question(reason, fact=fact, known=known)
        review_items.ask(question, run=self.writer.run, now=self.writer.now)

    def repeat(self, fact: Fact, candidate: Accepted) -> None:
        """The candidate says what an active fact says: its evidence is kept, its text is not."""
        if is_trusted_enough(candidate, fact):
            self.placed[candidate.index] = fact
            self._reinforce(fact, candidate, "reinforced")
        else:
            self.count("outranked")

    def refine(self, fact: Fact, candidate: Accepted) -> None:
        self.writer.refine(fact, candidate, is_mention=fact.pk not in self.touched)
        self.touched.add(fact.pk)
        self.placed[candidate.index] = fact
        self.count("refined")

    def establish(self, candidate: Accepted, suggestion: Fact | None) -> Fact:
        """Make it a fact, of what was a mere suggestion if there is one."""
        if suggestion:
            self._reinforce(suggestion, candidate, "confirmed")
            self.over.add(suggestion.pk)
        fact = suggestion or self._store(candidate, "stored")
        self.writer.relate(fact, RelationType.RELATED_TO, self.known.namesakes(candidate))
        self.placed[candidate.index] = fact
        return fact

    def supersede(self, fact: Fact, *, by: Fact) -> None:
        self.writer.supersede(fact, by=by)
        self.writer.relate(by, RelationType.CONTRADICTS, [fact])
        self.over.add(fact.pk)
        self.count("superseded")

    def hold(
        self, candidate: Accepted, suggestion: Fact | None, why: Reason, *, known: Fact | None, opposed: bool = False
    ) -> None:
        """Keep it for a person to decide whether it holds against what is known, which it may be `opposed` to."""
        fact = self._wait(replace(candidate, waits=True), suggestion, "conflicts", "conflicts")
        if fact is None:
            return
        self.ask(why, fact=fact, known=known)
        for flag in candidate.flags:
            self.ask(REASON_OF_FLAG[flag], fact=fact)
        if known and opposed:
            self.writer.relate(fact, RelationType.CONTRADICTS, [known])

    def suggest(self, candidate: Accepted, suggestion: Fact | None, *, known: Fact | None) -> None:
        """Keep it until a person approves of it; it changes nothing that is active."""
        fact = self._wait(candidate, suggestion, "suggested", "reinforced")
        if fact is None:
            return
        for reason in [REASON_OF_FLAG[flag] for flag in candidate.flags] or [REASON_OF_TRUST[candidate.trust]]:
            self.ask(reason, fact=fact, known=known)

    def join(self, candidate: Accepted, suggestion: Fact) -> None:
        """It says what a suggestion says that somebody has yet to decide against another fact."""
        self._wait(replace(candidate, waits=True), suggestion, "conflicts", "conflicts")

    def _wait(self, candidate: Accepted, suggestion: Fact | None, stored: str, joined: str) -> Fact | None:
        """The suggestion that it became or joined; None when that is of more trust."""
        if suggestion is None:
            return self._store(candidate, stored)
        if not is_trusted_enough(candidate, suggestion):
            self.count("outranked")
            return None
        self._reinforce(suggestion, candidate, joined)
        return suggestion

    def _store(self, candidate: Accepted, count: str) -> Fact:
        fact = self.writer.store(candidate)
        self.known.facts.append(fact)
        self.touched.add(fact.pk)
        self.count(count)
        return fact

    def _reinforce(self, fact: Fact, candidate: Accepted, count: str) -> None:
        if fact.pk in self.touched:
            # Two wordings in one batch are one mention.
            self.writer.cite(fact, candidate)
            self.count("repeated")
            return
        self.writer.reinforce(fact, candidate)
        self.touched.add(fact.pk)
        self.count(count)


def is_trusted_enough(candidate: Accepted, fact: Fact) -> bool:
    """Lower trust neither changes nor reinforces higher trust (rules.md, 4.3)."""
    return rank(candidate.trust) >= rank(fact.trust)
