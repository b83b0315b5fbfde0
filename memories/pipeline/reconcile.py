"""The only place that makes extracted facts: candidates meet what is known, in the transaction that holds the claim."""

import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from memories.llm.prompts.memory_update import MemoryUpdate, ReinforcedFact, RemovedFact
from memories.models import ExtractionRun, Fact, Status, Trust
from memories.pipeline import gate, known, summaries
from memories.pipeline.batches import Batch
from memories.pipeline.fact_rows import Writer
from memories.pipeline.gate import Accepted, Admitted, Refused
from memories.pipeline.known import Known, same_value

# A person who says it as plainly as this always wins (rules.md, 5.2).
CERTAIN = 0.95


@dataclass(frozen=True)
class Outcome:
    """What became of an answer: counts of what was done, and of refused items by reason."""

    done: Counter[str]
    refusals: Counter[str]


def apply(*, run: ExtractionRun, batch: Batch, answer: MemoryUpdate, admitted: Admitted, now: datetime) -> Outcome:
    """Write what the gate `admitted` of the answer; inside the caller's transaction, after debounce.hold()."""
    desk = _Desk(Writer(run, batch.turn_ids, now), known.recall(run, admitted.candidates))
    desk.take(admitted.candidates)
    references = _references(answer, batch, stored=desk.stored)
    sections = summaries.rewrite(run=run, answer=answer.profile, shown=batch.shown_profile, now=now)
    refusals = admitted.refusals + desk.refusals + references.refusals
    return Outcome(desk.done + references.done + sections, refusals)


@dataclass
class _Desk:
    """Candidates are taken one by one; what the earlier ones wrote is known to the later ones."""

    writer: Writer
    known: Known
    done: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    stored: set[int] = field(default_factory=set)
    touched: set[uuid.UUID] = field(default_factory=set)

    def take(self, candidates: Sequence[Accepted]) -> None:
        """What rests on the newest turn comes last: of two values for one key it is the newer."""
        for candidate in sorted(candidates, key=lambda candidate: candidate.cited[-1:]):
            self._take(candidate)

    def _take(self, candidate: Accepted) -> None:
        if self.known.refuses(candidate):
            said = candidate.trust == Trust.USER
            self.refusals["refused_by_operator" if said else "dropped_after_refusal"] += 1
        elif self.known.is_settled(candidate):
            self.done["operator_word"] += 1
        elif candidate.status == Status.PENDING:
            self._suggest(candidate)
        else:
            self._assert(candidate)

    def _suggest(self, candidate: Accepted) -> None:
        """It may join another suggestion, and changes nothing that is active."""
        twin = self.known.twin(candidate)
        if twin is None:
            self._store(candidate, "suggested")
        elif twin.status == Status.PENDING and _is_trusted_enough(candidate, twin):
            self._reinforce(twin, candidate)
        else:
            self.done["outranked"] += 1

    def _assert(self, candidate: Accepted) -> None:
        """Said by the person: same text, then same key (rules.md, 5.1 and 5.2)."""
        twin = self.known.twin(candidate)
        rivals = [fact for fact in self.known.rivals(candidate, now=self.writer.now) if fact is not twin]
        agreeing = [fact for fact in rivals if same_value(fact, candidate)]
        said = twin if twin and twin.status == Status.ACTIVE else next(iter(agreeing), None)
        if not all(_is_trusted_enough(candidate, fact) for fact in [twin, *rivals] if fact):
            self.done["outranked"] += 1
        elif said:
            self._reinforce(said, candidate)
        elif all(_wins(candidate, fact) for fact in rivals):
            self._establish(candidate, twin, rivals)
        else:
            self.done["conflicts"] += 1

    def _establish(self, candidate: Accepted, suggestion: Fact | None, rivals: Iterable[Fact]) -> None:
        """Make it a fact, of what was a mere suggestion if there is one, in the place of its rivals."""
        if suggestion:
            self._reinforce(suggestion, candidate, "confirmed")
        fact = suggestion or self._store(candidate, "stored")
        if fact is None:
            return
        for rival in rivals:
            self.writer.supersede(rival, by=fact)
            self.done["superseded"] += 1

    def _store(self, candidate: Accepted, count: str) -> Fact | None:
        fact = self.writer.store(candidate)
        if fact is None:
            self.known.look_again(candidate)
            self._take(candidate)
            return None
        self.known.facts.append(fact)
        self.touched.add(fact.pk)
        self.stored.add(candidate.index)
        self.done[count] += 1
        return fact

    def _reinforce(self, fact: Fact, candidate: Accepted, count: str = "reinforced") -> None:
        if fact.pk in self.touched:
            # Two wordings in one batch are one mention.
            self.writer.cite(fact, candidate)
            self.done["repeated"] += 1
            return
        self.writer.reinforce(fact, candidate)
        self.touched.add(fact.pk)
        self.done[count] += 1


def _is_trusted_enough(candidate: Accepted, fact: Fact) -> bool:
    return gate.rank(candidate.trust) >= gate.rank(fact.trust)


def _wins(candidate: Accepted, fact: Fact) -> bool:
    """Against the highest confidence ever stated for the fact, reinforcement excluded; on a tie the newer wins.

    A correction or a decision of the person's own always does.
    """
    return candidate.decisive or candidate.confidence >= CERTAIN or candidate.confidence >= fact.stated_confidence


def _references(answer: MemoryUpdate, batch: Batch, *, stored: set[int]) -> Outcome:
    """Check and count what the answer says of known facts; nothing of it is applied yet."""
    outcome = Outcome(Counter(), Counter())
    for kind, items in ((ReinforcedFact, answer.reinforced), (RemovedFact, answer.removed)):
        for raw in items:
            judged = gate.judge_reference(raw, kind, shown=len(batch.shown_facts), evidence=batch.evidence)
            if isinstance(judged, Refused):
                outcome.refusals[judged.reason] += 1
            elif isinstance(judged, RemovedFact) and judged.replaced_by not in {None, *stored}:
                outcome.refusals["replacement_not_stored"] += 1
            else:
                outcome.done["named_removed" if isinstance(judged, RemovedFact) else "named_reinforced"] += 1
    return outcome
