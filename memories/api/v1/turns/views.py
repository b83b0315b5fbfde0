"""POST /turns and /turns/bulk; deleting what a turn says."""

import uuid

from rest_framework.request import Request
from rest_framework.response import Response

from memories.api.bound import Bound
from memories.api.endpoints import Endpoint
from memories.api.schema import operation
from memories.api.v1.turns.serializers import (
    BulkSerializer,
    ReceiptSerializer,
    ReceiptsSerializer,
    RedactionSerializer,
    TurnsSerializer,
    receipt_answer,
)
from memories.capture import ingest
from memories.curation.turns import redact_turn
from memories.models import Scope


class TurnsView(Endpoint):
    @operation(
        "postTurns",
        "Store the turns of a session",
        description="Person and session are made on first sight. A message whose `external_id` the session already "
        "has is not stored again. Extraction follows in the background.",
        scope=Scope.INGEST,
        bound=Bound.NAMED,
        request=TurnsSerializer,
        answers={202: ReceiptSerializer},
        problems=(409, 410, 423),
        idempotent=True,
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
            key_id=self.caller.key.pk,
            memory_of=self.caller.key.memory_of,
        )
        if receipt.session:
            self.subjects.add(receipt.session.end_user_id)
        return Response(receipt_answer(receipt, user_id=given["user_id"]), status=202)


class BulkTurnsView(Endpoint):
    @operation(
        "postTurnsBulk",
        "Store the turns of many sessions, all or none",
        description="At most 5,000 messages and 10 MB together.",
        scope=Scope.INGEST,
        bound=Bound.CONVERSATIONS,
        request=BulkSerializer,
        answers={202: ReceiptsSerializer},
        problems=(409, 410, 423),
        idempotent=True,
    )
    def post(self, request: Request) -> Response:
        given = self.body(BulkSerializer)["conversations"]
        key = self.caller.key
        receipts = ingest.store_conversations(
            tenant=self.tenant, conversations=given, key_id=key.pk, memory_of=key.memory_of
        )
        self.subjects.update(receipt.session.end_user_id for receipt in receipts if receipt.session)
        results = [
            receipt_answer(receipt, user_id=conversation.user_id)
            for receipt, conversation in zip(receipts, given, strict=True)
        ]
        return Response({"results": results}, status=202)


class TurnView(Endpoint):
    @operation(
        "deleteTurn",
        "Delete what a turn says, and what was made of it alone",
        description="The turn keeps its number and a keyed hash, so that the same message is not stored again. Facts, "
        "episodes and sections of the profile that rest on it alone go; other facts lose this evidence. What an "
        "operator made binding, or was stated outright, stays.",
        scope=Scope.WRITE,
        bound=Bound.TURN,
        answers={204: None},
        problems=(404, 409, 423),
    )
    def delete(self, request: Request, turn_id: uuid.UUID) -> Response:
        redact_turn(turn_id=turn_id, tenant=self.tenant, actor=self.actor, now=self.now, write_trust=self.write_trust())
        return Response(status=204)


class TurnRedactionView(Endpoint):
    @operation(
        "redactTurn",
        "Delete passages of a turn, and what was made of it alone",
        description="Without `texts` all that it says, as DELETE does.",
        scope=Scope.WRITE,
        bound=Bound.TURN,
        request=RedactionSerializer,
        answers={204: None},
        problems=(404, 409, 423),
        idempotent=True,
    )
    def post(self, request: Request, turn_id: uuid.UUID) -> Response:
        given = self.body(RedactionSerializer)
        self.subjects.add(
            redact_turn(
                turn_id=turn_id,
                tenant=self.tenant,
                actor=self.actor,
                now=self.now,
                passages=given.get("texts") or (),
                once=given["once"],
                write_trust=self.write_trust(),
            )
        )
        return Response(status=204)
