"""Facts as arrays to be scored: what a question does not change of their ranking is made once."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

from memories import conf
from memories.models import EmbeddingSpace, EndUser, Fact, FactVector, MemoryScope
from memories.pipeline import lone_units, rows
from memories.pipeline.lone_units import DAY, Seen
from memories.scoring.decay import Remembered, decay_score
from memories.scoring.ranking import Units
from memories.scoring.weighting import Weights


class Measured(NamedTuple):
    """What a fact is ranked by; its text is read for the best only."""

    id: uuid.UUID
    category: str
    trust: str
    scope: str
    created_at: datetime
    confidence: float
    importance: float
    mentions: int
    last_confirmed_at: datetime
    last_recalled_at: datetime | None
    forget_at: datetime | None
    content_hash: bytes
    terms: bytes | None


@dataclass(frozen=True, eq=False)
class FactStore:
    """Facts, newest first; a place in `facts` is a row of the arrays."""

    facts: list[Measured]
    units: Units
    weights: Weights

    @cached_property
    def ids(self) -> list[str]:
        return [str(fact.id) for fact in self.facts]

    def __len__(self) -> int:
        return len(self.facts)


def store(
    person: EndUser,
    facts: list[Measured],
    space: EmbeddingSpace | None,
    *,
    stamp: Any,
    rules: conf.Rules,
    day: datetime,
) -> FactStore:
    """The person's facts and public ones, as they are on that day, with their vectors of `space` (None: without).

    `stamp` was read before the facts and is another one after every change of these vectors.
    """
    public = [fact.id for fact in facts if fact.scope == MemoryScope.PUBLIC]
    units = lone_units.units(
        ("fact", person.pk), facts, space, stamp=stamp, seen=lambda space: _vectors(person, space, public)
    )
    weights = (
        (fact.confidence, decayed(fact, rules, day), float((day - fact.last_confirmed_at) // DAY)) for fact in facts
    )
    return FactStore(facts, units, Weights.of(weights))


def decayed(fact: Measured, rules: conf.Rules, day: datetime) -> float:
    """What is left of its importance on that day, as today() gives it, 0..1 (rules.md, 7.1)."""
    if fact.forget_at is None:
        return fact.importance
    last = max(fact.last_confirmed_at, fact.last_recalled_at or fact.last_confirmed_at)
    return decay_score(Remembered(fact.importance, last, fact.mentions, fact.category), rules, now=day)


def _vectors(person: EndUser, space: EmbeddingSpace, public: Sequence[uuid.UUID]) -> Seen:
    """(fact, language, vector) of the person's facts and the public ones; a vector of an earlier text is none."""
    statement = f"""
        SELECT vector.fact_id, vector.language, halfvec_send(vector.vector)
        FROM {FactVector._meta.db_table} vector
        JOIN {Fact._meta.db_table} fact ON fact.id = vector.fact_id AND fact.content_hash = vector.text_digest
        WHERE vector.tenant_id = %s AND vector.space_id = %s AND fact.status = 'active'
            AND (vector.end_user_id = %s{" OR vector.fact_id = ANY(%s)" if public else ""})
    """  # noqa: S608 - the tables' names are ours
    named: list[Any] = [person.tenant_id, space.pk, person.pk]
    return rows.fetched(statement, [*named, list(public)] if public else named)
