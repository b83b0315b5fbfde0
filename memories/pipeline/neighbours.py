"""The known facts that lie near a batch's candidates in the serving space. They are proposals: nothing is decided here.

Candidates are compared with what is known, not with each other. Without vectors there are no proposals.
"""

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np

from memories import conf
from memories.exceptions import EmbeddingError
from memories.llm import embeddings
from memories.llm.embeddings import BATCH
from memories.models import EmbeddingSpace, EndUser, Fact, FactRefusal, FactVector, Status
from memories.models.folding import refusal_of_text, text_digest
from memories.pipeline import asking, patience, rows, spaces
from memories.pipeline.embedding import Text, Vector, embed_each
from memories.pipeline.gate import Accepted
from memories.pipeline.judgement import Neighbour, Proposal
from memories.scoring import nearness
from memories.scoring.nearness import Floats, Floors

# A stated fact is compared like a candidate.
Statement = Accepted | Fact
# The person's own live facts, and what was turned down or forgotten; a vector of an earlier text is none.
_FACTS = f"""
    SELECT fact.id, fact.content_hash, fact.status, fact.category, fact.key, fact.value, halfvec_send(vector.vector)
    FROM {Fact._meta.db_table} fact
    LEFT JOIN {FactVector._meta.db_table} vector
      ON vector.fact_id = fact.id AND vector.text_digest = fact.content_hash AND vector.space_id = %(space)s
     AND vector.tenant_id = fact.tenant_id AND vector.end_user_id = fact.end_user_id
    WHERE fact.tenant_id = %(tenant)s AND fact.end_user_id = %(person)s
      AND (fact.status IN ('rejected', 'trashed')
           OR (fact.status IN ('active', 'pending') AND fact.agent_id = ''
               AND (fact.expires_at IS NULL OR fact.expires_at > %(now)s)))
    ORDER BY fact.created_at, fact.id"""  # noqa: S608 - the tables' names are ours


class _Row(NamedTuple):
    id: uuid.UUID
    content_hash: bytes
    status: str
    category: str
    key: str
    value: str
    vector: bytes | None


class _Found(NamedTuple):
    """A fact near a candidate, and how near."""

    row: _Row
    similarity: float

    @property
    def refused(self) -> bool:
        return self.row.status != Status.ACTIVE


@dataclass(frozen=True)
class _Known:
    """A person's facts as they were read."""

    facts: Sequence[_Row]

    @cached_property
    def active(self) -> list[_Row]:
        """Those to compare with that hold."""
        return [fact for fact in self.facts if fact.vector and fact.status == Status.ACTIVE]

    @cached_property
    def refused(self) -> list[_Row]:
        """Those to compare with that were turned down or forgotten."""
        return [fact for fact in self.facts if fact.vector and fact.status in (Status.REJECTED, Status.TRASHED)]

    def has_text(self, candidate: Statement) -> bool:
        return text_digest(candidate.content) in self._texts

    def has_key(self, candidate: Statement) -> bool:
        """Whether a value for the candidate's (category, key) is known: then the values decide."""
        return bool(candidate.key and candidate.value) and (candidate.category, candidate.key) in self._keys

    @cached_property
    def _texts(self) -> set[bytes]:
        return {fact.content_hash for fact in self.facts if fact.status in (Status.ACTIVE, Status.PENDING)}

    @cached_property
    def _keys(self) -> set[tuple[str, str]]:
        return {(fact.category, fact.key) for fact in self.facts if fact.status == Status.ACTIVE and fact.value}


def propose(
    *, person: EndUser, candidates: Sequence[Accepted], now: datetime, before_call: Callable[[], None]
) -> list[Proposal]:
    """The candidates that would be active and have neighbours: a few active facts, and the nearest refused one.

    Nothing is proposed while there is no serving space, its endpoint is paused or it fails. `before_call` goes before
    each question to the embedding; its exceptions pass. Opens no transaction; a handful of statements.
    """
    asserted = [candidate for candidate in candidates if candidate.status == Status.ACTIVE]
    space = spaces.serving() if asserted else None
    if space is None or not spaces.can_embed(space):
        return []
    known = _Known(_facts(person, space, now))
    new = [candidate for candidate in asserted if not known.has_text(candidate)]
    if not new or not (known.active or known.refused):
        return []
    try:
        floors = nearness.FLOORS.get(space.model) or _calibrated(space.model)
        vectors = _embedded(space, person, new, before_call)
    except EmbeddingError as error:
        spaces.note_failure(space, error)
        return []
    there, most = [one for one in new if one.index in vectors], conf.rules(person.tenant).near_facts
    return _read(person, there, _near(known, there, vectors, floors, most)) if there else []


def beside(*, person: EndUser, statement: Statement, now: datetime) -> list[uuid.UUID]:
    """The active facts near what a key or an operator states, nearest first: at most `near_facts`.

    It waits for the embedding as long as a question does, and without one finds nothing. Opens no transaction.
    """
    question = asking.ask(statement.content)
    vector = question.queries[0].vector
    floors = _known_floors(question.space) if question.space else None
    if question.space is None or vector is None or floors is None:
        return []
    known, most = _Known(_facts(person, question.space, now)), conf.rules(person.tenant).near_facts
    if known.has_key(statement):
        return []
    return [found.row.id for found in _nearest(vector[None, :], known.active, floors.proposed, most)[0]]


def _known_floors(space: EmbeddingSpace) -> Floors | None:
    """Of a measured model, or as fast as a question is answered."""
    if space.model in nearness.FLOORS:
        return nearness.FLOORS[space.model]
    try:
        calibrating = patience.run(lambda: _calibrated(space.model), seconds=conf.embeddings().query_timeout)
        return calibrating.result()
    except (TimeoutError, EmbeddingError):
        return None


@cache
def _calibrated(model: str) -> Floors:
    """Asked for by sentences of our own, once in each process. Errors: EmbeddingError."""
    return nearness.calibrated(embeddings.embed(nearness.SENTENCES, model=model))


def _facts(person: EndUser, space: EmbeddingSpace, now: datetime) -> list[_Row]:
    given = {"space": space.pk, "tenant": person.tenant_id, "person": person.pk, "now": now}
    return [_Row(*row) for row in rows.fetched(_FACTS, given)]


def _embedded(
    space: EmbeddingSpace, person: EndUser, candidates: Sequence[Accepted], before_call: Callable[[], None]
) -> dict[int, Vector]:
    """Vectors by the candidates' indices, but for texts that the model refuses. Errors: EmbeddingError."""
    texts = [Text(uuid.UUID(int=candidate.index), person.pk, candidate.content) for candidate in candidates]
    found: dict[int, Vector] = {}
    for start in range(0, len(texts), BATCH):
        before_call()
        made = embed_each(space, texts[start : start + BATCH])
        found |= {key.int: vector for key, vector in made.items() if vector is not None}
    return found


def _near(
    known: _Known, candidates: Sequence[Accepted], vectors: Mapping[int, Vector], floors: Floors, most: int
) -> list[list[_Found]]:
    """What lies near each candidate, nearest first: `most` active facts, and as many refused ones to look at."""
    new = np.stack([vectors[candidate.index] for candidate in candidates])
    active = _nearest(new, known.active, floors.proposed, most)
    refused = _nearest(new, known.refused, floors.refused, most)
    return [
        sorted([*([] if known.has_key(candidate) else held), *gone], key=lambda found: -found.similarity)
        for candidate, held, gone in zip(candidates, active, refused, strict=True)
    ]


def _nearest(new: Floats, facts: Sequence[_Row], floor: float, most: int) -> list[list[_Found]]:
    if not facts:
        return [[] for _ in new]
    stored = rows.vectors([fact.vector for fact in facts if fact.vector])
    near = nearness.nearest(new, stored, floor=floor, most=most)
    return [[_Found(facts[place], similarity) for place, similarity in some] for some in near]


def _read(person: EndUser, candidates: Sequence[Accepted], near: Sequence[Sequence[_Found]]) -> list[Proposal]:
    """The proposals with the facts' texts; what has changed since it was compared is left out."""
    facts = _present(person, [found for some in near for found in some])
    refused = _refused_texts(person, facts.values())
    proposals = [
        Proposal(candidate, list(_neighbours(some, facts, refused)))
        for candidate, some in zip(candidates, near, strict=True)
    ]
    return [proposal for proposal in proposals if proposal.neighbours]


def _present(person: EndUser, near: Iterable[_Found]) -> dict[uuid.UUID, Fact]:
    """Facts that still have the text and the status with which they were compared, by id."""
    compared = {found.row.id: (found.row.content_hash, found.row.status) for found in near}
    facts = Fact.objects.of(person.tenant, person).filter(pk__in=compared)
    facts = facts.only("content", "content_hash", "status", "category", "key", "binding").order_by()
    return {fact.pk: fact for fact in facts if (bytes(fact.content_hash), fact.status) == compared[fact.pk]}


def _refused_texts(person: EndUser, facts: Iterable[Fact]) -> set[uuid.UUID]:
    """Which of them say what was refused for good: not every fact in the trash was."""
    digests = {fact.pk: refusal_of_text(fact.content) for fact in facts if fact.status != Status.ACTIVE}
    if not digests:
        return set()
    refusals = FactRefusal.objects.filter(end_user=person, digest__in=list(digests.values()))
    known = {bytes(digest) for digest in refusals.values_list("digest", flat=True)}
    return {fact_id for fact_id, digest in digests.items() if digest in known}


def _neighbours(
    near: Iterable[_Found], facts: Mapping[uuid.UUID, Fact], refused: set[uuid.UUID]
) -> Iterable[Neighbour]:
    """Of the refused ones only the nearest: it is enough to hold the candidate back."""
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
