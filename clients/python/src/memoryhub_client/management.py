"""Every operation for management keys: tenants, and operators.

`slug` is the tenant's. No memories are in it.

Written by `clients/python/generate.py` from the hub's OpenAPI document: change it there.
"""
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


class ManagementOperations:
    """What a hub can be asked."""

    @listing("/management/operators")
    def list_operators(self, *, page_size: int | None = None, cursor: str | None = None) -> Operator:
        """List the operators, newest first.

        The staff who sign in to the admin, also those who are no longer active. Needs a management key.
        """
        ...

    @operation("GET", "/management/operators/detail")
    def get_operator(self, *, username: str) -> Operator:
        """Get an operator. Needs a management key.

        `username`: What the operator signs in with.
        """
        ...

    @operation("PUT", "/management/operators/detail", query=("username",), nulls=("tenants",))
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
        """Make an operator, or give one this record.

        What the body leaves out is the default. A new one has no password: invite them. With `If-None-Match: *`
        one who exists is refused with 412. Superusers are changed in the admin alone. Needs a management key.

        `username`: What the operator signs in with.
        `tenants`: Slugs; null: every tenant.
        `roles`: Names of roles; without one they can do nothing.
        `email`: Where invitations and reminders go.
        `time_zone`: An IANA name.
        `is_active`: false: signed out, and not let in again.
        """
        ...

    @operation("DELETE", "/management/operators/detail")
    def deactivate_operator(self, *, username: str) -> None:
        """Deactivate an operator.

        They are signed out and not let in again, until their record says so. Operators are never deleted: the
        audit trail names them. Needs a management key.

        `username`: What the operator signs in with.
        """
        ...

    @operation("POST", "/management/operators/invitation", query=("username",))
    def invite_operator(self, *, username: str) -> None:
        """Send an operator a link to choose a password.

        By mail alone: no answer has the link. It works once, for three days; a former one works no more. Needs
        a management key.

        `username`: What the operator signs in with.
        """
        ...

    @operation("DELETE", "/management/operators/invitation")
    def revoke_invitation(self, *, username: str) -> None:
        """Revoke the open invitation of an operator. Needs a management key.

        `username`: What the operator signs in with.
        """
        ...

    @listing("/management/tenants")
    def list_tenants(
        self, *, offboarded: bool | None = None, page_size: int | None = None, cursor: str | None = None
    ) -> Tenant:
        """List the tenants that the key manages, newest first. Needs a management key.

        `offboarded`: true: only tenants that are off-boarded; false: only the others.
        """
        ...

    @operation("GET", "/management/tenants/{slug}")
    def get_tenant(self, slug: str) -> Tenant:
        """Get a tenant with its settings. Needs a management key."""
        ...

    @operation("PUT", "/management/tenants/{slug}")
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
        """Make a tenant, or give it these settings.

        What the body leaves out is the default. With `If-None-Match: *` a tenant that exists is refused with
        412. Needs a management key.

        `time_zone`: An IANA name, for end users without one of their own.
        `language`: Of contexts.
        `capture`: false: posted turns are answered 202 and not stored.
        `serve`: false: contexts are empty.
        `memory_of`: Whose memory sessions become.
        `extraction_guidance`: Instructions to the model on what to remember.
        `trust_assistant`: true: facts that only the assistant stated need no review.
        `signal_phrases`: Kind of signal → phrases instead of the hub's patterns.
        `context_log`: What is kept of each context.
        `file_seed`: First text of memory files.
        `dream_guide`: Instructions to the model for dreams.
        `dream_model`: Another model for dreams, at the same endpoint.
        `dream_files`: Paths of the memory files that dreams may edit; with a slash at its end it is a folder.
        `person_namespaces`: Patterns that say which label of a namespace of the store is an end user's id.
        `person_page`: true: people can open a page of their own memory.
        `person_may`: What they may do there, beside seeing: correct, forget, conversations, pause, export,
        erasure, readers.
        `person_color`: Of that page, like #0f766e.
        `numbers`: Name of a number of the rules → the tenant's own; null: the hub's.
        """
        ...

    @operation("PATCH", "/management/tenants/{slug}")
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
        """Change settings of a tenant.

        null is the default. Of `numbers` those that are named change, null being the hub's own. Needs a
        management key.

        `time_zone`: An IANA name, for end users without one of their own.
        `language`: Of contexts.
        `capture`: false: posted turns are answered 202 and not stored.
        `serve`: false: contexts are empty.
        `memory_of`: Whose memory sessions become.
        `extraction_guidance`: Instructions to the model on what to remember.
        `trust_assistant`: true: facts that only the assistant stated need no review.
        `signal_phrases`: Kind of signal → phrases instead of the hub's patterns.
        `context_log`: What is kept of each context.
        `file_seed`: First text of memory files.
        `dream_guide`: Instructions to the model for dreams.
        `dream_model`: Another model for dreams, at the same endpoint.
        `dream_files`: Paths of the memory files that dreams may edit; with a slash at its end it is a folder.
        `person_namespaces`: Patterns that say which label of a namespace of the store is an end user's id.
        `person_page`: true: people can open a page of their own memory.
        `person_may`: What they may do there, beside seeing: correct, forget, conversations, pause, export,
        erasure, readers.
        `person_color`: Of that page, like #0f766e.
        `numbers`: Name of a number of the rules → the tenant's own; null: the hub's.
        """
        ...

    @operation("DELETE", "/management/tenants/{slug}")
    def off_board_tenant(self, slug: str) -> None:
        """Off-board a tenant.

        Its keys no longer work, its webhooks are disabled, nothing is stored or served. Nothing is deleted:
        `take-back` undoes it. One that is off-boarded stays so. Needs a management key.
        """
        ...

    @listing("/management/tenants/{slug}/agents")
    def list_tenant_agents(
        self, slug: str, *, agent_id: str | None = None, page_size: int | None = None, cursor: str | None = None
    ) -> Agent:
        """List the agents of a tenant, newest first.

        An agent is listed once turns were posted with its `agent_id`. Needs a management key.

        `agent_id`: Only the agent that you call so.
        """
        ...

    @operation("GET", "/management/tenants/{slug}/agents/{agent_id}")
    def get_tenant_agent(self, slug: str, agent_id: str) -> Agent:
        """Get an agent of a tenant. Needs a management key."""
        ...

    @operation("PATCH", "/management/tenants/{slug}/agents/{agent_id}")
    def change_tenant_agent(
        self,
        slug: str,
        agent_id: str,
        *,
        extraction: bool | Unset = UNSET,
        recall: bool | Unset = UNSET,
        guidance: str | Unset = UNSET,
    ) -> Agent:
        """Change an agent's switches and guidance, with an operator's word.

        What it switches off, and its guidance, no key of the tenant changes. Needs a management key.

        `extraction`: false: turns of its sessions are stored and wait.
        `recall`: false: its contexts and searches are empty.
        `guidance`: Instructions to the model for its sessions, after those of the tenant.
        """
        ...

    @listing("/management/tenants/{slug}/keys")
    def list_tenant_keys(self, slug: str, *, page_size: int | None = None, cursor: str | None = None) -> ManagedKey:
        """List the keys of a tenant, newest first. Without those that somebody revoked. Needs a management key."""
        ...

    @operation("POST", "/management/tenants/{slug}/keys", nulls=("expires_at",))
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
        """Make a key of a tenant.

        The answer has its `secret`, once. With an `id` of yours a second request answers 409 and makes no
        second key. Needs a management key.

        `name`: What uses it.
        `id`: A UUID of yours: with it the key is made once, however often this is sent.
        `agent_id`: The only agent that it is for.
        `writes_as`: Whose words it writes.
        `memory_of`: Whose memory sessions become that it opens.
        `expires_at`: In 365 days unless given; null: never.
        """
        ...

    @operation("GET", "/management/tenants/{slug}/keys/{key_id}")
    def get_tenant_key(self, slug: str, key_id: str) -> ManagedKey:
        """Get a key of a tenant. Needs a management key."""
        ...

    @operation("DELETE", "/management/tenants/{slug}/keys/{key_id}")
    def revoke_tenant_key(self, slug: str, key_id: str) -> None:
        """Revoke a key of a tenant.

        It fails at once and is not found any more. This cannot be undone. Needs a management key.
        """
        ...

    @operation("POST", "/management/tenants/{slug}/keys/{key_id}/rotate")
    def rotate_tenant_key(self, slug: str, key_id: str, *, overlap_seconds: int | None = None) -> MadeKey:
        """Rotate a key of a tenant.

        The answer is a new key like it, with its `secret`, once. The old one works for a while. Needs a
        management key.

        `overlap_seconds`: So long the old key works, too.
        """
        ...

    @operation("GET", "/management/tenants/{slug}/model")
    def get_tenant_model(self, slug: str) -> LanguageModel:
        """Get a tenant's own language model. What is null is the hub's, or no cap. Needs a management key."""
        ...

    @operation("PUT", "/management/tenants/{slug}/model")
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
        sees_pictures: bool | None = None,
        if_match: int | None = None,
    ) -> LanguageModel:
        """Give a tenant a language model of its own.

        What the body leaves out is the hub's, or no cap; the key of the endpoint stays as long as its address
        does. What waited for another endpoint or for a cap is then due. Needs a management key.

        `model`: The model's name at the endpoint.
        `base_url`: The endpoint: https://, and on the public internet.
        `api_key`: Of the endpoint; no answer has it. Left out: the stored one, if the address stays. Empty:
        none.
        `prompt_price`: US dollars for a million tokens read.
        `completion_price`: US dollars for a million tokens written.
        `daily_tokens`: Cap of a day, read and written.
        `daily_cost`: Cap of a day, in US dollars.
        `sees_pictures`: Pictures that come with turns are sent to the model in force, which describes them.
        """
        ...

    @operation("DELETE", "/management/tenants/{slug}/model")
    def delete_tenant_model(self, slug: str) -> None:
        """Take a tenant's own language model away.

        With its key, prices and caps. The hub's is asked from now on. Needs a management key.
        """
        ...

    @operation("POST", "/management/tenants/{slug}/model/test")
    def test_tenant_model(self, slug: str) -> ModelTest:
        """Ask the model of a tenant's calls for one word.

        Its own or the hub's, as its calls do, without anybody's data; within 10 seconds. What does not answer
        is a 409 with the call's `code`, such as `model_timeout` or `model_misconfigured`. Needs a management
        key.
        """
        ...

    @operation("GET", "/management/tenants/{slug}/profiles")
    def list_tenant_profiles(self, slug: str) -> ProfileSchemas:
        """List the profiles of a tenant, with their schemas. Needs a management key."""
        ...

    @operation("GET", "/management/tenants/{slug}/profiles/{name}")
    def get_tenant_profile(self, slug: str, name: str) -> ProfileSchema:
        """Get a profile of a tenant with its schema. Needs a management key."""
        ...

    @operation("PUT", "/management/tenants/{slug}/profiles/{name}")
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
        """Define a profile by a JSON Schema, or give it another one.

        From the next extraction on. Values of a field that is gone are no values of a later one of the same
        name; values that the schema no longer allows are not served, and named as `invalid`. Needs a management
        key.

        `schema`: A JSON Schema of an object; which keywords are accepted is in the documentation.
        `agent_id`: Only this agent fills and is served it; null: every agent.
        `in_context`: true: every context tells it.
        """
        ...

    @operation("DELETE", "/management/tenants/{slug}/profiles/{name}")
    def delete_tenant_profile(self, slug: str, name: str, *, if_match: int | None = None) -> None:
        """Remove a profile of a tenant.

        Nothing fills or serves it any more. The facts that were its values stay facts. Needs a management key.
        """
        ...

    @operation("POST", "/management/tenants/{slug}/take-back")
    def take_back_tenant(self, slug: str) -> Tenant:
        """Undo the off-boarding of a tenant.

        Its keys, switches and webhooks are as before. Needs a management key.
        """
        ...

    @listing("/management/tenants/{slug}/webhooks")
    def list_webhooks(self, slug: str, *, page_size: int | None = None, cursor: str | None = None) -> Webhook:
        """List the webhooks of a tenant, newest first. Needs a management key."""
        ...

    @operation("POST", "/management/tenants/{slug}/webhooks")
    def add_webhook(
        self, slug: str, *, name: str, url: str, events: Sequence[EventName], content: bool | None = None
    ) -> MadeWebhook:
        """Add a webhook to a tenant.

        The answer has its `secret`, once. A second one with the same address answers 409. Needs a management
        key.

        `url`: It begins with https:// and leads to the public internet.
        `content`: true: events have texts and the application's ids, too.
        """
        ...

    @operation("GET", "/management/tenants/{slug}/webhooks/{webhook_id}")
    def get_webhook(self, slug: str, webhook_id: str) -> Webhook:
        """Get a webhook of a tenant. Needs a management key."""
        ...

    @operation("PUT", "/management/tenants/{slug}/webhooks/{webhook_id}")
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
        """Change a webhook of a tenant. What waits goes to the new address. Needs a management key.

        `url`: It begins with https:// and leads to the public internet.
        `content`: true: events have texts and the application's ids, too.
        """
        ...

    @operation("DELETE", "/management/tenants/{slug}/webhooks/{webhook_id}")
    def delete_webhook(self, slug: str, webhook_id: str) -> None:
        """Delete a webhook of a tenant, with its deliveries. Needs a management key."""
        ...

    @listing("/management/tenants/{slug}/webhooks/{webhook_id}/deliveries")
    def list_webhook_deliveries(
        self, slug: str, webhook_id: str, *, page_size: int | None = None, cursor: str | None = None
    ) -> WebhookDelivery:
        """List the deliveries of a webhook, newest first.

        Those of the last 14 days, without what they are about. Needs a management key.
        """
        ...

    @operation("POST", "/management/tenants/{slug}/webhooks/{webhook_id}/disable")
    def disable_webhook(self, slug: str, webhook_id: str) -> Webhook:
        """Disable a webhook.

        It is told nothing until it is enabled, and what waits for it has failed. Needs a management key.
        """
        ...

    @operation("POST", "/management/tenants/{slug}/webhooks/{webhook_id}/enable")
    def enable_webhook(self, slug: str, webhook_id: str) -> Webhook:
        """Enable a webhook. It is told what happens from now on. Needs a management key."""
        ...

    @operation("POST", "/management/tenants/{slug}/webhooks/{webhook_id}/rotate")
    def rotate_webhook_secret(self, slug: str, webhook_id: str) -> MadeWebhook:
        """Rotate the secret of a webhook.

        The answer has the new `secret`, once. For a day the former one signs, too. Needs a management key.
        """
        ...

    @operation("POST", "/management/tenants/{slug}/webhooks/{webhook_id}/send-again")
    def send_webhook_again(self, slug: str, webhook_id: str, *, delivery_id: str | None = None) -> SentAgain:
        """Send a delivery again, or all that failed. Needs a management key.

        `delivery_id`: One delivery; without it all that failed.
        """
        ...

    @operation("POST", "/management/tenants/{slug}/webhooks/{webhook_id}/test")
    def test_webhook(self, slug: str, webhook_id: str) -> None:
        """Send a webhook a test.

        A worker sends it within seconds; the deliveries say what came of it. Needs a management key.
        """
        ...
