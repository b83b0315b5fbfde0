"""The log of contexts: noted in this process and written in the background, because agents wait for contexts.

What a process has noted and not written is lost when it is killed: at most the last seconds.
"""

import logging
import threading
import uuid
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from django.db import transaction

from memories.db.background_writer import BackgroundWriter
from memories.kinds import served as served_kinds
from memories.kinds.served import SERVED, PeopleBehind
from memories.models import ContextLog, EndUser, LoggedContext, Session
from memories.text.secrets.redaction import redact_text

FLUSH_SECONDS = 2.0
# Per process: about 20 MB without texts, 60 MB with the longest. Beyond it the oldest are dropped and counted.
MOST = 2_000
# Contexts of one transaction.
BATCH = 100
# (kind, id) of a memory.
Key = tuple[str, uuid.UUID]

logger = logging.getLogger(__name__)


class NotedContext(NamedTuple):
    """A context as it was served. `person` as it was read for it; `items` are (kind, id, score)."""

    person: EndUser
    agent_id: str
    session: str
    key_id: uuid.UUID | None
    query: str
    memory: str
    items: Sequence[tuple[str, str, float | None]]
    left_out: int
    token_count: int
    max_tokens: int
    as_of: datetime | None
    revision: str
    took_ms: int
    at: datetime


class ContextBuffer:
    """The contexts that wait, at most `most` of them; safe under threads."""

    def __init__(self, *, most: int = MOST) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._waiting: deque[NotedContext] = deque()
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, served: NotedContext) -> None:
        with self._lock:
            self._waiting.append(served)
            self._keep_within()

    def take(self) -> list[NotedContext]:
        """Empty the buffer."""
        with self._lock:
            taken = list(self._waiting)
            self._waiting.clear()
            return taken

    def requeue(self, taken: Sequence[NotedContext]) -> None:
        """Put back what could not be written, before what came since."""
        with self._lock:
            self._waiting.extendleft(reversed(taken))
            self._keep_within()

    def _keep_within(self) -> None:
        while len(self._waiting) > self._most:
            self._waiting.popleft()
            self.dropped += 1


_buffer = ContextBuffer()
# One flush at a time: the last one, at the end of the process, waits for the thread's.
_flushing = threading.Lock()


def note(served: NotedContext) -> None:
    """Note a context, if the tenant logs them; nothing is written yet."""
    if served.person.tenant.context_log != ContextLog.OFF:
        _buffer.add(served)


def flush() -> int:
    """Write what was noted; returns how many contexts were written.

    Nothing is written about people who were erased, restricted, merged or redacted since. Those of people whom
    somebody else has locked wait for the next flush. Errors: DatabaseError, InterfaceError.
    """
    with _flushing:
        rest = _buffer.take()
        written, busy = 0, list[NotedContext]()
        try:
            while rest:
                count, held = _write(rest[:BATCH])
                del rest[:BATCH]
                written += count
                busy += held
        finally:
            _buffer.requeue([*busy, *rest])
        return written


class LogWriter(BackgroundWriter):
    def __init__(self) -> None:
        super().__init__("context-log", seconds=FLUSH_SECONDS)

    def write(self) -> None:
        dropped, _buffer.dropped = _buffer.dropped, 0
        if dropped:
            logger.warning("%d contexts were not logged: more are served than written", dropped)
        if len(_buffer):
            flush()


def _write(batch: Sequence[NotedContext]) -> tuple[int, list[NotedContext]]:
    """Write these in one transaction; how many were written, and those whose people somebody has locked."""
    with transaction.atomic():
        behind = people_behind(key for one in batch for key in _keys(one))
        concerned = {id(one): _people_of(one, behind) for one in batch}
        existing, locked = _lock_people(set().union(*concerned.values()))
        busy = [one for one in batch if (concerned[id(one)] & existing) - locked.keys()]
        held = {id(one) for one in busy}
        free = [one for one in batch if id(one) not in held and _may_be_written(one, locked)]
        # Whoever deletes a memory locks its person first: what is there now stays until these rows are written. So does
        # whom it goes with, but for what several people say: one more may have said it.
        present = people_behind((key for one in free for key in _keys(one)), lock_shared=True)
        sessions = _sessions(free)
        rows = [_row(one, locked, present, sessions) for one in free]
        LoggedContext.objects.bulk_create(rows)
    return len(rows), busy


def people_behind(keys: Iterable[Key], *, lock_shared: bool = False) -> dict[Key, PeopleBehind]:
    """The people behind these memories, of those that are there; a query for each kind.

    `lock_shared`: whoever deletes one of those that several people say waits for this transaction. Errors: KeyError for
    a kind that is not declared.
    """
    wanted: dict[str, set[uuid.UUID]] = {}
    for kind, pk in keys:
        wanted.setdefault(kind, set()).add(pk)
    if lock_shared:
        for kind, ids in wanted.items():
            if SERVED[kind].said_by:
                rows = SERVED[kind].model._default_manager.select_for_update(no_key=True, of=("self",))
                list(rows.filter(pk__in=ids).order_by("pk").values_list("pk"))
    return {
        (kind, pk): people
        for kind, ids in wanted.items()
        for pk, people in served_kinds.people_behind(kind, ids).items()
    }


def _keys(served: NotedContext) -> list[Key]:
    return [(kind, uuid.UUID(pk)) for kind, pk, _score in served.items]


def _people_of(served: NotedContext, behind: Mapping[Key, PeopleBehind]) -> set[uuid.UUID]:
    return {served.person.pk}.union(*(behind[key].all for key in _keys(served) if key in behind))


def _lock_people(ids: set[uuid.UUID]) -> tuple[set[uuid.UUID], dict[uuid.UUID, EndUser]]:
    """Those of them who exist, and those whom nobody else has locked, locked in the order of their ids.

    An erasure, a redaction and every deletion of a memory locks the person: it has been here before, or waits until
    these rows are there for it to find.
    """
    people = EndUser.objects.filter(pk__in=ids)
    existing = set(people.values_list("pk", flat=True))
    free = people.select_for_update(no_key=True, skip_locked=True, of=("self",)).order_by("pk")
    return existing, {row.pk: row for row in free.only("generation", "restricted_at")}


def _may_be_written(served: NotedContext, locked: Mapping[uuid.UUID, EndUser]) -> bool:
    """Whether the person is as they were: each erasure, merge and redaction raises the generation."""
    person = locked.get(served.person.pk)
    return person is not None and person.restricted_at is None and person.generation == served.person.generation


def _sessions(batch: Sequence[NotedContext]) -> dict[tuple[uuid.UUID, str, str], uuid.UUID]:
    """(person, agent, external id) → id of the conversations that these contexts were for."""
    named = [one for one in batch if one.session]
    if not named:
        return {}
    rows = Session.objects.filter(
        end_user__in={one.person.pk for one in named}, external_id__in={one.session for one in named}
    )
    return {
        (person, agent_id, name): pk
        for person, agent_id, name, pk in rows.values_list("end_user", "agent_id", "external_id", "pk")
    }


def _row(
    served: NotedContext,
    locked: Mapping[uuid.UUID, EndUser],
    present: Mapping[Key, PeopleBehind],
    sessions: Mapping[tuple[uuid.UUID, str, str], uuid.UUID],
) -> LoggedContext:
    person = served.person
    usable = {pk for pk, row in locked.items() if row.restricted_at is None}
    keys = _keys(served)
    # Their people are being erased, or their data may not be used.
    unnamed = {key for key in keys if key in present and not present[key].may_be_named(usable)}
    items = [item for item, key in zip(served.items, keys, strict=True) if key not in unnamed]
    others = {key[1] for key in keys if key in present and _is_of_others(key, present[key], person)}
    keeps_texts = person.tenant.context_log == ContextLog.TEXTS and not unnamed and present.keys() >= set(keys)
    return LoggedContext(
        tenant=person.tenant,
        end_user_id=person.pk,
        agent_id=served.agent_id,
        session_id=sessions.get((person.pk, served.agent_id, served.session)),
        key_id=served.key_id,
        asked=bool(served.query),
        query=redact_text(served.query)[0] if keeps_texts else "",
        memory=served.memory if keeps_texts else "",
        items=[{"kind": kind, "id": pk, "score": score} for kind, pk, score in items],
        left_out=served.left_out,
        rests_on=sorted({pk for _kind, pk in keys} if keeps_texts else others - {pk for _kind, pk in unnamed}),
        token_count=served.token_count,
        max_tokens=served.max_tokens,
        as_of=served.as_of,
        revision=served.revision,
        took_ms=served.took_ms,
        created_at=served.at,
    )


def _is_of_others(key: Key, people: PeopleBehind, person: EndUser) -> bool:
    """Whether somebody else's erasure can take the memory; of what several people say that can change."""
    return bool(SERVED[key[0]].said_by) or people.all != {person.pk}
