"""The content policy of a tenant: its categories, its versions and the log of what was dropped."""

from datetime import UTC, date, datetime
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from memories.api.v1.fields import ExactText, OneOf, OrNull, PageQuery, Strict, Timestamp, Whole, Words
from memories.api.v1.filters import where
from memories.content_policy.categories import (
    LONGEST_DESCRIPTION,
    LONGEST_EXAMPLE,
    LONGEST_NAME,
    LONGEST_WORD,
    MOST_CATEGORIES,
    MOST_EXAMPLES,
    MOST_WORDS,
)
from memories.curation.policy_trials import KINDS, counts_of, state_of
from memories.models import ContentPolicy, PolicyDrop, PolicyFinding, PolicyTrial, Road

_TOPIC = "Left out: the hub's own, where it knows a topic by this name."


def _texts(most: int, longest: int, text: str) -> Words:
    return Words(child=ExactText(max_length=longest), required=False, max_length=most, help_text=text)


class NewPolicyCategorySerializer(Strict):
    """What may not be remembered. What is left out is the hub's, where it knows a topic by this name."""

    name = ExactText(max_length=LONGEST_NAME, help_text="In any language, e.g. health or 健康.")
    description = ExactText(
        max_length=LONGEST_DESCRIPTION, allow_blank=True, required=False, help_text=f"For the model. {_TOPIC}"
    )
    words = _texts(MOST_WORDS, LONGEST_WORD, f"Words that tell it, without a model, too. {_TOPIC}")
    not_allowed = _texts(MOST_EXAMPLES, LONGEST_EXAMPLE, f"Examples of what may not be remembered. {_TOPIC}")
    allowed = _texts(MOST_EXAMPLES, LONGEST_EXAMPLE, f"Examples of what may all the same: these win. {_TOPIC}")


class NewContentPolicySerializer(Strict):
    categories = serializers.ListField(
        child=NewPolicyCategorySerializer(),
        max_length=MOST_CATEGORIES,
        help_text="Empty: nothing is forbidden.",
    )


class PolicyRestoreSerializer(Strict):
    version = Whole(min_value=1)


class PolicyCategorySerializer(serializers.Serializer[Any]):
    """What may not be remembered; an example that is allowed wins."""

    name = serializers.CharField()
    description = serializers.CharField()
    words = serializers.ListField(child=serializers.CharField())
    not_allowed = serializers.ListField(child=serializers.CharField())
    allowed = serializers.ListField(child=serializers.CharField())


class PolicyChangesSerializer(serializers.Serializer[Any]):
    """Names of the categories that a version added, changed and removed."""

    added = serializers.ListField(child=serializers.CharField())
    changed = serializers.ListField(child=serializers.CharField())
    removed = serializers.ListField(child=serializers.CharField())


class ContentPolicySerializer(serializers.Serializer[ContentPolicy]):
    """A version of what the tenant does not allow to be remembered; version 0: there never was one."""

    version = serializers.IntegerField(help_text="0: there never was a policy.")
    categories = PolicyCategorySerializer(many=True)
    changes = PolicyChangesSerializer(help_text="Names of the categories that this version changed.")
    restored = serializers.IntegerField(allow_null=True, help_text="The version that it repeats.")
    actor_kind = OrNull(help_text="Who made it: operator, key or command.")
    actor_id = OrNull(help_text="The hub's id of that operator or key.")
    created_at = Timestamp(allow_null=True)


class PolicyTopicsSerializer(serializers.Serializer[Any]):
    """The topics that the hub knows."""

    topics = PolicyCategorySerializer(many=True, help_text="The hub's own, to begin with.")


def begin_of(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


class DropsQuery(PageQuery):
    category = where("category", ExactText(max_length=LONGEST_NAME, required=False))
    road = where("road", OneOf(Road.choices, required=False))
    since = where(
        "last_at__gte", serializers.DateField(required=False, help_text="From this day (UTC) on."), by=begin_of
    )


class PolicyDropSerializer(serializers.Serializer[PolicyDrop]):
    """How many texts a version dropped on a day (UTC); nothing of them is kept."""

    day = serializers.DateField(help_text="UTC.")
    category = serializers.CharField()
    version = serializers.IntegerField(help_text="Of the policy.")
    road = serializers.ChoiceField(Road.values, help_text="By which road the texts came.")
    count = serializers.IntegerField(help_text="Texts that were dropped; nothing of them is kept.")
    last_at = Timestamp()


class NewDryRunSerializer(Strict):
    categories = serializers.ListField(
        child=NewPolicyCategorySerializer(),
        required=False,
        max_length=MOST_CATEGORIES,
        help_text="Left out: those of the policy in force.",
    )


class FoundCountSerializer(serializers.Serializer[Any]):
    """How many memories of a kind fall under a category."""

    category = serializers.CharField()
    kind = serializers.ChoiceField(KINDS, help_text="Kind of memory.")
    count = serializers.IntegerField()


class DryRunSerializer(serializers.Serializer[PolicyTrial]):
    """Which stored memories a content policy would not allow; `seen` of `total` are read, or deleted."""

    id = serializers.UUIDField()
    state = serializers.SerializerMethodField(help_text="running, done, deleting, deleted or failed.")
    seen = serializers.IntegerField(help_text="Memories read, or deleted, so far.")
    total = serializers.IntegerField(help_text="Memories to read, or to delete.")
    found = serializers.SerializerMethodField(
        help_text="What these categories would not allow, and is not deleted yet."
    )
    created_at = Timestamp()
    ended_at = Timestamp(allow_null=True)

    @extend_schema_field(serializers.ChoiceField(["running", "done", "deleting", "deleted", "failed"]))
    def get_state(self, row: PolicyTrial) -> str:
        return state_of(row)

    @extend_schema_field(FoundCountSerializer(many=True))
    def get_found(self, row: PolicyTrial) -> list[dict[str, Any]]:
        return [
            {"category": category, "kind": kind, "count": count}
            for category, kinds in counts_of(row).items()
            for kind, count in kinds.items()
        ]


class FindingSerializer(serializers.Serializer[PolicyFinding]):
    """One memory that a dry run found."""

    kind = serializers.ChoiceField(KINDS)
    id = serializers.UUIDField(source="row", help_text="Of the memory; of a fact of a group that of what one said.")
    category = serializers.CharField()
    user_id = serializers.CharField(source="end_user.external_id", help_text="Whose memory it is.")
