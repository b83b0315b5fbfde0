"""The profile: six sections, each a summary."""

from collections.abc import Iterable
from typing import Any

from rest_framework import serializers

from memories.api.v1.serializers.fields import CleanText, Identifier, Strict
from memories.models import ProfileSection, Section


class PersonQuery(Strict):
    user_id = Identifier()


class SummarySerializer(Strict):
    user_id = Identifier()
    summary = CleanText(max_length=4000, allow_blank=True, help_text="An empty one empties the section.")


class SectionSerializer(serializers.Serializer[Any]):
    summary = serializers.CharField()
    version = serializers.IntegerField()
    updated_at = serializers.DateTimeField()


class SectionsSerializer(serializers.Serializer[Any]):
    """All six sections; null where nothing is known."""

    work_context = SectionSerializer(allow_null=True)
    personal_context = SectionSerializer(allow_null=True)
    top_of_mind = SectionSerializer(allow_null=True)
    recent_months = SectionSerializer(allow_null=True)
    earlier_context = SectionSerializer(allow_null=True)
    long_term_background = SectionSerializer(allow_null=True)


class ProfileSerializer(serializers.Serializer[Any]):
    user_id = serializers.CharField()
    sections = SectionsSerializer()


def profile_answer(user_id: str, rows: Iterable[ProfileSection]) -> dict[str, Any]:
    """In the shape of ProfileSerializer."""
    shown = {row.section: SectionSerializer(row).data for row in rows}
    return {"user_id": user_id, "sections": {section: shown.get(section) for section in Section.values}}
