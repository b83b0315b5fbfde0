"""A person's turns as arrays to be scored: read once, kept in memory, and read on where something was added.

What is kept is never trusted alone: every call asks the sessions first how far they are, and what is found is always
read from the database. Kept are hashes, numbers and vectors, no text.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memories.models import EmbeddingSpace, EndUser, Role, Turn, TurnVector
from memories.pipeline import rows
from memories.pipeline.shelf import Shelf
from memories.scoring import dense
from memories.scoring.ranking import Units

MEBIBYTE = 2**20
# Per process. 20,000 turns take about 100 MiB, raw and centred.
CAPACITY = 384 * MEBIBYTE
IDLE_SECONDS = 600.0
ROLES = tuple(Role.values)
# By hand, as what stands before every reply of an agent.
_TALKS = """
    SELECT id, external_id, agent_id, turn_count, embedded_number FROM memories_session
    WHERE tenant_id = %s AND end_user_id = %s AND turn_count > 0 ORDER BY created_at, id
"""


@dataclass(frozen=True)
class Talk:
    """A session as far as it was seen: so many turns, and vectors up to number `embedded`."""

    id: uuid.UUID
    external_id: str
    agent_id: str
    turn_count: int = 0
    embedded: int = 0


@dataclass(frozen=True, eq=False)
class Stretch:
    """The searchable turns of one session in order; arrays have one row a turn."""

    talk: Talk
    ids: list[uuid.UUID]
    numbers: NDArray[np.int32]
    times: NDArray[np.float64]  # seconds since 1970
    roles: NDArray[np.uint8]  # places in ROLES
    terms: list[bytes]
    vectors: NDArray[np.float32]  # [n, dimensions]; zeros where there is none yet
    languages: NDArray[np.str_]  # "" where there is no vector yet

    def __len__(self) -> int:
        return len(self.terms)


@dataclass(frozen=True, eq=False)
class Store:
    """All searchable turns of a person, session after session; arrays have one row a turn."""

    stretches: list[Stretch]
    space: EmbeddingSpace | None

    @cached_property
    def units(self) -> Units:
        """What scoring needs of them."""
        languages = self._joined("languages")
        return Units.of(
            sessions=self.places,
            packed=[packed for stretch in self.stretches for packed in stretch.terms],
            vectors=self._joined("vectors") if self.space else None,
            present=languages != "",
            languages=languages,
            blocks=dense.blocks(self.space.model, self.space.dimensions) if self.space else (),
        )

    @cached_property
    def places(self) -> NDArray[np.int32]:
        """Of each row, the place of its stretch."""
        lengths = [len(stretch) for stretch in self.stretches]
        return np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)

    @cached_property
    def ids(self) -> list[uuid.UUID]:
        return [one for stretch in self.stretches for one in stretch.ids]

    @cached_property
    def times(self) -> NDArray[np.float64]:
        times: NDArray[np.float64] = self._joined("times")
        return times

    @cached_property
    def roles(self) -> NDArray[np.uint8]:
        roles: NDArray[np.uint8] = self._joined("roles")
        return roles

    def __len__(self) -> int:
        return len(self.places)

    def _joined(self, name: str) -> Any:
        empty = getattr(_nothing(Talk(uuid.UUID(int=0), "", ""), self.space), name)
        return np.concatenate([empty, *(getattr(stretch, name) for stretch in self.stretches)])


def open_store(person: EndUser, space: EmbeddingSpace | None) -> Store:
    """The person's turns as they are now, with their vectors of `space` (None: without vectors)."""
    # With the generation: what was read while sessions became another person's is not kept for either.
    key = (person.pk, person.generation, space.pk if space else None)
    kept = _shelf.get(key)
    talks = _talks(person)
    if kept and [stretch.talk for stretch in kept.stretches] == talks:
        return kept
    store = Store(_brought_up_to_date(person, kept, talks, space), space)
    _shelf.put(key, store)
    return store


def _weight(store: Store) -> int:
    """Bytes, roughly: vectors lie here raw and centred, terms packed and by term."""
    return sum(
        2 * stretch.vectors.nbytes + 4 * sum(map(len, stretch.terms)) + 250 * len(stretch)
        for stretch in store.stretches
    )


_shelf: Shelf[Store] = Shelf(capacity=CAPACITY, idle_seconds=IDLE_SECONDS, weigh=_weight)


def _talks(person: EndUser) -> list[Talk]:
    return [Talk(*row) for row in rows.fetched(_TALKS, [person.tenant_id, person.pk])]


def _brought_up_to_date(
    person: EndUser, kept: Store | None, talks: Sequence[Talk], space: EmbeddingSpace | None
) -> list[Stretch]:
    """The stretches of `talks`; only those that are new or went on are read."""
    had = {stretch.talk.id: stretch for stretch in kept.stretches} if kept else {}
    behind = [talk for talk in talks if talk.id not in had or had[talk.id].talk != talk]
    bases = [had.get(talk.id) or _nothing(talk, space) for talk in behind]
    said = _said(person, bases, behind)
    seen = _seen(person, bases, behind, space) if space else {}
    for base, talk in zip(bases, behind, strict=True):
        had[talk.id] = _read_on(base, talk, said.get(talk.id, []), seen.get(talk.id, []))
    return [had[talk.id] for talk in talks]


def _nothing(talk: Talk, space: EmbeddingSpace | None) -> Stretch:
    """A session of which nothing was read yet."""
    return Stretch(
        talk=Talk(talk.id, talk.external_id, talk.agent_id),
        ids=[],
        numbers=np.empty(0, np.int32),
        times=np.empty(0, np.float64),
        roles=np.empty(0, np.uint8),
        terms=[],
        vectors=np.empty((0, space.dimensions if space else 0), np.float32),
        languages=np.empty(0, "U2"),
    )


def _said(person: EndUser, bases: Sequence[Stretch], upto: Sequence[Talk]) -> dict[uuid.UUID, list[Any]]:
    """By session, (session, number, seconds, role, terms, id) of the turns that are new."""
    statement = f"""
        SELECT turn.session_id, turn.number, extract(epoch FROM coalesce(turn.timestamp, turn.created_at))::float8,
               turn.role, turn.terms, turn.id
        FROM {Turn._meta.db_table} turn
        JOIN unnest(%s::uuid[], %s::int[], %s::int[]) AS wanted (session_id, after, upto)
          ON turn.session_id = wanted.session_id AND turn.number > wanted.after AND turn.number <= wanted.upto
        WHERE turn.tenant_id = %s AND turn.end_user_id = %s AND turn.terms IS NOT NULL
        ORDER BY turn.session_id, turn.number"""  # noqa: S608 - the table's name is ours
    ranges = _ranges(bases, upto, "turn_count")
    return _by_session(rows.fetched(statement, [*ranges, person.tenant_id, person.pk]) if bases else [])


def _seen(
    person: EndUser, bases: Sequence[Stretch], upto: Sequence[Talk], space: EmbeddingSpace
) -> dict[uuid.UUID, list[Any]]:
    """By session, (session, number, language, vector) of the vectors that are new."""
    statement = f"""
        SELECT vector.session_id, vector.number, vector.language, halfvec_send(vector.vector)
        FROM {TurnVector._meta.db_table} vector
        JOIN unnest(%s::uuid[], %s::int[], %s::int[]) AS wanted (session_id, after, upto)
          ON vector.session_id = wanted.session_id AND vector.number > wanted.after AND vector.number <= wanted.upto
        WHERE vector.tenant_id = %s AND vector.end_user_id = %s AND vector.space_id = %s
        ORDER BY vector.session_id, vector.number"""  # noqa: S608 - the table's name is ours
    ranges = _ranges(bases, upto, "embedded")
    return _by_session(rows.fetched(statement, [*ranges, person.tenant_id, person.pk, space.pk]) if bases else [])


def _ranges(bases: Sequence[Stretch], upto: Sequence[Talk], counter: str) -> list[list[Any]]:
    """Three columns: the session, the number after which to read, and the one up to which."""
    return [
        [talk.id for talk in upto],
        [getattr(base.talk, counter) for base in bases],
        [getattr(talk, counter) for talk in upto],
    ]


def _by_session(found: Sequence[Any]) -> dict[uuid.UUID, list[Any]]:
    return {session: list(some) for session, some in groupby(found, key=lambda row: row[0])}


def _read_on(base: Stretch, talk: Talk, said: Sequence[Any], seen: Sequence[Any]) -> Stretch:
    """`base` with new turns and new vectors behind it; arrays are copied, for what lies on the shelf is shared."""
    numbers = np.concatenate([base.numbers, np.array([row[1] for row in said], np.int32)])
    vectors = np.zeros((len(numbers), base.vectors.shape[1]), np.float32)
    languages = np.zeros(len(numbers), "U2")
    vectors[: len(base)], languages[: len(base)] = base.vectors, base.languages
    known = dict(zip(numbers.tolist(), range(len(numbers)), strict=True))
    # A vector of a turn that is not searchable would be one that an older program made.
    seen = [row for row in seen if row[1] in known]
    if seen:
        places = [known[row[1]] for row in seen]
        vectors[places] = rows.vectors([row[3] for row in seen])
        languages[places] = [row[2] for row in seen]
    return Stretch(
        talk=talk,
        ids=base.ids + [row[5] for row in said],
        numbers=numbers,
        times=np.concatenate([base.times, np.array([row[2] for row in said], np.float64)]),
        roles=np.concatenate([base.roles, np.array([ROLES.index(row[3]) for row in said], np.uint8)]),
        terms=base.terms + [row[4] for row in said],
        vectors=vectors,
        languages=languages,
    )
