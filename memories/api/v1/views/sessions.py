"""/sessions and what lies below."""

import uuid
from collections.abc import Callable

from rest_framework.request import Request
from rest_framework.response import Response

from memories import curation
from memories.api import lookups
from memories.api.endpoints import Endpoint
from memories.api.schema import operation
from memories.api.v1.serializers.fields import PageQuery
from memories.api.v1.serializers.page import page_of
from memories.api.v1.serializers.sessions import (
    SessionDetailSerializer,
    SessionNameSerializer,
    SessionSerializer,
    SessionsQuery,
    StandingSerializer,
    TurnSerializer,
    standing_answer,
)
from memories.models import EndUser, Scope
from memories.pipeline import closing
from memories.pipeline.closing import Standing


class SessionsView(Endpoint):
    @operation(
        "listSessions",
        "List a person's sessions, newest first",
        scope=Scope.READ,
        parameters=[SessionsQuery],
        answers={200: page_of(SessionSerializer)},
    )
    def get(self, request: Request) -> Response:
        given = self.query(SessionsQuery)
        people = EndUser.objects.called(self.tenant, given["user_id"]).filter(restricted_at=None)
        rows = lookups.sessions(self.tenant).filter(end_user__in=people)
        if given.get("agent_id"):
            rows = rows.filter(agent_id=given["agent_id"])
        return self.listed(rows, SessionSerializer, given=given)


class SessionView(Endpoint):
    @operation(
        "getSession",
        "Get a session with its running summary, its window and the state of its extraction",
        scope=Scope.READ,
        answers={200: SessionDetailSerializer},
        problems=(404, 423),
    )
    def get(self, request: Request, session_id: uuid.UUID) -> Response:
        session = lookups.tell(lookups.session(tenant=self.tenant, session_id=session_id))
        return Response(self.shown(session, SessionDetailSerializer))

    @operation(
        "deleteSession",
        "Delete a session, its turns and the facts that rest on them alone",
        description="Facts that an operator made binding, or that were stated outright, stay.",
        scope=Scope.WRITE,
        answers={204: None},
        problems=(404, 423),
    )
    def delete(self, request: Request, session_id: uuid.UUID) -> Response:
        curation.delete_session(session_id=session_id, tenant=self.tenant, actor=self.actor, now=self.now)
        return Response(status=204)


class FlushView(Endpoint):
    @operation(
        "flushSession",
        "Extract what waits in a session as soon as possible",
        scope=Scope.INGEST,
        request=SessionNameSerializer,
        answers={202: StandingSerializer},
        problems=(404, 423),
        idempotent=True,
    )
    def post(self, request: Request) -> Response:
        return _standing(self, closing.flush_session)


class EndView(Endpoint):
    @operation(
        "endSession",
        "End a session: what waits is extracted as soon as possible",
        description="A new turn reopens it.",
        scope=Scope.INGEST,
        request=SessionNameSerializer,
        answers={202: StandingSerializer},
        problems=(404, 423),
        idempotent=True,
    )
    def post(self, request: Request) -> Response:
        return _standing(self, closing.end_session)


class SessionTurnsView(Endpoint):
    @operation(
        "listTurns",
        "List a session's turns by number",
        scope=Scope.READ,
        parameters=[PageQuery],
        answers={200: page_of(TurnSerializer)},
        problems=(404, 423),
    )
    def get(self, request: Request, session_id: uuid.UUID) -> Response:
        given = self.query(PageQuery)
        session = lookups.tell(lookups.session(tenant=self.tenant, session_id=session_id))
        return self.listed(session.turns.all(), TurnSerializer, given=given, ordering=["number"])


def _standing(view: Endpoint, verb: Callable[..., Standing]) -> Response:
    """Do it to the session that the body names."""
    given = view.body(SessionNameSerializer)
    user_id, session_id, agent_id = given["user_id"], given["session_id"], given.get("agent_id") or ""
    standing = verb(tenant=view.tenant, user_id=user_id, session_id=session_id, agent_id=agent_id)
    view.told_people.add(standing.session.end_user_id)
    return Response(standing_answer(standing, user_id=user_id), status=202)
