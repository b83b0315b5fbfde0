"""Index of a person's turns: arrays that are built once, cached, and extended when turns are added.

Every call first asks the sessions how far they are and what retention deleted, so a stale index is never used. Results
are always read from the database. The index holds hashes, numbers and vectors, no text.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memories.db import binary_rows
from memories.models import Author, EmbeddingSpace, EndUser, Role, Turn, TurnVector
from memories.models.conversations.conversations import voice
from memories.retrieval.cache import StampedCache
from memories.scoring import dense
from memories.scoring.ranking import Units

MEBIBYTE = 2**20
# Per process. 20,000 turns take about 100 MiB, raw and centred.
CAPACITY = 384 * MEBIBYTE
# Whose words a turn can hold: those of its role, or of the author of a user's turn that is not the person's.
VOICES = (*Role.values, Author.APPLICATION.value, Author.MODEL.value, Author.OTHER.value)
# By hand, because an agent waits for it before every reply.
_SESSIONS = """
    SELECT id, external_id, agent_id, memory_of, turn_count, embedded_number, deleted_number, redactions
    FROM memories_session
    WHERE tenant_id = %s AND end_user_id = %s AND turn_count > deleted_number ORDER BY created_at, id
"""


@dataclass(frozen=True)
class IndexedSession:
    """How far a session is indexed: so many turns, vectors up to number `embedded`, turns up to `deleted` left out,
    as they are after so many `redactions`."""

    id: uuid.UUID
    external_id: str
    agent_id: str
    memory_of: str
    turn_count: int = 0
    embedded: int = 0
    deleted: int = 0
    redactions: int = 0


@dataclass(frozen=True, eq=False)
class SessionTurns:
    """The searchable turns of one session in order; arrays have one row a turn."""

    session: IndexedSession
    ids: list[uuid.UUID]
    numbers: NDArray[np.int32]
    times: NDArray[np.float64]  # seconds since 1970
    roles: NDArray[np.uint8]  # positions in VOICES
    token_counts: NDArray[np.int32]
    terms: list[bytes]
    vectors: NDArray[np.float32]  # [n, dimensions]; zeros where there is none yet
    languages: NDArray[np.str_]  # "" where there is no vector yet

    def __len__(self) -> int:
        return len(self.terms)


@dataclass(frozen=True, eq=False)
class TurnIndex:
    """All searchable turns of a person, session after session; arrays have one row a turn."""

    sessions: list[SessionTurns]
    space: EmbeddingSpace | None

    @cached_property
    def units(self) -> Units:
        """The arrays that scoring takes."""
        languages = self._joined("languages")
        return Units.of(
            sessions=self.session_of,
            packed=[packed for part in self.sessions for packed in part.terms],
            vectors=self._joined("vectors") if self.space else None,
            present=languages != "",
            languages=languages,
            blocks=dense.blocks(self.space.model, self.space.dimensions) if self.space else (),
            times=self.times,
        )

    @cached_property
    def session_of(self) -> NDArray[np.int32]:
        """For each row, the position of its session."""
        lengths = [len(part) for part in self.sessions]
        return np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)

    @cached_property
    def ids(self) -> list[uuid.UUID]:
        return [turn for part in self.sessions for turn in part.ids]

    @cached_property
    def times(self) -> NDArray[np.float64]:
        times: NDArray[np.float64] = self._joined("times")
        return times

    @cached_property
    def roles(self) -> NDArray[np.uint8]:
        roles: NDArray[np.uint8] = self._joined("roles")
        return roles

    @cached_property
    def token_counts(self) -> NDArray[np.int32]:
        counts: NDArray[np.int32] = self._joined("token_counts")
        return counts

    def __len__(self) -> int:
        return len(self.session_of)

    def _joined(self, name: str) -> Any:
        empty = getattr(_empty(IndexedSession(uuid.UUID(int=0), "", "", ""), self.space), name)
        return np.concatenate([empty, *(getattr(part, name) for part in self.sessions)])


def _weight(index: TurnIndex) -> int:
    """Bytes, roughly: vectors are kept raw and centred, terms packed and by term."""
    return sum(2 * part.vectors.nbytes + 4 * sum(map(len, part.terms)) + 250 * len(part) for part in index.sessions)


_cache: StampedCache[TurnIndex] = StampedCache("turns", capacity=CAPACITY, weigh=_weight)


def open_index(person: EndUser, space: EmbeddingSpace | None) -> TurnIndex:
    """The person's turns as they are now, with their vectors in `space` (None: without vectors)."""
    # A merge moves sessions to another person and raises the generation: an index read meanwhile serves neither.
    key = (person.pk, person.generation, space.pk if space else None)
    sessions = _read_sessions(person)
    return _cache.get_or_make(key, sessions, lambda kept: TurnIndex(_update(person, kept, sessions, space), space))


def _read_sessions(person: EndUser) -> list[IndexedSession]:
    return [IndexedSession(*row) for row in binary_rows.fetched(_SESSIONS, [person.tenant_id, person.pk])]


def _update(
    person: EndUser, kept: TurnIndex | None, sessions: Sequence[IndexedSession], space: EmbeddingSpace | None
) -> list[SessionTurns]:
    """Read what sessions gained since `kept`, and leave out what was deleted."""
    parts = {part.session.id: part for part in kept.sessions} if kept else {}
    behind = [session for session in sessions if session.id not in parts or parts[session.id].session != session]
    bases = [
        _without_deleted(part, session)
        # What was redacted may be anywhere in it: such a session is read anew.
        if (part := parts.get(session.id)) and part.session.redactions == session.redactions
        else _empty(session, space)
        for session in behind
    ]
    turns = _new_turns(person, bases, behind)
    vectors = _new_vectors(person, bases, behind, space) if space else {}
    for base, session in zip(bases, behind, strict=True):
        parts[session.id] = _extend(base, session, turns.get(session.id, []), vectors.get(session.id, []))
    return [parts[session.id] for session in sessions]


def _empty(session: IndexedSession, space: EmbeddingSpace | None) -> SessionTurns:
    return SessionTurns(
        session=IndexedSession(session.id, session.external_id, session.agent_id, session.memory_of),
        ids=[],
        numbers=np.empty(0, np.int32),
        times=np.empty(0, np.float64),
        roles=np.empty(0, np.uint8),
        token_counts=np.empty(0, np.int32),
        terms=[],
        vectors=np.empty((0, space.dimensions if space else 0), np.float32),
        languages=np.empty(0, "U2"),
    )


def _without_deleted(kept: SessionTurns, session: IndexedSession) -> SessionTurns:
    """Without the turns that retention deleted. Arrays are copied: a view would keep the deleted vectors in memory."""
    first = int(np.searchsorted(kept.numbers, session.deleted, side="right"))
    if not first:
        return kept
    return replace(
        kept,
        ids=kept.ids[first:],
        numbers=kept.numbers[first:].copy(),
        times=kept.times[first:].copy(),
        roles=kept.roles[first:].copy(),
        token_counts=kept.token_counts[first:].copy(),
        terms=kept.terms[first:],
        vectors=kept.vectors[first:].copy(),
        languages=kept.languages[first:].copy(),
    )


def _new_turns(
    person: EndUser, bases: Sequence[SessionTurns], upto: Sequence[IndexedSession]
) -> dict[uuid.UUID, list[Any]]:
    """By session: (session, number, seconds, voice, terms, id, tokens)."""
    statement = f"""
        SELECT turn.session_id, turn.number, extract(epoch FROM least(turn.timestamp, turn.created_at))::float8,
               {voice()}, turn.terms, turn.id, turn.token_count
        FROM {Turn._meta.db_table} turn
        JOIN unnest(%s::uuid[], %s::int[], %s::int[]) AS wanted (session_id, after, upto)
          ON turn.session_id = wanted.session_id AND turn.number > wanted.after AND turn.number <= wanted.upto
        WHERE turn.tenant_id = %s AND turn.end_user_id = %s AND turn.terms IS NOT NULL
        ORDER BY turn.session_id, turn.number"""  # noqa: S608 - the table's name is ours
    ranges = [
        [session.id for session in upto],
        [base.session.turn_count for base in bases],
        [session.turn_count for session in upto],
    ]
    return _by_session(binary_rows.fetched(statement, [*ranges, person.tenant_id, person.pk]) if bases else [])


def _new_vectors(
    person: EndUser, bases: Sequence[SessionTurns], upto: Sequence[IndexedSession], space: EmbeddingSpace
) -> dict[uuid.UUID, list[Any]]:
    """By session: (session, number, language, vector)."""
    statement = f"""
        SELECT vector.session_id, vector.number, vector.language, halfvec_send(vector.vector)
        FROM {TurnVector._meta.db_table} vector
        JOIN unnest(%s::uuid[], %s::int[], %s::int[]) AS wanted (session_id, after, upto)
          ON vector.session_id = wanted.session_id AND vector.number > wanted.after AND vector.number <= wanted.upto
        WHERE vector.tenant_id = %s AND vector.end_user_id = %s AND vector.space_id = %s
        ORDER BY vector.session_id, vector.number"""  # noqa: S608 - the table's name is ours
    parameters = [
        [session.id for session in upto],
        [base.session.embedded for base in bases],
        [session.embedded for session in upto],
        person.tenant_id,
        person.pk,
        space.pk,
    ]
    return _by_session(binary_rows.fetched(statement, parameters) if bases else [])


def _by_session(rows: Sequence[Any]) -> dict[uuid.UUID, list[Any]]:
    return {session: list(some) for session, some in groupby(rows, key=lambda row: row[0])}


def _extend(
    base: SessionTurns, session: IndexedSession, turns: Sequence[Any], vector_rows: Sequence[Any]
) -> SessionTurns:
    """`base` with new turns and vectors. Arrays are copied, because those in the cache are shared."""
    numbers = np.concatenate([base.numbers, np.array([row[1] for row in turns], np.int32)])
    vectors = np.zeros((len(numbers), base.vectors.shape[1]), np.float32)
    languages = np.zeros(len(numbers), "U2")
    vectors[: len(base)], languages[: len(base)] = base.vectors, base.languages
    place_of = dict(zip(numbers.tolist(), range(len(numbers)), strict=True))
    # Only an older version of the hub made vectors of turns that are not searchable.
    rows = [row for row in vector_rows if row[1] in place_of]
    if rows:
        places = [place_of[row[1]] for row in rows]
        vectors[places] = binary_rows.vectors([row[3] for row in rows])
        languages[places] = [row[2] for row in rows]
    return SessionTurns(
        session=session,
        ids=base.ids + [row[5] for row in turns],
        numbers=numbers,
        times=np.concatenate([base.times, np.array([row[2] for row in turns], np.float64)]),
        roles=np.concatenate([base.roles, np.array([VOICES.index(row[3]) for row in turns], np.uint8)]),
        token_counts=np.concatenate([base.token_counts, np.array([row[6] for row in turns], np.int32)]),
        terms=base.terms + [row[4] for row in turns],
        vectors=vectors,
        languages=languages,
    )
