"""What is already known that bears on a batch's candidates, locked against edits until the commit."""

import uuid
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, auto

from django.db.models import Q

from memories.models import ExtractionRun, Fact, FactRefusal, ReviewItem, Status
from memories.models.facts import FactQuerySet
from memories.models.folding import fold, refusal_of_key, refusal_of_text
from memories.pipeline.gate import Accepted
from memories.pipeline.judgement import Near, Verdict, Verdicts

LIVE = (Status.ACTIVE, Status.PENDING)
GONE = (Status.REJECTED, Status.TRASHED)


class Stance(Enum):
    """What a candidate is to a known fact."""

    REPEATS = auto()
    OPPOSES = auto()
    REFINES = auto()
    UNJUDGED = auto()


_STANCE_OF = {
    Verdict.SAME: Stance.REPEATS,
    Verdict.CONTRADICTS: Stance.OPPOSES,
    Verdict.REFINES: Stance.REFINES,
}


@dataclass
class Standing:
    """How a candidate stands to the active facts of its person; `suggestion` is the pending fact of the same text, and
    `near_refused` one close to it that somebody ruled out."""

    repeats: list[Fact] = field(default_factory=list)
    opposes: list[Fact] = field(default_factory=list)
    refines: list[Fact] = field(default_factory=list)
    unjudged: list[Fact] = field(default_factory=list)
    suggestion: Fact | None = None
    near_refused: Fact | None = None

    @property
    def repeats_word(self) -> bool:
        """Whether it says what somebody's word says already."""
        return any(fact.protected for fact in self.repeats)

    @property
    def opposed_word(self) -> Fact | None:
        """Somebody's word that it would change."""
        return next((fact for fact in [*self.opposes, *self.refines] if fact.protected), None)


@dataclass(frozen=True)
class Known:
    """A person's facts that bear on a batch, also those of one agent, and what staff ruled out.

    `contested` are the facts that a suggestion is at odds with by a question that nobody has decided.
    """

    run: ExtractionRun
    now: datetime
    facts: list[Fact]
    refused: frozenset[bytes]
    near: Verdicts
    contested: dict[uuid.UUID, set[uuid.UUID | None]]

    def refuses(self, candidate: Accepted) -> bool:
        """Whether this text or (category, key) was forgotten or set right for good, and nobody has stated it since."""
        twin = self._twin(candidate)
        stands = twin and (twin.status == Status.ACTIVE or twin.protected)
        return not stands and not _refusals(candidate).isdisjoint(self.refused)

    def set_right(self, candidate: Accepted) -> Fact | None:
        """The active fact that said what the candidate says until somebody corrected it."""
        facts = Fact.objects.of(self.run.tenant, self.run.end_user).filter(status=Status.ACTIVE)
        return facts.filter(refusals__digest__in=_refusals(candidate)).order_by("pk").first()

    def standing(self, candidate: Accepted) -> Standing:
        """How the candidate stands to what is known now; a pair judged on another text does not exist."""
        near = {near.fact_id: near for near in self.near.get(candidate.index, ())}
        standing = Standing(suggestion=self._suggestion(candidate), near_refused=self._near_refused(near.values()))
        kept = {
            Stance.REPEATS: standing.repeats,
            Stance.OPPOSES: standing.opposes,
            Stance.REFINES: standing.refines,
            Stance.UNJUDGED: standing.unjudged,
        }
        for fact in self._in_order(near, candidate):
            stance = self._stance(fact, candidate, near.get(fact.pk))
            if stance:
                kept[stance].append(fact)
        return standing

    def is_contested(self, suggestion: Fact, beside: Collection[Fact]) -> bool:
        """Whether a person has yet to decide it against another fact than those of `beside`."""
        return not self.contested.get(suggestion.pk, set()) <= {fact.pk for fact in beside}

    def fact(self, fact_id: uuid.UUID, content_hash: bytes) -> Fact | None:
        """The active fact if it still says this."""
        active = (fact for fact in self.facts if fact.pk == fact_id and fact.status == Status.ACTIVE)
        return next((fact for fact in active if bytes(fact.content_hash) == content_hash), None)

    def namesakes(self, candidate: Accepted) -> list[Fact]:
        """The person's own active facts with the same key in another category."""
        own = (fact for fact in self.facts if candidate.key and not fact.agent_id and self._is_in_force(fact))
        return [fact for fact in own if fact.key == candidate.key and fact.category != candidate.category]

    def look_again(self, candidate: Accepted) -> None:
        """Take in a fact with the candidate's text that somebody else committed meanwhile."""
        twins = _locked(self.run).filter(status__in=LIVE, content_hash=candidate.content_hash, agent_id="")
        self.facts.append(twins.get())

    def _twin(self, candidate: Accepted) -> Fact | None:
        """The person's own live fact with the same text."""
        return next((fact for fact in self.facts if not fact.agent_id and _has_text(fact, candidate)), None)

    def _suggestion(self, candidate: Accepted) -> Fact | None:
        twin = self._twin(candidate)
        return twin if twin and twin.status == Status.PENDING and not twin.protected else None

    def _near_refused(self, near: Iterable[Near]) -> Fact | None:
        """The nearest fact that is out and whose text is refused, be it since the comparison."""
        gone = {fact.pk: fact for fact in self.facts if fact.status in GONE}
        pairs = ((gone.get(pair.fact_id), pair) for pair in near)
        found = (fact for fact, pair in pairs if fact and bytes(fact.content_hash) == pair.content_hash)
        return next((fact for fact in found if refusal_of_text(fact.content) in self.refused), None)

    def _in_order(self, near: dict[uuid.UUID, Near], candidate: Accepted) -> list[Fact]:
        """The same text first, then the same key, then the nearest; another agent's only where it is protected."""
        ours = [fact for fact in self.facts if fact.protected or not fact.agent_id]
        said = [fact for fact in ours if _has_text(fact, candidate)]
        keyed = [fact for fact in ours if _has_key(fact, candidate)]
        by_id = {fact.pk: fact for fact in ours if fact.pk in near}
        nearest = [by_id[fact_id] for fact_id in near if fact_id in by_id]
        return list({fact.pk: fact for fact in [*said, *keyed, *nearest]}.values())

    def _stance(self, fact: Fact, candidate: Accepted, near: Near | None) -> Stance | None:
        if _has_text(fact, candidate) and (fact.status == Status.ACTIVE or fact.protected):
            return Stance.REPEATS
        if not (fact.protected and fact.status in LIVE) and not self._is_in_force(fact):
            return None
        if _has_key(fact, candidate) and fact.value and candidate.value:
            return Stance.REPEATS if fold(fact.value) == fold(candidate.value) else Stance.OPPOSES
        judged = near if near and self._is_in_force(fact) and bytes(fact.content_hash) == near.content_hash else None
        if judged and judged.verdict in _STANCE_OF:
            return _STANCE_OF[judged.verdict]
        if fact.protected and _has_key(fact, candidate):
            # What was set right has lost its value: whatever is said of its key would take its place.
            return Stance.OPPOSES
        return Stance.UNJUDGED if judged and judged.verdict == Verdict.NOT_JUDGED else None

    def _is_in_force(self, fact: Fact) -> bool:
        return fact.status == Status.ACTIVE and (fact.expires_at is None or fact.expires_at > self.now)


def recall(
    *,
    run: ExtractionRun,
    candidates: Sequence[Accepted],
    near: Verdicts,
    named: Collection[uuid.UUID] = (),
    now: datetime,
) -> Known:
    """Read and lock what bears on `candidates`, and the `named` facts; inside the transaction that holds the claim."""
    same_text = Q(content_hash__in=[candidate.content_hash for candidate in candidates])
    same_key = Q(key__in={candidate.key for candidate in candidates if candidate.key})
    pairs = {pair.fact_id for pairs in near.values() for pair in pairs}
    bearing = Q(status__in=LIVE) & (same_text | same_key | Q(pk__in=named))
    # In one order, so that two who lock the same facts cannot wait for each other.
    facts = list(_locked(run).filter(bearing | Q(pk__in=pairs)).order_by("pk"))
    # After the locks: whoever held one may have refused the fact meanwhile.
    refusals = FactRefusal.objects.filter(end_user=run.end_user)
    return Known(
        run=run,
        now=now,
        facts=facts,
        refused=frozenset(bytes(digest) for digest in refusals.values_list("digest", flat=True)),
        near=near,
        contested=_contested(facts),
    )


def _locked(run: ExtractionRun) -> FactQuerySet:
    return Fact.objects.of(run.tenant, run.end_user).select_for_update(no_key=True)


def _contested(facts: Iterable[Fact]) -> dict[uuid.UUID, set[uuid.UUID | None]]:
    """Open conflicts of suggestions, but for those with facts that are over."""
    pending = [fact.pk for fact in facts if fact.status == Status.PENDING]
    contested: dict[uuid.UUID, set[uuid.UUID | None]] = {fact_id: set() for fact_id in pending}
    conflicts = ReviewItem.objects.waiting().filter(fact__in=pending, kind=ReviewItem.Kind.CONFLICT)
    over = Q(known__status__in=[Status.SUPERSEDED, Status.ARCHIVED])
    if pending:
        for fact_id, known_id in conflicts.exclude(over).values_list("fact_id", "known_id"):
            contested[fact_id].add(known_id)
    return contested


def _refusals(candidate: Accepted) -> set[bytes]:
    text = refusal_of_text(candidate.content)
    return {text, refusal_of_key(candidate.category, candidate.key)} if candidate.key else {text}


def _has_text(fact: Fact, candidate: Accepted) -> bool:
    return fact.status in LIVE and bytes(fact.content_hash) == candidate.content_hash


def _has_key(fact: Fact, candidate: Accepted) -> bool:
    return bool(candidate.key) and (fact.category, fact.key) == (candidate.category, candidate.key)
