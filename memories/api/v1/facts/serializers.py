"""Facts: stated by a key, changed by a key, shown whole."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail

from memories.api.v1.facts.names import told_here
from memories.api.v1.fields import (
    AgentId,
    ChangesSerializer,
    CleanText,
    End,
    ExactText,
    Flag,
    Identifier,
    JSONObject,
    Moment,
    OneOf,
    OrNull,
    OurId,
    PageQuery,
    Roles,
    Rounded,
    Share,
    StatedByField,
    Strict,
    Timestamp,
    Whole,
    Words,
)
from memories.api.v1.filters import where
from memories.categories import of_type
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
from memories.models.ids import OUR_VERSION, parse_uuid
from memories.trust import CORRECTIONS

MIN_IMPORTANCE = 0.2
ANY_STATUS = "all"
# Turns that a statement cites, and facts that it is related to.
MOST_CITED = 20
# So far may a caller's clock be ahead of ours.
CLOCKS_DIFFER = timedelta(minutes=5)


class FactQuery(Strict):
    """For whom a fact is asked for: one that a context for them could not serve is not there, but for `read_all`."""

    roles = Roles()
    agent_id = AgentId(help_text="The agent that asks: its private facts are seen, too.")


class FactHistoryQuery(PageQuery, FactQuery):
    pass


NEWEST = "-created_at"
# A list's order by what is asked for; the id makes each unique.
ORDERS = {
    name: (name, "-id" if name.startswith("-") else "id")
    for field in ("created_at", "updated_at", "last_confirmed_at", "confidence", "importance", "decay_score")
    for name in (f"-{field}", field)
}


def one_status(named: str) -> str | None:
    """None: of whatever status."""
    return None if named == ANY_STATUS else named


class FactFilters(Strict):
    """Which of a person's facts are meant."""

    # A filter, too: without it the agent's and the shared ones are listed.
    agent_of_key = False

    user_id = Identifier()
    category = where("category", OneOf(Category.values, required=False))
    status = where("status", OneOf([*Status.values, ANY_STATUS], default=Status.ACTIVE.value), by=one_status)
    type = where(
        "category__in",
        OneOf(MemoryType.values, required=False, help_text="The type that the category has."),
        by=of_type,
    )
    key = where("key", ExactText(required=False, max_length=100))
    scope = where("scope", OneOf(MemoryScope.values, required=False))
    source = where("source", OneOf(Source.values, required=False))  # type: ignore[assignment]
    trust = where("trust", OneOf(Trust.values, required=False))
    external_id = where("external_id", Identifier(required=False, help_text="Your own id of the fact."))
    min_confidence = where("confidence__gte", serializers.FloatField(required=False, min_value=0, max_value=1))
    min_importance = where("importance__gte", serializers.FloatField(required=False, min_value=0, max_value=1))
    pinned = where("pinned", serializers.BooleanField(required=False, allow_null=True, default=None))
    since = where("first_observed_at__gte", Moment(required=False, help_text="First observed then or later."))
    until = where("first_observed_at__lt", Moment(required=False, help_text="First observed before then."))
    created_since = where("created_at__gte", Moment(required=False, help_text="Facts that arrived then or later."))
    created_until = where("created_at__lt", Moment(required=False, help_text="Facts that arrived before then."))
    updated_since = where("updated_at__gte", Moment(required=False, help_text="Facts that changed then or later."))
    tag = ExactText(required=False, max_length=100)
    q = ExactText(required=False, max_length=200, help_text="Text in the content, the quote or the structured data.")
    agent_id = where("agent_id", AgentId(help_text="Facts of this agent alone, its private ones among them."))
    roles = Roles()
    as_of = Moment(required=False, help_text="What was true then, also if it has ended since; `status` narrows it.")


class FactsQuery(PageQuery, FactFilters):
    sort = OneOf(list(ORDERS), default=NEWEST, help_text="`-` for the highest or latest first.")


class DeletionSerializer(FactFilters):
    dry_run = Flag(default=False, help_text="Only look: nothing is deleted.")
    token = ExactText(required=False, max_length=64, help_text="Of the dry run. Needed to delete.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not attrs["dry_run"] and "token" not in attrs:
            missing = ErrorDetail("Look first, by a dry run, and give its token.", code="required")
            raise serializers.ValidationError({"token": [missing]})
        return attrs


class DeletedSerializer(serializers.Serializer[Any]):
    """What a deletion by filters took, or with `dry_run` would take; `token` stands for these facts as they are."""

    dry_run = serializers.BooleanField()
    facts = serializers.IntegerField(help_text="That go, or are gone.")
    kept = serializers.IntegerField(help_text="That no key may delete: an operator's, and locked ones.")
    ids = serializers.ListField(child=serializers.UUIDField(), help_text="The first twenty that go.")
    token = serializers.CharField(help_text="Stands for the facts that go, each as it is now.")


class Deletion(FactQuery):
    hard = serializers.BooleanField(default=False, help_text="Leave no text, not even in the trash.")


class FactScope(OneOf):
    """Who may be served the fact; public ones are an operator's to make."""

    default_error_messages = {"operators_only": "Only an operator can make a fact public, in the admin."}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__([MemoryScope.PRIVATE.value, MemoryScope.SHARE.value], **kwargs)

    def to_internal_value(self, data: Any) -> str:
        if data == MemoryScope.PUBLIC:
            self.fail("operators_only")
        return super().to_internal_value(data)


class StatedSource(OneOf):
    """Where a statement is from; that it corrects what was remembered is an operator's to say."""

    default_error_messages = {"operators_only": "Only an operator corrects a memory, in the admin."}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__([source for source in Source.values if source not in CORRECTIONS], **kwargs)

    def to_internal_value(self, data: Any) -> str:
        if data in CORRECTIONS:
            self.fail("operators_only")
        return super().to_internal_value(data)


class StatedRelationSerializer(Strict):
    """How it stands to another fact of the person."""

    type = OneOf([RelationType.RELATED_TO.value, RelationType.CONTRADICTS.value, RelationType.DERIVED_FROM.value])
    target_id = OurId()

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping) and data.get("type") == RelationType.SUPERSEDES:
            detail = "What a fact takes the place of follows from its key and its trust: it cannot be stated."
            raise serializers.ValidationError({"type": [ErrorDetail(detail, code="not_stated")]})
        return super().to_internal_value(data)

    def unknown(self, name: str, value: Any) -> Any:
        return told_here(name, value) or super().unknown(name, value)


class Content(CleanText):
    """The text of a fact. Elsewhere `content` is an object that holds it."""

    def run_validation(self, data: Any = serializers.empty) -> Any:
        if isinstance(data, Mapping) and (told := told_here("content", data)):
            raise serializers.ValidationError(told)
        return super().run_validation(data)


class OwnId(Identifier):
    """An id of the caller's own for a fact. Who has an id like ours from an answer means a fact of ours by it."""

    default_error_messages = {
        "ours": "Ids of this form are the hub's own. Give an id of another form, or leave it out."
    }

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        ours = parse_uuid(text)
        if ours and ours.version == OUR_VERSION:
            self.fail("ours")
        return text


class StatedSerializer(Strict):
    """What a key may say of a fact, all of it optional."""

    external_id = OwnId(
        required=False, allow_null=True, help_text="Your own id. Each live fact of an agent has another."
    )
    confidence = Share(required=False)
    importance = Share(min_value=MIN_IMPORTANCE, required=False)
    key = ExactText(required=False, allow_blank=True, allow_null=True, max_length=100, help_text="E.g. home_city.")
    value = ExactText(required=False, allow_blank=True, allow_null=True, max_length=500)
    tags = Words(child=ExactText(max_length=100), required=False)
    scope = FactScope(required=False)
    agent_id = AgentId()
    allowed_users = Words(
        child=Identifier(),
        required=False,
        help_text="Ids of the person: who asks by another of theirs gets no such fact.",
    )
    allowed_roles = Words(child=ExactText(max_length=100), required=False)
    expires_at = End(required=False, allow_null=True)
    structured = JSONObject(required=False, allow_null=True)
    stated_by = StatedByField()
    source = StatedSource(required=False)  # type: ignore[assignment]
    raw = CleanText(
        required=False,
        allow_null=True,
        allow_blank=True,
        max_length=2000,
        help_text="The quote that it rests on. With evidence, one of the cited turns has to say it.",
    )
    evidence = serializers.ListField(
        child=OurId(), required=False, max_length=MOST_CITED, help_text="Ids of turns of the person."
    )
    relations = serializers.ListField(child=StatedRelationSerializer(), required=False, max_length=MOST_CITED)
    valid_from = Moment(required=False, allow_null=True, help_text="Since when it holds; not in the future.")

    def unknown(self, name: str, value: Any) -> Any:
        return told_here(name, value) or super().unknown(name, value)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        moment = attrs.get("valid_from")
        if moment and moment > timezone.now() + CLOCKS_DIFFER:
            detail = "This is still to come: state what holds now."
            raise serializers.ValidationError({"valid_from": [ErrorDetail(detail, code="future")]})
        # An absent text is stored as the empty string.
        texts = ("agent_id", "key", "value", "external_id", "raw")
        return attrs | {name: "" for name in texts if name in attrs and attrs[name] is None}


class NewFactSerializer(StatedSerializer):
    user_id = Identifier()
    content = Content(max_length=2000)
    category = OneOf(Category.values)


class FactChangesSerializer(StatedSerializer, ChangesSerializer):
    # What is left out stays as it is.
    agent_of_key = False

    content = Content(max_length=2000, required=False)
    category = OneOf(Category.values, required=False)
    pinned = Flag(required=False)
    locked = Flag(required=False)

    def validate(self, attrs: Any) -> Any:
        # Whose words they are is no change by itself.
        ChangesSerializer.validate(self, {name: value for name, value in attrs.items() if name != "stated_by"})
        return StatedSerializer.validate(self, attrs)


class FactFeedbackSerializer(Strict):
    useful = Flag()


class RestoreSerializer(Strict):
    version = Whole(min_value=1, max_value=2**31 - 1, required=False, allow_null=True)


class EvidenceSerializer(serializers.Serializer[Any]):
    """The turn that a fact rests on, and the quote."""

    session_id = serializers.CharField(source="session.external_id")
    turn_number = serializers.IntegerField()
    quote = OrNull()


class RelationSerializer(serializers.Serializer[Any]):
    """How a fact stands to another one; `incoming`: the other one states it."""

    type = serializers.ChoiceField(RelationType.values)
    target_id = serializers.UUIDField(help_text="The other fact.")
    incoming = serializers.BooleanField(
        required=False, help_text="Only when true: the other fact states it of this one, and it is changed there."
    )


class FactSerializer(serializers.Serializer[Fact]):
    """A fact about a person, with what it rests on."""

    id = serializers.UUIDField()
    user_id = serializers.CharField(source="end_user.external_id")
    agent_id = OrNull()
    type = serializers.ChoiceField(MemoryType.values, help_text="Derived from the category.")
    category = serializers.ChoiceField(Category.values)
    content = serializers.CharField()
    raw = OrNull(help_text="The quote that it rests on.")
    structured = JSONObject(allow_null=True)
    external_id = OrNull(help_text="Your own id, or the one in the memory document that it came with.")
    key = OrNull()
    value = OrNull()
    confidence = Rounded()
    importance = Rounded()
    tags = serializers.ListField(child=serializers.CharField())
    source = serializers.ChoiceField(Source.values)  # type: ignore[assignment]
    source_error = OrNull(help_text="Of a correction: what was wrong.")
    trust = serializers.ChoiceField(Trust.values)
    extractor = serializers.CharField(help_text="What made it: `llm:<model>`, `operator`, `person`, `api`, `import`.")
    status = serializers.ChoiceField(Status.values)
    pinned = serializers.BooleanField()
    locked = serializers.BooleanField()
    mentions = serializers.IntegerField()
    version = serializers.IntegerField()
    scope = serializers.ChoiceField(MemoryScope.values)
    allowed_users = serializers.ListField(child=serializers.CharField())
    allowed_roles = serializers.ListField(child=serializers.CharField())
    relations = serializers.SerializerMethodField()
    evidence = EvidenceSerializer(many=True, source="cited")
    extraction_id = serializers.UUIDField(allow_null=True)
    created_at = Timestamp()
    updated_at = Timestamp()
    first_observed_at = Timestamp()
    last_confirmed_at = Timestamp()
    last_recalled_at = Timestamp(allow_null=True)
    valid_from = Timestamp()
    valid_to = Timestamp(allow_null=True)
    superseded_by = serializers.UUIDField(source="superseded_by_id", allow_null=True)
    expires_at = Timestamp(allow_null=True)
    decay_score = Rounded()
    forget_at = Timestamp(allow_null=True, help_text="When it will have faded; null: never.")
    embedding_model = serializers.CharField(allow_null=True, help_text="Null until its text has a vector.")
    still_said_by = serializers.IntegerField(
        allow_null=True,
        help_text="After a change of its text: how many of the person's turns still say what it said. Else null.",
    )

    @extend_schema_field(RelationSerializer(many=True))
    def get_relations(self, fact: Fact) -> list[dict[str, Any]]:
        stated: list[dict[str, Any]] = [{"type": one.type, "target_id": one.target_id} for one in fact.stated_relations]
        replaced = [{"type": RelationType.SUPERSEDES, "target_id": older.pk} for older in fact.replaced]
        of_it = [{"type": one.type, "target_id": one.fact_id, "incoming": True} for one in fact.relations_to_it]
        return stated + replaced + of_it


class ActorSerializer(serializers.Serializer[Any]):
    """Who changed something."""

    kind = serializers.ChoiceField(ActorKind.values, source="actor_kind")
    id = OrNull(source="actor_id", help_text="Ours: of the run, the key or the operator.")


class RevisionSerializer(serializers.Serializer[FactRevision]):
    """A version of a fact."""

    version = serializers.IntegerField()
    verb = serializers.CharField()
    actor = ActorSerializer(source="*")
    before = JSONObject(help_text="The changed fields as they were.")
    after = JSONObject(help_text="The whole state after the change.")
    reason = OrNull()
    created_at = Timestamp()
