"""POST /answer."""

from rest_framework.request import Request
from rest_framework.response import Response

from memories.answering import answer
from memories.api.bound import Bound
from memories.api.endpoints import Endpoint
from memories.api.schema import operation
from memories.api.v1.answer.serializers import AnswerSerializer, QuestionSerializer, request_of, shown
from memories.models import Scope


class AnswerView(Endpoint):
    @operation(
        "answerQuestion",
        "Answer a question about a person, each sentence with the memories that say it",
        description=(
            "What is remembered is searched, the tenant's model answers from it, and a sentence that the memories it "
            "cites do not say is cut. Nothing is stored but the tokens, for the daily caps."
        ),
        scope=Scope.READ,
        bound=Bound.NAMED,
        request=QuestionSerializer,
        answers={200: AnswerSerializer},
        problems=(409, 503),
    )
    def post(self, request: Request) -> Response:
        given = self.body(QuestionSerializer)
        found = answer.answer(tenant=self.tenant, request=request_of(given), now=self.now)
        return Response(shown(found))
