"""Groups, their members, and their facts."""

from typing import Any

from rest_framework import serializers

from memories.api.v1.fields import (
    ChangesSerializer,
    CleanText,
    Flag,
    Identifier,
    OneOf,
    PageQuery,
    StatedByField,
    Strict,
    Timestamp,
)
from memories.models import GroupFact, GroupMember, MemoryGroup
from memories.models.memories.groups import LONGEST_GROUP_FACT, LONGEST_NAME


class GroupsQuery(PageQuery):
    user_id = Identifier(required=False, help_text="Only groups of which this person is a member.")


class NewGroupSerializer(Strict):
    name = CleanText(max_length=LONGEST_NAME, help_text="Contexts show it: “What the group … knows”.")
    kind = OneOf(MemoryGroup.Kind.values, default=MemoryGroup.Kind.TEAM.value)


class GroupChangesSerializer(ChangesSerializer):
    name = CleanText(required=False, max_length=LONGEST_NAME)
    kind = OneOf(MemoryGroup.Kind.values, required=False)


class GroupSerializer(serializers.Serializer[MemoryGroup]):
    """A group of people: a team, a project, a household or another one."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    kind = serializers.ChoiceField(MemoryGroup.Kind.values)
    created_at = Timestamp()


class GroupPageQuery(PageQuery):
    """A page of what a group has."""


class MemberSetSerializer(Strict):
    user_id = Identifier()
    may_write = Flag(default=True, help_text="Whether facts can be stated as theirs.")


class MemberQuery(Strict):
    user_id = Identifier()


class GroupMemberSerializer(serializers.Serializer[GroupMember]):
    """Somebody who belongs to a group; their agents are told what it knows."""

    user_id = serializers.CharField(source="end_user.external_id")
    may_write = serializers.BooleanField()
    created_at = Timestamp(help_text="Since when.")


class NewGroupFactSerializer(Strict):
    user_id = Identifier(help_text="The member who says it.")
    content = CleanText(
        max_length=LONGEST_GROUP_FACT, help_text="In words that are clear to the other members, with names."
    )
    about_user_id = Identifier(required=False, help_text="The member whom it is about. It is erased with that person.")
    stated_by = StatedByField()


class GroupFactQuery(Strict):
    user_id = Identifier(
        required=False, help_text="Only withdraw what this member said. Without it the fact goes, whoever said it."
    )


class GroupFactSerializer(serializers.Serializer[GroupFact]):
    """A key for one person is not told who else said it."""

    id = serializers.UUIDField()
    content = serializers.CharField()
    about_user_id = serializers.SerializerMethodField(help_text="Null: of nobody in particular.")
    said_by = serializers.SerializerMethodField(help_text="Ids of those who said it, whose data may be used.")
    said_by_count = serializers.SerializerMethodField()
    created_at = Timestamp()
    said_at = Timestamp(help_text="When somebody last said it.")

    def get_about_user_id(self, fact: GroupFact) -> str | None:
        return self._shown(fact.about.external_id) if fact.about else None

    def get_said_by(self, fact: GroupFact) -> list[str]:
        names = [one.end_user.external_id for one in fact.evidence.all()]
        return sorted(name for name in names if self._shown(name))

    def get_said_by_count(self, fact: GroupFact) -> int:
        return len(fact.evidence.all())

    def _shown(self, name: str) -> str | None:
        only: set[str] | None = self.context.get("only")
        return name if only is None or name in only else None


class StoredGroupFactSerializer(GroupFactSerializer):
    """The fact as it was stored."""

    redactions = serializers.IntegerField(help_text="Secrets that were cut out.")


def shown(fact: Any, *, only: set[str] | None, redactions: int | None = None) -> dict[str, Any]:
    """One fact for a caller who may be told these ids alone; None: all."""
    row: dict[str, Any] = dict(GroupFactSerializer(fact, context={"only": only}).data)
    return row if redactions is None else {**row, "redactions": redactions}
