"""Dreams: what was proposed for a person's memory files, and what became of it."""

from typing import Any

from rest_framework import serializers

from memories.api.v1.fields import AgentId, Identifier, OneOf, OrNull, PageQuery, Strict, Timestamp
from memories.api.v1.filters import where
from memories.models import Dream, DreamEdit


class _DreamOwner(Strict):
    user_id = Identifier()
    agent_id = AgentId(help_text="Of whose episodes and files; without it, of those without an agent.")


class DreamsQuery(_DreamOwner, PageQuery):
    status = where("state", OneOf(Dream.State.values, required=False))


class NewDreamSerializer(_DreamOwner):
    """For which person and agent."""


class DreamSerializer(serializers.Serializer[Dream]):
    """What a model made of new episodes in a person's memory files."""

    id = serializers.UUIDField()
    user_id = serializers.CharField(source="end_user.external_id")
    agent_id = OrNull()
    status = serializers.ChoiceField(Dream.State.values, source="state")
    started_by = serializers.ChoiceField(Dream.Trigger.values, source="trigger")
    episodes = serializers.IntegerField(help_text="How many new episodes it read.")
    summary = OrNull(help_text="Lines added and removed of each file, counted by code.")
    failure = OrNull(help_text="Code of the reason why it failed.")
    extractor = OrNull(help_text="`llm:<model>`.")
    prompt_version = OrNull()
    calls = serializers.IntegerField()
    prompt_tokens = serializers.IntegerField()
    completion_tokens = serializers.IntegerField()
    version = serializers.IntegerField(help_text="Rises with each decision; also the ETag.")
    started_at = Timestamp()
    finished_at = Timestamp(allow_null=True)


class DreamEditSerializer(serializers.Serializer[DreamEdit]):
    """An edit: `new_text` in the place of `old_text`; an empty `old_text` adds at the end, or begins a file."""

    number = serializers.IntegerField()
    path = serializers.CharField()
    old_text = serializers.CharField()
    new_text = serializers.CharField()
    status = serializers.ChoiceField(DreamEdit.State.values, source="state")
    code = OrNull(help_text="Why it was refused, like `text_not_found`, `foreign_path` or `review_needed`.")


class DreamWithEditsSerializer(DreamSerializer):
    """A dream with each edit that was proposed."""

    edits = DreamEditSerializer(many=True)


class RestoredDreamSerializer(DreamSerializer):
    """A dream that was taken back."""

    kept = serializers.SerializerMethodField(help_text="Files that stayed as they are.")

    def get_kept(self, _dream: Dream) -> int:
        kept: Any = self.context.get("kept", 0)
        return int(kept)
