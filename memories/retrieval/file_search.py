"""Memory files, found by meaning and by words, passage by passage (docs/memory-files.md). Only those of the agent
that asks are looked at.

Passages have no rows of their own: a file is cut into them, and their vectors are made, when somebody searches. A
process keeps the vectors for a while.
"""

import hashlib
import re
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from memories.embedding import spaces
from memories.exceptions import EmbeddingError
from memories.files.reading import FileTree
from memories.llm.embeddings import LONGEST_TEXT, Vectors
from memories.models import EmbeddingSpace, EndUser
from memories.retrieval import memory_index, prepared_query
from memories.retrieval.cache import IDLE_SECONDS, LRUCache
from memories.retrieval.evidence import Level
from memories.retrieval.hits import FILE, Finding, SearchFilters
from memories.retrieval.memory_index import DAY, MemoryRanking
from memories.retrieval.prepared_query import PreparedQuery
from memories.scoring import dense, language, terms
from memories.scoring.ranking import Units
from memories.scoring.weighting import Weights

# The files that are looked at, the newest; of each its beginning; and of all so many passages.
MOST_FILES = 50
MOST_CHARACTERS = 40_000
MOST_PASSAGES = 1_000
# Of these, so many by meaning: the model reads each when it is searched for the first time.
MOST_EMBEDDED = 200
# A heading, and what begins a member of a list.
_HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")
_MEMBER = re.compile(r"\s*(?:[-*+•]\s|\d{1,3}(?:[.)]\s|、))")
# In each process: 20 MB of 512 dimensions. By the text's hash, so that a changed passage is another.
_vectors: LRUCache[Vectors] = LRUCache(capacity=10_000, idle_seconds=IDLE_SECONDS, weigh=lambda _vector: 1)


@dataclass(frozen=True)
class Passage:
    """Some lines of a file, from the first to the last, counted from 1."""

    file: uuid.UUID
    path: str
    changed_at: datetime
    first: int
    last: int
    text: str


def hits(
    person: EndUser, query: PreparedQuery, filters: SearchFilters, *, limit: int, now: datetime
) -> tuple[list[Finding], int]:
    """The best passages, and how many were looked at; two statements."""
    found = _passages(person, filters, now=now)
    if not found:
        return [], 0
    if query.space is None:
        query = _in_first_space(query, asked=person.local(now))
    today = memory_index.today(now)
    ranking = memory_index.rank(
        _units(found, query.space if query.embedding_model else None),
        Weights.of((1.0, 1.0, float(max(0, (today - one.changed_at) // DAY))) for one in found),
        np.array([[one.changed_at.timestamp()] for one in found], np.float64),
        query.queries,
    )
    agent_id, levels = filters.agent_id or None, ranking.evidence().levels
    return [_hit(found[place], ranking, place, levels[place], agent_id) for place in ranking.best(limit)], len(found)


def cut(text: str) -> Iterator[tuple[int, int, str]]:
    """The passages of a text as first line, last line and words: members of lists each for themselves, and paragraphs
    of at most 1,000 characters. A heading stands with what follows it."""
    lines: list[str] = []
    first = length = 0
    has_words = False
    for number, line in enumerate(text.split("\n"), start=1):
        is_blank, is_heading = not line.strip(), bool(_HEADING.match(line))
        ends = is_blank or is_heading or bool(_MEMBER.match(line)) or length + len(line) > LONGEST_TEXT
        if ends and has_words:
            yield first, first + len(lines) - 1, "\n".join(lines)
            lines, length, has_words = [], 0, False
        if is_blank and not lines:
            continue
        first = first if lines else number
        lines.append(line)
        length += len(line) + 1
        has_words = has_words or not (is_blank or is_heading)
    while lines and not lines[-1].strip():
        lines.pop()
    if lines:
        yield first, first + len(lines) - 1, "\n".join(lines)


def _passages(person: EndUser, filters: SearchFilters, *, now: datetime) -> list[Passage]:
    """Of the newest files first. Scratch files belong to a conversation, and are left out."""
    tree = FileTree(person.tenant, person, filters.agent_id or "", now)
    rows = tree.lasting_texts
    given = {"updated_at__gte": filters.since, "updated_at__lt": filters.until}
    rows = rows.filter(**{name: at for name, at in given.items() if at is not None})
    found: list[Passage] = []
    ordered = rows.order_by("-updated_at", "path")
    for row in tree.beginnings(ordered, ("pk", "path", "updated_at"), most=MOST_FILES, characters=MOST_CHARACTERS):
        pk, path, changed_at, start = row
        if len(found) < MOST_PASSAGES:
            found += [Passage(pk, path, changed_at, *lines) for lines in cut(start)]
    return found[:MOST_PASSAGES]


def _in_first_space(query: PreparedQuery, *, asked: datetime) -> PreparedQuery:
    """Nothing else was embedded yet: files alone do not make the embedder begin."""
    try:
        spaces.first_space()
    except EmbeddingError:
        return query
    return prepared_query.prepare(query.text, asked=asked)


def _units(found: Sequence[Passage], space: EmbeddingSpace | None) -> Units:
    vectors = _vectors_of([one.text for one in found[:MOST_EMBEDDED]], space) if space else None
    rows: Vectors | None = None
    present: NDArray[np.bool_] | None = None
    if space and vectors:
        rows = np.zeros((len(found), space.dimensions), np.float32)
        rows[: len(vectors)] = vectors
        present = np.arange(len(found)) < len(vectors)
    return Units.of(
        sessions=np.arange(len(found), dtype=np.int32),
        packed=[terms.pack(one.text) for one in found],
        vectors=rows,
        present=present,
        languages=[language.of(one.text) for one in found],
        blocks=dense.blocks(space.model, space.dimensions) if space else (),
        alone=True,
    )


def _vectors_of(texts: Sequence[str], space: EmbeddingSpace) -> list[Vectors] | None:
    """None where the model does not answer in time."""
    keys = [(space.pk, hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()) for text in texts]
    held = {key: _vectors.get(key) for key in keys}
    new = {key: text for key, text in zip(keys, texts, strict=True) if held[key] is None}
    if new:
        made = prepared_query.passages(list(new.values()), space)
        if made is None:
            return None
        for key, one in zip(new, made, strict=True):
            held[key] = one
            _vectors.put(key, one)
    return [vector for key in keys if (vector := held[key]) is not None]


def _hit(passage: Passage, ranking: MemoryRanking, place: int, level: Level, agent_id: str | None) -> Finding:
    return Finding(
        kind=FILE,
        id=passage.file,
        text=passage.text,
        score=ranking.score(place),
        score_parts=ranking.parts(place),
        evidence_level=level,
        created_at=passage.changed_at,
        agent_id=agent_id,
        path=passage.path,
        lines=[passage.first, passage.last],
    )
