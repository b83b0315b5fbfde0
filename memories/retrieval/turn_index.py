"""Index of a person's turns: arrays that are built once, cached, and extended when turns are added.

Every call first asks the sessions how far they are and what retention deleted, so a stale index is never used. Results
are always read from the database. The index holds hashes, numbers and vectors, no text (`turn_rows.py`).
"""

import uuid
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

from memories.db import binary_rows
from memories.exceptions import HubBusy
from memories.models import EmbeddingSpace, EndUser
from memories.retrieval import turn_drafts, turn_files, turn_rows
from memories.retrieval.cache import FOR_EVER, Patience, Source, indexes
from memories.retrieval.turn_files import Progress
from memories.retrieval.turn_rows import SPEAKERS, Ids, TurnRows, Wanted
from memories.scoring import arrays
from memories.scoring.constants import DEFAULT
from memories.scoring.dense import Vectors
from memories.scoring.lexical import Layout, Words
from memories.scoring.ranking import Units
from memoryhub import allocator

__all__ = ["SPEAKERS", "IndexedSession", "Stretches", "TurnIndex", "open_index"]

# About so many turns are read when an index is made, on a machine that also does other work.
TURNS_A_SECOND = 10_000
# Beside its rows, for each turn: where it stands and what its length and its vector's distance take.
_BESIDE = 60
# What came later stands beside the others until it is so many turns, and such a share of them.
TAIL, TAIL_SHARE = 1_024, 1 / 16
# By hand, because an agent waits for it before every reply.
# The sessions come only if they are not those of a digest that is known: a heavy person has thousands. The digest is of
# numbers alone, since texts take twice the time: only a merge renames a session, and that raises the generation.
# One number after the other: PostgreSQL hashes a bigint as the XOR of its halves, and both counts grow together.
_VERSION = """hashint4extended(turn_count, hashint4extended(embedded_number,
    uuid_hash_extended(id, deleted_number::bigint << 32 | redactions)))"""
_COLUMNS = "id, external_id, agent_id, memory_of, turn_count, embedded_number, deleted_number, redactions"
_SESSIONS = f"""
    WITH digest AS (
        SELECT count(*) AS sessions, coalesce(bit_xor({_VERSION}), 0) AS hash FROM memories_session
        WHERE tenant_id = %(tenant)s AND end_user_id = %(person)s AND turn_count > deleted_number
    )
    SELECT sessions, hash, {_COLUMNS} FROM digest LEFT JOIN LATERAL (
        SELECT {_COLUMNS}, created_at FROM memories_session
        WHERE tenant_id = %(tenant)s AND end_user_id = %(person)s AND turn_count > deleted_number
            AND (digest.sessions, digest.hash) IS DISTINCT FROM (%(sessions)s::bigint, %(hash)s::bigint)
        OFFSET 0
    ) session ON true
    ORDER BY created_at, id
"""  # noqa: S608  (columns of our own model)


class Shown(NamedTuple):
    """Turns of a session that who asks has before them, by their numbers."""

    session: uuid.UUID | None
    numbers: frozenset[int]

    def has_all(self, session: uuid.UUID, after: int, upto: int) -> bool:
        """Whether the turns of that session after one number up to another are all among them."""
        return after >= upto or (session == self.session and self.numbers.issuperset(range(after + 1, upto + 1)))


class IndexedSession(NamedTuple):
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

    def has_grown_into(self, other: "IndexedSession") -> bool:
        """Whether all that is indexed of it stands in the other, too, and nothing else up to there."""
        # What was redacted may be anywhere in it.
        return (
            (self.deleted, self.redactions) == (other.deleted, other.redactions)
            and self.turn_count <= other.turn_count
            and self.embedded <= other.embedded
        )

    def newly_embedded(self, other: "IndexedSession") -> tuple[int, int]:
        """The turns after one number up to another that stand here without the vectors which they have in the other."""
        return max(self.deleted, min(self.embedded, self.turn_count)), min(other.embedded, self.turn_count)


@dataclass(frozen=True)
class Sessions:
    """A person's sessions with searchable turns in their order, and a digest of them; equal if the digests are.

    `read`: None where the digest was known.
    """

    digest: tuple[int, int]
    read: list[IndexedSession] | None = field(default=None, compare=False)


class Stretches(NamedTuple):
    """Turns of sessions, from the first number to the last; one row a stretch."""

    sessions: Sequence[uuid.UUID]
    first: NDArray[np.int32]
    last: NDArray[np.int32]


class Part(NamedTuple):
    """Turns that were read together. Of each of its sessions those count that have a number of at most `upto`, or more
    than `beyond`: those between were read again, with their vectors."""

    rows: TurnRows
    upto: NDArray[np.int32]
    beyond: NDArray[np.int32]

    def counting(self) -> NDArray[np.bool_]:
        numbers, session_of = self.rows.numbers, self.rows.session_of
        return (numbers <= self.upto[session_of]) | (numbers > self.beyond[session_of])

    def without(self, again: Mapping[uuid.UUID, tuple[int, int]]) -> "Part":
        """Without the turns of these sessions after one number up to another."""
        upto, beyond = self.upto.copy(), self.beyond.copy()
        for at, session in enumerate(self.rows.sessions):
            if session in again:
                # What is read again follows what was.
                upto[at], beyond[at] = min(upto[at], again[session][0]), max(beyond[at], again[session][1])
        return self._replace(upto=upto, beyond=beyond)


@dataclass(frozen=True, eq=False)
class TurnIndex:
    """All searchable turns of a person, session after session; arrays have one row a turn.

    `order`: for each turn its row in the parts, one after the other; None: as they stand.
    """

    known: list[IndexedSession]
    space: EmbeddingSpace | None
    parts: tuple[Part, ...]
    order: NDArray[np.int64] | None
    session_of: NDArray[np.int32]
    # The file of the first part.
    path: Path | None = None
    _said_by: dict[frozenset[str], NDArray[np.bool_]] = field(default_factory=dict, repr=False, init=False)

    @property
    def rows(self) -> NDArray[np.int64]:
        """For each turn its row in the parts."""
        return np.arange(len(self)) if self.order is None else self.order

    @cached_property
    def units(self) -> Units:
        """The arrays that scoring takes."""
        layout = Layout.of(self.session_of, alone=False)
        words = Words.of([part.rows.postings for part in self.parts], layout, DEFAULT, self.order)
        vectors = None
        if self.space:
            vectors = Vectors.over(
                [part.rows.vectors for part in self.parts if part.rows.vectors is not None],
                blocks=turn_rows.blocks_of(self.space),
                constants=DEFAULT,
                order=self.order,
            )
        return Units.over(words, vectors, self.times)

    @cached_property
    def agents(self) -> list[tuple[str, str]]:
        """The agents of its sessions, each with whose memory the session becomes, once."""
        return list(dict.fromkeys((one.agent_id, one.memory_of) for one in self.known))

    @cached_property
    def agent_of(self) -> NDArray[np.int32]:
        """For each turn the position of the agent of its session."""
        places = {agent: place for place, agent in enumerate(self.agents)}
        of_sessions = [places[one.agent_id, one.memory_of] for one in self.known]
        return np.array(of_sessions, np.int32)[self.session_of]

    @cached_property
    def ids(self) -> Ids:
        return Ids(self._array("ids"))

    @cached_property
    def numbers(self) -> NDArray[np.int32]:
        numbers: NDArray[np.int32] = self._array("numbers")
        return numbers

    @cached_property
    def times(self) -> NDArray[np.float64]:
        times: NDArray[np.float64] = self._array("times")
        return times

    @cached_property
    def roles(self) -> NDArray[np.uint8]:
        roles: NDArray[np.uint8] = self._array("roles")
        return roles

    @cached_property
    def token_counts(self) -> NDArray[np.int32]:
        counts: NDArray[np.int32] = self._array("token_counts")
        return counts

    def said_by(self, speakers: frozenset[str]) -> NDArray[np.bool_]:
        """Which turns these speakers said; read-only, because all requests share it."""
        if (said := self._said_by.get(speakers)) is None:
            said = np.array([one in speakers for one in SPEAKERS], np.bool_).take(self.roles)
            said.flags.writeable = False
            self._said_by[speakers] = said
        return said

    @cached_property
    def places_of_sessions(self) -> dict[uuid.UUID, int]:
        return {session.id: place for place, session in enumerate(self.known)}

    def turns_of(self, session: uuid.UUID) -> slice:
        """The places of its turns; none of a session that has none."""
        if (place := self.places_of_sessions.get(session)) is None:
            return slice(0, 0)
        return slice(*np.searchsorted(self.session_of, [place, place + 1]).tolist())

    @cached_property
    def keys(self) -> NDArray[np.int64]:
        """Session and number of each turn, ascending."""
        return _key(self.session_of, self.numbers)

    def has_turns(self, stretches: Stretches) -> NDArray[np.bool_]:
        """Of which of these stretches any turn is here."""
        session = np.array([self.places_of_sessions.get(one, -1) for one in stretches.sessions], np.int32)
        after = np.searchsorted(self.keys, _key(session, stretches.first))
        there = np.append(self.keys, np.iinfo(np.int64).max)[after] <= _key(session, stretches.last)
        return (session >= 0) & there

    def let_go(self) -> None:
        """Nobody looks at vectors of its file for now."""
        for part in self.parts:
            if part.rows.let_go is not None:
                part.rows.let_go()

    def __len__(self) -> int:
        return len(self.session_of)

    def _array(self, name: str) -> Any:
        whole = arrays.in_a_row([getattr(part.rows, name) for part in self.parts])
        return whole if self.order is None else whole[self.order]


@dataclass(frozen=True, eq=False)
class _Turns(Source[Sessions, TurnIndex]):
    """All searchable turns of a person, in a space (None: without vectors). Of those that are `shown` some may be
    missing."""

    person: EndUser
    space: EmbeddingSpace | None
    shown: Shown | None = None
    kind = "turns"

    @property
    def key(self) -> tuple[Hashable, ...]:
        # A merge moves sessions to another person and raises the generation: an index read meanwhile serves neither.
        return (self.person.pk, self.person.generation, self.space.pk if self.space else None)

    def stamp(self, known: Sessions | None) -> Sessions:
        return _read_sessions(self.person, known)

    def suffices(self, kept: TurnIndex, stamp: Sessions) -> bool:
        return self.shown is not None and _lacks_only(self.shown, kept, stamp.read or [])

    def patience(self, stamp: Sessions, kept: TurnIndex | None) -> Patience:
        """One makes the index of a heavy person, some wait for it, and the others do without."""
        turns, seconds = _turns(stamp.read or []), settings.MEMORYHUB_WAIT_SECONDS or None
        if not turn_files.is_heavy(turns):
            return FOR_EVER
        is_long = seconds and not kept and turns > seconds * TURNS_A_SECOND
        if is_long and not turn_files.exists(self.person, self.space):
            return Patience(seconds, waiting=0, beside=True)
        return Patience(seconds, turn_files.BUILDERS)

    def make(self, stamp: Sessions, kept: TurnIndex | None, seconds: float | None) -> TurnIndex:
        return _update(self.person, kept, stamp.read or [], self.space, patience=seconds)

    def weight(self, index: TurnIndex) -> int:
        return sum(part.rows.nbytes for part in index.parts) + _BESIDE * len(index) + 400 * len(index.known)


class _Newest(_Turns):
    """The newest turns, as many as are read in a tenth of a second."""

    @property
    def key(self) -> tuple[Hashable, ...]:
        return (*super().key, "newest")

    def patience(self, _stamp: Sessions, _kept: TurnIndex | None) -> Patience:
        return FOR_EVER

    def make(self, stamp: Sessions, kept: TurnIndex | None, _seconds: float | None) -> TurnIndex:
        return _in_two(_grown(self.person, kept, _newest(stamp.read or []), self.space))


def open_index(person: EndUser, space: EmbeddingSpace | None, *, shown: Shown | None = None) -> TurnIndex:
    """The person's turns as they are now, with their vectors in `space` (None: without vectors).

    Who has turns before them and wants others need not wait for these: of the turns that are `shown` some may be
    missing, as those of a conversation are that goes on.

    HubBusy where the index of a heavy person is made, and this would wait for longer than a request may.
    """
    index = indexes.open(_Turns(person, space, shown))
    if index.path:
        turn_files.used(index.path)
    return index


class Opened(NamedTuple):
    """An index, and whether it has all turns of the person, or only those of the newest sessions."""

    turns: TurnIndex
    is_whole: bool


def open_or_newest(person: EndUser, space: EmbeddingSpace | None, *, shown: Shown | None = None) -> Opened:
    """The person's turns as they are now; of a heavy person whose index is being made the newest of them."""
    newest = _Newest(person, space)
    try:
        whole = open_index(person, space, shown=shown)
    except HubBusy:
        return Opened(indexes.open(newest), is_whole=False)
    if whole.path and indexes.drop(newest):
        # They stood for all while the file was made.
        allocator.trim()
    return Opened(whole, is_whole=True)


def _newest(sessions: Sequence[IndexedSession]) -> list[IndexedSession]:
    """The last sessions that have as many turns as stay in memory; of one that has more the last turns."""
    found: list[IndexedSession] = []
    room = turn_files.FILE_FROM
    for one in reversed(sessions):
        after = max(one.deleted, one.turn_count - room)
        room -= one.turn_count - after
        found.append(one._replace(deleted=after, embedded=max(after, one.embedded)))
        if room <= 0:
            break
    return found[::-1]


def _read_sessions(person: EndUser, known: Sessions | None = None) -> Sessions:
    sessions, of_them = known.digest if known else (None, None)
    whose = {"tenant": person.tenant_id, "person": person.pk}
    rows = binary_rows.fetched(_SESSIONS, {**whose, "sessions": sessions, "hash": of_them})
    read = [IndexedSession(*row[2:]) for row in rows if row[2]]
    is_known = known and known.digest == rows[0][:2]
    return Sessions(rows[0][:2], None if is_known else read)


def _lacks_only(shown: Shown, kept: TurnIndex, sessions: Sequence[IndexedSession]) -> bool:
    """Whether an index is that of these sessions, but for turns, or vectors of turns, that are shown."""
    if not kept.places_of_sessions.keys() <= {one.id for one in sessions}:
        return False
    for one in sessions:
        place = kept.places_of_sessions.get(one.id)
        known = None if place is None else kept.known[place]
        if known == one:
            continue
        if known and not known.has_grown_into(one):
            return False
        if known and kept.space and not shown.has_all(one.id, *known.newly_embedded(one)):
            return False
        if not shown.has_all(one.id, known.turn_count if known else one.deleted, one.turn_count):
            return False
    return True


def _turns(sessions: Sequence[IndexedSession]) -> int:
    return sum(one.turn_count - one.deleted for one in sessions)


def _update(
    person: EndUser,
    kept: TurnIndex | None,
    sessions: list[IndexedSession],
    space: EmbeddingSpace | None,
    *,
    patience: float | None,
) -> TurnIndex:
    """What sessions gained since `kept` is read, and what was deleted is left out. The turns of a heavy person are in a
    file, which one process makes for all, and only what came later is here."""
    turn_files.sweep_now_and_then()
    if not turn_files.is_heavy(_turns(sessions)):
        return _in_two(_grown(person, kept, sessions, space))
    index = None
    if kept := kept or _in_file(person, space):
        index = _grown(person, kept, sessions, space)
        if not _wants_file(index, kept):
            return _in_two(index)
    with turn_files.building(patience=patience):
        # Another process may have made it meanwhile.
        if found := _in_file(person, space):
            index = _grown(person, found, sessions, space)
            if not _wants_file(index, found):
                return _in_two(index)
        return _filed(person, index, sessions, space)


def _in_file(person: EndUser, space: EmbeddingSpace | None) -> TurnIndex | None:
    if (found := turn_files.opened(person, space)) is None:
        return None
    known = _known(found.rows.sessions, found.progress)
    return TurnIndex(known, space, (_whole(found.rows),), None, found.rows.session_of, found.path)


def _wants_file(index: TurnIndex, kept: TurnIndex) -> bool:
    """Whether much came later, or turns of the file that `kept` was made of are left out."""
    return _tail_is_much(index) or index.parts[0].rows is not kept.parts[0].rows


def _filed(
    person: EndUser, index: TurnIndex | None, sessions: list[IndexedSession], space: EmbeddingSpace | None
) -> TurnIndex:
    """All turns in a new file; in memory where there can be none."""
    draft = turn_drafts.Draft(person, space)
    try:
        if index:
            ids = [one.id for one in sessions]
            rows = turn_rows.joined([part.rows for part in index.parts], index.rows, ids, space, room=draft.room)
            planned = sessions
        else:
            planned = _planned(draft.left(), sessions)
            draft.follow(turn_drafts.Plan([one.id for one in planned], [_progress(one) for one in planned]))
            wanted = [Wanted(one.id, one.deleted, one.turn_count, one.embedded) for one in planned]
            rows = turn_rows.read(person, wanted, space, into=draft)
        filed = draft.publish(rows, [_progress(one) for one in planned])
    finally:
        draft.close()
    if filed:
        rows = filed.rows
    index = _ordered(planned, space, [_whole(rows)], filed.path if filed else None)
    allocator.trim()
    return index if planned is sessions else _in_two(_grown(person, index, sessions, space))


def _planned(left: turn_drafts.Plan | None, sessions: list[IndexedSession]) -> list[IndexedSession]:
    """The sessions as a killed process had planned to read them, if all that it read is still there; else as they
    are."""
    now = {one.id: one for one in sessions}
    known = _known(left.sessions, left.progress) if left else []
    if known and all(one.id in now and one.has_grown_into(now[one.id]) for one in known):
        return known
    return sessions


def _key(session: NDArray[np.int32], number: NDArray[np.int32]) -> NDArray[np.int64]:
    keys: NDArray[np.int64] = session.astype(np.int64) << 32 | number
    return keys


def _known(sessions: Sequence[uuid.UUID], progress: Sequence[Progress]) -> list[IndexedSession]:
    return [IndexedSession(pk, "", "", "", *state) for pk, state in zip(sessions, progress, strict=True)]


def _progress(one: IndexedSession) -> Progress:
    return Progress(one.turn_count, one.embedded, one.deleted, one.redactions)


def _grown(
    person: EndUser, kept: TurnIndex | None, sessions: list[IndexedSession], space: EmbeddingSpace | None
) -> TurnIndex:
    """Read what sessions gained since `kept`, and leave out what was deleted."""
    if kept and len(kept.known) == len(sessions) and all(map(_is_the_same, kept.known, sessions)):
        return replace(kept, known=sessions)
    now = {session.id: session for session in sessions}
    parts: list[Part] = []
    known: dict[uuid.UUID, IndexedSession] = {}
    if kept:
        stays = {one.id for one in kept.known if one.id in now and one.has_grown_into(now[one.id])}
        parts = list(kept.parts) if len(stays) == len(kept.known) else _only(kept, stays)
        known = {one.id: one for one in kept.known if one.id in stays}
    again = {pk: one.newly_embedded(now[pk]) for pk, one in known.items()} if space else {}
    again = {pk: (after, upto) for pk, (after, upto) in again.items() if after < upto}
    wanted = [Wanted(pk, after, upto, upto) for pk, (after, upto) in again.items()]
    for one in sessions:
        after = known[one.id].turn_count if one.id in known else one.deleted
        if after < one.turn_count:
            wanted.append(Wanted(one.id, after, one.turn_count, one.embedded))
    if wanted or not parts:
        new = _whole(turn_rows.read(person, wanted, space))
        parts = [*(part.without(again) if again else part for part in parts), new]
    path = kept.path if kept and parts[0].rows is kept.parts[0].rows else None
    return _ordered(sessions, space, parts, path)


def _is_the_same(known: IndexedSession, now: IndexedSession) -> bool:
    # A file has no names.
    return known.id == now.id and _progress(known) == _progress(now)


def _whole(rows: TurnRows) -> Part:
    count = len(rows.sessions)
    return Part(rows, np.full(count, np.iinfo(np.int32).max, np.int32), np.zeros(count, np.int32))


def _only(kept: TurnIndex, stays: set[uuid.UUID]) -> list[Part]:
    """The turns of these sessions. Arrays are copied: a view would keep the deleted vectors in memory."""
    if not stays:
        return []
    there = np.array([one.id in stays for one in kept.known], np.bool_)[kept.session_of]
    return [
        _whole(_joined(kept.parts, kept.rows[there], [one.id for one in kept.known if one.id in stays], kept.space))
    ]


def _ordered(
    sessions: list[IndexedSession], space: EmbeddingSpace | None, parts: Sequence[Part], path: Path | None = None
) -> TurnIndex:
    place = {session.id: at for at, session in enumerate(sessions)}
    keys, rows, first = [], [], 0
    for part in parts:
        places = np.array([place.get(one, -1) for one in part.rows.sessions], np.int64)[part.rows.session_of]
        counts = np.flatnonzero(part.counting() & (places >= 0))
        keys.append(places[counts] << 32 | part.rows.numbers[counts])
        rows.append(counts + first)
        first += len(part.rows)
    key, row = np.concatenate(keys), np.concatenate(rows)
    if len(row) == first and bool((key[1:] > key[:-1]).all()):
        session_of = (key >> 32).astype(np.int32)
        if np.array_equal(session_of, parts[0].rows.session_of):
            # All processes have those of a file once.
            session_of = parts[0].rows.session_of
        return TurnIndex(sessions, space, tuple(parts), None, session_of, path)
    order = np.argsort(key, kind="stable")
    return TurnIndex(sessions, space, tuple(parts), row[order], (key[order] >> 32).astype(np.int32), path)


def _tail_is_much(index: TurnIndex) -> bool:
    first, *later = index.parts
    return sum(len(part.rows) for part in later) > max(TAIL, TAIL_SHARE * len(first.rows))


def _in_two(index: TurnIndex) -> TurnIndex:
    """The same with at most two parts: what came later is joined, and with the others when it has become much."""
    if len(index.parts) == 1:
        return index
    first, later = index.parts[0], index.parts[1:]
    order = index.rows
    if _tail_is_much(index):
        rows = _joined(index.parts, order, [one.id for one in index.known], index.space)
        return _ordered(index.known, index.space, [_whole(rows)])
    if len(later) == 1:
        return index
    behind = order[order >= len(first.rows)] - len(first.rows)
    there = {session for part in later for session in part.rows.sessions}
    rows = _joined(later, behind, [one.id for one in index.known if one.id in there], index.space)
    return _ordered(index.known, index.space, [first, _whole(rows)], index.path)


def _joined(
    parts: Sequence[Part], order: NDArray[np.int64], sessions: Sequence[uuid.UUID], space: EmbeddingSpace | None
) -> TurnRows:
    return turn_rows.joined([part.rows for part in parts], order, sessions, space)
