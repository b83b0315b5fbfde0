"""GET /sessions and what lies below."""

import uuid

from rest_framework.request import Request
from rest_framework.response import Response

from memories.api import lookups
from memories.api.endpoints import Endpoint
from memories.api.schema import operation
from memories.api.v1.serializers.fields import PageQuery
from memories.api.v1.serializers.page import page_of
from memories.api.v1.serializers.sessions import SessionSerializer, SessionsQuery, TurnSerializer
from memories.models import Scope


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
        rows = lookups.sessions(self.tenant).filter(end_user__external_id=given["user_id"])
        if given.get("agent_id"):
            rows = rows.filter(agent_id=given["agent_id"])
        return self.listed(rows, SessionSerializer, given=given)


class SessionView(Endpoint):
    @operation(
        "getSession",
        "Get a session with the state of its extraction",
        scope=Scope.READ,
        answers={200: SessionSerializer},
        problems=(404,),
    )
    def get(self, request: Request, session_id: uuid.UUID) -> Response:
        return Response(self.shown(lookups.session(tenant=self.tenant, session_id=session_id), SessionSerializer))


class SessionTurnsView(Endpoint):
    @operation(
        "listTurns",
        "List a session's turns by number",
        scope=Scope.READ,
        parameters=[PageQuery],
        answers={200: page_of(TurnSerializer)},
        problems=(404,),
    )
    def get(self, request: Request, session_id: uuid.UUID) -> Response:
        given = self.query(PageQuery)
        session = lookups.session(tenant=self.tenant, session_id=session_id)
        return self.listed(session.turns.all(), TurnSerializer, given=given, ordering=["number"])
