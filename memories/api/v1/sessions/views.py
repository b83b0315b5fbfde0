"""/sessions: conversations, their progress and their turns."""

import uuid
from collections.abc import Callable

from rest_framework.request import Request
from rest_framework.response import Response

from memories.api import lookups
from memories.api.bound import Bound
from memories.api.endpoints import Endpoint
from memories.api.schema import operation
from memories.api.v1.fields import page_of
from memories.api.v1.filters import selected
from memories.api.v1.sessions.serializers import (
    SessionDetailSerializer,
    SessionNameSerializer,
    SessionSerializer,
    SessionsQuery,
    StandingSerializer,
    TurnSerializer,
    TurnsQuery,
    progress_answer,
)
from memories.capture import flushing
from memories.capture.flushing import SessionProgress
from memories.curation.sessions import delete_session
from memories.models import EndUser, Scope


class SessionsView(Endpoint):
    @operation(
        "listSessions",
        "List a person's sessions, newest first",
        scope=Scope.READ,
        bound=Bound.NAMED,
        parameters=[SessionsQuery],
        answers={200: page_of(SessionSerializer)},
    )
    def get(self, request: Request) -> Response:
        given = self.query(SessionsQuery)
        people = EndUser.objects.called(self.tenant, given["user_id"]).filter(restricted_at=None)
        rows = selected(lookups.sessions(self.tenant).filter(end_user__in=people), SessionsQuery, given)
        return self.listed(rows, SessionSerializer, given=given)


class SessionView(Endpoint):
    @operation(
        "getSession",
        "Get a session with its running summary, its window and the state of its extraction",
        scope=Scope.READ,
        bound=Bound.SESSION,
        answers={200: SessionDetailSerializer},
        problems=(404, 423),
    )
    def get(self, request: Request, session_id: uuid.UUID) -> Response:
        session = lookups.require_readable(lookups.session(tenant=self.tenant, session_id=session_id))
        return Response(self.shown(session, SessionDetailSerializer))

    @operation(
        "deleteSession",
        "Delete a session, its turns and the facts that rest on them alone",
        description="Facts that an operator made binding, or that were stated outright, stay. A key that writes as an "
        "agent gets 409 `review_needed` where the user spoke.",
        scope=Scope.WRITE,
        bound=Bound.SESSION,
        answers={204: None},
        problems=(404, 409, 423),
    )
    def delete(self, request: Request, session_id: uuid.UUID) -> Response:
        delete_session(
            session_id=session_id, tenant=self.tenant, actor=self.actor, now=self.now, write_trust=self.write_trust()
        )
        return Response(status=204)


class FlushView(Endpoint):
    @operation(
        "flushSession",
        "Extract what waits in a session as soon as possible",
        scope=Scope.INGEST,
        bound=Bound.NAMED,
        request=SessionNameSerializer,
        answers={202: StandingSerializer},
        problems=(404, 423),
        idempotent=True,
    )
    def post(self, request: Request) -> Response:
        return _progress_answer(self, flushing.flush_session)


class EndView(Endpoint):
    @operation(
        "endSession",
        "End a session: what waits is extracted as soon as possible",
        description="A new turn reopens it.",
        scope=Scope.INGEST,
        bound=Bound.NAMED,
        request=SessionNameSerializer,
        answers={202: StandingSerializer},
        problems=(404, 423),
        idempotent=True,
    )
    def post(self, request: Request) -> Response:
        return _progress_answer(self, flushing.end_session)


class SessionTurnsView(Endpoint):
    @operation(
        "listTurns",
        "List a session's turns by number",
        scope=Scope.READ,
        bound=Bound.SESSION,
        parameters=[TurnsQuery],
        answers={200: page_of(TurnSerializer)},
        problems=(404, 423),
    )
    def get(self, request: Request, session_id: uuid.UUID) -> Response:
        given = self.query(TurnsQuery)
        session = lookups.require_readable(lookups.session(tenant=self.tenant, session_id=session_id))
        long = ("content", "parts", "tool_calls", "metadata")
        return self.listed(session.turns.all(), TurnSerializer, given=given, ordering=[given["sort"]], long=long)


def _progress_answer(view: Endpoint, verb: Callable[..., SessionProgress]) -> Response:
    """Apply the verb to the session that the body names."""
    given = view.body(SessionNameSerializer)
    user_id, session_id, agent_id = given["user_id"], given["session_id"], given.get("agent_id") or ""
    progress = verb(tenant=view.tenant, user_id=user_id, session_id=session_id, agent_id=agent_id)
    view.subjects.add(progress.session.end_user_id)
    return Response(progress_answer(progress, user_id=user_id), status=202)
