"""What a person's facts are ranked by, and their vectors."""

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from memories.models import EmbeddingSpace, EndUser, Fact, FactVector, MemoryScope
from memories.pipeline import lone_units, rows
from memories.pipeline.lone_units import Seen
from memories.scoring.ranking import Units


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


def units(person: EndUser, facts: Sequence[Measured], space: EmbeddingSpace | None) -> Units:
    """What scoring needs of the facts, with their vectors of `space` (None: without vectors)."""
    # Before the vectors: what changes in between shows at the next look.
    public = [fact.id for fact in facts if fact.scope == MemoryScope.PUBLIC]
    stamp = _stamp(person, space, public) if space else None
    return lone_units.units(
        ("fact", person.pk), facts, space, stamp=stamp, seen=lambda space: _vectors(person, space, public)
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


def _vectors(person: EndUser, space: EmbeddingSpace, public: Sequence[uuid.UUID]) -> Seen:
    """(fact, language, vector) of the person's facts and the public ones; a vector of an earlier text is none."""
    whose, named = _whose(person, space, public)
    statement = f"""
        SELECT vector.fact_id, vector.language, halfvec_send(vector.vector)
        FROM {FactVector._meta.db_table} vector
        JOIN {Fact._meta.db_table} fact ON fact.id = vector.fact_id AND fact.content_hash = vector.text_digest
        WHERE {whose} AND fact.status = 'active'"""  # noqa: S608 - the tables' names are ours
    return rows.fetched(statement, named)
