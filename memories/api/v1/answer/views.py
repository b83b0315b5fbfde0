"""POST /answer."""

from collections.abc import Generator
from contextlib import closing

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request
from rest_framework.response import Response

from memories import leaving
from memories.answering import answer
from memories.api import event_streams
from memories.api.bound import Bound
from memories.api.endpoints import Endpoint
from memories.api.schema import operation
from memories.api.v1.answer.serializers import (
    AnswerSerializer,
    QuestionSerializer,
    event,
    request_of,
    shown,
)
from memories.models import Scope


class AnswerView(Endpoint):
    content_negotiation_class = event_streams.EventNegotiation

    @operation(
        "answerQuestion",
        "Answer a question about a person, each sentence with the memories that say it",
        description=(
            "What is remembered is searched, the tenant's model answers from it, and a sentence that the memories it "
            "cites do not say is cut. Nothing is stored but the tokens, for the daily caps. With `stream` it comes as "
            "server-sent events: `searches`, `evidence`, a `sentence` each time that one is certain, and `done` with "
            "the object that is the answer otherwise; or `error` with a problem document."
        ),
        scope=Scope.READ,
        bound=Bound.NAMED,
        request=QuestionSerializer,
        answers={200: AnswerSerializer, (200, event_streams.MEDIA_TYPE): OpenApiTypes.STR},
        problems=(409, 503),
    )
    def post(self, request: Request) -> Response | StreamingHttpResponse:
        given = self.body(QuestionSerializer)
        asked = request_of(given)
        if not given["stream"]:
            return Response(shown(answer.answer(tenant=self.tenant, request=asked, now=self.now)))
        has_left = leaving.of_request(request._request.META)

        def events() -> Generator[event_streams.Event, None, None]:
            with closing(answer.told(tenant=self.tenant, request=asked, now=self.now, has_left=has_left)) as told:
                yield from map(event, told)

        return event_streams.streamed(request, events())
