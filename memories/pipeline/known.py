"""What is already known that bears on a batch's candidates, locked against edits until the commit."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from memories.models import ExtractionRun, Fact, FactRefusal, Status
from memories.models.facts import FactQuerySet
from memories.models.folding import fold, refusal_of_key, refusal_of_text, text_digest
from memories.pipeline.gate import Accepted


@dataclass(frozen=True)
class Known:
    """A person's live facts with the text or key of a candidate, also those of one agent, and what staff ruled out."""

    run: ExtractionRun
    facts: list[Fact]
    refused: frozenset[bytes]

    def refuses(self, candidate: Accepted) -> bool:
        """Whether this text or (category, key) was forgotten or set right for good."""
        digests = {refusal_of_text(candidate.content)}
        if candidate.key:
            digests.add(refusal_of_key(candidate.category, candidate.key))
        return not digests.isdisjoint(self.refused)

    def is_settled(self, candidate: Accepted) -> bool:
        """Whether somebody's word stands on this: a protected fact, of whichever agent, with its text or key."""
        digest = text_digest(candidate.content)
        protected = (fact for fact in self.facts if fact.protected)
        return any(bytes(fact.content_hash) == digest or _has_key(fact, candidate) for fact in protected)

    def twin(self, candidate: Accepted) -> Fact | None:
        """The person's own fact with the same text."""
        digest = text_digest(candidate.content)
        return next((fact for fact in self._own if bytes(fact.content_hash) == digest), None)

    def rivals(self, candidate: Accepted, *, now: datetime) -> list[Fact]:
        """The person's own active facts with a value for the same (category, key)."""
        keyed = [fact for fact in self._own if fact.status == Status.ACTIVE and _has_key(fact, candidate)]
        in_force = [fact for fact in keyed if fact.expires_at is None or fact.expires_at > now]
        return [fact for fact in in_force if fact.value] if candidate.value else []

    def look_again(self, candidate: Accepted) -> None:
        """Take in a fact with the candidate's text that somebody else committed meanwhile."""
        twins = _live(self.run).filter(content_hash=text_digest(candidate.content), agent_id="")
        self.facts.append(twins.get())

    @property
    def _own(self) -> Iterable[Fact]:
        live = (Status.ACTIVE, Status.PENDING)
        return (fact for fact in self.facts if not fact.agent_id and fact.status in live)


def recall(run: ExtractionRun, candidates: Sequence[Accepted]) -> Known:
    """Read and lock what bears on `candidates`; inside the transaction that holds the claim."""
    same_text = Q(content_hash__in=[text_digest(candidate.content) for candidate in candidates])
    same_key = Q(key__in={candidate.key for candidate in candidates if candidate.key})
    refusals = FactRefusal.objects.filter(end_user=run.end_user)
    return Known(
        run=run,
        # In one order, so that two who lock the same facts cannot wait for each other.
        facts=list(_live(run).filter(same_text | same_key).order_by("pk")),
        refused=frozenset(bytes(digest) for digest in refusals.values_list("digest", flat=True)),
    )


def same_value(fact: Fact, candidate: Accepted) -> bool:
    """Whether both give the same value, folded."""
    return fold(fact.value) == fold(candidate.value)


def _live(run: ExtractionRun) -> FactQuerySet:
    facts = Fact.objects.of(run.tenant, run.end_user).filter(status__in=[Status.ACTIVE, Status.PENDING])
    return facts.select_for_update(no_key=True)


def _has_key(fact: Fact, candidate: Accepted) -> bool:
    return bool(candidate.key) and (fact.category, fact.key) == (candidate.category, candidate.key)
