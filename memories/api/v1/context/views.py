"""POST /context."""

from time import perf_counter

from rest_framework.request import Request
from rest_framework.response import Response

from memories.api.bound import Bound
from memories.api.endpoints import Endpoint
from memories.api.schema import operation
from memories.api.v1.context.serializers import (
    ContextAnswerSerializer,
    ContextSerializer,
    context_answer,
    context_request,
)
from memories.context import context
from memories.models import Scope
from memories.retrieval import served


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
        served.note_context(self.tenant.pk, seconds=perf_counter() - began, now=self.now)
        return Response(answer)
