"""Sessions as their callers steer them: extracted now, or ended; and the one look-up that locks a session."""

from dataclasses import dataclass

from django.db import transaction

from memories import conf
from memories.exceptions import NotFound, PersonRestricted
from memories.models import Session, SessionQueue, Tenant
from memories.pipeline import debounce
from memories.pipeline.debounce import ExtractionStatus


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
    # Both rows: of a joined row that is not locked, whoever waited would see the counters from before the wait.
    rows = SessionQueue.objects.select_for_update(of=("self", "session"), no_key=True).with_clock()
    queue = (
        rows.select_related("session__end_user")
        .filter(
            session__end_user__tenant=tenant,
            session__end_user__external_id=user_id,
            session__agent_id=agent_id,
            session__external_id=session_id,
        )
        .first()
    )
    if queue is not None:
        queue.session.tenant = queue.session.end_user.tenant = tenant
    return queue


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
        return Standing(session, debounce.status_of(queue, now=queue.clock))
