"""The existing facts that bear on a batch's candidates, locked against edits until the commit."""

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import Q

from memories.facts import refusals, timeline
from memories.facts.policies import Refused
from memories.facts.refusals import RefusalOutcome
from memories.facts.review_items import SUGGESTED
from memories.facts.timeline import Interval
from memories.models import ExtractionRun, Fact, FactRefusal, ReviewItem, Status
from memories.models.folding import fold
from memories.models.memories.facts import FactQuerySet
from memories.models.memories.refusals import RefusalKey, refusal_key_of_text, refusal_keys
from memories.reconcile.gate import Accepted
from memories.reconcile.judgement import NearbyFact, Verdict, Verdicts

LIVE = (Status.ACTIVE, Status.PENDING)
GONE = (Status.REJECTED, Status.TRASHED)


@dataclass
class Comparison:
    """A candidate beside its person's active facts; `suggestion` is the pending fact of the same text, `near_refused` a
    near one that somebody refused."""

    repeats: list[Fact] = field(default_factory=list)
    opposes: list[Fact] = field(default_factory=list)
    refines: list[Fact] = field(default_factory=list)
    unjudged: list[Fact] = field(default_factory=list)
    suggestion: Fact | None = None
    near_refused: Fact | None = None

    @property
    def repeats_word(self) -> bool:
        """Whether it repeats a protected fact."""
        return any(fact.protected for fact in self.repeats)

    @property
    def opposed_word(self) -> Fact | None:
        """The protected fact that it would change."""
        return next((fact for fact in [*self.opposes, *self.refines] if fact.protected), None)


@dataclass(frozen=True)
class ExistingFacts:
    """A person's facts that bear on a batch, even those of one agent, and what was refused for good. Of these a run
    compares with the person's own, and with those of the agent that it is for (ExtractionRun.owner).

    `contested` are, by suggestion, the facts that it conflicts with in a question that nobody has decided.
    """

    run: ExtractionRun
    now: datetime
    facts: list[Fact]
    refused: Mapping[FactRefusal, RefusalKey]
    near: Verdicts
    contested: dict[uuid.UUID, set[uuid.UUID | None]]

    def refusal(self, candidate: Accepted) -> RefusalOutcome:
        """What follows if this text or (category, key) was forgotten or corrected for good, and nobody has stated it
        since. What the rules mode suggests is nobody's word."""
        twin = self._twin(candidate)
        is_stated = twin and (twin.status == Status.ACTIVE or twin.protected)
        keys = refusal_keys(candidate.content, category=candidate.category, key=candidate.key)
        return refusals.outcome(
            [] if is_stated else [row for row, key in self.refused.items() if key in keys],
            rule=Refused.USERS_WAITS,
            trust=candidate.trust,
            is_suggested=SUGGESTED in candidate.flags,
        )

    def corrected(self, candidate: Accepted) -> Fact | None:
        """The active fact that stated the same as the candidate until somebody corrected it."""
        facts = Fact.objects.of(self.run.tenant, self.run.end_user).filter(status=Status.ACTIVE)
        refusals = FactRefusal.objects.against(self.run.end_user, _marks(candidate))
        return facts.filter(refusals__in=refusals).order_by("pk").first()

    def compare(self, candidate: Accepted) -> Comparison:
        """Compare the candidate with the facts as they are now; a verdict on another text does not count."""
        near = {near.fact_id: near for near in self.near.get(candidate.index, ())}
        twin = self._twin(candidate)
        is_suggestion = twin and twin.status == Status.PENDING and not twin.protected
        compared = Comparison(
            suggestion=twin if is_suggestion else None,
            near_refused=self._near_refused(near.values()),
        )
        facts_by_verdict = {
            Verdict.SAME: compared.repeats,
            Verdict.CONTRADICTS: compared.opposes,
            Verdict.REFINES: compared.refines,
            Verdict.NOT_JUDGED: compared.unjudged,
        }
        for fact in self._in_order(near, candidate):
            verdict = self._verdict(fact, candidate, near.get(fact.pk))
            if verdict in facts_by_verdict:
                facts_by_verdict[verdict].append(fact)
        return compared

    def place(self, candidate: Accepted, opposes: Iterable[Fact], *, moment: datetime) -> Interval | None:
        """Where the candidate, said at that moment, belongs if another value, or its contrary, was said later."""
        stated = [fact for fact in self.facts if _has_key(fact, candidate) and fact.value and candidate.value]
        dated = [fact for fact in stated if fact.status == Status.SUPERSEDED or self._is_in_force(fact)]
        own = {fact.pk: fact for fact in [*dated, *opposes] if self._is_comparable(fact) and self.may_replace(fact)}
        return timeline.find_interval(list(own.values()), moment=moment)

    def may_replace(self, fact: Fact) -> bool:
        """Whether what the run hears takes the fact's place. What one agent hears does not take that of the person's
        own: that agent is told it instead (FactQuerySet.latest_for()), and the others are told what they were."""
        return not self.run.owner or fact.agent_id == self.run.owner

    def is_contested(self, suggestion: Fact, beside: Collection[Fact]) -> bool:
        """Whether a person has yet to decide it against a fact that is not one of `beside`."""
        return not self.contested.get(suggestion.pk, set()) <= {fact.pk for fact in beside}

    def fact(self, fact_id: uuid.UUID, content_hash: bytes) -> Fact | None:
        """The active fact if it still has this text."""
        active = (fact for fact in self.facts if fact.pk == fact_id and fact.status == Status.ACTIVE)
        if self.run.owner:
            # What another agent shares is shown, and is that agent's.
            active = (fact for fact in active if self._is_comparable(fact))
        return next((fact for fact in active if bytes(fact.content_hash) == content_hash), None)

    def namesakes(self, candidate: Accepted) -> list[Fact]:
        """The active facts with the same key in another category."""
        own = (fact for fact in self.facts if candidate.key and self._is_comparable(fact) and self._is_in_force(fact))
        return [fact for fact in own if fact.key == candidate.key and fact.category != candidate.category]

    def add_twin(self, candidate: Accepted) -> None:
        """Add the fact with the candidate's text that somebody else committed meanwhile."""
        same_text = _locked(self.run).filter(status__in=LIVE, content_hash=candidate.content_hash)
        twins = same_text.filter(agent_id=self.run.owner)
        self.facts.append(twins.get())

    def _twin(self, candidate: Accepted) -> Fact | None:
        """The live fact with the same text."""
        return next((fact for fact in self.facts if self._is_comparable(fact) and _has_text(fact, candidate)), None)

    def _is_comparable(self, fact: Fact) -> bool:
        """Whether the run compares with it: with the person's own facts, and with those of the agent that it is for."""
        return fact.agent_id in ("", self.run.owner)

    def _near_refused(self, near: Iterable[NearbyFact]) -> Fact | None:
        """The nearest rejected or trashed fact whose text is refused, even if only since the comparison."""
        gone = {fact.pk: fact for fact in self.facts if fact.status in GONE}
        pairs = ((gone.get(pair.fact_id), pair) for pair in near)
        found = (fact for fact, pair in pairs if fact and bytes(fact.content_hash) == pair.content_hash)
        return next((fact for fact in found if refusal_key_of_text(fact.content) in self.refused.values()), None)

    def _in_order(self, near: dict[uuid.UUID, NearbyFact], candidate: Accepted) -> list[Fact]:
        """The same text first, then the same key, then the nearest. Beside facts that it is not for, a run of the
        person's compares with agents' protected ones, a run of an agent's with none of other agents."""
        facts = [fact for fact in self.facts if self._is_comparable(fact) or (fact.protected and not self.run.owner)]
        same_text = [fact for fact in facts if _has_text(fact, candidate)]
        same_key = [fact for fact in facts if _has_key(fact, candidate)]
        by_id = {fact.pk: fact for fact in facts if fact.pk in near}
        nearest = [by_id[fact_id] for fact_id in near if fact_id in by_id]
        return list({fact.pk: fact for fact in [*same_text, *same_key, *nearest]}.values())

    def _verdict(self, fact: Fact, candidate: Accepted, near: NearbyFact | None) -> Verdict | None:
        """Text and key decide before the judgement does."""
        if _has_text(fact, candidate) and (fact.status == Status.ACTIVE or fact.protected):
            return Verdict.SAME
        if not (fact.protected and fact.status in LIVE) and not self._is_in_force(fact):
            return None
        if _has_key(fact, candidate) and fact.value and candidate.value:
            return Verdict.SAME if states_value(fact, candidate) else Verdict.CONTRADICTS
        is_judged = near and self._is_in_force(fact) and bytes(fact.content_hash) == near.content_hash
        verdict = near.verdict if near and is_judged else None
        decides = verdict in (Verdict.SAME, Verdict.CONTRADICTS, Verdict.REFINES)
        if fact.protected and not decides and _has_key(fact, candidate):
            # A corrected fact has no value any more: whatever is stated for its key would take its place.
            return Verdict.CONTRADICTS
        return verdict

    def _is_in_force(self, fact: Fact) -> bool:
        return fact.status == Status.ACTIVE and (fact.expires_at is None or fact.expires_at > self.now)


def load(
    *,
    run: ExtractionRun,
    candidates: Sequence[Accepted],
    near: Verdicts,
    named: Collection[uuid.UUID] = (),
    now: datetime,
) -> ExistingFacts:
    """Read and lock what bears on `candidates`, and the `named` facts; inside the transaction that holds the claim."""
    same_text = Q(content_hash__in=[candidate.content_hash for candidate in candidates])
    same_key = Q(key__in={candidate.key for candidate in candidates if candidate.key})
    pairs = {pair.fact_id for pairs in near.values() for pair in pairs}
    # What was superseded bears on what was said before or after it and arrives only now.
    history = Q(status=Status.SUPERSEDED, agent_id=run.owner) & same_key
    bearing = Q(status__in=LIVE) & (same_text | same_key | Q(pk__in=named)) | history
    # In the order of their ids, as everywhere: two transactions that lock the same facts cannot deadlock.
    facts = list(_locked(run).filter(bearing | Q(pk__in=pairs)).order_by("pk"))
    # After the locks: whoever held one may have refused the fact.
    marks = [mark for candidate in candidates for mark in _marks(candidate)]
    marks += [refusal_key_of_text(fact.content) for fact in facts if fact.status in GONE]
    return ExistingFacts(
        run=run,
        now=now,
        facts=facts,
        refused=FactRefusal.objects.found(run.end_user, marks),
        near=near,
        contested=_contested(facts),
    )


def _locked(run: ExtractionRun) -> FactQuerySet:
    return Fact.objects.of(run.tenant, run.end_user).select_for_update(no_key=True)


def _contested(facts: Iterable[Fact]) -> dict[uuid.UUID, set[uuid.UUID | None]]:
    """Open conflicts of suggestions, without those with facts that are closed."""
    pending = [fact.pk for fact in facts if fact.status == Status.PENDING]
    contested: dict[uuid.UUID, set[uuid.UUID | None]] = {fact_id: set() for fact_id in pending}
    conflicts = ReviewItem.objects.waiting().filter(fact__in=pending, kind=ReviewItem.Kind.CONFLICT)
    over = Q(known__status__in=[Status.SUPERSEDED, Status.ARCHIVED])
    if pending:
        for fact_id, known_id in conflicts.exclude(over).values_list("fact_id", "known_id"):
            contested[fact_id].add(known_id)
    return contested


def _marks(candidate: Accepted) -> list[RefusalKey]:
    return refusal_keys(candidate.content, category=candidate.category, key=candidate.key)


def _has_text(fact: Fact, candidate: Accepted) -> bool:
    return fact.status in LIVE and bytes(fact.content_hash) == candidate.content_hash


def states_value(fact: Fact, candidate: Accepted) -> bool:
    """Whether it gives the candidate's key the same value."""
    return _has_key(fact, candidate) and fold(fact.value) == fold(candidate.value)


def _has_key(fact: Fact, candidate: Accepted) -> bool:
    return bool(candidate.key) and (fact.category, fact.key) == (candidate.category, candidate.key)
