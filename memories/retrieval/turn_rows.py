"""A person's turns as arrays: how they are read from the database, and how arrays of several reads become one.

The arrays hold hashes, numbers and vectors, no text. Turns and vectors are read in slices, so that little more than the
arrays themselves is in memory at any moment.
"""

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice, pairwise
from typing import Any, NamedTuple, Protocol, overload

import numpy as np
from numpy.typing import NDArray

from memories.db import binary_rows
from memories.models import Author, EmbeddingSpace, EndUser, Role, Turn, TurnVector
from memories.models.conversations.conversations import moment_sent, speaker
from memories.scoring import dense
from memories.scoring.dense import CODES, Rows, VectorBlock
from memories.scoring.lexical import Postings

# Whose words a turn can hold: those of its role, or of the author of a user's turn that is not the person's.
SPEAKERS = (*Role.values, Author.APPLICATION.value, Author.MODEL.value, Author.OTHER.value)
_SPEAKER_CODES = {speaker: code for code, speaker in enumerate(SPEAKERS)}
# Turns that are read at once: their vectors take some 4 MiB.
SLICE = 4_096
# Gives an array for so many vectors of so many dimensions.
Room = Callable[[int, int], NDArray[np.float16]]


class Wanted(NamedTuple):
    """The turns of a session after one number up to another, with their vectors up to `embedded`."""

    session: uuid.UUID
    after: int
    upto: int
    embedded: int


class Ids(Sequence[uuid.UUID]):
    """Ids in 16 bytes each; uint8[n, 16]."""

    def __init__(self, packed: NDArray[np.uint8]) -> None:
        self.packed = packed

    @overload
    def __getitem__(self, place: int) -> uuid.UUID: ...
    @overload
    def __getitem__(self, place: slice) -> "Ids": ...
    def __getitem__(self, place: int | slice) -> "uuid.UUID | Ids":
        if isinstance(place, slice):
            return Ids(self.packed[place])
        return uuid.UUID(bytes=self.packed[place].tobytes())

    def __len__(self) -> int:
        return len(self.packed)


@dataclass(frozen=True, eq=False)
class TurnRows:
    """Turns of some sessions; all arrays but that of the sessions have one row a turn.

    `session_of`: the position of its session. `times`: seconds since 1970. `roles`: positions in SPEAKERS.
    `vectors`: None where none are kept.
    """

    sessions: list[uuid.UUID]
    session_of: NDArray[np.int32]
    numbers: NDArray[np.int32]
    times: NDArray[np.float64]
    roles: NDArray[np.uint8]
    token_counts: NDArray[np.int32]
    ids: NDArray[np.uint8]
    postings: Postings
    vectors: Rows | None
    # Its arrays are those of a file that all processes map.
    mapped: bool = False
    # Called when vectors of that file were looked at.
    let_go: Callable[[], None] | None = None

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def nbytes(self) -> int:
        """What it takes of the memory of this process alone."""
        if self.mapped:
            return 0
        arrays = [getattr(self, name) for name in PLAIN]
        words = self.postings
        arrays += [words.ids, words.starts, words.units, words.counts, words.lengths]
        if self.vectors is not None:
            arrays += [self.vectors.raw, self.vectors.codes, self.vectors.squares]
        return sum(array.nbytes for array in arrays)


# The arrays of one row a turn that are gathered as they are.
PLAIN = ("session_of", "numbers", "times", "roles", "token_counts", "ids")


def blocks_of(space: EmbeddingSpace) -> tuple[VectorBlock, ...]:
    return dense.blocks(space.model, space.dimensions)


class Slice(NamedTuple):
    """Turns that were read together, without their vectors, and the codes of the languages of these."""

    rows: TurnRows
    codes: NDArray[np.uint8]


class Slices(Protocol):
    """Where vectors go that are read, and what keeps the slices that were read.

    `found`: those that an earlier reading of the same turns has left, whose vectors stand in the array already.
    """

    def room(self, count: int, dimensions: int) -> NDArray[np.float16]: ...
    def found(self) -> Iterable[Slice]: ...
    def add(self, one: Slice) -> None: ...


class InMemory:
    """Slices that nobody needs again."""

    def room(self, count: int, dimensions: int) -> NDArray[np.float16]:
        return zeros(count, dimensions)

    def found(self) -> Iterable[Slice]:
        return ()

    def add(self, one: Slice) -> None:
        pass


def zeros(count: int, dimensions: int) -> NDArray[np.float16]:
    """Room for vectors. Memory that nothing was written to takes no room."""
    return np.zeros((count, dimensions), np.float16)


def read(
    person: EndUser, wanted: Sequence[Wanted], space: EmbeddingSpace | None, *, into: Slices | None = None
) -> TurnRows:
    """These turns of the person in the order of `wanted`, with their vectors in `space` (None: without vectors).

    What `into` has of them is not read again.
    """
    into = into or InMemory()
    most, sessions = sum(one.upto - one.after for one in wanted), [one.session for one in wanted]
    raw = into.room(most, space.dimensions if space else 0)
    codes = np.zeros(most, np.uint8)
    read_rows: list[TurnRows] = []
    first = 0
    for one in into.found():
        codes[first : first + len(one.rows)] = one.codes
        read_rows.append(one.rows)
        first += len(one.rows)
    for some in islice(_slices(wanted), len(read_rows), None):
        rows = _turns(person, some, sessions)
        if space:
            places, vectors, languages = _read_vectors(person, some, space, rows)
            raw[first + places], codes[first + places] = vectors, languages
        into.add(Slice(rows, codes[first : first + len(rows)]))
        read_rows.append(rows)
        first += len(rows)
    embedded = Rows.coded(raw[:first], codes[:first], blocks_of(space)) if space else None
    return _stacked(sessions, read_rows, embedded)


def joined(
    parts: Sequence[TurnRows],
    order: NDArray[np.int64],
    sessions: Sequence[uuid.UUID],
    space: EmbeddingSpace | None,
    *,
    room: Room = zeros,
) -> TurnRows:
    """The turns of all parts that `order` names, in that order: rows of the parts, one after the other.

    `sessions`: those of these turns. What is not named is in no array afterwards.
    """
    position = {session: at for at, session in enumerate(sessions)}
    session_of = [
        np.array([position.get(one, -1) for one in part.sessions], np.int32)[part.session_of] for part in parts
    ]
    places = np.full(sum(map(len, parts)), -1, np.int64)
    places[order] = np.arange(len(order))
    ends = list(accumulate(map(len, parts)))
    cut = [places[end - len(part) : end] for part, end in zip(parts, ends, strict=True)]
    gathered: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts])[order] for name in PLAIN[1:]
    }
    vectors = None
    if space:
        raw = room(len(order), space.dimensions)
        codes = np.empty(len(order), np.uint8)
        for part, place in zip(parts, cut, strict=True):
            if part.vectors is not None:
                _move(part.vectors, place, raw, codes)
        vectors = Rows.coded(raw, codes, blocks_of(space))
    return TurnRows(
        sessions=list(sessions),
        session_of=np.concatenate(session_of)[order],
        postings=Postings.joined([part.postings for part in parts], cut, len(order)),
        vectors=vectors,
        **gathered,
    )


def _move(vectors: Rows, places: NDArray[np.int64], raw: NDArray[np.float16], codes: NDArray[np.uint8]) -> None:
    """Write each vector to its place, if it has one, without a copy of them all."""
    for start in range(0, len(places), SLICE):
        some = slice(start, start + SLICE)
        there = places[some] >= 0
        raw[places[some][there]] = vectors.raw[some][there]
        codes[places[some][there]] = vectors.codes[some][there]


def _slices(wanted: Sequence[Wanted]) -> Iterator[list[tuple[int, Wanted]]]:
    """(position, what is wanted of its session), as many as make up a slice; long sessions are cut."""
    some: list[tuple[int, Wanted]] = []
    room = SLICE
    for position, one in enumerate(wanted):
        after = one.after
        while after < one.upto:
            upto = min(one.upto, after + room)
            some.append((position, one._replace(after=after, upto=upto)))
            room -= upto - after
            after = upto
            if not room:
                yield some
                some, room = [], SLICE
    if some:
        yield some


def _turns(person: EndUser, some: Sequence[tuple[int, Wanted]], sessions: list[uuid.UUID]) -> TurnRows:
    statement = f"""
        SELECT wanted.place, turn.number, extract(epoch FROM {moment_sent("turn")})::float8,
               {speaker()}, turn.terms, uuid_send(turn.id), turn.token_count
        FROM {Turn._meta.db_table} turn
        JOIN unnest(%s::int[], %s::uuid[], %s::int[], %s::int[]) AS wanted (place, session_id, after, upto)
          ON turn.session_id = wanted.session_id AND turn.number > wanted.after AND turn.number <= wanted.upto
        WHERE turn.tenant_id = %s AND turn.end_user_id = %s AND turn.terms IS NOT NULL
        ORDER BY wanted.place, turn.number"""  # noqa: S608 - the table's name is ours
    ranges = [[one.session for _, one in some], [one.after for _, one in some], [one.upto for _, one in some]]
    given = [[place for place, _ in some], *ranges, person.tenant_id, person.pk]
    rows = binary_rows.fetched(statement, given)
    columns = list(zip(*rows, strict=True)) or [()] * 7
    places, numbers, times, speakers, packed, ids, tokens = columns
    return TurnRows(
        sessions=sessions,
        session_of=np.array(places, np.int32),
        numbers=np.array(numbers, np.int32),
        times=np.array(times, np.float64),
        roles=np.array([_SPEAKER_CODES[one] for one in speakers], np.uint8),
        token_counts=np.array(tokens, np.int32),
        ids=np.frombuffer(b"".join(ids), np.uint8).reshape(-1, 16),
        postings=Postings.of(packed),
        vectors=None,
    )


def _read_vectors(
    person: EndUser, some: Sequence[tuple[int, Wanted]], space: EmbeddingSpace, rows: TurnRows
) -> tuple[NDArray[np.intp], NDArray[np.float16], NDArray[np.uint8]]:
    """The vectors of `rows`, which are of these sessions: the places, the vectors and the codes of their languages."""
    statement = f"""
        SELECT wanted.place, vector.number, vector.language, halfvec_send(vector.vector)
        FROM {TurnVector._meta.db_table} vector
        JOIN unnest(%s::int[], %s::uuid[], %s::int[], %s::int[]) AS wanted (place, session_id, after, upto)
          ON vector.session_id = wanted.session_id AND vector.number > wanted.after AND vector.number <= wanted.upto
        WHERE vector.tenant_id = %s AND vector.end_user_id = %s AND vector.space_id = %s"""  # noqa: S608
    embedded = [(place, one) for place, one in some if one.after < one.embedded]
    ranges = [
        [place for place, _ in embedded],
        [one.session for _, one in embedded],
        [one.after for _, one in embedded],
        [min(one.upto, one.embedded) for _, one in embedded],
    ]
    given = [*ranges, person.tenant_id, person.pk, space.pk]
    found = binary_rows.fetched(statement, given) if embedded and len(rows) else []
    if not found:
        return np.empty(0, np.intp), np.empty((0, space.dimensions), np.float16), np.empty(0, np.uint8)
    places, numbers, languages, sent = zip(*found, strict=True)
    keys, asked = _keys(rows.session_of, rows.numbers), _keys(np.array(places), np.array(numbers))
    at = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
    # Only an older version of the hub made vectors of turns that are not searchable.
    there = keys[at] == asked
    codes = np.array([CODES.get(one, 0) for one in languages], np.uint8)
    return at[there], binary_rows.halves(sent)[there], codes[there]


def _keys(places: NDArray[Any], numbers: NDArray[Any]) -> NDArray[np.int64]:
    keys: NDArray[np.int64] = places.astype(np.int64) << 32 | numbers
    return keys


def _stacked(sessions: list[uuid.UUID], parts: Sequence[TurnRows], vectors: Rows | None) -> TurnRows:
    """Slices one after the other."""
    ends = list(accumulate(map(len, parts), initial=0))
    places = [np.arange(start, end) for start, end in pairwise(ends)]
    empty = {
        "session_of": np.int32,
        "numbers": np.int32,
        "times": np.float64,
        "roles": np.uint8,
        "token_counts": np.int32,
    }
    gathered: dict[str, Any] = {
        name: np.concatenate([np.empty(0, kind), *(getattr(part, name) for part in parts)])
        for name, kind in empty.items()
    }
    gathered["ids"] = np.concatenate([np.empty((0, 16), np.uint8), *(part.ids for part in parts)])
    postings = Postings.joined([part.postings for part in parts], places, ends[-1])
    return TurnRows(sessions=sessions, postings=postings, vectors=vectors, **gathered)
