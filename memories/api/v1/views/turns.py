"""POST /turns."""

from rest_framework.request import Request
from rest_framework.response import Response

from memories.api.endpoints import Endpoint
from memories.api.schema import operation
from memories.api.v1.serializers.turns import ReceiptSerializer, TurnsSerializer, receipt_answer
from memories.models import Scope
from memories.pipeline import ingest


class TurnsView(Endpoint):
    @operation(
        "postTurns",
        "Store the turns of a session",
        description="Person and session are made on first sight. A message whose `external_id` the session already "
        "has is not stored again. Extraction follows in the background.",
        scope=Scope.INGEST,
        request=TurnsSerializer,
        answers={202: ReceiptSerializer},
        problems=(409, 423),
    )
    def post(self, request: Request) -> Response:
        given = self.body(TurnsSerializer)
        receipt = ingest.store_turns(
            tenant=self.tenant,
            user_id=given["user_id"],
            session_id=given["session_id"],
            agent_id=given.get("agent_id") or "",
            messages=given["messages"],
            flush=given["flush"],
        )
        return Response(receipt_answer(receipt, user_id=given["user_id"]), status=202)
