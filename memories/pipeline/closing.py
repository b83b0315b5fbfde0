"""Sessions as their callers steer them: extracted now, or ended; and the one look-up that locks a session."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction

from memories import conf
from memories.exceptions import NotFound, PersonRestricted
from memories.models import EndUser, Session, SessionQueue, Tenant, Turn, WorkingMemory
from memories.models.hand_written import assigned, columns_of, first, read, selected
from memories.pipeline import debounce, turn_rows, working_memory
from memories.pipeline.debounce import ExtractionStatus

_QUEUE, _SESSION = columns_of(SessionQueue), columns_of(Session)
_WINDOW = (*working_memory.READ, *working_memory.ARMED)
_PERSON = ("id", "tenant_id", "external_id", "capture", "restricted_at", "last_seen_at")

# By hand: every post begins with it, and Django takes longer to write it than PostgreSQL to answer it.
# All three rows are locked: of a joined row that is not, whoever waited would see the state from before the wait.
_LOCK = f"""
    SELECT {selected("q", _QUEUE)}, {selected("s", _SESSION)}, {selected("p", _PERSON)},
        {selected("w", _WINDOW)}, statement_timestamp()
    FROM memories_enduser named
    JOIN memories_enduser p ON p.id = coalesce(named.merged_into_id, named.id)
    JOIN memories_session s ON s.end_user_id = p.id
    JOIN memories_sessionqueue q ON q.session_id = s.id
    JOIN memories_workingmemory w ON w.session_id = s.id
    WHERE named.tenant_id = %(tenant)s AND named.external_id = %(user)s
        AND s.agent_id = %(agent)s AND s.external_id = %(session)s
    FOR NO KEY UPDATE OF q, s, w
"""  # noqa: S608  (columns of our own models)
_COUNTED = ("turn_count", "token_count", "round_count", "last_turn_at", "ended_at")
# Parts of one statement: whoever posts to the same session waits from the lock to the commit.
_SAY_ONE = f"said AS ({turn_rows.INSERT_ONE})"
_COUNT = f"counted AS (UPDATE memories_session SET {assigned(_COUNTED)} WHERE id = %(id)s)"  # noqa: S608
_ARM_WINDOW = f"""
    armed AS (UPDATE memories_workingmemory SET {assigned(working_memory.ARMED, "window_")} WHERE session_id = %(id)s)
"""  # noqa: S608  (columns of our own models)
_ARM = f"UPDATE memories_sessionqueue SET {assigned(debounce.ARMED)} WHERE session_id = %(id)s"  # noqa: S608


@dataclass(frozen=True)
class Standing:
    """A session and where its extraction stands."""

    session: Session
    extraction: ExtractionStatus


def flush_session(*, tenant: Tenant, user_id: str, session_id: str, agent_id: str) -> Standing:
    """Make what waits due at once; with nothing waiting nothing changes. Errors: NotFound, PersonRestricted."""
    return _flush(tenant, user_id=user_id, session_id=session_id, agent_id=agent_id, end=False)


def end_session(*, tenant: Tenant, user_id: str, session_id: str, agent_id: str) -> Standing:
    """Mark the session as ended and flush it; a new turn reopens it. Errors: NotFound, PersonRestricted."""
    return _flush(tenant, user_id=user_id, session_id=session_id, agent_id=agent_id, end=True)


def locked_queue(tenant: Tenant, *, user_id: str, session_id: str, agent_id: str) -> SessionQueue | None:
    """The queue row of a known session, locked together with the session and its working memory, of which only what
    arm() needs is read; inside the caller's transaction."""
    named: dict[str, Any] = {"tenant": tenant.pk, "user": user_id, "agent": agent_id, "session": session_id}
    row = first(_LOCK, named)
    if row is None:
        return None
    values = iter(row)
    queue, session = read(SessionQueue, _QUEUE, values), read(Session, _SESSION, values)
    person = read(EndUser, _PERSON, values)
    window = read(WorkingMemory, _WINDOW, values)
    queue.clock = next(values)
    queue.session = window.session = session
    session.end_user = person
    session.tenant = person.tenant = tenant
    return queue


def save_locked(queue: SessionQueue, new: Sequence[Turn] = (), window: WorkingMemory | None = None) -> None:
    """Insert new turns, with what ingest and arm() change of their queue row and session, and of the `window` when it
    was armed; all locked by locked_queue()."""
    if len(new) > 1:
        turn_rows.insert(new)
    parts = [_COUNT]
    given = {name: getattr(queue.session, name) for name in _COUNTED}
    given |= {name: getattr(queue, name) for name in debounce.ARMED}
    if len(new) == 1:
        parts.append(_SAY_ONE)
        given |= turn_rows.values_of(new[0])
    if window:
        parts.append(_ARM_WINDOW)
        given |= {f"window_{name}": getattr(window, name) for name in working_memory.ARMED}
    with connection.cursor() as cursor:
        cursor.execute(f"WITH {', '.join(parts)} {_ARM}", {"id": queue.pk, **given})


def _flush(tenant: Tenant, *, user_id: str, session_id: str, agent_id: str, end: bool) -> Standing:
    with transaction.atomic():
        named = {"user_id": user_id, "session_id": session_id, "agent_id": agent_id}
        # Twice: while the first look waited, the session may have become another person's, and is not lost.
        queue = locked_queue(tenant, **named) or locked_queue(tenant, **named)
        if queue is None:
            raise NotFound
        session = queue.session
        if session.end_user.restricted_at:
            raise PersonRestricted
        if end and session.ended_at is None:
            session.ended_at = queue.clock
        rules = conf.rules(tenant)
        debounce.arm(queue, [], rules=rules, now=queue.clock, flush=True)
        window = session.working_memory
        moved = end and working_memory.arm(window, session, rules=rules, now=queue.clock)
        save_locked(queue, window=window if moved else None)
        return Standing(session, debounce.status_of(queue, now=queue.clock))
