"""A person's facts as arrays to be scored, kept in memory while neither their texts nor their vectors changed."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memories.models import EmbeddingSpace, EndUser, Fact, FactVector, MemoryScope
from memories.pipeline import rows
from memories.pipeline.shelf import Shelf
from memories.scoring import dense
from memories.scoring.ranking import Units

# Per process, as many facts of all people; 5,000 take about 25 MB.
CAPACITY = 25_000
IDLE_SECONDS = 600.0


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
class _Kept:
    """Units with what they were made of."""

    stamp: Any
    texts: list[tuple[uuid.UUID, bytes]]
    units: Units


_shelf: Shelf[_Kept] = Shelf(capacity=CAPACITY, idle_seconds=IDLE_SECONDS, weigh=lambda kept: 1 + len(kept.texts))


def units(person: EndUser, facts: Sequence[Measured], space: EmbeddingSpace | None) -> Units:
    """What scoring needs of the facts, with their vectors of `space` (None: without vectors)."""
    key = (person.pk, space.pk if space else None)
    # Before the vectors: what changes in between shows at the next look.
    public = [fact.id for fact in facts if fact.scope == MemoryScope.PUBLIC]
    stamp = _stamp(person, space, public) if space else None
    texts = [(fact.id, fact.content_hash) for fact in facts]
    kept = _shelf.get(key)
    if kept and (kept.stamp, kept.texts) == (stamp, texts):
        return kept.units
    made = _Kept(stamp, texts, _made(facts, space, _vectors(person, space, public) if space else []))
    _shelf.put(key, made)
    return made.units


def _made(
    facts: Sequence[Measured], space: EmbeddingSpace | None, stored: Sequence[tuple[uuid.UUID, str, bytes]]
) -> Units:
    vectors, languages = None, np.zeros(len(facts), "U2")
    if space:
        vectors = np.zeros((len(facts), space.dimensions), np.float32)
        _fill(vectors, languages, facts, stored)
    return Units.of(
        sessions=np.arange(len(facts), dtype=np.int32),
        packed=[fact.terms or b"" for fact in facts],
        vectors=vectors,
        present=languages != "",
        languages=languages.tolist(),
        blocks=dense.blocks(space.model, space.dimensions) if space else (),
        alone=True,
    )


def _stamp(person: EndUser, space: EmbeddingSpace, public: Sequence[uuid.UUID]) -> Any:
    """Another one after every change of these vectors: how many there are, and which versions of which rows."""
    whose, named = _whose(person, space, public)
    statement = f"""
        SELECT count(*), bit_xor(hashint8extended(id, xmin::text::bigint))
        FROM {FactVector._meta.db_table} vector WHERE {whose}"""  # noqa: S608 - the table's name is ours
    return rows.fetched(statement, named)


def _whose(person: EndUser, space: EmbeddingSpace, public: Sequence[uuid.UUID]) -> tuple[str, list[Any]]:
    """The condition that a vector is of the person, or of a public fact; and its parameters."""
    named: list[Any] = [person.tenant_id, space.pk, person.pk]
    if not public:
        return "vector.tenant_id = %s AND vector.space_id = %s AND vector.end_user_id = %s", named
    either = "(vector.end_user_id = %s OR vector.fact_id = ANY(%s))"
    return f"vector.tenant_id = %s AND vector.space_id = %s AND {either}", [*named, list(public)]


def _vectors(person: EndUser, space: EmbeddingSpace, public: Sequence[uuid.UUID]) -> list[tuple[uuid.UUID, str, bytes]]:
    """(fact, language, vector) of the person's facts and the public ones; a vector of an earlier text is none."""
    whose, named = _whose(person, space, public)
    statement = f"""
        SELECT vector.fact_id, vector.language, halfvec_send(vector.vector)
        FROM {FactVector._meta.db_table} vector
        JOIN {Fact._meta.db_table} fact ON fact.id = vector.fact_id AND fact.content_hash = vector.text_digest
        WHERE {whose} AND fact.status = 'active'"""  # noqa: S608 - the tables' names are ours
    return rows.fetched(statement, named)


def _fill(
    vectors: NDArray[np.float32],
    languages: NDArray[np.str_],
    facts: Sequence[Measured],
    stored: Sequence[tuple[uuid.UUID, str, bytes]],
) -> None:
    place = {fact.id: at for at, fact in enumerate(facts)}
    there = [row for row in stored if row[0] in place]
    if there:
        places = [place[row[0]] for row in there]
        vectors[places] = rows.vectors([row[2] for row in there])
        languages[places] = [row[1] for row in there]
