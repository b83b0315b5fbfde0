"""POST /context."""

from time import perf_counter
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from memories.api import lookups
from memories.api.bound import Bound
from memories.api.endpoints import Endpoint
from memories.api.schema import operation
from memories.api.v1.context.serializers import (
    ContextAnswerSerializer,
    ContextSerializer,
    OfferedSkillSerializer,
    context_answer,
    context_request,
)
from memories.context import context
from memories.context.context import Context
from memories.models import Scope, SkillTrial
from memories.retrieval import served
from memories.skills import serving, trials


class ContextView(Endpoint):
    @operation(
        "getContext",
        "Get what is remembered of a person, inside a token budget",
        description="An unknown, restricted or switched-off person gets an empty memory.",
        scope=Scope.READ,
        bound=Bound.NAMED,
        request=ContextSerializer,
        answers={200: ContextAnswerSerializer},
    )
    def post(self, request: Request) -> Response:
        began = perf_counter()
        given = self.body(ContextSerializer)
        asked = context_request(given)
        built = context.build(tenant=self.tenant, request=asked, now=self.now, key_id=self.caller.key.pk)
        answer = context_answer(built, if_revision=given.get("if_revision"))
        if given["skills"]:
            answer["skills"] = self._skills(given, built)
        served.note_context(self.tenant.pk, seconds=perf_counter() - began, now=self.now)
        return Response(answer)

    def _skills(self, given: dict[str, Any], built: Context) -> list[Any]:
        """What the agent is given; nothing where nothing is served."""
        if built.restricted or not built.serve:
            return []
        person = lookups.readable_person(tenant=self.tenant, user_id=given["user_id"])
        session = serving.Session(self.tenant, person, given.get("agent_id") or "", given.get("session_id") or "")
        offered = serving.offer(session)
        trials.note(offered, SkillTrial.Via.CONTEXT, now=self.now)
        return [OfferedSkillSerializer(one).data for one in offered.served]
