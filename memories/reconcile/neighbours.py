"""The existing facts near a batch's candidates in the serving space. They are proposals: nothing is decided here.

Candidates are compared with existing facts, not with each other. Without vectors there are no proposals.
"""

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from django.db import connection

from memories import conf
from memories.db import binary_rows
from memories.embedding import deadlines, spaces
from memories.embedding.batching import EmbeddableText, Vector, embed_each
from memories.exceptions import EmbeddingError
from memories.facts.candidate import Candidate, NearbyFact
from memories.llm import embeddings
from memories.llm.embeddings import BATCH
from memories.models import EmbeddingSpace, EndUser, Fact, FactRefusal, FactVector, Status, TurnVector
from memories.models.folding import text_digest
from memories.models.memories.refusals import refusal_key_of_text
from memories.reconcile.gate import Accepted
from memories.reconcile.judgement import Neighbour, Proposal
from memories.retrieval import prepared_query
from memories.scoring import nearness
from memories.scoring.nearness import Floats, Floors

# A stated fact is compared like a candidate.
Statement = Accepted | Candidate
# The person's own live, rejected and trashed facts, and an agent's. A vector of an earlier text does not count.
_FACTS = f"""
    SELECT fact.id, fact.content_hash, fact.status, fact.category, fact.key, fact.value, halfvec_send(vector.vector)
    FROM {Fact._meta.db_table} fact
    LEFT JOIN {FactVector._meta.db_table} vector
      ON vector.fact_id = fact.id AND vector.text_digest = fact.content_hash AND vector.space_id = %(space)s
     AND vector.tenant_id = fact.tenant_id AND vector.end_user_id = fact.end_user_id
    WHERE fact.tenant_id = %(tenant)s AND fact.end_user_id = %(person)s
      AND (fact.status IN ('rejected', 'trashed')
           OR (fact.status IN ('active', 'pending') AND fact.agent_id IN ('', %(agent)s)
               AND (fact.expires_at IS NULL OR fact.expires_at > %(now)s)))
    ORDER BY fact.created_at, fact.id"""  # noqa: S608 - the tables' names are ours
_NEAREST_TO_TURNS = f"""
    SELECT fact.fact_id
    FROM {FactVector._meta.db_table} fact
    JOIN {TurnVector._meta.db_table} turn USING (tenant_id, end_user_id, space_id)
    WHERE tenant_id = %(tenant)s AND end_user_id = %(person)s AND space_id = %(space)s
      AND turn.turn_id = ANY(%(turns)s) AND fact.fact_id = ANY(%(facts)s)
    GROUP BY fact.fact_id
    ORDER BY min(fact.vector <=> turn.vector), fact.fact_id
    LIMIT %(most)s"""  # noqa: S608 - the tables' names are ours


class _FactRow(NamedTuple):
    id: uuid.UUID
    content_hash: bytes
    status: str
    category: str
    key: str
    value: str
    vector: bytes | None


class _NearFact(NamedTuple):
    """A fact near a candidate, and how near."""

    row: _FactRow
    similarity: float

    @property
    def refused(self) -> bool:
        return self.row.status != Status.ACTIVE


class _StoredFacts:
    """A person's facts as they were read: those to compare with that are active, and those that were refused."""

    def __init__(self, person: EndUser, space: EmbeddingSpace, now: datetime, agent_id: str = "") -> None:
        owner = {"tenant": person.tenant_id, "person": person.pk, "agent": agent_id}
        given = {"space": space.pk, "now": now, **owner}
        rows = [_FactRow(*row) for row in binary_rows.fetched(_FACTS, given)]
        active = [row for row in rows if row.status == Status.ACTIVE]
        self.active = [row for row in active if row.vector]
        self.refused = [row for row in rows if row.vector and row.status in (Status.REJECTED, Status.TRASHED)]
        self._texts = {row.content_hash for row in rows if row.status in (Status.ACTIVE, Status.PENDING)}
        self._keys = {(row.category, row.key) for row in active if row.value}

    def has_text(self, statement: Statement) -> bool:
        return text_digest(statement.content) in self._texts

    def has_key(self, statement: Statement) -> bool:
        """Whether there is a value for the statement's (category, key): then the values decide."""
        return bool(statement.key and statement.value) and (statement.category, statement.key) in self._keys


def propose(
    *,
    person: EndUser,
    candidates: Sequence[Accepted],
    now: datetime,
    before_call: Callable[[], None],
    agent_id: str = "",
) -> list[Proposal]:
    """The candidates that would be active and have neighbours: a few active facts, and the nearest refused one.

    They are the person's own facts, and those of the agent, if there is one.

    Nothing is proposed while there is no serving space, or its endpoint is paused or fails. `before_call` runs before
    each call of the embedding; its exceptions pass. Opens no transaction; a handful of statements.
    """
    asserted = [candidate for candidate in candidates if candidate.status == Status.ACTIVE]
    space = spaces.serving() if asserted else None
    if space is None or not spaces.can_embed(space):
        return []
    stored = _StoredFacts(person, space, now, agent_id)
    new = [candidate for candidate in asserted if not stored.has_text(candidate)]
    if not new or not (stored.active or stored.refused):
        return []
    try:
        floors = nearness.FLOORS.get(space.model) or _calibrated(space.model)
        vectors = _embedded(space, person, new, before_call)
    except EmbeddingError as error:
        spaces.note_failure(space, error)
        return []
    embedded = [candidate for candidate in new if candidate.index in vectors]
    if not embedded:
        return []
    return _proposals(person, embedded, _near(stored, embedded, vectors, floors, conf.rules(person.tenant).near_facts))


def beside(*, person: EndUser, statement: Statement, now: datetime) -> list[NearbyFact]:
    """The active facts near what a key or an operator states, nearest first: at most `near_facts`.

    It waits for the embedding as long as a query does, and finds nothing without it. Opens no transaction.
    """
    query = prepared_query.prepare(statement.content)
    vector = query.queries[0].vector
    floors = _floors_in_time(query.space) if query.space else None
    if query.space is None or vector is None or floors is None:
        return []
    stored, most = _StoredFacts(person, query.space, now), conf.rules(person.tenant).near_facts
    if stored.has_key(statement):
        return []
    nearest = _nearest(vector[None, :], stored.active, floors.proposed, most)[0]
    return [NearbyFact(found.row.id, found.row.content_hash, found.similarity) for found in nearest]


def of_turns(*, person: EndUser, turns: Sequence[uuid.UUID], facts: Sequence[uuid.UUID], most: int) -> list[uuid.UUID]:
    """At most `most` of the `facts`, the nearest to any of the `turns` first, by the vectors that the embedder has
    made by now; without vectors none. One statement and no call of the embedding."""
    space = spaces.serving()
    if space is None:
        return []
    owner: dict[str, Any] = {"tenant": person.tenant_id, "person": person.pk, "space": space.pk}
    with connection.cursor() as cursor:
        cursor.execute(_NEAREST_TO_TURNS, owner | {"turns": list(turns), "facts": list(facts), "most": most})
        return [fact_id for (fact_id,) in cursor.fetchall()]


def _floors_in_time(space: EmbeddingSpace) -> Floors | None:
    """None if the model was not measured before and is not calibrated within the time that a query has."""
    if space.model in nearness.FLOORS:
        return nearness.FLOORS[space.model]
    try:
        calibrating = deadlines.run(lambda: _calibrated(space.model), seconds=conf.embeddings().query_timeout)
        return calibrating.result()
    except (TimeoutError, EmbeddingError):
        return None


@cache
def _calibrated(model: str) -> Floors:
    """Floors of a model by sentences of our own, once in each process. Errors: EmbeddingError."""
    return nearness.calibrated(embeddings.embed(nearness.SENTENCES, model=model))


def _embedded(
    space: EmbeddingSpace, person: EndUser, candidates: Sequence[Accepted], before_call: Callable[[], None]
) -> dict[int, Vector]:
    """Vectors by the candidates' indices, without texts that the model refuses. Errors: EmbeddingError."""
    texts = [EmbeddableText(uuid.UUID(int=candidate.index), person.pk, candidate.content) for candidate in candidates]
    found: dict[int, Vector] = {}
    for start in range(0, len(texts), BATCH):
        before_call()
        made = embed_each(space, texts[start : start + BATCH])
        found |= {key.int: vector for key, vector in made.items() if vector is not None}
    return found


def _near(
    stored: _StoredFacts, candidates: Sequence[Accepted], vectors: Mapping[int, Vector], floors: Floors, most: int
) -> list[list[_NearFact]]:
    """The facts near each candidate, nearest first: at most `most` active and `most` refused ones."""
    new = np.stack([vectors[candidate.index] for candidate in candidates])
    active = _nearest(new, stored.active, floors.proposed, most)
    refused = _nearest(new, stored.refused, floors.refused, most)
    return [
        sorted([*([] if stored.has_key(candidate) else held), *gone], key=lambda found: -found.similarity)
        for candidate, held, gone in zip(candidates, active, refused, strict=True)
    ]


def _nearest(new: Floats, facts: Sequence[_FactRow], floor: float, most: int) -> list[list[_NearFact]]:
    if not facts:
        return [[] for _ in new]
    vectors = binary_rows.vectors([fact.vector for fact in facts if fact.vector])
    near = nearness.nearest(new, vectors, floor=floor, most=most)
    return [[_NearFact(facts[place], similarity) for place, similarity in some] for some in near]


def _proposals(person: EndUser, candidates: Sequence[Accepted], near: Sequence[Sequence[_NearFact]]) -> list[Proposal]:
    """The proposals with the facts' texts, without facts whose text or status has changed since the comparison."""
    compared = {found.row.id: (found.row.content_hash, found.row.status) for some in near for found in some}
    rows = Fact.objects.of(person.tenant, person).filter(pk__in=compared)
    rows = rows.only("content", "content_hash", "status", "category", "key", "binding").order_by()
    facts = {fact.pk: fact for fact in rows if (bytes(fact.content_hash), fact.status) == compared[fact.pk]}
    # Not every fact in the trash was refused for good.
    marks = {fact.pk: refusal_key_of_text(fact.content) for fact in facts.values() if fact.status != Status.ACTIVE}
    refused_marks = FactRefusal.objects.refused(person, marks.values())
    refused = {fact_id for fact_id, mark in marks.items() if mark in refused_marks}
    proposals = [
        Proposal(candidate, list(_neighbours(some, facts, refused)))
        for candidate, some in zip(candidates, near, strict=True)
    ]
    return [proposal for proposal in proposals if proposal.neighbours]


def _neighbours(
    near: Iterable[_NearFact], facts: Mapping[uuid.UUID, Fact], refused: set[uuid.UUID]
) -> Iterable[Neighbour]:
    """Of the refused ones only the nearest: one is enough to hold the candidate back."""
    held = False
    for found in near:
        fact = facts.get(found.row.id)
        if fact is None or (found.refused and (held or fact.pk not in refused)):
            continue
        held = held or found.refused
        yield Neighbour(
            fact_id=fact.pk,
            content_hash=found.row.content_hash,
            content=fact.content,
            category=fact.category,
            key=fact.key,
            binding=fact.binding,
            similarity=found.similarity,
            refused=found.refused,
        )
