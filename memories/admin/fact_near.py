"""Which facts of a person an operator may want to merge with one: those that the same are told, the nearest first."""

import uuid
from dataclasses import dataclass

from pgvector.django import CosineDistance

from memories.curation.merging_facts import READERS
from memories.models import EmbeddingSpace, Fact, FactVector, Status
from memories.scoring import terms

MOST_COMPARED = 1000
MOST_OFFERED = 30


@dataclass(frozen=True)
class Near:
    """A fact and how near it lies (0..1): by meaning where both have a vector, else by the words they share."""

    fact: Fact
    likeness: float
    same_key: bool


def near(fact: Fact) -> list[Near]:
    """At most MOST_OFFERED, those about the same key first; three queries."""
    same_readers = {name: getattr(fact, name) for name in READERS}
    rows = Fact.objects.of(fact.tenant, fact.end_user).filter(status=Status.ACTIVE, **same_readers).exclude(pk=fact.pk)
    distances = _distances(fact)
    words = _words(fact)
    found = [
        Near(other, _likeness(other, words, distances), bool(fact.key) and other.key == fact.key)
        for other in rows[:MOST_COMPARED]
    ]
    return sorted(found, key=lambda one: (one.same_key, one.likeness), reverse=True)[:MOST_OFFERED]


def _likeness(other: Fact, words: frozenset[int], distances: dict[uuid.UUID, float]) -> float:
    if other.pk in distances:
        return distances[other.pk]
    own = _words(other)
    return len(own & words) / len(own | words) if own | words else 0.0


def _distances(fact: Fact) -> dict[uuid.UUID, float]:
    """The likeness of meaning of the person's facts in the serving space; empty while this one has no vector."""
    space = EmbeddingSpace.objects.serving().first()
    own = FactVector.objects.filter(fact=fact, space=space, text_digest=fact.content_hash).first()
    if own is None:
        return {}
    beside = FactVector.objects.filter(space=space, tenant=fact.tenant_id, end_user=fact.end_user_id)
    told = beside.annotate(distance=CosineDistance("vector", own.vector)).values_list("fact", "distance")
    return {pk: max(0.0, 1 - distance) for pk, distance in told}


def _words(fact: Fact) -> frozenset[int]:
    return frozenset(terms.count(fact.content).ids.tolist())
