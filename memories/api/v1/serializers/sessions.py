"""Sessions and their turns, as lists and objects."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from memories.api.v1.serializers.fields import AgentId, Identifier, JSONObject, OrNull, PageQuery, Strict
from memories.api.v1.serializers.turns import (
    Content,
    ExtractionStatusSerializer,
    StoredSessionSerializer,
    extraction_answer,
    session_answer,
)
from memories.models import Role, Session, Turn
from memories.pipeline import debounce
from memories.pipeline.closing import Standing


class SessionsQuery(PageQuery):
    user_id = Identifier()
    agent_id = AgentId()


class SessionNameSerializer(Strict):
    """A session by the caller's own ids."""

    user_id = Identifier()
    session_id = Identifier()
    agent_id = AgentId(help_text="Lower-cased; a session of another agent is another session.")


class StandingSerializer(serializers.Serializer[Any]):
    """A session and where its extraction stands."""

    session = StoredSessionSerializer()
    extraction = ExtractionStatusSerializer()


class SessionSerializer(serializers.Serializer[Session]):
    id = serializers.UUIDField()
    session_id = serializers.CharField(source="external_id")
    user_id = serializers.CharField(source="end_user.external_id")
    agent_id = OrNull()
    turn_count = serializers.IntegerField()
    token_count = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    last_turn_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True, help_text="A new turn reopens it.")
    extraction = serializers.SerializerMethodField()

    @extend_schema_field(ExtractionStatusSerializer)
    def get_extraction(self, session: Session) -> dict[str, Any]:
        queue = getattr(session, "queue", None)
        return extraction_answer(debounce.status_of(queue, now=self.context["now"]))


class TurnSerializer(serializers.Serializer[Turn]):
    id = serializers.UUIDField()
    number = serializers.IntegerField()
    role = serializers.ChoiceField(Role.values)
    content = serializers.SerializerMethodField(help_text="As it was posted.")
    name = OrNull()
    tool_calls = serializers.ListField(child=JSONObject(), allow_null=True)
    external_id = serializers.CharField(allow_null=True)
    token_count = serializers.IntegerField()
    timestamp = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()
    metadata = JSONObject()

    @extend_schema_field(Content)
    def get_content(self, turn: Turn) -> Any:
        return turn.content if turn.parts is None else turn.parts


def standing_answer(standing: Standing, *, user_id: str) -> dict[str, Any]:
    """In the shape of StandingSerializer."""
    return {
        "session": session_answer(standing.session, user_id=user_id),
        "extraction": extraction_answer(standing.extraction),
    }
