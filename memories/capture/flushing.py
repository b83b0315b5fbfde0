"""Sessions as their callers steer them: extracted now, or ended."""

from dataclasses import dataclass

from django.db import transaction

from memories import conf
from memories.capture.session_rows import locked_queue, save_locked
from memories.exceptions import NotFound, PersonRestricted
from memories.models import Session, Tenant
from memories.queue import session_queue, window_queue
from memories.queue.session_queue import ExtractionStatus


@dataclass(frozen=True)
class SessionProgress:
    """A session and the status of its extraction."""

    session: Session
    extraction: ExtractionStatus


def flush_session(*, tenant: Tenant, user_id: str, session_id: str, agent_id: str) -> SessionProgress:
    """Make pending turns due at once; without pending turns nothing changes. Errors: NotFound, PersonRestricted."""
    return _flush(tenant, user_id=user_id, session_id=session_id, agent_id=agent_id, end=False)


def end_session(*, tenant: Tenant, user_id: str, session_id: str, agent_id: str) -> SessionProgress:
    """Mark the session as ended and flush it; a new turn reopens it. Errors: NotFound, PersonRestricted."""
    return _flush(tenant, user_id=user_id, session_id=session_id, agent_id=agent_id, end=True)


def _flush(tenant: Tenant, *, user_id: str, session_id: str, agent_id: str, end: bool) -> SessionProgress:
    with transaction.atomic():
        key = {"user_id": user_id, "session_id": session_id, "agent_id": agent_id}
        # Twice: while the first look-up waited, a merge may have given the session to another person.
        queue = locked_queue(tenant, **key) or locked_queue(tenant, **key)
        if queue is None:
            raise NotFound
        session = queue.session
        if session.end_user.restricted_at:
            raise PersonRestricted
        if end and session.ended_at is None:
            session.ended_at = queue.clock
        rules = conf.rules(tenant)
        session_queue.arm(queue, [], rules=rules, now=queue.clock, flush=True)
        window = session.working_memory
        moved = end and window_queue.arm(window, session, rules=rules, now=queue.clock)
        save_locked(queue, window=window if moved else None)
        return SessionProgress(session, session_queue.status_of(queue, now=queue.clock))
