"""The profile: six sections, each a summary."""

from collections.abc import Iterable
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from memories.api.v1.fields import AgentId, CleanText, Identifier, OrNull, StatedByField, Strict, Timestamp
from memories.models import ProfileSection, ReviewItem, Section, Trust


class PersonQuery(Strict):
    user_id = Identifier()


class ProfileQuery(PersonQuery):
    agent_id = AgentId(help_text="With it, that agent's own sections take the place of the person's.")


class SummarySerializer(Strict):
    # Without it the person's own section is written, also by a key for one agent.
    agent_of_key = False
    user_id = Identifier()
    agent_id = AgentId(help_text="Write that agent's own section, which no other agent is told.")
    summary = CleanText(max_length=4000, allow_blank=True, help_text="An empty one empties the section.")
    stated_by = StatedByField()


class SectionEvidenceSerializer(serializers.Serializer[Any]):
    """A turn that supports a section."""

    session_id = serializers.CharField()
    turn_number = serializers.IntegerField()


class SectionSerializer(serializers.Serializer[Any]):
    """A section of the profile."""

    agent_id = OrNull(help_text="The agent whose section it is; null: the person's own.")
    summary = serializers.CharField()
    version = serializers.IntegerField()
    updated_at = Timestamp()
    trust = serializers.ChoiceField(Trust.values, help_text="Of those whose words the summary is made of.")
    evidence = serializers.SerializerMethodField(help_text="The turns that the last writing rests on.")

    @extend_schema_field(SectionEvidenceSerializer(many=True))
    def get_evidence(self, row: ProfileSection) -> list[dict[str, Any]]:
        if row.extraction is None:
            return []
        session = row.extraction.session.external_id
        return [{"session_id": session, "turn_number": number} for number in row.evidence]


class SectionsSerializer(serializers.Serializer[Any]):
    """All six sections; null where nothing is known."""

    work_context = SectionSerializer(allow_null=True)
    personal_context = SectionSerializer(allow_null=True)
    top_of_mind = SectionSerializer(allow_null=True)
    recent_months = SectionSerializer(allow_null=True)
    earlier_context = SectionSerializer(allow_null=True)
    long_term_background = SectionSerializer(allow_null=True)


class ProfileSerializer(serializers.Serializer[Any]):
    """Six summaries about a person; None where nothing is known."""

    user_id = serializers.CharField()
    sections = SectionsSerializer()


class HeldSectionSerializer(ProfileSerializer):
    """A text that waits for an operator, and the profile as it goes on being served."""

    status = serializers.ChoiceField(["pending"])
    section = serializers.ChoiceField(Section.values)
    proposed = serializers.CharField(allow_blank=True, help_text="The text that waits, without secrets.")
    reason = serializers.ChoiceField(ReviewItem.Reason.values, help_text="Why it waits.")
    review_item_id = serializers.UUIDField(help_text="Of the question that an operator is asked.")


def held_answer(user_id: str, rows: Iterable[ProfileSection], item: ReviewItem) -> dict[str, Any]:
    """In the shape of HeldSectionSerializer."""
    proposal = item.proposed_section
    if proposal is None:
        raise TypeError("a held section has its proposal")
    return {
        **profile_answer(user_id, rows),
        "status": "pending",
        "section": proposal.section,
        "proposed": proposal.after,
        "reason": item.reason,
        "review_item_id": item.pk,
    }


def profile_answer(user_id: str, rows: Iterable[ProfileSection]) -> dict[str, Any]:
    """In the shape of ProfileSerializer; of two rows of a section, the later one."""
    shown = {row.section: SectionSerializer(row).data for row in rows}
    return {"user_id": user_id, "sections": {section: shown.get(section) for section in Section.values}}
