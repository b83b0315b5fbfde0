"""The SQL of a post: make and lock the session's rows, insert turns, write the counters and due times.

It is written by hand: every post runs it, and Django takes longer to write the statements than PostgreSQL to run them.
"""

import json
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Any

from django.db import connection, models

from memories.models import EndUser, Session, SessionQueue, Tenant, Turn, WorkingMemory
from memories.models.hand_written import assigned, columns_of, defaults_of, first, given, read, selected
from memories.queue import session_queue, window_queue

_QUEUE, _SESSION = columns_of(SessionQueue), columns_of(Session)
_WINDOW = (*window_queue.READ, *window_queue.ARMED)
_QUEUE_DEFAULTS, _WINDOW_DEFAULTS = defaults_of(SessionQueue), defaults_of(WorkingMemory)
_PERSON = ("id", "tenant_id", "external_id", "capture", "restricted_at", "last_seen_at")

# Each table's tenant is named: a distributed database sends the statement to the tenant's node.
# All three rows are locked. After a wait, a joined row without a lock would have its state from before the wait.
# The person is looked up first, in a query of its own: joined, PostgreSQL expects several and reads whole tables.
_LOCK = f"""
    SELECT {selected("p", _PERSON)}, {selected("s", _SESSION)}, {selected("q", _QUEUE)},
        {selected("w", _WINDOW)}, statement_timestamp()
    FROM memories_session s
    JOIN memories_enduser p ON p.id = s.end_user_id AND p.tenant_id = %(tenant)s
    JOIN memories_sessionqueue q ON q.session_id = s.id AND q.tenant_id = %(tenant)s
    JOIN memories_workingmemory w ON w.session_id = s.id AND w.tenant_id = %(tenant)s
    WHERE s.tenant_id = %(tenant)s AND s.agent_id = %(agent)s AND s.external_id = %(session)s AND s.end_user_id = (
        SELECT coalesce(merged_into_id, id) FROM memories_enduser
        WHERE tenant_id = %(tenant)s AND external_id = %(user)s
    )
    FOR NO KEY UPDATE OF q, s, w
"""  # noqa: S608  (columns of our own models)

# The rows of a session, in the caller's transaction. Of two at once the second waits at the first statement until the
# first has committed; each finds what is there then. Not one statement: a distributed database would show what it made
# to all nodes, and could make no session while one of them is away.
_CREATE_SESSION = f"""
    INSERT INTO memories_session ({", ".join(_SESSION)}) VALUES ({given(_SESSION, "session_")}) ON CONFLICT DO NOTHING
"""  # noqa: S608  (columns of our own models)


def _create_beside(table: str, defaults: Collection[str], prefix: str) -> str:
    names = [name for name in defaults if name != "tenant_id"]
    return f"""
        INSERT INTO {table} (tenant_id, session_id, {", ".join(names)})
        SELECT tenant_id, id, {given(names, prefix)} FROM memories_session
        WHERE tenant_id = %(session_tenant_id)s AND end_user_id = %(session_end_user_id)s
            AND agent_id = %(session_agent_id)s AND external_id = %(session_external_id)s
        ON CONFLICT DO NOTHING
    """  # noqa: S608  (columns of our own models)


_CREATE = (
    _CREATE_SESSION,
    _create_beside("memories_sessionqueue", _QUEUE_DEFAULTS, "queue_"),
    _create_beside("memories_workingmemory", _WINDOW_DEFAULTS, "window_"),
)

_FIELDS = Turn._meta.concrete_fields
# Name of the column → its serializer, if the value is not written as it is.
_TURN: dict[str, Callable[[Any], str] | None] = {
    str(field.column): json.dumps if isinstance(field, models.JSONField) else None for field in _FIELDS
}
# A cast to varchar(255) would cut what is too long; the column itself refuses it.
_ARRAYS = ", ".join(
    f"%s::{'text' if isinstance(field, models.CharField) else field.db_type(connection)}[]" for field in _FIELDS
)
_INSERT_MANY = f"INSERT INTO memories_turn ({', '.join(_TURN)}) SELECT * FROM unnest({_ARRAYS})"  # noqa: S608

_COUNTED = ("turn_count", "token_count", "round_count", "last_turn_at", "ended_at")
# What only a stored turn gets. psycopg reads a statement anew each time if it has more than 50 parameters, and the
# statement of a post has nearly as many.
_LATER = ("flagged", "redacted_at", "left_at", "digest")
_NEW = tuple(name for name in _TURN if name not in _LATER)
# Parts of one statement: other posts to the session wait from the lock to the commit. A single turn is part of it, too:
# most posts hold one, and its arrays would take longer to write than the row.
_INSERT_ONE = (
    f"said AS (INSERT INTO memories_turn ({', '.join(_NEW)}) "  # noqa: S608
    f"VALUES ({given(_NEW, 'turn_')}))"
)
_OWN = "tenant_id = %(tenant)s"
_COUNT = f"counted AS (UPDATE memories_session SET {assigned(_COUNTED)} WHERE id = %(id)s AND {_OWN})"  # noqa: S608
_ARM_WINDOW = f"""
    armed AS (
        UPDATE memories_workingmemory SET {assigned(window_queue.ARMED, "window_")} WHERE session_id = %(id)s AND {_OWN}
    )
"""  # noqa: S608  (columns of our own models)
_ARM = f"""
    UPDATE memories_sessionqueue SET {assigned(session_queue.ARMED)} WHERE session_id = %(id)s AND {_OWN}
"""  # noqa: S608  (columns of our own models)


def locked_queue(tenant: Tenant, *, user_id: str, session_id: str, agent_id: str) -> SessionQueue | None:
    """The queue row of an existing session, locked in the caller's transaction with the session and working memory.

    Of the working memory it reads only what arm() needs.
    """
    row = first(_LOCK, {"tenant": tenant.pk, "user": user_id, "agent": agent_id, "session": session_id})
    if row is None:
        return None
    values = iter(row)
    person = read(EndUser, _PERSON, values, tenant=tenant)
    session = read(Session, _SESSION, values, tenant=tenant, end_user=person)
    queue, window = read(SessionQueue, _QUEUE, values), read(WorkingMemory, _WINDOW, values)
    queue.session = window.session = session
    queue.clock = next(values)
    return queue


def create_session(person: EndUser, *, agent_id: str, external_id: str, memory_of: str, now: datetime) -> None:
    """The session with its queue row and working memory, each where it is missing."""
    session = Session(
        tenant_id=person.tenant_id,
        end_user=person,
        agent_id=agent_id,
        external_id=external_id,
        memory_of=memory_of,
        created_at=now,
        last_turn_at=now,
    )
    parameters = {f"session_{name}": getattr(session, name) for name in _SESSION}
    parameters |= {f"queue_{name}": value for name, value in _QUEUE_DEFAULTS.items()}
    parameters |= {f"window_{name}": value for name, value in _WINDOW_DEFAULTS.items()}
    with connection.cursor() as cursor:
        for statement in _CREATE:
            cursor.execute(statement, parameters)


def save_locked(queue: SessionQueue, new: Sequence[Turn] = (), window: WorkingMemory | None = None) -> None:
    """Insert new turns and save what ingest and arm() changed in rows of locked_queue(); `window` if it was armed."""
    if len(new) > 1:
        insert_turns(new)
    parts = [_COUNT]
    values = {name: getattr(queue.session, name) for name in _COUNTED}
    values |= {name: getattr(queue, name) for name in session_queue.ARMED}
    if len(new) == 1:
        parts.append(_INSERT_ONE)
        values |= {f"turn_{name}": _value(new[0], name) for name in _NEW}
    if window:
        parts.append(_ARM_WINDOW)
        values |= {f"window_{name}": getattr(window, name) for name in window_queue.ARMED}
    with connection.cursor() as cursor:
        cursor.execute(f"WITH {', '.join(parts)} {_ARM}", {"id": queue.pk, "tenant": queue.tenant_id, **values})


def insert_turns(turns: Sequence[Turn]) -> None:
    """Insert rows that have all their values, with one statement that takes arrays. Errors: IntegrityError."""
    with connection.cursor() as cursor:
        cursor.execute(_INSERT_MANY, [[_value(turn, name) for turn in turns] for name in _TURN])


def _value(turn: Turn, name: str) -> Any:
    value, serialize = getattr(turn, name), _TURN[name]
    return value if value is None or serialize is None else serialize(value)
