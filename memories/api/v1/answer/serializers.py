"""POST /answer: a question about one person, and an answer with the memories that each sentence rests on."""

from decimal import Decimal
from typing import Any

from rest_framework import serializers

from memories.answering.answer import Answer, AnswerRequest, AnswerStatus, Event, Gathered, Looked
from memories.api.v1.extractions.serializers import TokensSerializer
from memories.api.v1.fields import (
    AgentId,
    ExactText,
    Flag,
    Fraction,
    Identifier,
    Moment,
    OrNull,
    Strict,
    Timestamp,
    Whole,
    Words,
)
from memories.models import Role
from memories.retrieval.hits import FOUND_KINDS
from memories.retrieval.search import KINDS, Finding, Level

MAX_QUESTION = 2_000
LEAST_TOKENS, MOST_TOKENS, DEFAULT_TOKENS = 500, 100_000, 8_000
MOST_SEARCHES, SEARCHES = 6, 3
MOST_COST = 1_000


class QuestionSerializer(Strict):
    user_id = Identifier()
    question = ExactText(max_length=MAX_QUESTION)
    agent_id = AgentId(help_text="Whose private facts may answer besides the person's own.")
    roles = Words(
        child=ExactText(max_length=100), default=list, help_text="Roles that the person has, for guarded facts."
    )
    as_of = Moment(required=False, help_text="Facts that were true then, and what had been said by then.")
    searches = Whole(
        min_value=1,
        max_value=MOST_SEARCHES,
        default=SEARCHES,
        help_text="How many at most; beyond the question's own the model plans them, in a call of its own.",
    )
    max_tokens = Whole(
        min_value=LEAST_TOKENS,
        max_value=MOST_TOKENS,
        default=DEFAULT_TOKENS,
        help_text="What all calls of the model may read and write together.",
    )
    max_cost = Fraction(
        required=False,
        allow_null=True,
        min_value=0,
        max_value=MOST_COST,
        help_text="The same in US dollars, where the model's prices are set.",
    )
    stream = Flag(default=False, help_text="true: the answer comes as events, each sentence once it is certain.")


class SentenceSerializer(serializers.Serializer[Any]):
    """A sentence of an answer, and the memories that say it."""

    text = serializers.CharField()
    citations = serializers.ListField(child=serializers.UUIDField(), help_text="Ids of `evidence`.")


class AnswerEvidenceSerializer(serializers.Serializer[Any]):
    """A memory that an answer may rest on, as the model saw it."""

    kind = serializers.ChoiceField(FOUND_KINDS)
    id = serializers.UUIDField()
    text = serializers.CharField()
    role = serializers.ChoiceField(Role.values, allow_null=True, help_text="Of a turn.")
    session_id = serializers.CharField(allow_null=True)
    turn_numbers = serializers.ListField(child=serializers.IntegerField())
    evidence_level = serializers.ChoiceField([level.value for level in Level])
    cited = serializers.BooleanField()
    created_at = Timestamp(help_text="When it was said.")


class AnswerSearchSerializer(serializers.Serializer[Any]):
    """A search that the model planned beside the question's own."""

    query = serializers.CharField()
    kinds = serializers.ListField(child=serializers.ChoiceField(KINDS))
    since = Timestamp(allow_null=True)
    until = Timestamp(allow_null=True)
    as_of = Timestamp(allow_null=True)
    found = serializers.IntegerField()


class AnswerSerializer(serializers.Serializer[Any]):
    """An answer; every sentence is said by the memories that it cites."""

    status = serializers.ChoiceField(
        [one.value for one in AnswerStatus],
        help_text="`unknown`: nothing that is remembered answers it. `evidence`: no model may be asked, or it failed: "
        "the memories alone.",
    )
    answer = serializers.CharField(allow_blank=True, help_text="The sentences as one text.")
    sentences = SentenceSerializer(many=True)
    evidence = AnswerEvidenceSerializer(many=True, help_text="The strongest first.")
    evidence_level = serializers.ChoiceField([level.value for level in Level], help_text="Of the strongest.")
    searches = AnswerSearchSerializer(many=True)
    cut = serializers.IntegerField(help_text="Sentences of the model that the memories they cite do not say.")
    failure = OrNull(
        help_text="Why there are no sentences: `no_model`, `daily_cap`, `no_room` (in `max_tokens` or `max_cost`), or "
        "the code of the failed call. Of a stream also why there are no more."
    )
    model = OrNull(help_text="Which was asked.")
    calls = serializers.IntegerField()
    tokens = TokensSerializer()
    cost = serializers.FloatField(allow_null=True, help_text="US dollars, where the prices are set.")
    restricted = serializers.BooleanField(required=False, help_text="Only when true.")
    serve = serializers.BooleanField(required=False, help_text="Only when false: serving is switched off.")


def request_of(given: dict[str, Any]) -> AnswerRequest:
    """The request of a validated body."""
    cost = given.get("max_cost")
    return AnswerRequest(
        user_id=given["user_id"],
        question=given["question"],
        agent_id=given.get("agent_id") or "",
        roles=tuple(given["roles"]),
        as_of=given.get("as_of"),
        searches=given["searches"],
        max_tokens=given["max_tokens"],
        max_cost=None if cost is None else Decimal(str(cost)),
    )


def event(found: Event) -> tuple[str, dict[str, Any]] | None:
    """Name and data of an event of the stream; None: nothing to tell yet."""
    if found is None:
        return None
    if isinstance(found, Answer):
        return "done", shown(found)
    if isinstance(found, Looked):
        return "searches", {"searches": [vars(one) for one in found.searches], "found": found.found}
    if isinstance(found, Gathered):
        evidence = [_memory(one, cited=False) for one in found.evidence]
        return "evidence", {"evidence": evidence, "evidence_level": found.level.value}
    return "sentence", {"text": found.text, "citations": [one.id for one in found.memories]}


def _memory(found: Finding, *, cited: bool) -> dict[str, Any]:
    return {
        "kind": found.kind,
        "id": found.id,
        "text": found.text,
        "role": found.role,
        "session_id": found.session_id,
        "turn_numbers": found.turn_numbers,
        "evidence_level": found.evidence_level.value,
        "cited": cited,
        "created_at": found.created_at,
    }


def shown(found: Answer) -> dict[str, Any]:
    """In the shape of AnswerSerializer."""
    ids = {number: one.id for number, one in enumerate(found.evidence, start=1)}
    cited = {ids[number] for sentence in found.sentences for number in sentence.memories}
    answer: dict[str, Any] = {
        "status": found.status.value,
        "answer": found.text,
        "sentences": [
            {"text": one.text, "citations": [ids[number] for number in one.memories]} for one in found.sentences
        ],
        "evidence": [_memory(one, cited=one.id in cited) for one in found.evidence],
        "evidence_level": found.level.value,
        "searches": [vars(one) for one in found.searches],
        "cut": found.cut,
        "failure": found.failure or None,
        "model": found.model or None,
        "calls": found.calls,
        "tokens": {"prompt": found.prompt_tokens, "completion": found.completion_tokens},
        "cost": None if found.cost is None else float(found.cost),
    }
    if found.restricted:
        answer["restricted"] = True
    if not found.serve:
        answer["serve"] = False
    return answer
