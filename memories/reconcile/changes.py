"""What a batch states, as the one road of statements takes it, and what becomes of it."""

import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from memories.audit import Actor
from memories.facts import policies, review_items
from memories.facts.candidate import Candidate, Citation
from memories.facts.decision import Action
from memories.facts.record import Recorder
from memories.facts.review_items import ReviewQuestion
from memories.facts.write import FactWrite
from memories.graph import naming
from memories.models import ExtractionRun, Fact, ReviewItem, Status
from memories.reconcile import stated_triples
from memories.reconcile.batches import ShownFact, TurnBatch
from memories.reconcile.gate import Accepted
from memories.reconcile.judgement import Verdicts


@dataclass(frozen=True)
class Outcome:
    """What became of an answer: counts of what was done, and of refused items by reason."""

    done: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class BatchStatements:
    """The turns of a run's batch as what is stated rests on them."""

    run: ExtractionRun
    batch: TurnBatch

    def times_of(self, turns: Iterable[int]) -> list[datetime]:
        """When these turns were sent, in order; all of them before the run began, whatever the clocks say."""
        return sorted(min(self.batch.sent_at[number], self.run.started_at) for number in turns)

    def citations(self, turns: Iterable[int], quotes: Mapping[int | None, str] | None = None) -> list[Citation]:
        ids, quotes = self.batch.turn_ids, quotes or {}
        return [Citation(self.run.session_id, number, ids[number], quotes.get(number, "")) for number in turns]

    def candidate(self, accepted: Accepted, near: Verdicts) -> Candidate:
        run, stated_at = self.run, self.times_of(accepted.cited)
        return Candidate(
            content=accepted.content,
            category=accepted.category,
            key=accepted.key,
            value=accepted.value,
            raw=accepted.quote,
            confidence=accepted.confidence,
            importance=accepted.importance,
            tags=accepted.tags,
            structured=accepted.structured,
            triples=stated_triples.of_person(accepted.triples, self._called) if accepted.triples else (),
            source=accepted.source,
            source_error=accepted.source_error,
            trust=accepted.trust,
            flags=accepted.flags,
            is_decisive=accepted.decisive,
            agent_id=run.owner,
            extractor=run.extractor,
            prompt_version=run.prompt_version,
            extraction=run,
            stated_at=stated_at,
            # A temporary fact lives from when it was said.
            expires_at=stated_at[-1] + accepted.expires_in if accepted.expires_in else None,
            citations=self.citations(accepted.cited, {accepted.quoted: accepted.quote}),
            near=near.get(accepted.index, ()),
        )

    @cached_property
    def _called(self) -> Callable[[str], str]:
        """What the graph calls somebody whom the batch names."""
        return naming.caller(self.run.end_user)


@dataclass(frozen=True)
class FactChanges:
    """The changes of one batch. `placed` are the active facts that candidates became or joined, by index."""

    statements: BatchStatements
    recorder: Recorder
    outcome: Outcome = field(default_factory=Outcome)
    placed: dict[int, Fact] = field(default_factory=dict)

    @property
    def run(self) -> ExtractionRun:
        return self.statements.run

    @property
    def write(self) -> FactWrite:
        return self.recorder.writer.write

    @property
    def touched(self) -> Collection[uuid.UUID]:
        """The ids of the facts that count no further mention."""
        return self.recorder.writer.touched

    @property
    def grew(self) -> bool:
        """Whether there are more active facts than before."""
        return bool(self.outcome.done["stored"] or self.outcome.done["confirmed"])

    def count(self, what: str, number: int = 1) -> None:
        self.outcome.done[what] += number

    def refuse(self, reason: str) -> None:
        self.outcome.refusals[reason] += 1

    def ask(self, reason: ReviewItem.Reason, known: Fact) -> None:
        """Ask whether the fact still holds."""
        review_items.ask(ReviewQuestion(reason, known=known), run=self.run, now=self.write.now)

    def cite(self, fact: Fact, turns: Iterable[int]) -> None:
        self.recorder.writer.cite((fact, self.statements.citations(turns)))

    def confirm(self, fact: Fact, turns: Sequence[int]) -> None:
        """The fact was said again in these turns."""
        times, citations = self.statements.times_of(turns), self.statements.citations(turns)
        self.recorder.writer.confirm(fact, times, citations)

    def end(self, fact: Fact, *, by: Fact | None, reason: str, turns: Sequence[int]) -> None:
        """The fact no longer holds; the turns are the evidence. Without a successor it is archived."""
        ended = by.valid_from if by else self.statements.times_of(turns)[-1]
        with self.write.because(reason).changing(fact, "remove"):
            fact.status = Status.SUPERSEDED if by else Status.ARCHIVED
            fact.valid_to, fact.superseded_by = max(fact.valid_from, ended), by
        self.cite(fact, turns)

    def archive(self, fact: Fact) -> None:
        """The person has too many facts: it is kept, but not served any more."""
        with self.write.changing(fact, "archive"):
            fact.status = Status.ARCHIVED
        self.count("archived")

    def keep(self, index: int, candidate: Candidate) -> None:
        """Take the candidate with this index down the road, and count what was done."""
        made = self.recorder.add(candidate)
        (self.refuse if made.done == "dropped_after_refusal" else self.count)(made.done)
        if made.fact is None or made.done in ("outranked", "operator_word"):
            return
        if made.fact.status == Status.ACTIVE:
            self.placed[index] = made.fact
        if made.decision.supersedes:
            self.count("superseded", len(made.decision.supersedes))
        if made.decision.action == Action.STORE and made.decision.contradicts:
            self.count("beside", len(made.decision.contradicts))

    def shown(self, shown: ShownFact) -> Fact | None:
        """The active fact as the model was shown it, if it still has this text. What another agent shares is shown,
        and is that agent's."""
        active = (one for one in self.recorder.existing.facts if one.pk == shown.fact_id)
        own = (one for one in active if not self.run.owner or one.agent_id in ("", self.run.owner))
        fact = next((one for one in own if one.status == Status.ACTIVE), None)
        return fact if fact and bytes(fact.content_hash) == shown.content_hash else None

    def is_over(self, shown: ShownFact) -> bool:
        """Whether this batch has ended it."""
        known = (one for one in self.recorder.existing.facts if one.pk == shown.fact_id)
        return any(one.status != Status.ACTIVE and one.pk in self.write.facts for one in known)

    def may_end(self, fact: Fact) -> bool:
        """Whether what the run hears ends the fact. What one agent hears ends none of the person's own: that agent is
        told it instead (FactQuerySet.latest_for()), and the others are told what they were."""
        return not self.run.owner or fact.agent_id == self.run.owner


def start(
    run: ExtractionRun,
    batch: TurnBatch,
    accepted: Sequence[Accepted],
    *,
    near: Verdicts,
    named: Collection[uuid.UUID],
    now: datetime,
) -> FactChanges:
    """Take all candidates down the road, each counted once; the `named` facts are locked, too.

    The candidate that was said last comes last: of two values for one key it is the newer.
    """
    person = run.end_user
    # It is loaded already.
    person.tenant = run.tenant
    statements = BatchStatements(run, batch)
    ordered = sorted(accepted, key=lambda one: (statements.times_of(one.cited)[-1:], one.cited[-1:]))
    candidates = {one.index: statements.candidate(one, near) for one in ordered}
    recorder = Recorder.of(
        list(candidates.values()),
        person=person,
        write=FactWrite(Actor.run(run), now),
        policy=policies.EXTRACTION,
        named=named,
        run=run,
    )
    changes = FactChanges(statements, recorder)
    for index, candidate in candidates.items():
        changes.keep(index, candidate)
    recorder.writer.flush()
    return changes
