"""POST /context: a request for memory inside a token budget."""

from typing import Any

from drf_spectacular.utils import extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from memories.api.v1.fields import (
    AgentId,
    ExactText,
    Flag,
    Fraction,
    Identifier,
    Moment,
    OneOf,
    Strict,
    TokenizerName,
    Whole,
    Words,
)
from memories.context.context import Context, ContextBlock, ContextRequest
from memories.context.parts import DEFAULT_INCLUDE, INCLUDABLE, LIMITS
from memories.context.relevance import FILLS, RELEVANT
from memories.kinds.served import NAMES
from memories.llm.tokenizers import DEFAULT_TOKENIZER
from memories.models import Role
from memories.retrieval.evidence import Level
from memories.skills.serving import ServedSkill

MAX_TOKENS = 8000
DEFAULT_TOKENS = 2000
MAX_QUERY = 20_000


class LimitsSerializer(Strict):
    """How many memories of a kind a context holds at most."""

    def get_fields(self) -> dict[str, Any]:
        return {
            name: Whole(min_value=0, max_value=limit.most, required=False, help_text=limit.text)
            for name, limit in LIMITS.items()
        }


class ContextSerializer(Strict):
    user_id = Identifier()
    agent_id = AgentId(help_text="Whose private facts are served besides the person's own.")
    session_id = Identifier(
        required=False, allow_null=True, help_text="The conversation that the agent is in, for `working_memory`."
    )
    query = ExactText(
        required=False,
        allow_null=True,
        allow_blank=True,
        max_length=MAX_QUERY,
        help_text="What the agent is about to answer: ranks facts, episodes and turns.",
    )
    max_tokens = Whole(min_value=0, max_value=MAX_TOKENS, default=DEFAULT_TOKENS)
    if_revision = ExactText(required=False, allow_null=True, max_length=64)
    include = serializers.ListField(
        child=OneOf(INCLUDABLE),
        required=False,
        max_length=len(INCLUDABLE),
        help_text="By default `profile`, `facts`, `groups`, `episodes` and `turns`.",
    )
    skills = Flag(
        default=False, help_text="Also the skills that the agent is given in this session, beside the token budget."
    )
    tokenizer = TokenizerName(
        default=DEFAULT_TOKENIZER, help_text="Of the model that reads the context, or the name of that model."
    )
    roles = Words(
        child=ExactText(max_length=100), default=list, help_text="Roles that the person has, for guarded facts."
    )
    limits = LimitsSerializer(required=False)
    as_of = Moment(
        required=False,
        allow_null=True,
        help_text="Facts that were true then, and what had been said by then; without the profile, which is today's.",
    )
    profiles = Words(
        child=ExactText(max_length=24),
        default=list,
        help_text="Names of the tenant's own profiles to tell, beside those that every context tells.",
    )
    guidelines = Flag(
        default=False, help_text="Also say what an agent that writes memories should note, and what never."
    )
    fill = OneOf(
        FILLS,
        default=RELEVANT,
        help_text="`relevant`: what stands in every context, then only what has to do with the query. `budget`: all "
        "that fits.",
    )
    min_score = Fraction(required=False, allow_null=True, help_text="Leaves out what the query ranks lower.")
    min_evidence = OneOf(
        [level.value for level in Level],
        default=Level.NONE.value,
        help_text="Leaves out what is weaker as evidence that it has to do with the query.",
    )
    scores = Flag(default=False, help_text="Show the confidence of each fact: `- [category | 0.95] …`.")
    blocks = Flag(
        default=False,
        help_text="Also in two blocks: `stable`, what every context of the person has, and `volatile`, for the query.",
    )


class ItemSerializer(serializers.Serializer[Any]):
    """A memory in a context."""

    kind = serializers.ChoiceField(NAMES)
    id = serializers.UUIDField()
    score = serializers.FloatField(allow_null=True)
    score_parts = serializers.DictField(child=serializers.FloatField())
    tokens = serializers.IntegerField()


class DroppedSerializer(serializers.Serializer[Any]):
    """A memory that had no room in a context."""

    kind = serializers.ChoiceField(NAMES)
    id = serializers.UUIDField()
    reason = serializers.ChoiceField(["budget", "limit"])


class ContextBlockSerializer(serializers.Serializer[Any]):
    """One of two blocks; its revision changes with its text."""

    memory = serializers.CharField(allow_blank=True, help_text="`<memory>…</memory>`, or empty.")
    revision = serializers.CharField()
    token_count = serializers.IntegerField()
    items = ItemSerializer(many=True)


@extend_schema_field({"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "object"}}, {"type": "null"}]})
class ServedContent(serializers.JSONField):
    """A message's content as it is told again."""


@extend_schema_serializer(component_name="Message")
class ChatMessageSerializer(serializers.Serializer[Any]):
    """One message for a chat completion; what it does not have is left out."""

    role = serializers.ChoiceField(Role.values)
    content = ServedContent(help_text="Text, or the parts as they were posted; null beside tool calls alone.")
    name = serializers.CharField(required=False)
    tool_calls = serializers.ListField(child=serializers.JSONField(), required=False)
    tool_call_id = serializers.CharField(required=False)


class OfferedSkillSerializer(serializers.Serializer[ServedSkill]):
    """A skill by its name, with what it is for and where its file is."""

    name = serializers.CharField()
    description = serializers.CharField()
    path = serializers.CharField()


class ContextAnswerSerializer(serializers.Serializer[Any]):
    """The block for the model's prompt; with `if_revision` of the present revision only `unchanged` and `revision`."""

    memory = serializers.CharField(required=False, allow_blank=True, help_text="`<memory>…</memory>`, or empty.")
    guidelines = serializers.CharField(
        required=False, allow_blank=True, help_text="If asked for: a block for the agent's instructions, or empty."
    )
    token_count = serializers.IntegerField(required=False, help_text="Of `memory` and `guidelines`.")
    max_tokens = serializers.IntegerField(required=False)
    tokenizer = serializers.CharField(required=False, help_text="What counted, if a model was named.")
    stable = ContextBlockSerializer(required=False, help_text="With `blocks`: for the system prompt.")
    volatile = ContextBlockSerializer(required=False, help_text="With `blocks`: for before the newest message.")
    messages = ChatMessageSerializer(many=True, required=False, help_text="With `working_memory`.")
    skills = OfferedSkillSerializer(many=True, required=False, help_text="With `skills`.")
    items = ItemSerializer(many=True, required=False)
    dropped = DroppedSerializer(many=True, required=False)
    evidence = serializers.ChoiceField(
        [level.value for level in Level],
        required=False,
        help_text="With a query: how strong what it found is. `none`: nothing that is remembered has to do with it.",
    )
    degraded = serializers.ChoiceField(
        ["index"],
        required=False,
        help_text="Only while the index of a person's many turns is made: the newest alone were compared.",
    )
    revision = serializers.CharField()
    restricted = serializers.BooleanField(required=False, help_text="Only when true.")
    serve = serializers.BooleanField(required=False, help_text="Only when false: serving is switched off.")
    unchanged = serializers.BooleanField(required=False, help_text="Only when true.")


def context_request(given: dict[str, Any]) -> ContextRequest:
    """The request of a validated body."""
    query = (given.get("query") or "").strip()
    return ContextRequest(
        user_id=given["user_id"],
        agent_id=given.get("agent_id") or "",
        session_id=given.get("session_id") or "",
        query=query,
        max_tokens=given["max_tokens"],
        include=frozenset(given.get("include", DEFAULT_INCLUDE)),
        tokenizer=given["tokenizer"],
        roles=tuple(given["roles"]),
        limits=given.get("limits") or {},
        as_of=given.get("as_of"),
        guidelines=given["guidelines"],
        blocks=given["blocks"],
        fill=given["fill"],
        min_score=given.get("min_score"),
        min_evidence=Level(given["min_evidence"]),
        scores=given["scores"],
        profiles=tuple(given["profiles"]),
    )


def context_answer(context: Context, *, if_revision: str | None) -> dict[str, Any]:
    """In the shape of ContextAnswerSerializer. By hand for speed: agents wait for it before every reply."""
    revision = context.revision
    if revision == if_revision:
        return {"unchanged": True, "revision": revision}
    answer: dict[str, Any] = {
        "memory": context.memory,
        "token_count": context.token_count,
        "max_tokens": context.max_tokens,
        "tokenizer": context.tokenizer,
        "items": context.items,
        "dropped": context.dropped,
        "revision": revision,
    }
    optional: dict[str, Any] = {
        "evidence": context.evidence,
        "degraded": context.degraded,
        "guidelines": context.guidelines,
        "stable": _block_answer(context.stable),
        "volatile": _block_answer(context.volatile),
        "messages": context.messages,
    }
    answer |= {name: value for name, value in optional.items() if value is not None}
    if context.restricted:
        answer["restricted"] = True
    if not context.serve:
        answer["serve"] = False
    return answer


def _block_answer(block: ContextBlock | None) -> dict[str, Any] | None:
    if block is None:
        return None
    return {
        "memory": block.memory,
        "revision": block.revision,
        "token_count": block.token_count,
        "items": block.items,
    }
