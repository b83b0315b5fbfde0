"""Diary entries: written, listed and searched."""

from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from memories.api.v1.fields import (
    AgentId,
    CleanText,
    ExactText,
    Identifier,
    OrNull,
    PageQuery,
    StatedByField,
    Strict,
    Timestamp,
)
from memories.api.v1.filters import where
from memories.models import Trust
from memories.models.memories.diary import LONGEST_ENTRY, LONGEST_TOPIC

MOST_LAST = 200
MOST_WORDS = 20


class _DiaryOwner(Strict):
    user_id = Identifier()
    agent_id = AgentId(help_text="Whose diary, in any case; without it, that of requests that name no agent.")


class DiaryQuery(PageQuery, _DiaryOwner):
    last = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST_LAST,
        help_text="Only so many entries, the newest, in one answer; not with `cursor`.",
    )
    topic = where(
        "topic", ExactText(required=False, max_length=LONGEST_TOPIC, help_text="Only entries with exactly this topic.")
    )
    q = ExactText(
        required=False,
        max_length=1_000,
        help_text="Only entries whose text or topic has each of these words, in any case.",
    )

    def validate_q(self, words: str) -> str:
        if len(words.split()) > MOST_WORDS:
            raise ValidationError(f"Give at most {MOST_WORDS} words.", code="max_length")
        return words

    def validate(self, attrs: Any) -> Any:
        if "last" in attrs and attrs.get("cursor"):
            raise ValidationError({"last": "Give last or cursor: a page goes on with cursor alone."})
        return attrs


class NewDiaryEntrySerializer(_DiaryOwner):
    content = ExactText(max_length=LONGEST_ENTRY, help_text="The note, of any number of lines.")
    topic = CleanText(required=False, allow_blank=True, max_length=LONGEST_TOPIC, help_text="What it is about.")
    stated_by = StatedByField()


class DiaryEntrySerializer(serializers.Serializer[Any]):
    """A note that an agent wrote for itself."""

    id = serializers.UUIDField()
    agent_id = OrNull(help_text="In lower case; null: of requests that name no agent.")
    topic = OrNull()
    content = serializers.CharField()
    trust = serializers.ChoiceField(Trust.values, help_text="Of whoever wrote it.")
    created_at = Timestamp()


class StoredDiaryEntrySerializer(DiaryEntrySerializer):
    """The entry as it was stored."""

    redactions = serializers.IntegerField(help_text="Secrets that were cut out.")
