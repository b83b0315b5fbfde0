"""Profiles by a schema of the tenant's own: how they are defined, and a person's document."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from memories.api.v1.fields import AgentId, Flag, Identifier, JSONObject, OrNull, Strict, Timestamp
from memories.models import FactEvidence, ProfileSchema, Trust
from memories.profiles import FieldValue, PersonProfile


class AgentQuery(Strict):
    agent_id = AgentId(help_text="With it, also what is this agent's own.")


class PersonProfileQuery(AgentQuery):
    user_id = Identifier()


class ProfileSettingsSerializer(Strict):
    # The body of a definition, which is whose it says.
    agent_of_key = False
    schema = JSONObject(help_text="A JSON Schema of an object; which keywords are accepted is in the documentation.")
    agent_id = AgentId(help_text="Only this agent fills and is served it; null: every agent.")
    in_context = Flag(default=False, help_text="true: every context tells it.")


class ProfileSchemaSerializer(serializers.Serializer[ProfileSchema]):
    """A profile that the tenant defined by a JSON Schema."""

    name = serializers.CharField()
    agent_id = OrNull(help_text="The agent whose profile it is; null: of every agent.")
    in_context = serializers.BooleanField(help_text="Whether every context tells it.")
    version = serializers.IntegerField()
    schema = serializers.DictField(child=serializers.JSONField())
    created_at = Timestamp()
    updated_at = Timestamp()


class ProfileSchemasSerializer(serializers.Serializer[Any]):
    """The profiles that the tenant defined."""

    profiles = ProfileSchemaSerializer(many=True)


class FieldEvidenceSerializer(serializers.Serializer[FactEvidence]):
    """A turn that says the value of a field."""

    turn_id = serializers.UUIDField(allow_null=True, help_text="null: retention has deleted the turn.")
    session_id = serializers.CharField(source="session.external_id")
    turn_number = serializers.IntegerField()
    quote = serializers.CharField(allow_blank=True)


class FieldValueSerializer(serializers.Serializer[FieldValue]):
    """What the value of a field rests on."""

    field = serializers.CharField(source="field.pointer", help_text="A name, or a group's and its own: `address.city`.")
    fact_id = serializers.UUIDField(source="fact.pk", help_text="The fact whose value it is.")
    trust = serializers.ChoiceField(Trust.values, source="fact.trust", help_text="Of those who vouch for it.")
    binding = serializers.BooleanField(source="fact.binding", help_text="An operator's word, or the person's.")
    confidence = serializers.FloatField(source="fact.confidence")
    updated_at = Timestamp(source="fact.updated_at")
    evidence = FieldEvidenceSerializer(many=True, help_text="The turns that say it.")


class InvalidValueSerializer(serializers.Serializer[FieldValue]):
    """A value that the schema does not allow any more: it is not served."""

    field = serializers.CharField(source="field.pointer")
    fact_id = serializers.UUIDField(source="fact.pk")
    detail = serializers.CharField(source="refused", help_text="What the schema allows.")


class PersonProfileSerializer(serializers.Serializer[PersonProfile]):
    """A person's profile in the form of a schema; `revision` is the same while nothing of it changes."""

    name = serializers.CharField(source="schema.name")
    user_id = serializers.SerializerMethodField()
    version = serializers.IntegerField(source="schema.version", help_text="Of the schema.")
    revision = serializers.CharField(help_text="The same while nothing of the profile changes; also the ETag.")
    document = serializers.SerializerMethodField(help_text="What is known, in the form of the schema.")
    evidence = FieldValueSerializer(many=True, source="values", help_text="Of each field that is known.")
    missing = serializers.ListField(
        child=serializers.CharField(), help_text="Fields that the schema requires and nobody has stated."
    )
    invalid = InvalidValueSerializer(many=True)

    @extend_schema_field(serializers.CharField())
    def get_user_id(self, profile: PersonProfile) -> str:
        return str(self.context["user_id"])

    @extend_schema_field(serializers.DictField(child=serializers.JSONField()))
    def get_document(self, profile: PersonProfile) -> dict[str, Any]:
        return profile.document
