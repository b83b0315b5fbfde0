"""Changes to facts while a batch is reconciled: each one writes, counts, and keeps what later ones need."""

import uuid
from collections import Counter
from dataclasses import dataclass, field, replace

from memories.facts import review_items
from memories.facts.review_items import REASON_OF_FLAG, REASON_OF_TRUST, ReviewQuestion
from memories.facts.timeline import Interval
from memories.models import Fact, RelationType, ReviewItem, Status
from memories.reconcile.existing_facts import ExistingFacts
from memories.reconcile.fact_rows import Writer
from memories.reconcile.gate import Accepted
from memories.trust import rank

Reason = ReviewItem.Reason
# For each near fact that nobody judged a person is asked about the pair: the nearest ones are enough.
MOST_DUPLICATES = 2


@dataclass(frozen=True)
class Outcome:
    """What became of an answer: counts of what was done, and of refused items by reason."""

    done: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class FactChanges:
    """The changes of one batch. `placed` are the active facts that candidates became or joined, by index. Facts in
    `touched` count no further mention; those in `over` have questions that may be settled now."""

    writer: Writer
    existing: ExistingFacts
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
        question = ReviewQuestion(reason, fact=fact, known=known)
        review_items.ask(question, run=self.writer.run, now=self.writer.now)

    def repeat(self, fact: Fact, candidate: Accepted) -> None:
        """An active fact states the same: keep the candidate's evidence, not its text."""
        if is_trusted_enough(candidate, fact):
            if fact.status == Status.ACTIVE:
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
        """Make it an active fact; a suggestion of the same text becomes it."""
        if suggestion:
            self._reinforce(suggestion, candidate, "confirmed")
            self.over.add(suggestion.pk)
        fact = suggestion or self._store(candidate, "stored")
        self.writer.relate(fact, RelationType.RELATED_TO, self.existing.namesakes(candidate))
        self.placed[candidate.index] = fact
        return fact

    def insert(self, candidate: Accepted, place: Interval) -> None:
        """Store it closed: it held until what is known since was said."""
        made = self.writer.insert(candidate, place)
        self.existing.facts.extend(made)
        fact = made[0]
        self.touched.add(fact.pk)
        self.writer.relate(place.after, RelationType.CONTRADICTS, [fact])
        self.writer.relate(fact, RelationType.CONTRADICTS, made[1:] or ([place.before] if place.before else []))
        if place.before:
            self.over.add(place.before.pk)
        self.count("older")

    def join_older(self, fact: Fact, candidate: Accepted, place: Interval) -> None:
        """The fact, which may be closed, was stated before as well; what was said before it ends there."""
        self.repeat(fact, candidate)
        before, is_joined = place.before, is_trusted_enough(candidate, fact)
        if before and is_joined and fact is place.after and before is not fact and not before.protected:
            self.writer.end(before, by=fact)

    def supersede(self, fact: Fact, *, by: Fact) -> None:
        self.writer.supersede(fact, by=by)
        self.writer.relate(by, RelationType.CONTRADICTS, [fact])
        self.over.add(fact.pk)
        self.count("superseded")

    def stand_beside(self, persons: Fact, fact: Fact) -> None:
        """An agent's fact contradicts the person's own, which the other agents are still told."""
        self.writer.relate(fact, RelationType.CONTRADICTS, [persons])
        self.count("beside")

    def hold(
        self, candidate: Accepted, suggestion: Fact | None, why: Reason, *, against: Fact | None, opposed: bool = False
    ) -> None:
        """Store it pending: a person decides between it and the fact `against`, which it may be `opposed` to."""
        fact = self._wait(replace(candidate, waits=True), suggestion, "conflicts", "conflicts")
        if fact is None:
            return
        self.ask(why, fact=fact, known=against)
        for flag in candidate.flags:
            self.ask(REASON_OF_FLAG[flag], fact=fact)
        if against and opposed:
            self.writer.relate(fact, RelationType.CONTRADICTS, [against])

    def suggest(self, candidate: Accepted, suggestion: Fact | None, *, against: Fact | None) -> None:
        """Store it pending until a person approves it; it changes nothing that is active."""
        fact = self._wait(candidate, suggestion, "suggested", "reinforced")
        if fact is None:
            return
        for reason in [REASON_OF_FLAG[flag] for flag in candidate.flags] or [REASON_OF_TRUST[candidate.trust]]:
            self.ask(reason, fact=fact, known=against)

    def join(self, candidate: Accepted, suggestion: Fact) -> None:
        """It states the same as a suggestion that a person has yet to decide against another fact."""
        self._wait(replace(candidate, waits=True), suggestion, "conflicts", "conflicts")

    def _wait(self, candidate: Accepted, suggestion: Fact | None, stored: str, joined: str) -> Fact | None:
        """Store or join the suggestion and return it; None when the suggestion has more trust."""
        if suggestion is None:
            return self._store(candidate, stored)
        if not is_trusted_enough(candidate, suggestion):
            self.count("outranked")
            return None
        self._reinforce(suggestion, candidate, joined)
        return suggestion

    def _store(self, candidate: Accepted, count: str) -> Fact:
        fact = self.writer.store(candidate)
        self.existing.facts.append(fact)
        self.touched.add(fact.pk)
        self.count(count)
        return fact

    def _reinforce(self, fact: Fact, candidate: Accepted, count: str) -> None:
        if fact.pk in self.touched:
            # Two wordings in one batch are one mention.
            self.writer.date(fact, candidate.cited)
            self.writer.cite(fact, candidate)
            self.count("repeated")
            return
        self.writer.reinforce(fact, candidate)
        self.touched.add(fact.pk)
        self.count(count)


def is_trusted_enough(candidate: Accepted, fact: Fact) -> bool:
    """Lower trust neither changes nor reinforces higher trust (rules.md, 4.3)."""
    return rank(candidate.trust) >= rank(fact.trust)
