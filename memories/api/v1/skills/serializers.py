"""Skills: what is in use for an agent, with its texts and how its trials came out."""

from typing import Any

from rest_framework import serializers

from memories.api.v1.fields import AgentId, Identifier, PageQuery, Strict, Timestamp
from memories.models import Skill, SkillText, SkillVersion
from memories.skills.comparing import Rate
from memories.skills.serving import ServedSkill


class SkillsQuery(Strict):
    user_id = Identifier(help_text="For whom the agent works.")
    agent_id = AgentId(help_text="Which agent asks; without it, what every agent is given.")
    session_id = Identifier(
        required=False,
        allow_null=True,
        help_text="The conversation, as in `/turns`: which skills it is given is decided by it, and counted for it.",
    )


class SkillVersionsQuery(PageQuery, SkillsQuery):
    pass


class SkillSerializer(serializers.Serializer[ServedSkill]):
    """A skill in use; `path` is where it stands among the agent's files."""

    name = serializers.CharField()
    description = serializers.CharField()
    path = serializers.CharField()
    scope = serializers.ChoiceField(Skill.Scope.values, source="version.skill.scope")
    family = serializers.CharField(source="version.skill.family", help_text="The kind of task that it is for.")
    version = serializers.IntegerField(source="version.number")
    served_from = Timestamp(source="version.served_from")


class RateSerializer(serializers.Serializer[Rate]):
    """Sessions with a known outcome, how many succeeded, and their share with Wilson's 95 % interval."""

    total = serializers.IntegerField()
    succeeded = serializers.IntegerField()
    share = serializers.FloatField(allow_null=True)
    lowest = serializers.SerializerMethodField()
    highest = serializers.SerializerMethodField()

    def get_lowest(self, rate: Rate) -> float:
        return round(rate.interval[0], 4)

    def get_highest(self, rate: Rate) -> float:
        return round(rate.interval[1], 4)


class SkillTextSerializer(serializers.ModelSerializer[SkillText]):
    """A text of a skill, in its section."""

    section = serializers.ChoiceField(SkillText.Section.values)

    class Meta:
        model = SkillText
        fields = ("section", "text")


class WholeSkillSerializer(SkillSerializer):
    """A skill with its file, its texts, and how sessions with and without it came out."""

    content = serializers.CharField(help_text="The file SKILL.md.")
    texts = SkillTextSerializer(many=True)
    served = RateSerializer(help_text="Sessions that had this version.")
    without = RateSerializer(
        help_text="Sessions that were kept without it, or, while they are few, what was before it."
    )


class SkillVersionSerializer(serializers.ModelSerializer[SkillVersion]):
    """A version that was in use, newest first."""

    version = serializers.IntegerField(source="number")
    state = serializers.ChoiceField(SkillVersion.State.values)
    served_from = Timestamp()
    served_until = Timestamp(allow_null=True)

    class Meta:
        model = SkillVersion
        fields = ("version", "state", "served_from", "served_until")


def whole(found: ServedSkill, figures: Any) -> dict[str, Any]:
    """A served skill as WholeSkillSerializer shows it."""
    shown = SkillSerializer(found).data
    more = {
        "content": found.content,
        "texts": SkillTextSerializer(found.texts, many=True).data,
        "served": RateSerializer(figures.served).data,
        "without": RateSerializer(figures.without).data,
    }
    return {**shown, **more}
