"""Episodes: changed by a key, shown whole."""

from typing import Any

from rest_framework import serializers

from memories.api.v1.facts.serializers import ANY_STATUS, one_status
from memories.api.v1.fields import (
    AgentId,
    ChangesSerializer,
    CleanText,
    End,
    ExactText,
    Flag,
    Identifier,
    Moment,
    OneOf,
    OrNull,
    PageQuery,
    Rounded,
    Share,
    Timestamp,
    Words,
)
from memories.api.v1.filters import where
from memories.models import Episode, EpisodeStatus
from memories.models.memories.episodes import LONGEST_SUMMARY

MOST_WORDS = 20


class EpisodesQuery(PageQuery):
    user_id = Identifier()
    status = where(
        "status", OneOf([*EpisodeStatus.values, ANY_STATUS], default=EpisodeStatus.ACTIVE.value), by=one_status
    )
    session_id = where("session__external_id", Identifier(required=False))
    agent_id = where("session__agent_id", AgentId())
    min_importance = where("importance__gte", serializers.FloatField(required=False, min_value=0, max_value=1))
    since = where("ended_at__gte", Moment(required=False, help_text="Ended then or later."))
    until = where("ended_at__lt", Moment(required=False, help_text="Ended before then."))
    created_since = where("created_at__gte", Moment(required=False, help_text="Made then or later."))
    created_until = where("created_at__lt", Moment(required=False, help_text="Made before then."))
    q = where(
        "summary__icontains",
        ExactText(required=False, max_length=200, help_text="Text that the summary contains, in any case."),
    )


class Lines(Words):
    """What was spoken of, done or reached: short texts."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(child=CleanText(max_length=LONGEST_SUMMARY), max_length=MOST_WORDS, required=False, **kwargs)


class EpisodeChangesSerializer(ChangesSerializer):
    summary = CleanText(max_length=LONGEST_SUMMARY, required=False)
    key_topics = Lines()
    actions_taken = Lines()
    outcomes = Lines()
    importance = Share(required=False)
    pinned = Flag(required=False)
    expires_at = End(required=False, allow_null=True)


class EpisodeSerializer(serializers.Serializer[Episode]):
    """What happened in a segment of a session, in short."""

    id = serializers.UUIDField()
    user_id = serializers.CharField(source="end_user.external_id")
    agent_id = OrNull(source="session.agent_id")
    session_id = serializers.CharField(source="session.external_id")
    first_number = serializers.IntegerField(help_text="First turn of the range that it tells of.")
    last_number = serializers.IntegerField(help_text="Last turn of the range.")
    summary = serializers.CharField()
    key_topics = serializers.ListField(child=serializers.CharField())
    actions_taken = serializers.ListField(child=serializers.CharField())
    outcomes = serializers.ListField(child=serializers.CharField())
    importance = Rounded()
    quality = serializers.FloatField(help_text="1 for what a person wrote.")
    flaws = serializers.ListField(child=serializers.CharField(), help_text="What code finds wrong with it.")
    extractor = serializers.CharField(help_text="What wrote it: `llm:<model>`, `extractive-v1`, `operator`, `api`.")
    prompt_version = OrNull()
    status = serializers.ChoiceField(EpisodeStatus.values)
    pinned = serializers.BooleanField()
    version = serializers.IntegerField()
    started_at = Timestamp()
    ended_at = Timestamp()
    created_at = Timestamp()
    updated_at = Timestamp()
    last_recalled_at = Timestamp(allow_null=True)
    expires_at = Timestamp(allow_null=True)
    trashed_at = Timestamp(allow_null=True)
    decay_score = Rounded()
    forget_at = Timestamp(allow_null=True, help_text="When it will have faded; null: never.")
    embedding_model = serializers.CharField(allow_null=True, help_text="Null until its text has a vector.")
