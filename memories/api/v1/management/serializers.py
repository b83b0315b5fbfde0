"""What management keys send and read: tenants with their settings, models, keys and webhooks. Secrets are in the answer
that makes them, and in no other; the key of a model's endpoint is in none."""

from decimal import Decimal
from math import isfinite
from operator import not_
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from memories import conf
from memories.api.shapes import MOST_KEYS
from memories.api.v1.fields import (
    AgentId,
    ChangesSerializer,
    CleanText,
    ExactText,
    Flag,
    JSONObject,
    Moment,
    OneOf,
    OrNull,
    OurId,
    PageQuery,
    Strict,
    Timestamp,
    Whole,
    Words,
)
from memories.api.v1.filters import where
from memories.curation.access.keys import LONGEST_NAME
from memories.curation.access.operators import version_of as version_of_operator
from memories.curation.access.second_factors import has_second_factor
from memories.curation.tenants import webhooks
from memories.curation.tenants.language_models import (
    LONGEST_KEY,
    LONGEST_MODEL,
    MOST_COST,
    MOST_PRICE,
    MOST_TOKENS,
    ModelTest,
)
from memories.curation.tenants.settings import version_of
from memories.files.dream_files import MOST_LINES
from memories.llm.addresses import LONGEST_ADDRESS
from memories.models import (
    APIKey,
    ContextLog,
    LanguageModel,
    MemoryOf,
    Operator,
    Scope,
    Tenant,
    WebhookDelivery,
    WebhookEndpoint,
    WritesAs,
)
from memories.models.memories.files import LONGEST_PATH
from memories.models.people.tenants import PersonMay
from memories.store.namespaces import LONGEST_PATTERN, MOST_PATTERNS
from memories.text.signal_phrases import LONGEST, MOST_PHRASES

LONGEST_TEXT = 4000
# Seconds that a rotated key can go on for: 30 days.
LONGEST_OVERLAP = 30 * 86_400
DAY = 86_400
EVENTS = sorted(webhooks.SUBSCRIBED)


class Email(serializers.EmailField):
    """An address, exactly as it is written."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=254, allow_blank=True, trim_whitespace=False, **kwargs)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class TenantsQuery(PageQuery):
    offboarded = where(
        "offboarded_at__isnull",
        serializers.BooleanField(
            required=False,
            allow_null=True,
            help_text="true: only tenants that are off-boarded; false: only the others.",
        ),
        by=not_,
    )


_PHRASES = {"type": "array", "items": {"type": "string"}, "maxItems": MOST_PHRASES}


@extend_schema_field({"type": "object", "additionalProperties": _PHRASES, "maxProperties": MOST_KEYS})
class Phrases(serializers.DictField):
    """Kind of signal → phrases."""

    def __init__(self, **kwargs: Any) -> None:
        child = Words(child=ExactText(max_length=LONGEST), max_length=MOST_PHRASES)
        super().__init__(child=child, **kwargs)


def _text(longest: int, **kwargs: Any) -> ExactText:
    return ExactText(required=False, allow_null=True, allow_blank=True, max_length=longest, **kwargs)


class TenantSettingsSerializer(Strict):
    """The settings of a tenant; null is the default."""

    name = _text(200)
    time_zone = _text(64, help_text="An IANA name, for end users without one of their own.")
    language = OneOf(Tenant.ContextLanguage.values, required=False, allow_null=True, help_text="Of contexts.")
    capture = Flag(required=False, allow_null=True, help_text="false: posted turns are answered 202 and not stored.")
    serve = Flag(required=False, allow_null=True, help_text="false: contexts are empty.")
    memory_of = OneOf(MemoryOf.values, required=False, allow_null=True, help_text="Whose memory sessions become.")
    extraction_guidance = _text(LONGEST_TEXT, help_text="Instructions to the model on what to remember.")
    trust_assistant = Flag(
        required=False, allow_null=True, help_text="true: facts that only the assistant stated need no review."
    )
    signal_phrases = Phrases(
        required=False, allow_null=True, help_text="Kind of signal → phrases instead of the hub's patterns."
    )
    context_log = OneOf(ContextLog.values, required=False, allow_null=True, help_text="What is kept of each context.")
    file_seed = _text(LONGEST_TEXT, help_text="First text of memory files.")
    dream_guide = _text(LONGEST_TEXT, help_text="Instructions to the model for dreams.")
    dream_model = _text(100, help_text="Another model for dreams, at the same endpoint.")
    dream_files = Words(
        child=ExactText(max_length=LONGEST_PATH),
        max_length=MOST_LINES,
        required=False,
        allow_null=True,
        help_text="Paths of the memory files that dreams may edit; with a slash at its end it is a folder.",
    )
    person_namespaces = Words(
        child=ExactText(max_length=LONGEST_PATTERN),
        max_length=MOST_PATTERNS,
        required=False,
        allow_null=True,
        help_text="Patterns that say which label of a namespace of the store is an end user's id.",
    )
    person_page = Flag(required=False, allow_null=True, help_text="true: people can open a page of their own memory.")
    person_may = Words(
        child=ExactText(max_length=16),
        max_length=len(PersonMay),
        required=False,
        allow_null=True,
        help_text=f"What they may do there, beside seeing: {', '.join(PersonMay.values)}.",
    )
    person_color = _text(7, help_text="Of that page, like #0f766e.")
    numbers = JSONObject(
        required=False, allow_null=True, help_text="Name of a number of the rules → the tenant's own; null: the hub's."
    )


class TenantChangesSerializer(TenantSettingsSerializer, ChangesSerializer):
    pass


class TenantSerializer(serializers.Serializer[Tenant]):
    """An application that uses the hub, with its settings. `numbers` has its own ones; the others are the hub's."""

    id = serializers.UUIDField()
    slug = serializers.CharField(help_text="The name that addresses have; it never changes.")
    name = serializers.CharField()
    time_zone = serializers.CharField()
    language = serializers.ChoiceField(Tenant.ContextLanguage.values)
    capture = serializers.BooleanField()
    serve = serializers.BooleanField()
    memory_of = serializers.ChoiceField(MemoryOf.values)
    extraction_guidance = serializers.CharField()
    trust_assistant = serializers.BooleanField()
    signal_phrases = Phrases()
    context_log = serializers.ChoiceField(ContextLog.values)
    file_seed = serializers.CharField()
    dream_guide = serializers.CharField()
    dream_model = serializers.CharField()
    dream_files = serializers.ListField(child=serializers.CharField())
    person_namespaces = serializers.ListField(child=serializers.CharField())
    person_page = serializers.BooleanField()
    person_may = serializers.ListField(child=serializers.CharField())
    person_color = serializers.CharField()
    numbers = serializers.SerializerMethodField(help_text="The tenant's own numbers; the others are the hub's.")
    version = serializers.SerializerMethodField(help_text="Another one after each change; as in the ETag.")
    created_at = Timestamp()
    offboarded_at = Timestamp(allow_null=True, help_text="Since when it is off-boarded.")

    @extend_schema_field({"type": "object", "additionalProperties": True})
    def get_numbers(self, tenant: Tenant) -> dict[str, Any]:
        return conf.own_numbers(tenant.numbers)

    def get_version(self, tenant: Tenant) -> int:
        return version_of(tenant)


class Dollars(serializers.FloatField):
    """A JSON number with at most so many places after the point, exactly as it is written."""

    default_error_messages = {"places": "Give at most {places} places after the point."}

    def __init__(self, *, most: int, places: int, least: float = 0.0, **kwargs: Any) -> None:
        self._places = places
        super().__init__(min_value=least, max_value=most, required=False, allow_null=True, **kwargs)

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, bool) or not isinstance(data, int | float) or not isfinite(data):
            self.fail("invalid")
        found = Decimal(str(data))
        if found != round(found, self._places):
            self.fail("places", places=self._places)
        return found


class ModelSettingsSerializer(Strict):
    """What the tenant has of its own; what is left out, or null, is the hub's, or no cap."""

    model = _text(LONGEST_MODEL, help_text="The model's name at the endpoint.")
    base_url = _text(LONGEST_ADDRESS, help_text="The endpoint: https://, and on the public internet.")
    api_key = _text(
        LONGEST_KEY,
        write_only=True,
        help_text="Of the endpoint; no answer has it. Left out: the stored one, if the address stays. Empty: none.",
    )
    prompt_price = Dollars(most=MOST_PRICE, places=6, help_text="US dollars for a million tokens read.")
    completion_price = Dollars(most=MOST_PRICE, places=6, help_text="US dollars for a million tokens written.")
    daily_tokens = Whole(
        min_value=1, max_value=MOST_TOKENS, required=False, allow_null=True, help_text="Cap of a day, read and written."
    )
    daily_cost = Dollars(most=MOST_COST, places=2, least=0.01, help_text="Cap of a day, in US dollars.")
    sees_pictures = Flag(
        required=False, help_text="Pictures that come with turns are sent to the model in force, which describes them."
    )


class LanguageModelSerializer(serializers.Serializer[LanguageModel]):
    """What a tenant has of its own of a language model. Its key is in no answer."""

    model = OrNull(help_text="null: the hub's.")
    base_url = OrNull(help_text="null: the hub's endpoint.")
    has_key = serializers.SerializerMethodField(help_text="Whether a key of the endpoint is stored.")
    prompt_price = serializers.FloatField(allow_null=True)
    completion_price = serializers.FloatField(allow_null=True)
    daily_tokens = serializers.IntegerField(allow_null=True)
    daily_cost = serializers.FloatField(allow_null=True)
    sees_pictures = serializers.BooleanField(help_text="Whether the model in force is asked to describe pictures.")
    version = serializers.IntegerField(help_text="Rises with each change; 0: the tenant never had one of its own.")

    def get_has_key(self, row: LanguageModel) -> bool:
        return bool(row.api_key)


class ModelTestSerializer(serializers.Serializer[ModelTest]):
    """A language model that answered."""

    model = serializers.CharField(help_text="The model that answered.")
    milliseconds = serializers.IntegerField(help_text="So long it took.")


class OperatorQuery(Strict):
    username = ExactText(max_length=150, help_text="What the operator signs in with.")


class OperatorSettingsSerializer(Strict):
    """The record of an operator; what is left out is the default. Passwords and second factors are their own."""

    tenants = Words(
        child=ExactText(max_length=63), max_length=1_000, allow_null=True, help_text="Slugs; null: every tenant."
    )
    roles = Words(
        child=ExactText(max_length=150), default=list, help_text="Names of roles; without one they can do nothing."
    )
    email = Email(default="", help_text="Where invitations and reminders go.")
    first_name = CleanText(max_length=150, allow_blank=True, default="")
    last_name = CleanText(max_length=150, allow_blank=True, default="")
    time_zone = ExactText(max_length=64, default="UTC", help_text="An IANA name.")
    is_active = Flag(default=True, help_text="false: signed out, and not let in again.")


class OperatorSerializer(serializers.Serializer[Operator]):
    """A member of staff who signs in to the admin. `tenants` None: every tenant."""

    id = serializers.UUIDField()
    username = serializers.CharField()
    first_name = serializers.CharField()
    last_name = serializers.CharField()
    email = serializers.CharField()
    time_zone = serializers.CharField()
    is_active = serializers.BooleanField()
    is_superuser = serializers.BooleanField(help_text="Can do everything; no key makes or changes a superuser.")
    roles = serializers.SerializerMethodField()
    tenants = serializers.SerializerMethodField(help_text="Slugs; null: every tenant.")
    has_password = serializers.SerializerMethodField(help_text="false: was never set.")
    has_second_factor = serializers.SerializerMethodField()
    invited_until = serializers.SerializerMethodField(help_text="So long the link of an open invitation works.")
    version = serializers.SerializerMethodField(help_text="Another one after each change; as in the ETag.")
    created_at = Timestamp(source="date_joined")
    last_signed_in_at = Timestamp(source="last_login", allow_null=True)

    def get_roles(self, operator: Operator) -> list[str]:
        return sorted(group.name for group in operator.groups.all())

    @extend_schema_field({"type": "array", "items": {"type": "string"}, "nullable": True})
    def get_tenants(self, operator: Operator) -> list[str] | None:
        return None if operator.all_tenants else sorted(tenant.slug for tenant in operator.tenants.all())

    def get_has_password(self, operator: Operator) -> bool:
        return operator.has_usable_password()

    def get_has_second_factor(self, operator: Operator) -> bool:
        return has_second_factor(operator)

    @extend_schema_field({"type": "string", "format": "date-time", "nullable": True})
    def get_invited_until(self, operator: Operator) -> Any:
        shown = Timestamp(allow_null=True)
        return shown.to_representation(operator.invited_until) if operator.invited_until else None

    def get_version(self, operator: Operator) -> int:
        return version_of_operator(operator)


class NewKeySerializer(Strict):
    id = OurId(required=False, help_text="A UUID of yours: with it the key is made once, however often this is sent.")
    name = CleanText(max_length=LONGEST_NAME, help_text="What uses it.")
    scopes = serializers.ListField(child=OneOf(Scope.values), min_length=1, max_length=len(Scope.values))
    agent_id = AgentId(help_text="The only agent that it is for.")
    writes_as = OneOf(WritesAs.values, required=False, allow_null=True, help_text="Whose words it writes.")
    memory_of = OneOf(
        MemoryOf.values, required=False, allow_null=True, help_text="Whose memory sessions become that it opens."
    )
    expires_at = Moment(required=False, allow_null=True, help_text="In 365 days unless given; null: never.")


class RotationSerializer(Strict):
    overlap_seconds = Whole(
        min_value=0, max_value=LONGEST_OVERLAP, default=DAY, help_text="So long the old key works, too."
    )


class ManagedKeySerializer(serializers.Serializer[APIKey]):
    """A key of a tenant, without its secret."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    begins_with = serializers.SerializerMethodField(help_text="The start of its secret, by which people know it.")
    scopes = serializers.ListField(child=serializers.ChoiceField(Scope.values))
    agent_id = OrNull(help_text="The only agent that it is for.")
    for_one_person = serializers.SerializerMethodField(
        help_text="Whether it is for one end user; which one, is theirs."
    )
    writes_as = serializers.ChoiceField(WritesAs.values)
    memory_of = OrNull(help_text="Whose memory sessions become that it opens; null: as the tenant says.")
    state = serializers.SerializerMethodField()
    successor_id = serializers.UUIDField(allow_null=True, help_text="The key that it was rotated to.")
    created_at = Timestamp()
    expires_at = Timestamp(allow_null=True)
    last_used_at = Timestamp(allow_null=True, help_text="To the nearest five minutes.")

    def get_begins_with(self, key: APIKey) -> str:
        return f"mh_{key.prefix}"

    def get_for_one_person(self, key: APIKey) -> bool:
        return bool(key.user_id)

    @extend_schema_field({"type": "string", "enum": ["active", "expired", "offboarded"]})
    def get_state(self, key: APIKey) -> str:
        if key.revoked_at:
            # Keys that somebody revoked are not shown at all.
            return "offboarded"
        return "expired" if key.expires_at and key.expires_at <= timezone.now() else "active"


class MadeKeySerializer(ManagedKeySerializer):
    """A new key. Its `secret` is in no other answer."""

    secret = serializers.SerializerMethodField(help_text="The key itself. It is shown in this answer alone.")

    def get_secret(self, key: APIKey) -> str:
        return str(self.context["secret"])


class WebhookSettingsSerializer(Strict):
    name = CleanText(max_length=100)
    url = ExactText(max_length=LONGEST_ADDRESS, help_text="It begins with https:// and leads to the public internet.")
    events = serializers.ListField(child=OneOf(EVENTS), min_length=1, max_length=len(EVENTS))
    content = Flag(default=False, help_text="true: events have texts and the application's ids, too.")


class WebhookSerializer(serializers.Serializer[WebhookEndpoint]):
    """An address that is told of events of a tenant."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    url = serializers.CharField()
    events = serializers.ListField(child=serializers.ChoiceField(EVENTS))
    content = serializers.BooleanField()
    enabled = serializers.SerializerMethodField()
    disabled_for = OrNull(help_text="Why it is disabled: operator, failing, gone or off_boarded.")
    failures = serializers.IntegerField(help_text="In a row.")
    version = serializers.IntegerField()
    created_at = Timestamp()

    def get_enabled(self, endpoint: WebhookEndpoint) -> bool:
        return endpoint.disabled_at is None


class MadeWebhookSerializer(WebhookSerializer):
    """A webhook with a new `secret`, which is in no other answer."""

    secret = serializers.SerializerMethodField(help_text="What signs its events. It is shown in this answer alone.")

    def get_secret(self, endpoint: WebhookEndpoint) -> str:
        return str(self.context["secret"])


class SendAgainSerializer(Strict):
    delivery_id = OurId(required=False, allow_null=True, help_text="One delivery; without it all that failed.")


class SentAgainSerializer(serializers.Serializer[Any]):
    """How many deliveries are sent again."""

    count = serializers.IntegerField(help_text="How many deliveries wait to be sent again.")


class WebhookDeliverySerializer(serializers.Serializer[WebhookDelivery]):
    """An event for one webhook, with what came of sending it."""

    id = serializers.UUIDField(help_text="The webhook-id.")
    event = serializers.CharField()
    state = serializers.ChoiceField(WebhookDelivery.State.values)
    attempts = serializers.IntegerField()
    status = serializers.IntegerField(allow_null=True, help_text="Of the last answer, if one came.")
    failure = OrNull(help_text="Code of the last failure.")
    occurred_at = Timestamp()
    tried_at = Timestamp(allow_null=True)
    ended_at = Timestamp(allow_null=True)
