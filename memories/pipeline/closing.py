"""Sessions as their callers steer them: extracted now, or ended; and the one look-up that locks a session."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from django.db import connection, models, transaction

from memories import conf
from memories.exceptions import NotFound, PersonRestricted
from memories.models import EndUser, Session, SessionQueue, Tenant
from memories.pipeline import debounce
from memories.pipeline.debounce import ExtractionStatus

_QUEUE = tuple(field.column for field in SessionQueue._meta.concrete_fields)
_SESSION = tuple(field.column for field in Session._meta.concrete_fields)
_PERSON = ("id", "tenant_id", "external_id", "capture", "restricted_at", "last_seen_at")


def _columns(alias: str, names: Sequence[str]) -> str:
    return ", ".join(f"{alias}.{name}" for name in names)


# By hand: every post begins with it, and Django takes longer to write it than PostgreSQL to answer it.
# Both rows are locked: of a joined row that is not, whoever waited would see the counters from before the wait.
_LOCK = f"""
    SELECT {_columns("q", _QUEUE)}, {_columns("s", _SESSION)}, {_columns("p", _PERSON)}, statement_timestamp()
    FROM memories_enduser p
    JOIN memories_session s ON s.end_user_id = p.id
    JOIN memories_sessionqueue q ON q.session_id = s.id
    WHERE p.tenant_id = %(tenant)s AND p.external_id = %(user)s
        AND s.agent_id = %(agent)s AND s.external_id = %(session)s
    FOR NO KEY UPDATE OF q, s
"""  # noqa: S608  (columns of our own models)


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
    """The queue row of a known session, locked together with the session; inside the caller's transaction."""
    named = {"tenant": tenant.pk, "user": user_id, "agent": agent_id, "session": session_id}
    with connection.cursor() as cursor:
        cursor.execute(_LOCK, named)
        row = cursor.fetchone()
    if row is None:
        return None
    values = iter(row)
    queue, session, person = (
        _read(model, names, islice(values, len(names)))
        for model, names in ((SessionQueue, _QUEUE), (Session, _SESSION), (EndUser, _PERSON))
    )
    queue.clock = next(values)
    queue.session, session.end_user = session, person
    session.tenant = person.tenant = tenant
    return queue


def _read(model: type[models.Model], names: Sequence[str], values: Iterable[Any]) -> Any:
    """The row as its model; fields that are not named are read when somebody asks for them."""
    return model.from_db(connection.alias, names, list(values))


def _flush(tenant: Tenant, *, user_id: str, session_id: str, agent_id: str, end: bool) -> Standing:
    with transaction.atomic():
        queue = locked_queue(tenant, user_id=user_id, session_id=session_id, agent_id=agent_id)
        if queue is None:
            raise NotFound
        session = queue.session
        if session.end_user.restricted_at:
            raise PersonRestricted
        if end and session.ended_at is None:
            session.ended_at = queue.clock
            session.save(update_fields=["ended_at"])
        debounce.arm(queue, [], rules=conf.rules(tenant), now=queue.clock, flush=True)
        queue.save()
        return Standing(session, debounce.status_of(queue, now=queue.clock))
