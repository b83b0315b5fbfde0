"""Privacy cases as a caller sees them: the request, its state, and the receipt."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from memories.api.v1.fields import ExactText, Identifier, OneOf, OrNull, Strict, Timestamp
from memories.models import CaseState, CaseType, EndUser, ExportState, PrivacyCase
from memories.privacy import rewriting
from memories.privacy.cases import LONGEST_CHANNEL, LONGEST_REFERENCE


class PrivacyRequestSerializer(Strict):
    user_id = Identifier()
    type = OneOf(CaseType.values)
    channel = ExactText(required=False, allow_blank=True, max_length=LONGEST_CHANNEL, default="api")
    reference = ExactText(required=False, allow_blank=True, max_length=LONGEST_REFERENCE, default="")


class CaseExportSerializer(serializers.Serializer[Any]):
    """The newest export of a privacy request."""

    state = serializers.ChoiceField(ExportState.values)
    expires_at = Timestamp(allow_null=True)
    size = serializers.IntegerField(help_text="Bytes.")


class OnDiskSerializer(serializers.Serializer[Any]):
    """How long the deleted rows of an erasure are in the files of the tables."""

    window = OrNull(help_text="Hours in UTC in which tables are rewritten, like 02:00-04:30; null: they are not.")
    rewritten_at = Timestamp(allow_null=True, help_text="When the last of them was; null before.")


class PrivacyCaseSerializer(serializers.Serializer[PrivacyCase]):
    """A request of a person about their data, as it stands."""

    id = serializers.UUIDField()
    user_id = serializers.SerializerMethodField(help_text="Null once the person is erased.")
    type = serializers.ChoiceField(CaseType.values)
    state = serializers.ChoiceField(CaseState.values)
    channel = OrNull()
    reference = OrNull()
    received_at = Timestamp()
    due_at = Timestamp()
    extended = serializers.SerializerMethodField()
    verified_at = Timestamp(allow_null=True)
    approved_at = Timestamp(allow_null=True)
    completed_at = Timestamp(allow_null=True, help_text="When it was completed or refused.")
    restricted = serializers.SerializerMethodField(help_text="Nothing is stored or told of the person at present.")
    counts = serializers.DictField(child=serializers.IntegerField(), help_text="Store → rows erased or exported.")
    receipt = serializers.SerializerMethodField(help_text="Null until it is completed.")
    export = serializers.SerializerMethodField()
    on_disk = serializers.SerializerMethodField(
        help_text="Of a completed erasure: how long deleted rows are in the files of the tables."
    )

    def get_user_id(self, case: PrivacyCase) -> str | None:
        person = _person(case)
        return person.external_id if person else None

    def get_extended(self, case: PrivacyCase) -> bool:
        return case.extended_at is not None

    def get_restricted(self, case: PrivacyCase) -> bool:
        person = _person(case)
        return person is not None and person.restricted_at is not None

    @extend_schema_field({"type": ["object", "null"], "additionalProperties": True})
    def get_receipt(self, case: PrivacyCase) -> dict[str, Any] | None:
        return {**case.receipt, "signature": case.signature} if case.receipt else None

    @extend_schema_field(CaseExportSerializer(allow_null=True))
    def get_export(self, case: PrivacyCase) -> Any:
        newest = next(iter(case.exports.all()), None)
        return CaseExportSerializer(newest).data if newest else None

    @extend_schema_field(OnDiskSerializer(allow_null=True))
    def get_on_disk(self, case: PrivacyCase) -> Any:
        if case.type != CaseType.ERASURE or case.state != CaseState.COMPLETED:
            return None
        return OnDiskSerializer(rewriting.horizon(case)).data


def _person(case: PrivacyCase) -> EndUser | None:
    """The present person of the case: their alias may lead to another person since a merge."""
    return case.end_user and (case.end_user.merged_into or case.end_user)
