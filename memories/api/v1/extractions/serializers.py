"""Extraction runs: their range, results and cost, never any content."""

from typing import Any

from rest_framework import serializers

from memories.api.v1.fields import Identifier, OneOf, OrNull, PageQuery, Timestamp
from memories.api.v1.filters import where
from memories.api.v1.turns.serializers import ExtractionStatusSerializer
from memories.models import ExtractionRun

_MODEL = "llm:"


class ExtractionsQuery(PageQuery):
    user_id = Identifier(required=False)
    status = where("status", OneOf(ExtractionRun.RunStatus.values, required=False))


class RangeSerializer(serializers.Serializer[Any]):
    """The numbers of the turns that a run read."""

    first = serializers.IntegerField(source="first_number")
    last = serializers.IntegerField(source="last_number")
    fed = serializers.IntegerField(source="fed_turns", help_text="Turns of the range that were read.")


class TokensSerializer(serializers.Serializer[Any]):
    """What a run asked of the model."""

    prompt = serializers.IntegerField(source="prompt_tokens")
    completion = serializers.IntegerField(source="completion_tokens")


class ExtractionSerializer(serializers.Serializer[ExtractionRun]):
    """An attempt to extract a batch of turns; nothing of what was said."""

    id = serializers.UUIDField()
    user_id = serializers.CharField(source="end_user.external_id")
    session_id = serializers.CharField(source="session.external_id")
    agent_id = OrNull(source="session.agent_id")
    status = serializers.ChoiceField(ExtractionRun.RunStatus.values)
    attempt = serializers.IntegerField()
    range = RangeSerializer(source="*", help_text="Numbers of the session's turns.")
    outcome = serializers.DictField(child=serializers.IntegerField(), help_text="Counts: stored, reinforced, …")
    refusals = serializers.DictField(child=serializers.IntegerField(), help_text="Refused candidates by reason.")
    failure = OrNull(help_text="Code of the failure.")
    extractor = serializers.CharField()
    model = serializers.SerializerMethodField()
    prompt_version = OrNull()
    calls = serializers.IntegerField(help_text="Calls of the model.")
    tokens = TokensSerializer(source="*")
    cost = serializers.FloatField(allow_null=True, help_text="US dollars, where the price is known.")
    started_at = Timestamp()
    finished_at = Timestamp(allow_null=True)

    def get_model(self, run: ExtractionRun) -> str | None:
        return run.extractor.removeprefix(_MODEL) if run.extractor.startswith(_MODEL) else None


class RetrySerializer(serializers.Serializer[Any]):
    """When the batch is due again."""

    extraction = ExtractionStatusSerializer()
