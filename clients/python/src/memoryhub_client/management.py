"""Every operation for management keys: tenants, with their settings, models, agents, keys and webhooks, and operators.
No memories are in it."""
# mypy: disable-error-code="empty-body"

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from memoryhub_client._calls import UNSET, Unset, listing, operation
from memoryhub_client.models import (
    Agent,
    ContextLanguage,
    ContextLog,
    EventName,
    KeyScope,
    LanguageModel,
    MadeKey,
    MadeWebhook,
    ManagedKey,
    MemoryOf,
    ModelTest,
    Operator,
    ProfileSchema,
    ProfileSchemas,
    SentAgain,
    Tenant,
    Webhook,
    WebhookDelivery,
    WritesAs,
)

TENANT = "/management/tenants/{slug}"
KEY = TENANT + "/keys/{key_id}"
OPERATOR = "/management/operators/detail"
WEBHOOK = TENANT + "/webhooks/{webhook_id}"


class ManagementOperations:
    """What a hub can be asked with a management key. `slug` is the tenant's."""

    # Tenants

    @listing("/management/tenants")
    def list_tenants(
        self, *, offboarded: bool | None = None, page_size: int | None = None, cursor: str | None = None
    ) -> Tenant:
        """The tenants that the key manages, newest first."""
        ...

    @operation("GET", TENANT)
    def get_tenant(self, slug: str) -> Tenant: ...

    @operation("PUT", TENANT)
    def put_tenant(
        self,
        slug: str,
        *,
        name: str | None = None,
        time_zone: str | None = None,
        language: ContextLanguage | None = None,
        capture: bool | None = None,
        serve: bool | None = None,
        memory_of: MemoryOf | None = None,
        extraction_guidance: str | None = None,
        trust_assistant: bool | None = None,
        signal_phrases: dict[str, list[str]] | None = None,
        context_log: ContextLog | None = None,
        file_seed: str | None = None,
        dream_guide: str | None = None,
        dream_model: str | None = None,
        dream_files: Sequence[str] | None = None,
        person_namespaces: Sequence[str] | None = None,
        person_page: bool | None = None,
        person_may: Sequence[str] | None = None,
        person_color: str | None = None,
        numbers: dict[str, Any] | None = None,
        if_match: int | None = None,
        if_none_match: str | None = None,
    ) -> Tenant:
        """Make the tenant, or give it these settings; what is left out is the default. `if_none_match="*"` only makes
        one."""
        ...

    @operation("PATCH", TENANT)
    def change_tenant(
        self,
        slug: str,
        *,
        name: str | Unset | None = UNSET,
        time_zone: str | Unset | None = UNSET,
        language: ContextLanguage | Unset | None = UNSET,
        capture: bool | Unset | None = UNSET,
        serve: bool | Unset | None = UNSET,
        memory_of: MemoryOf | Unset | None = UNSET,
        extraction_guidance: str | Unset | None = UNSET,
        trust_assistant: bool | Unset | None = UNSET,
        signal_phrases: dict[str, list[str]] | Unset | None = UNSET,
        context_log: ContextLog | Unset | None = UNSET,
        file_seed: str | Unset | None = UNSET,
        dream_guide: str | Unset | None = UNSET,
        dream_model: str | Unset | None = UNSET,
        dream_files: Sequence[str] | Unset | None = UNSET,
        person_namespaces: Sequence[str] | Unset | None = UNSET,
        person_page: bool | Unset | None = UNSET,
        person_may: Sequence[str] | Unset | None = UNSET,
        person_color: str | Unset | None = UNSET,
        numbers: dict[str, Any] | Unset | None = UNSET,
        if_match: int | None = None,
    ) -> Tenant:
        """Change settings; None is the default. Of `numbers` those that are named change."""
        ...

    @operation("DELETE", TENANT)
    def off_board_tenant(self, slug: str) -> None:
        """Switch the tenant off, with its keys and webhooks. Nothing is deleted."""
        ...

    @operation("POST", TENANT + "/take-back")
    def take_back_tenant(self, slug: str) -> Tenant:
        """Undo the off-boarding."""
        ...

    # Operators

    @listing("/management/operators")
    def list_operators(self, *, page_size: int | None = None, cursor: str | None = None) -> Operator:
        """The operators of the hub, newest first, also those who are no longer active."""
        ...

    @operation("GET", OPERATOR)
    def get_operator(self, *, username: str) -> Operator: ...

    @operation("PUT", OPERATOR, query=("username",), nulls=("tenants",))
    def put_operator(
        self,
        *,
        username: str,
        tenants: Sequence[str] | None,
        roles: Sequence[str] | None = None,
        email: str | None = None,
        first_name: str | None = None,
        last_name: str | None = None,
        time_zone: str | None = None,
        is_active: bool | None = None,
        if_match: int | None = None,
        if_none_match: str | None = None,
    ) -> Operator:
        """Make the operator, or give them this record; what is left out is the default. `tenants` None: every tenant.
        A new one has no password: invite them."""
        ...

    @operation("DELETE", OPERATOR, query=("username",))
    def deactivate_operator(self, *, username: str) -> None:
        """Sign the operator out and let them in no more."""
        ...

    @operation("POST", "/management/operators/invitation", query=("username",))
    def invite_operator(self, *, username: str) -> None:
        """Send the operator a link by mail, with which they choose a password."""
        ...

    @operation("DELETE", "/management/operators/invitation", query=("username",))
    def revoke_invitation(self, *, username: str) -> None:
        """End the link of an open invitation."""
        ...

    # Models and agents

    @operation("GET", TENANT + "/model")
    def get_tenant_model(self, slug: str) -> LanguageModel:
        """What the tenant has of its own; what is None is the hub's, or no cap."""
        ...

    @operation("PUT", TENANT + "/model")
    def put_tenant_model(
        self,
        slug: str,
        *,
        model: str | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        prompt_price: float | None = None,
        completion_price: float | None = None,
        daily_tokens: int | None = None,
        daily_cost: float | None = None,
        if_match: int | None = None,
    ) -> LanguageModel:
        """Give it these; what is left out is the hub's, or no cap. The key stays as long as the address does."""
        ...

    @operation("DELETE", TENANT + "/model")
    def delete_tenant_model(self, slug: str) -> None:
        """Ask the hub's model from now on, without caps."""
        ...

    @operation("POST", TENANT + "/model/test")
    def test_tenant_model(self, slug: str) -> ModelTest:
        """Ask the model of the tenant's calls for one word. What does not answer is refused with the call's code."""
        ...

    @listing(TENANT + "/agents")
    def list_tenant_agents(
        self, slug: str, *, agent_id: str | None = None, page_size: int | None = None, cursor: str | None = None
    ) -> Agent:
        """The agents of the tenant, newest first; with `agent_id` the one that its applications call so."""
        ...

    @operation("GET", TENANT + "/agents/{agent_id}")
    def get_tenant_agent(self, slug: str, agent_id: str) -> Agent: ...

    @operation("PATCH", TENANT + "/agents/{agent_id}")
    def change_tenant_agent(
        self,
        slug: str,
        agent_id: str,
        *,
        extraction: bool | Unset = UNSET,
        recall: bool | Unset = UNSET,
        guidance: str | Unset = UNSET,
    ) -> Agent:
        """Change the named switches and the guidance with an operator's word, by the hub's `id` of the agent."""
        ...

    # Profiles

    @operation("GET", TENANT + "/profiles")
    def list_tenant_profiles(self, slug: str) -> ProfileSchemas:
        """The profiles that the tenant defined, with their schemas."""
        ...

    @operation("GET", TENANT + "/profiles/{name}")
    def get_tenant_profile(self, slug: str, name: str) -> ProfileSchema: ...

    @operation("PUT", TENANT + "/profiles/{name}")
    def put_tenant_profile(
        self,
        slug: str,
        name: str,
        *,
        schema: dict[str, Any],
        agent_id: str | None = None,
        in_context: bool | None = None,
        if_match: int | None = None,
    ) -> ProfileSchema:
        """Define a profile by a JSON Schema of an object, or give it another one, from the next extraction on.

        With `agent_id` only that agent fills and is served it. `in_context`: every context tells it.
        """
        ...

    @operation("DELETE", TENANT + "/profiles/{name}")
    def delete_tenant_profile(self, slug: str, name: str, *, if_match: int | None = None) -> None:
        """Remove a profile. The facts that were its values stay facts."""
        ...

    # Keys

    @listing(TENANT + "/keys")
    def list_tenant_keys(self, slug: str, *, page_size: int | None = None, cursor: str | None = None) -> ManagedKey:
        """The keys of the tenant, newest first, without those that somebody revoked."""
        ...

    @operation("POST", TENANT + "/keys", nulls=("expires_at",))
    def create_tenant_key(
        self,
        slug: str,
        *,
        name: str,
        scopes: Sequence[KeyScope],
        id: str | None = None,
        agent_id: str | None = None,
        writes_as: WritesAs | None = None,
        memory_of: MemoryOf | None = None,
        expires_at: datetime | str | Unset | None = UNSET,
    ) -> MadeKey:
        """Make a key, which expires in a year unless `expires_at` says otherwise (None: never). With an `id` it is made
        once."""
        ...

    @operation("GET", KEY)
    def get_tenant_key(self, slug: str, key_id: str) -> ManagedKey: ...

    @operation("DELETE", KEY)
    def revoke_tenant_key(self, slug: str, key_id: str) -> None:
        """Refuse the key at once. This cannot be undone."""
        ...

    @operation("POST", KEY + "/rotate")
    def rotate_tenant_key(self, slug: str, key_id: str, *, overlap_seconds: int | None = None) -> MadeKey:
        """Make a new key like it. The old one works for a day, or as long as is said."""
        ...

    # Webhooks

    @listing(TENANT + "/webhooks")
    def list_webhooks(self, slug: str, *, page_size: int | None = None, cursor: str | None = None) -> Webhook:
        """The webhooks of the tenant, newest first."""
        ...

    @operation("POST", TENANT + "/webhooks")
    def add_webhook(
        self, slug: str, *, name: str, url: str, events: Sequence[EventName], content: bool | None = None
    ) -> MadeWebhook:
        """Add a webhook. An address is told once: a second webhook with it is refused."""
        ...

    @operation("GET", WEBHOOK)
    def get_webhook(self, slug: str, webhook_id: str) -> Webhook: ...

    @operation("PUT", WEBHOOK)
    def put_webhook(
        self,
        slug: str,
        webhook_id: str,
        *,
        name: str,
        url: str,
        events: Sequence[EventName],
        content: bool | None = None,
        if_match: int | None = None,
    ) -> Webhook:
        """Change a webhook. What waits goes to the new address."""
        ...

    @operation("DELETE", WEBHOOK)
    def delete_webhook(self, slug: str, webhook_id: str) -> None:
        """Delete a webhook, with its deliveries."""
        ...

    @operation("POST", WEBHOOK + "/rotate")
    def rotate_webhook_secret(self, slug: str, webhook_id: str) -> MadeWebhook:
        """Make a new secret. For a day the former one signs, too."""
        ...

    @operation("POST", WEBHOOK + "/disable")
    def disable_webhook(self, slug: str, webhook_id: str) -> Webhook:
        """Tell it nothing until it is enabled. What waits has failed."""
        ...

    @operation("POST", WEBHOOK + "/enable")
    def enable_webhook(self, slug: str, webhook_id: str) -> Webhook:
        """Tell it what happens from now on."""
        ...

    @operation("POST", WEBHOOK + "/test")
    def test_webhook(self, slug: str, webhook_id: str) -> None:
        """Send it a test. The deliveries say what came of it."""
        ...

    @operation("POST", WEBHOOK + "/send-again")
    def send_webhook_again(self, slug: str, webhook_id: str, *, delivery_id: str | None = None) -> SentAgain:
        """Send a delivery again, or all that failed."""
        ...

    @listing(WEBHOOK + "/deliveries")
    def list_webhook_deliveries(
        self, slug: str, webhook_id: str, *, page_size: int | None = None, cursor: str | None = None
    ) -> WebhookDelivery:
        """What came of its deliveries of the last 14 days, newest first."""
        ...
