"""People as the hub knows them."""

import re
from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from memories.api.v1.fields import ChangesSerializer, ExactText, Flag, JSONObject, OrNull, PageQuery, Timestamp
from memories.models import EndUser
from memories.time_zones import is_zone

_LANGUAGE = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*")


class PeopleQuery(PageQuery):
    q = ExactText(required=False, max_length=255, help_text="Part of the user_id or the display name, in any case.")


class PersonChangesSerializer(ChangesSerializer):
    display_name = ExactText(required=False, allow_blank=True, max_length=255)
    time_zone = ExactText(required=False, allow_blank=True, max_length=64, help_text="IANA, e.g. Asia/Shanghai.")
    language = ExactText(required=False, allow_blank=True, max_length=35, help_text="BCP 47, e.g. zh-CN.")
    metadata = JSONObject(required=False, help_text="Replaces the whole object.")
    capture = Flag(required=False, help_text="false: turns are not stored.")
    serve = Flag(required=False, help_text="false: contexts are empty.")

    def validate_time_zone(self, value: str) -> str:
        if value and not is_zone(value):
            raise ValidationError("Give an IANA time zone, e.g. Asia/Shanghai.")
        return value

    def validate_language(self, value: str) -> str:
        if value and not _LANGUAGE.fullmatch(value):
            raise ValidationError("Give a BCP 47 language tag, e.g. zh-CN.")
        return value


class PersonSerializer(serializers.Serializer[EndUser]):
    """A person whom the hub knows; `id` is the hub's, `user_id` yours."""

    id = serializers.UUIDField(help_text="The hub's own: `person_id` in webhooks. It stays when the user_id changes.")
    user_id = serializers.CharField(source="external_id")
    display_name = OrNull()
    time_zone = OrNull()
    language = OrNull()
    metadata = JSONObject()
    capture = serializers.BooleanField()
    serve = serializers.BooleanField()
    restricted = serializers.SerializerMethodField()
    created_at = Timestamp()
    last_seen_at = Timestamp(help_text="Of the last turn, to the minute.")

    def get_restricted(self, person: EndUser) -> bool:
        return person.restricted_at is not None


class CountsSerializer(serializers.Serializer[Any]):
    """What the hub has of a person."""

    sessions = serializers.IntegerField()
    turns = serializers.IntegerField()
    facts = serializers.IntegerField(help_text="Active ones.")
    episodes = serializers.IntegerField(help_text="Active ones.")


class PendingSerializer(serializers.Serializer[Any]):
    """How much work is left: 0 when nothing is."""

    extraction = serializers.IntegerField(help_text="Turns that extraction has yet to read.")
    embedding = serializers.IntegerField()


class PersonDetailSerializer(PersonSerializer):
    """A person, with counts and the work that is left."""

    counts = CountsSerializer()
    pending = PendingSerializer()
