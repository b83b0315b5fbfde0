"""Facts: stated by a key, changed by a key, shown whole."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from memories.api.v1.serializers.fields import (
    AgentId,
    Changes,
    CleanText,
    Flag,
    Identifier,
    JSONObject,
    Moment,
    OneOf,
    OrNull,
    PageQuery,
    Share,
    Strict,
    Text,
    Whole,
    Words,
)
from memories.exceptions import InvalidInput
from memories.models import (
    ActorKind,
    Category,
    Fact,
    FactRevision,
    MemoryScope,
    MemoryType,
    RelationType,
    Source,
    Status,
    Trust,
)

MIN_IMPORTANCE = 0.2
ANY_STATUS = "all"


class FactsQuery(PageQuery):
    user_id = Identifier()
    category = OneOf(Category.values, required=False)
    status = OneOf([*Status.values, ANY_STATUS], default=Status.ACTIVE.value)
    tag = Text(required=False, max_length=100)
    q = Text(required=False, max_length=200, help_text="Text that the content contains, in any case.")
    agent_id = AgentId()


class Deletion(Strict):
    hard = serializers.BooleanField(default=False, help_text="Leave no text, not even in the trash.")


class Scope(OneOf):
    """Who may be served the fact; public ones are an operator's to make."""

    default_error_messages = {"operators_only": "Only an operator can make a fact public, in the admin."}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__([MemoryScope.PRIVATE.value, MemoryScope.SHARE.value], **kwargs)

    def to_internal_value(self, data: Any) -> str:
        if data == MemoryScope.PUBLIC:
            self.fail("operators_only")
        return super().to_internal_value(data)


class StatedSerializer(Strict):
    """What a key may say of a fact, all of it optional."""

    confidence = Share(required=False)
    importance = Share(min_value=MIN_IMPORTANCE, required=False)
    key = Text(required=False, allow_blank=True, allow_null=True, max_length=100, help_text="E.g. home_city.")
    value = Text(required=False, allow_blank=True, allow_null=True, max_length=500)
    tags = Words(child=Text(max_length=100), required=False)
    scope = Scope(required=False)
    agent_id = AgentId()
    allowed_users = Words(child=Identifier(), required=False)
    allowed_roles = Words(child=Text(max_length=100), required=False)
    expires_at = Moment(required=False, allow_null=True)
    structured = JSONObject(required=False, allow_null=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        # An absent agent, key or value is stored as the empty string.
        absent = {name: "" for name in ("agent_id", "key", "value") if name in attrs and attrs[name] is None}
        return attrs | absent


class NewFactSerializer(StatedSerializer):
    user_id = Identifier()
    content = CleanText(max_length=2000)
    category = OneOf(Category.values)


class FactChangesSerializer(StatedSerializer, Changes):
    content = CleanText(max_length=2000, required=False)
    category = OneOf(Category.values, required=False)
    pinned = Flag(required=False)
    locked = Flag(required=False)

    def validate(self, attrs: Any) -> Any:
        return Changes.validate(self, StatedSerializer.validate(self, attrs))


class FactFeedbackSerializer(Strict):
    useful = Flag()


class RestoreSerializer(Strict):
    version = Whole(min_value=1, max_value=2**31 - 1, required=False, allow_null=True)


class EvidenceSerializer(serializers.Serializer[Any]):
    session_id = serializers.CharField(source="session.external_id")
    turn_number = serializers.IntegerField()
    quote = OrNull()


class RelationSerializer(serializers.Serializer[Any]):
    type = serializers.ChoiceField(RelationType.values)
    target_id = serializers.UUIDField()


class FactSerializer(serializers.Serializer[Fact]):
    id = serializers.UUIDField()
    user_id = serializers.CharField(source="end_user.external_id")
    agent_id = OrNull()
    type = serializers.ChoiceField(MemoryType.values, help_text="Derived from the category.")
    category = serializers.ChoiceField(Category.values)
    content = serializers.CharField()
    raw = OrNull(help_text="The quote that it rests on.")
    structured = JSONObject(allow_null=True)
    key = OrNull()
    value = OrNull()
    confidence = serializers.FloatField()
    importance = serializers.FloatField()
    tags = serializers.ListField(child=serializers.CharField())
    source = serializers.ChoiceField(Source.values)  # type: ignore[assignment]
    source_error = OrNull(help_text="Of a correction: what was wrong.")
    trust = serializers.ChoiceField(Trust.values)
    extractor = serializers.CharField(help_text="What made it: `llm:<model>`, `operator`, `api`, `import`.")
    status = serializers.ChoiceField(Status.values)
    pinned = serializers.BooleanField()
    locked = serializers.BooleanField()
    mentions = serializers.IntegerField()
    version = serializers.IntegerField()
    scope = serializers.ChoiceField(MemoryScope.values)
    allowed_users = serializers.ListField(child=serializers.CharField())
    allowed_roles = serializers.ListField(child=serializers.CharField())
    relations = serializers.SerializerMethodField()
    evidence = EvidenceSerializer(many=True)
    extraction_id = serializers.UUIDField(allow_null=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    first_observed_at = serializers.DateTimeField()
    last_confirmed_at = serializers.DateTimeField()
    last_recalled_at = serializers.DateTimeField(allow_null=True)
    valid_from = serializers.DateTimeField()
    valid_to = serializers.DateTimeField(allow_null=True)
    superseded_by = serializers.UUIDField(source="superseded_by_id", allow_null=True)
    expires_at = serializers.DateTimeField(allow_null=True)
    decay_score = serializers.FloatField()
    forget_at = serializers.DateTimeField(allow_null=True, help_text="When it will have faded; null: never.")
    embedding_model = serializers.CharField(allow_null=True, help_text="Null until its text has a vector.")

    @extend_schema_field(RelationSerializer(many=True))
    def get_relations(self, fact: Fact) -> list[dict[str, Any]]:
        told = [{"type": relation.type, "target_id": relation.target_id} for relation in fact.relations.all()]
        replaced = [{"type": RelationType.SUPERSEDES, "target_id": older.pk} for older in fact.older.all()]
        return told + replaced


class ActorSerializer(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(ActorKind.values, source="actor_kind")
    id = OrNull(source="actor_id", help_text="Ours: of the run, the key or the operator.")


class RevisionSerializer(serializers.Serializer[FactRevision]):
    version = serializers.IntegerField()
    verb = serializers.CharField()
    actor = ActorSerializer(source="*")
    before = JSONObject(help_text="The changed fields as they were.")
    after = JSONObject(help_text="The whole state after the change.")
    reason = OrNull()
    created_at = serializers.DateTimeField()


def expected_version(if_match: str | None) -> int | None:
    """The version in an If-Match header; None for no header or `*`. Errors: InvalidInput."""
    text = (if_match or "*").strip()
    if text == "*":
        return None
    digits = text.removeprefix('"').removesuffix('"')
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10):
        raise InvalidInput.at("If-Match", 'Give one version as in the ETag, e.g. "3".')
    return int(digits)
