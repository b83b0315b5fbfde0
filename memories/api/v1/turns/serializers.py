"""POST /turns and /turns/bulk: messages in, receipts out."""

import re
from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ValidationError

from memories.api.v1.fields import (
    AgentId,
    Base64Bytes,
    ExactText,
    Flag,
    Identifier,
    JSONObject,
    Moment,
    OneOf,
    Strict,
    Timestamp,
    json_size,
)
from memories.capture.attachments import PostedAttachment
from memories.capture.ingest import Conversation, PostedMessage, Receipt
from memories.exceptions import Fault, MessageTooLarge
from memories.models import Author, Role, Session
from memories.models.memories.attachments import KINDS as TYPES
from memories.models.memories.attachments import LONGEST_NAME
from memories.queue.session_queue import ExtractionStatus
from memories.text.signals import KINDS

MAX_MESSAGES = 500
MAX_CONVERSATIONS = 100
MAX_BULK_MESSAGES = 5000
MAX_PARTS = 1000
MAX_PASSAGES = 100
MAX_ATTACHMENTS = 10
# Of one request.
MAX_FILES = 50
MAX_MESSAGE_BYTES = 1024 * 1024
WORK_STATUSES = ["idle", "pending", "running", "parked", "off"]
# What OpenAI's newer models call the system's role.
DEVELOPER = "developer"
MAY_BE_EMPTY = (Role.ASSISTANT, Role.TOOL)
# As chat completions and as the Responses API name a part of text.
TEXT_PARTS = frozenset({"text", "input_text", "output_text"})
_MEDIA_TYPE = re.compile(r"[a-z]{1,20}/[a-z0-9][a-z0-9.+_-]{0,99}")
_NO_PART = ErrorDetail("A part is an object with a `type`; one of type `text` has a string `text`.", code="part")

_PART: dict[str, Any] = {
    "type": "object",
    "required": ["type"],
    "properties": {"type": {"type": "string"}, "text": {"type": "string"}},
}


@extend_schema_field({"oneOf": [{"type": "string"}, {"type": "array", "items": _PART, "maxItems": MAX_PARTS}]})
class Content(serializers.Field[Any, Any, Any, Any]):
    """A message's content: text, or a list of parts of which those of text are read (TEXT_PARTS)."""

    is_free: ClassVar[bool] = True
    default_error_messages = {
        "invalid": "Give a string, or a list of parts.",
        "parts": f"Give at most {MAX_PARTS:,} parts.",
    }

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, str):
            return data
        if not isinstance(data, list):
            self.fail("invalid")
        if len(data) > MAX_PARTS:
            self.fail("parts")
        faults = {str(index): [_NO_PART] for index, part in enumerate(data) if not _is_part(part)}
        if faults:
            raise ValidationError(faults)
        return data

    def to_representation(self, value: Any) -> Any:
        return value


class ToolCall(JSONObject):
    """As large as its message may be: an agent that writes a file sends all of it in one call."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            self.fail("invalid")
        return data


class RoleField(OneOf):
    """A role. `developer`, as newer models name it, is stored as `system`."""

    def __init__(self) -> None:
        super().__init__(Role.values, help_text="`developer` is stored as `system`.")

    def to_internal_value(self, data: Any) -> str:
        return super().to_internal_value(Role.SYSTEM.value if data == DEVELOPER else data)


class AttachmentSerializer(Strict):
    """A file that comes with a message: its bytes, or its text."""

    name = ExactText(required=False, allow_blank=True, max_length=LONGEST_NAME, help_text="The file's name.")
    media_type = ExactText(max_length=127, help_text=f"What is read: {', '.join(f'`{one}`' for one in TYPES)}.")
    # An empty file loses no message: nothing is read of it.
    data = Base64Bytes(required=False, allow_blank=True, help_text="The file, in Base64.")  # type: ignore[assignment]
    text = ExactText(
        required=False,
        allow_blank=True,
        max_length=MAX_MESSAGE_BYTES,
        help_text="Instead of `data`: the text of a file that is text.",
    )

    def validate_media_type(self, given: str) -> str:
        # Parameters say how it was encoded, which the file itself tells.
        media_type = given.partition(";")[0].strip().lower()
        if not _MEDIA_TYPE.fullmatch(media_type):
            raise ValidationError("Give a media type, such as `application/pdf`.", code="invalid")
        return media_type

    def validate(self, attrs: dict[str, Any]) -> PostedAttachment:
        if ("data" in attrs) == ("text" in attrs):
            raise ValidationError({"data": ["Give `data` or `text`: one of them."]}, code="required")
        if "text" in attrs and not attrs["media_type"].startswith("text/"):
            raise ValidationError(
                {"text": ["A file of this type is no text: give its bytes as `data`."]}, code="invalid"
            )
        # What is blank was not decoded.
        content = (attrs["data"] or b"") if "data" in attrs else attrs["text"].encode()
        return PostedAttachment(attrs.get("name", ""), attrs["media_type"], content)


class MessageSerializer(Strict):
    """A message to store."""

    # Callers can post a message as a chat completion returned it. These fields hold no memory of a person.
    tolerated = frozenset(
        {
            # Of OpenAI's and compatible servers.
            *("refusal", "annotations", "audio", "function_call", "parsed", "logprobs", "phase", "prefix", "weight"),
            *("id", "type", "status", "created_at", "model", "usage", "stop_reason", "stop_sequence", "token_count"),
            *("reasoning", "reasoning_content", "reasoning_details", "thinking", "thinking_blocks", "signature"),
            # Of gateways, SDKs and frameworks.
            *("provider_specific_fields", "citations", "images", "extra_content", "executed_tools", "cache_control"),
            *("additional_kwargs", "response_metadata", "usage_metadata", "tool_call_chunks", "invalid_tool_calls"),
            *("example", "parts", "experimental_attachments", "artifact", "is_error", "audio_id", "createdAt"),
            *("toolInvocations", "providerOptions", "providerMetadata", "provider_options", "provider_metadata"),
            *("context", "end_turn", "finish_reason", "index", "channel", "recipient", "tool_plan", "search_results"),
            *("encrypted_content", "reasoning_signature", "reasoning_text", "container", "object"),
        }
    )

    role = RoleField()
    content = Content(allow_null=True, help_text="May be empty or null for `assistant` and `tool`.")
    external_id = Identifier(required=False, allow_null=True, help_text="Your own id; the session stores it once.")
    timestamp = Moment(required=False, allow_null=True, help_text="Your own time; never decides the order.")
    tool_calls = serializers.ListField(
        child=ToolCall(), required=False, allow_null=True, max_length=MAX_PARTS, help_text="As the model gave them."
    )
    tool_call_id = ExactText(
        required=False, allow_null=True, allow_blank=True, max_length=255, help_text="Of the call that a tool answers."
    )
    name = ExactText(required=False, allow_null=True, allow_blank=True, max_length=255)
    author = OneOf(
        Author.values,
        required=False,
        allow_null=True,
        help_text="Whose words a `user` message holds; `person`: the user's own. Absent: as its text and name tell.",
    )
    metadata = JSONObject(required=False, allow_null=True)
    attachments = serializers.ListField(
        child=AttachmentSerializer(),
        required=False,
        allow_null=True,
        max_length=MAX_ATTACHMENTS,
        help_text="Files that came with it. A worker reads them; searches find their passages as `document`.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        content = attrs["content"]
        has_media = isinstance(content, list) and any(part["type"] not in TEXT_PARTS for part in content)
        may_be_empty = attrs["role"] in MAY_BE_EMPTY or attrs.get("attachments") or has_media
        if not may_be_empty and not _text(content).strip():
            raise ValidationError({"content": ["This message says nothing."]}, code="blank")
        return attrs


class ConversationSerializer(Strict):
    """Messages of one session, for `post_turns_bulk`."""

    user_id = Identifier()
    session_id = Identifier()
    agent_id = AgentId(help_text="Lower-cased; a session of another agent is another session.")
    messages = serializers.ListField(child=MessageSerializer(), min_length=1, max_length=MAX_MESSAGES)
    flush = Flag(default=False, help_text="Extract as soon as possible instead of after the quiet time.")

    def validate_messages(self, messages: list[dict[str, Any]]) -> list[PostedMessage]:
        return [_message(given) for given in messages]


class TurnsSerializer(ConversationSerializer):
    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        _refuse_large(attrs["messages"], "/messages")
        _refuse_many_files(attrs["messages"], "messages")
        return attrs


class BulkSerializer(Strict):
    conversations = serializers.ListField(child=ConversationSerializer(), min_length=1, max_length=MAX_CONVERSATIONS)

    @staticmethod
    def most_together() -> dict[tuple[str, str], int]:
        """Read by shapes.py."""
        return {("conversations", "messages"): MAX_BULK_MESSAGES}

    def validate_conversations(self, conversations: list[dict[str, Any]]) -> list[Conversation]:
        for index, given in enumerate(conversations):
            _refuse_large(given["messages"], f"/conversations/{index}/messages")
        _refuse_many_files([one for given in conversations for one in given["messages"]], "")
        return [conversation_of(given) for given in conversations]


class ExtractionStatusSerializer(serializers.Serializer[Any]):
    """Where a session's extraction stands."""

    status = serializers.ChoiceField(WORK_STATUSES)
    due_at = Timestamp(allow_null=True, help_text="When it may start.")
    max_due_at = Timestamp(allow_null=True, help_text="When it starts at the latest.")


class StoredSessionSerializer(serializers.Serializer[Any]):
    """The conversation that turns were stored in."""

    id = serializers.UUIDField()
    session_id = serializers.CharField()
    user_id = serializers.CharField()
    agent_id = serializers.CharField(allow_null=True)
    turn_count = serializers.IntegerField()
    token_count = serializers.IntegerField()


class StoredTurnSerializer(serializers.Serializer[Any]):
    """What became of a message: `duplicate` if the session had it already."""

    id = serializers.UUIDField()
    number = serializers.IntegerField(help_text="Ours, without gaps within the session.")
    external_id = serializers.CharField(allow_null=True)
    token_count = serializers.IntegerField()
    duplicate = serializers.BooleanField(help_text="The session had it already; it was not stored again.")
    attachments = serializers.ListField(
        child=serializers.UUIDField(), required=False, help_text="Only of a new turn that files came with: their ids."
    )


class ReceiptSerializer(serializers.Serializer[Any]):
    """What became of the posted messages."""

    session = StoredSessionSerializer(allow_null=True, help_text="null when capture is switched off.")
    turns = StoredTurnSerializer(many=True)
    accepted = serializers.IntegerField()
    duplicates = serializers.IntegerField()
    redactions = serializers.IntegerField(help_text="Secrets that were cut out before anything was stored.")
    signals = serializers.ListField(child=serializers.ChoiceField(KINDS), help_text="Signs in what was said last.")
    extraction = ExtractionStatusSerializer()


class ReceiptsSerializer(serializers.Serializer[Any]):
    """A receipt for each conversation, in order."""

    results = ReceiptSerializer(many=True, help_text="One for each conversation, in order.")


_OF_TURN = ("id", "number", "external_id", "token_count", "duplicate")


def receipt_answer(receipt: Receipt, *, user_id: str) -> dict[str, Any]:
    """In the shape of ReceiptSerializer. By hand for speed: this is the most frequent answer."""
    return {
        "session": receipt.session and session_answer(receipt.session, user_id=user_id),
        "turns": [
            {name: getattr(turn, name) for name in _OF_TURN}
            | ({"attachments": list(turn.attachments)} if turn.attachments else {})
            for turn in receipt.turns
        ],
        "accepted": receipt.accepted,
        "duplicates": receipt.duplicates,
        "redactions": receipt.redactions,
        "signals": receipt.signals,
        "extraction": extraction_answer(receipt.extraction),
    }


def session_answer(session: Session, *, user_id: str) -> dict[str, Any]:
    """In the shape of StoredSessionSerializer."""
    return {
        "id": session.pk,
        "session_id": session.external_id,
        "user_id": user_id,
        "agent_id": session.agent_id or None,
        "turn_count": session.turn_count,
        "token_count": session.token_count,
    }


def extraction_answer(status: ExtractionStatus) -> dict[str, Any]:
    """In the shape of ExtractionStatusSerializer."""
    return {"status": status.status, "due_at": status.due_at, "max_due_at": status.max_due_at}


def conversation_of(given: dict[str, Any]) -> Conversation:
    """What a checked body says."""
    return Conversation(
        user_id=given["user_id"],
        session_id=given["session_id"],
        agent_id=given.get("agent_id") or "",
        messages=given["messages"],
        flush=given["flush"],
    )


def messages_of(given: list[dict[str, Any]], pointer: str) -> list[PostedMessage]:
    """Checked messages as they are stored. Errors: MessageTooLarge."""
    messages = [_message(one) for one in given]
    _refuse_large(messages, pointer)
    return messages


def _message(given: dict[str, Any]) -> PostedMessage:
    content = given["content"]
    return PostedMessage(
        role=given["role"],
        content=_text(content),
        # An empty list of parts counts as an empty text.
        parts=content if content and isinstance(content, list) else None,
        external_id=given.get("external_id"),
        timestamp=given.get("timestamp"),
        tool_calls=given.get("tool_calls") or None,
        tool_call_id=given.get("tool_call_id") or "",
        name=given.get("name") or "",
        metadata=given.get("metadata") or {},
        author=given.get("author") or "",
        is_declared=bool(given.get("author")) and given["role"] == Role.USER,
        attachments=given.get("attachments") or (),
    )


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n\n".join(part["text"] for part in content if part["type"] in TEXT_PARTS)
    return content or ""


def _is_part(part: Any) -> bool:
    if not isinstance(part, dict) or not isinstance(part.get("type"), str):
        return False
    return part["type"] not in TEXT_PARTS or isinstance(part.get("text"), str)


def _refuse_large(messages: list[PostedMessage], pointer: str) -> None:
    for index, message in enumerate(messages):
        size = len(message.content.encode()) if message.parts is None else json_size(message.parts)
        if message.tool_calls:
            size += json_size(message.tool_calls)
        if size > MAX_MESSAGE_BYTES:
            detail = "A message can have at most 1 MB: its text, parts and tool calls together."
            raise MessageTooLarge(faults=[Fault(f"{pointer}/{index}", MessageTooLarge.code, detail)])


def _refuse_many_files(messages: list[PostedMessage], field: str) -> None:
    if sum(len(message.attachments) for message in messages) > MAX_FILES:
        fault = [ErrorDetail(f"Give at most {MAX_FILES} attachments in all.", code="max_length")]
        raise ValidationError({field: fault} if field else fault)


class RedactionSerializer(Strict):
    texts = serializers.ListField(
        child=ExactText(max_length=MAX_MESSAGE_BYTES),
        required=False,
        allow_null=True,
        min_length=1,
        max_length=MAX_PASSAGES,
        help_text="The passages, as the turn says them, letter by letter; each becomes `[redacted]`. Absent: all.",
    )
    once = Flag(default=False, help_text="409 where all of it is gone already: of several callers one deletes it.")
