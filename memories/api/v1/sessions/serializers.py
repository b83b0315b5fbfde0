"""Sessions and their turns, as lists and objects."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from memories import conf
from memories.api.v1.fields import AgentId, Identifier, JSONObject, OneOf, OrNull, PageQuery, Strict, Timestamp
from memories.api.v1.filters import where
from memories.api.v1.turns.serializers import (
    WORK_STATUSES,
    Content,
    ExtractionStatusSerializer,
    StoredSessionSerializer,
    extraction_answer,
    session_answer,
)
from memories.capture.flushing import SessionProgress
from memories.models import Author, Role, Session, Turn
from memories.queue import session_queue, window_queue
from memories.queue.eviction import WindowContents


class SessionsQuery(PageQuery):
    user_id = Identifier()
    agent_id = where("agent_id", AgentId())
    session_id = where(
        "external_id", Identifier(required=False, help_text="What you call it; each agent may have one of this name.")
    )


class TurnsQuery(PageQuery):
    sort = OneOf(["number", "-number"], default="number", help_text="`-number` for the newest first.")


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
    """A conversation."""

    id = serializers.UUIDField()
    session_id = serializers.CharField(source="external_id")
    user_id = serializers.CharField(source="end_user.external_id")
    agent_id = OrNull()
    turn_count = serializers.IntegerField()
    token_count = serializers.IntegerField()
    created_at = Timestamp()
    last_turn_at = Timestamp()
    ended_at = Timestamp(allow_null=True, help_text="A new turn reopens it.")
    extraction = serializers.SerializerMethodField()

    @extend_schema_field(ExtractionStatusSerializer)
    def get_extraction(self, session: Session) -> dict[str, Any]:
        queue = getattr(session, "queue", None)
        return extraction_answer(session_queue.status_of(queue, now=self.context["now"]))


class WindowSerializer(serializers.Serializer[Any]):
    """What has not left the conversation's window, and its limits: contexts trim it to them when they read it."""

    first_number = serializers.IntegerField(help_text="The first turn that has not left it.")
    turn_count = serializers.IntegerField()
    token_count = serializers.IntegerField()
    rounds = serializers.IntegerField(help_text="User turns.")
    max_tokens = serializers.IntegerField()
    max_rounds = serializers.IntegerField()


class WindowStatusSerializer(serializers.Serializer[Any]):
    """Where the compaction of a session's window stands, and that of its episodes."""

    status = serializers.ChoiceField(WORK_STATUSES)
    due_at = Timestamp(allow_null=True, help_text="When somebody looks at it next.")


class SessionDetailSerializer(SessionSerializer):
    """A conversation, with its running summary and its window."""

    summary = serializers.CharField(
        source="working_memory.summary", help_text="Of the turns that have left the window; empty when none have."
    )
    window = serializers.SerializerMethodField()
    working_memory = serializers.SerializerMethodField()

    @extend_schema_field(WindowSerializer)
    def get_window(self, session: Session) -> dict[str, Any]:
        row, rules = session.working_memory, conf.rules(session.tenant)
        held = WindowContents.of(session, row)
        return {
            "first_number": row.left_number + 1,
            "turn_count": session.turns.current().after(row.left_number).count(),
            "token_count": held.tokens,
            "rounds": held.rounds,
            "max_tokens": rules.window_tokens,
            "max_rounds": rules.window_rounds,
        }

    @extend_schema_field(WindowStatusSerializer)
    def get_working_memory(self, session: Session) -> dict[str, Any]:
        return vars(window_queue.status_of(session.working_memory, now=self.context["now"]))


class TurnSerializer(serializers.Serializer[Turn]):
    """A turn as it was posted."""

    id = serializers.UUIDField()
    number = serializers.IntegerField()
    role = serializers.ChoiceField(Role.values)
    author = serializers.ChoiceField(
        Author.values, source="known_author", help_text="Whose words it holds; `person`: what the person said."
    )
    content = serializers.SerializerMethodField(help_text="As it was posted, but for what was redacted.")
    name = OrNull()
    tool_calls = serializers.ListField(child=JSONObject(), allow_null=True)
    external_id = serializers.CharField(allow_null=True)
    token_count = serializers.IntegerField()
    timestamp = Timestamp(allow_null=True)
    created_at = Timestamp()
    redacted_at = Timestamp(allow_null=True)
    left_at = Timestamp(allow_null=True, help_text="When the client went on without it.")
    metadata = JSONObject()

    @extend_schema_field(Content)
    def get_content(self, turn: Turn) -> Any:
        return turn.content if turn.parts is None else turn.parts


def progress_answer(progress: SessionProgress, *, user_id: str) -> dict[str, Any]:
    """In the shape of StandingSerializer."""
    return {
        "session": session_answer(progress.session, user_id=user_id),
        "extraction": extraction_answer(progress.extraction),
    }
