"""/management: tenants with their settings, language models, agents, keys and webhooks, and the hub's operators.

The address names the tenant; a management key for one tenant finds no other. Nothing here shows a memory or a person.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from memories.api import lookups
from memories.api.endpoints import ManagementEndpoint
from memories.api.schema import etag, if_match, if_none_match, management
from memories.api.v1.agents.serializers import AgentChangesSerializer, AgentSerializer, AgentsQuery
from memories.api.v1.agents.views import listed_agents
from memories.api.v1.fields import PageQuery, page_of
from memories.api.v1.filters import selected
from memories.api.v1.management.serializers import (
    LanguageModelSerializer,
    MadeKeySerializer,
    MadeWebhookSerializer,
    ManagedKeySerializer,
    ModelSettingsSerializer,
    ModelTestSerializer,
    NewKeySerializer,
    OperatorQuery,
    OperatorSerializer,
    OperatorSettingsSerializer,
    RotationSerializer,
    SendAgainSerializer,
    SentAgainSerializer,
    TenantChangesSerializer,
    TenantSerializer,
    TenantSettingsSerializer,
    TenantsQuery,
    WebhookDeliverySerializer,
    WebhookSerializer,
    WebhookSettingsSerializer,
)
from memories.curation.access.invitations import invite_by_mail, revoke_invitation
from memories.curation.access.keys import DEFAULT_DAYS, Binding, create_api_key, revoke_api_key, rotate_api_key
from memories.curation.access.operators import check_username, deactivate_operator, put_operator
from memories.curation.tenants import webhooks
from memories.curation.tenants.agents import change_agent
from memories.curation.tenants.language_models import ModelSettings, save_language_model, try_language_model
from memories.curation.tenants.off_boarding import off_board_tenant, take_back_tenant
from memories.curation.tenants.settings import change_tenant, check_not_off_boarded, put_tenant, version_of
from memories.exceptions import Conflict, InvalidInput, KeyBound, NotFound
from memories.llm.addresses import PRIVATE
from memories.models import (
    ActorKind,
    Agent,
    APIKey,
    LanguageModel,
    Operator,
    Tenant,
    WebhookDelivery,
    WebhookEndpoint,
)
from memories.models.access.api_keys import OPERATORS


@contextmanager
def _pointing_into_body() -> Iterator[None]:
    """Faults of the verbs name fields; those of a body are JSON pointers."""
    try:
        yield
    except (InvalidInput, Conflict) as error:
        # The admin's forms tell a private address apart; for applications an address is valid or not.
        codes = {PRIVATE: InvalidInput.code}
        faults = [replace(one, pointer=f"/{one.pointer}", code=codes.get(one.code, one.code)) for one in error.faults]
        raise type(error)(error.detail, faults=faults) from None


def _shown(tenant: Tenant, *, status: int = 200) -> Response:
    return Response(TenantSerializer(tenant).data, status=status, headers={"ETag": f'"{version_of(tenant)}"'})


class TenantsView(ManagementEndpoint):
    @management(
        "listTenants",
        "List the tenants that the key manages, newest first",
        parameters=[TenantsQuery],
        answers={200: page_of(TenantSerializer)},
    )
    def get(self, request: Request) -> Response:
        given = self.query(TenantsQuery)
        tenants = selected(self.tenants(), TenantsQuery, given)
        return self.listed(tenants, TenantSerializer, given=given)


class TenantView(ManagementEndpoint):
    @management(
        "getTenant",
        "Get a tenant with its settings",
        parameters=[etag(200)],
        answers={200: TenantSerializer},
        problems=(404,),
    )
    def get(self, request: Request, slug: str) -> Response:
        return _shown(self.tenant)

    @management(
        "putTenant",
        "Make a tenant, or give it these settings",
        description=(
            "What the body leaves out is the default. With `If-None-Match: *` a tenant that exists is refused with 412."
        ),
        request=TenantSettingsSerializer,
        parameters=[if_match(), if_none_match(), etag(200, 201)],
        answers={200: TenantSerializer, 201: TenantSerializer},
        problems=(404, 409, 412),
    )
    def put(self, request: Request, slug: str) -> Response:
        given = self.body(TenantSettingsSerializer)
        if self.caller.key.tenant_id:
            # Found, or it would make one.
            _ = self.tenant
        with _pointing_into_body():
            try:
                Tenant._meta.get_field("slug").clean(slug, None)
            except ValidationError:
                raise InvalidInput.at("slug", "A slug has 1 to 63 letters, digits, - and _.") from None
            tenant, was_made = put_tenant(
                slug=slug,
                settings=given,
                expected_version=self.expected_version(),
                only_new=(request.headers.get("If-None-Match") or "").strip() == "*",
                actor=self.actor,
                now=self.now,
            )
        return _shown(tenant, status=201 if was_made else 200)

    @management(
        "changeTenant",
        "Change settings of a tenant",
        description="null is the default. Of `numbers` those that are named change, null being the hub's own.",
        request=TenantChangesSerializer,
        parameters=[if_match(), etag(200)],
        answers={200: TenantSerializer},
        problems=(404, 409, 412),
    )
    def patch(self, request: Request, slug: str) -> Response:
        changes = self.body(TenantChangesSerializer)
        with _pointing_into_body():
            tenant = change_tenant(
                tenant_id=self.tenant.pk,
                changes=changes,
                expected_version=self.expected_version(),
                actor=self.actor,
                now=self.now,
            )
        return _shown(tenant)

    @management(
        "offBoardTenant",
        "Off-board a tenant",
        description=(
            "Its keys no longer work, its webhooks are disabled, nothing is stored or served. Nothing is deleted: "
            "`take-back` undoes it. One that is off-boarded stays so."
        ),
        answers={204: None},
        problems=(404,),
    )
    def delete(self, request: Request, slug: str) -> Response:
        if not self.tenant.offboarded_at:
            # Somebody else may do it at this moment.
            with suppress(Conflict):
                off_board_tenant(tenant_id=self.tenant.pk, expected_keys=None, actor=self.actor, now=self.now)
        return Response(status=204)


class TakeBackView(ManagementEndpoint):
    @management(
        "takeBackTenant",
        "Undo the off-boarding of a tenant",
        description="Its keys, switches and webhooks are as before.",
        parameters=[etag(200)],
        answers={200: TenantSerializer},
        problems=(404, 409),
    )
    def post(self, request: Request, slug: str) -> Response:
        return _shown(take_back_tenant(tenant_id=self.tenant.pk, actor=self.actor, now=self.now))


class TenantModelView(ManagementEndpoint):
    @management(
        "getTenantModel",
        "Get a tenant's own language model",
        description="What is null is the hub's, or no cap.",
        parameters=[etag(200)],
        answers={200: LanguageModelSerializer},
        problems=(404,),
    )
    def get(self, request: Request, slug: str) -> Response:
        found = LanguageModel.objects.filter(tenant=self.tenant).first()
        return self.versioned(found or LanguageModel(tenant=self.tenant, version=0), LanguageModelSerializer)

    @management(
        "putTenantModel",
        "Give a tenant a language model of its own",
        description=(
            "What the body leaves out is the hub's, or no cap; the key of the endpoint stays as long as its address "
            "does. What waited for another endpoint or for a cap is then due."
        ),
        request=ModelSettingsSerializer,
        parameters=[if_match(), etag(200)],
        answers={200: LanguageModelSerializer},
        problems=(404, 409, 412),
    )
    def put(self, request: Request, slug: str) -> Response:
        return self.versioned(self.saved(self.body(ModelSettingsSerializer)), LanguageModelSerializer)

    @management(
        "deleteTenantModel",
        "Take a tenant's own language model away",
        description="With its key, prices and caps. The hub's is asked from now on.",
        answers={204: None},
        problems=(404, 409),
    )
    def delete(self, request: Request, slug: str) -> Response:
        self.saved({})
        return Response(status=204)

    def saved(self, given: dict[str, Any]) -> LanguageModel:
        for name in ("model", "base_url"):
            given[name] = given.get(name) or ""
        with _pointing_into_body():
            return save_language_model(
                tenant_id=self.tenant.pk,
                settings=ModelSettings(**given),
                expected_version=self.expected_version(),
                actor=self.actor,
                now=self.now,
            )


class ModelTestView(ManagementEndpoint):
    @management(
        "testTenantModel",
        "Ask the model of a tenant's calls for one word",
        description=(
            "Its own or the hub's, as its calls do, without anybody's data; within 10 seconds. What does not answer is "
            "a 409 with the call's `code`, such as `model_timeout` or `model_misconfigured`."
        ),
        answers={200: ModelTestSerializer},
        problems=(404, 409),
    )
    def post(self, request: Request, slug: str) -> Response:
        check_not_off_boarded(self.tenant)
        return Response(ModelTestSerializer(try_language_model(tenant_id=self.tenant.pk)).data)


class TenantAgentsView(ManagementEndpoint):
    @management(
        "listTenantAgents",
        "List the agents of a tenant, newest first",
        description="An agent is listed once turns were posted with its `agent_id`.",
        parameters=[AgentsQuery],
        answers={200: page_of(AgentSerializer)},
        problems=(404,),
    )
    def get(self, request: Request, slug: str) -> Response:
        return listed_agents(self, Agent.objects.filter(tenant=self.tenant))


class TenantAgentView(ManagementEndpoint):
    @management("getTenantAgent", "Get an agent of a tenant", answers={200: AgentSerializer}, problems=(404,))
    def get(self, request: Request, slug: str, agent_id: UUID) -> Response:
        return Response(self.shown(lookups.agent(tenant=self.tenant, agent_id=agent_id), AgentSerializer))

    @management(
        "changeTenantAgent",
        "Change an agent's switches and guidance, with an operator's word",
        description="What it switches off, and its guidance, no key of the tenant changes.",
        request=AgentChangesSerializer,
        answers={200: AgentSerializer},
        problems=(404, 409),
    )
    def patch(self, request: Request, slug: str, agent_id: UUID) -> Response:
        changes = self.body(AgentChangesSerializer)
        agent = lookups.agent(tenant=self.tenant, agent_id=agent_id)
        changed = change_agent(agent=agent, changes=changes, by=ActorKind.OPERATOR, actor=self.actor, now=self.now)
        return Response(self.shown(changed, AgentSerializer))


class _OperatorsEndpoint(ManagementEndpoint):
    """Operators are of the whole hub, and a key that makes them can open what they can: it is made for that."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if self.caller.key.tenant_id or OPERATORS not in self.caller.key.gives:
            raise KeyBound("This management key manages no operators. Make one with --operators.")

    @property
    def username(self) -> str:
        return str(self.query(OperatorQuery)["username"])

    @property
    def operator(self) -> Operator:
        """Errors: NotFound."""
        found = Operator.objects.filter(username=self.username).first()
        if found is None:
            raise NotFound
        return found

    def answered(self, operator: Operator, *, status: int = 200) -> Response:
        shown = OperatorSerializer(operator).data
        return Response(shown, status=status, headers={"ETag": f'"{shown["version"]}"'})


class OperatorsView(_OperatorsEndpoint):
    @management(
        "listOperators",
        "List the operators, newest first",
        description="The staff who sign in to the admin, also those who are no longer active.",
        parameters=[PageQuery],
        answers={200: page_of(OperatorSerializer)},
    )
    def get(self, request: Request) -> Response:
        rows = Operator.objects.prefetch_related("groups", "tenants", "authenticator_set")
        return self.listed(rows, OperatorSerializer, given=self.query(PageQuery), ordering=("-date_joined", "-id"))


class OperatorView(_OperatorsEndpoint):
    @management(
        "getOperator",
        "Get an operator",
        parameters=[OperatorQuery, etag(200)],
        answers={200: OperatorSerializer},
        problems=(404,),
    )
    def get(self, request: Request) -> Response:
        return self.answered(self.operator)

    @management(
        "putOperator",
        "Make an operator, or give one this record",
        description=(
            "What the body leaves out is the default. A new one has no password: invite them. With `If-None-Match: *` "
            "one who exists is refused with 412. Superusers are changed in the admin alone."
        ),
        request=OperatorSettingsSerializer,
        parameters=[OperatorQuery, if_match(), if_none_match(), etag(200, 201)],
        answers={200: OperatorSerializer, 201: OperatorSerializer},
        problems=(409, 412),
    )
    def put(self, request: Request) -> Response:
        username, given = self.username, self.body(OperatorSettingsSerializer)
        check_username(username)
        with _pointing_into_body():
            operator, was_made = put_operator(
                username=username,
                settings=given,
                expected_version=self.expected_version(),
                only_new=(request.headers.get("If-None-Match") or "").strip() == "*",
                actor=self.actor,
                now=self.now,
            )
        return self.answered(operator, status=201 if was_made else 200)

    @management(
        "deactivateOperator",
        "Deactivate an operator",
        description=(
            "They are signed out and not let in again, until their record says so. Operators are never deleted: the "
            "audit trail names them."
        ),
        parameters=[OperatorQuery],
        answers={204: None},
        problems=(404, 409),
    )
    def delete(self, request: Request) -> Response:
        deactivate_operator(operator_id=self.operator.pk, actor=self.actor, now=self.now)
        return Response(status=204)


class InvitationView(_OperatorsEndpoint):
    @management(
        "inviteOperator",
        "Send an operator a link to choose a password",
        description="By mail alone: no answer has the link. It works once, for three days; a former one works no more.",
        parameters=[OperatorQuery],
        answers={204: None},
        problems=(404, 409),
    )
    def post(self, request: Request) -> Response:
        invite_by_mail(operator_id=self.operator.pk, actor=self.actor, now=self.now)
        return Response(status=204)

    @management(
        "revokeInvitation",
        "Revoke the open invitation of an operator",
        parameters=[OperatorQuery],
        answers={204: None},
        problems=(404, 409),
    )
    def delete(self, request: Request) -> Response:
        revoke_invitation(operator_id=self.operator.pk, actor=self.actor, now=self.now)
        return Response(status=204)


class _KeysEndpoint(ManagementEndpoint):
    def keys(self) -> QuerySet[APIKey]:
        """Those of the tenant, but for those that somebody revoked: they are gone."""
        shown = Q(revoked_at=None) | Q(revoked_with_tenant=True)
        return APIKey.objects.filter(shown, tenant=self.tenant)

    def key(self, key_id: UUID) -> APIKey:
        """Errors: NotFound."""
        found = self.keys().select_related("tenant").filter(pk=key_id).first()
        if found is None:
            raise NotFound
        return found

    def check_gives(self, scopes: list[str]) -> None:
        """Errors: KeyBound, if the management key may not give one of these scopes."""
        gives = self.caller.key.gives
        if not set(scopes) <= set(gives):
            scopes = [scope for scope in gives if scope != OPERATORS]
            raise KeyBound(f"This management key may give these scopes: {', '.join(scopes)}.")

    def made(self, key: APIKey, secret: str) -> Response:
        return Response(MadeKeySerializer(key, context={"secret": secret}).data, status=201)


class TenantKeysView(_KeysEndpoint):
    @management(
        "listTenantKeys",
        "List the keys of a tenant, newest first",
        description="Without those that somebody revoked.",
        parameters=[PageQuery],
        answers={200: page_of(ManagedKeySerializer)},
        problems=(404,),
    )
    def get(self, request: Request, slug: str) -> Response:
        given = self.query(PageQuery)
        return self.listed(self.keys(), ManagedKeySerializer, given=given)

    @management(
        "createTenantKey",
        "Make a key of a tenant",
        description=(
            "The answer has its `secret`, once. With an `id` of yours a second request answers 409 and makes no second "
            "key."
        ),
        request=NewKeySerializer,
        answers={201: MadeKeySerializer},
        problems=(404, 409),
    )
    def post(self, request: Request, slug: str) -> Response:
        given = self.body(NewKeySerializer)
        self.check_gives(given["scopes"])
        expires_at = given.get("expires_at", self.now + timedelta(days=DEFAULT_DAYS))
        if expires_at and expires_at <= self.now:
            raise InvalidInput.at("/expires_at", "This moment is past. Give a later one, or null for never.")
        with _pointing_into_body():
            key, secret = create_api_key(
                tenant=self.tenant,
                name=given["name"],
                scopes=list(dict.fromkeys(given["scopes"])),
                expires_at=expires_at,
                binding=Binding(
                    agent_id=given.get("agent_id") or "",
                    writes_as=given.get("writes_as") or "",
                    memory_of=given.get("memory_of") or "",
                ),
                key_id=given.get("id"),
                actor=self.actor,
                now=self.now,
            )
        return self.made(key, secret)


class TenantKeyView(_KeysEndpoint):
    @management("getTenantKey", "Get a key of a tenant", answers={200: ManagedKeySerializer}, problems=(404,))
    def get(self, request: Request, slug: str, key_id: UUID) -> Response:
        return Response(ManagedKeySerializer(self.key(key_id)).data)

    @management(
        "revokeTenantKey",
        "Revoke a key of a tenant",
        description="It fails at once and is not found any more. This cannot be undone.",
        answers={204: None},
        problems=(404,),
    )
    def delete(self, request: Request, slug: str, key_id: UUID) -> Response:
        revoke_api_key(key=self.key(key_id), actor=self.actor, now=self.now)
        return Response(status=204)


class KeyRotationView(_KeysEndpoint):
    @management(
        "rotateTenantKey",
        "Rotate a key of a tenant",
        description="The answer is a new key like it, with its `secret`, once. The old one works for a while.",
        request=RotationSerializer,
        answers={201: MadeKeySerializer},
        problems=(404, 409),
    )
    def post(self, request: Request, slug: str, key_id: UUID) -> Response:
        given, key = self.body(RotationSerializer), self.key(key_id)
        self.check_gives(key.scopes)
        ends_at = self.now + timedelta(seconds=given["overlap_seconds"])
        return self.made(*rotate_api_key(key=key, ends_at=ends_at, actor=self.actor, now=self.now))


class _WebhookView(ManagementEndpoint):
    def webhook(self, webhook_id: UUID) -> WebhookEndpoint:
        """Errors: NotFound."""
        found = WebhookEndpoint.objects.filter(tenant=self.tenant, pk=webhook_id).first()
        if found is None:
            raise NotFound
        return found

    def made(self, webhook: WebhookEndpoint, secret: str, *, status: int) -> Response:
        shown = MadeWebhookSerializer(webhook, context={"secret": secret}).data
        return Response(shown, status=status, headers={"ETag": f'"{webhook.version}"'})

    def acting(self) -> dict[str, Any]:
        return {"actor": self.actor, "now": self.now}


class WebhooksView(_WebhookView):
    @management(
        "listWebhooks",
        "List the webhooks of a tenant, newest first",
        parameters=[PageQuery],
        answers={200: page_of(WebhookSerializer)},
        problems=(404,),
    )
    def get(self, request: Request, slug: str) -> Response:
        given = self.query(PageQuery)
        return self.listed(WebhookEndpoint.objects.filter(tenant=self.tenant), WebhookSerializer, given=given)

    @management(
        "addWebhook",
        "Add a webhook to a tenant",
        description="The answer has its `secret`, once. A second one with the same address answers 409.",
        request=WebhookSettingsSerializer,
        parameters=[etag(201)],
        answers={201: MadeWebhookSerializer},
        problems=(404, 409),
    )
    def post(self, request: Request, slug: str) -> Response:
        settings = webhooks.WebhookSettings(**self.body(WebhookSettingsSerializer))
        with _pointing_into_body():
            made, secret = webhooks.add_webhook(tenant_id=self.tenant.pk, settings=settings, **self.acting())
        return self.made(made, secret, status=201)


class WebhookView(_WebhookView):
    @management(
        "getWebhook",
        "Get a webhook of a tenant",
        parameters=[etag(200)],
        answers={200: WebhookSerializer},
        problems=(404,),
    )
    def get(self, request: Request, slug: str, webhook_id: UUID) -> Response:
        return self.versioned(self.webhook(webhook_id), WebhookSerializer)

    @management(
        "putWebhook",
        "Change a webhook of a tenant",
        description="What waits goes to the new address.",
        request=WebhookSettingsSerializer,
        parameters=[if_match(), etag(200)],
        answers={200: WebhookSerializer},
        problems=(404, 409, 412),
    )
    def put(self, request: Request, slug: str, webhook_id: UUID) -> Response:
        settings = webhooks.WebhookSettings(**self.body(WebhookSettingsSerializer))
        with _pointing_into_body():
            changed = webhooks.change_webhook(
                webhook_id=self.webhook(webhook_id).pk,
                settings=settings,
                expected_version=self.expected_version(),
                **self.acting(),
            )
        return self.versioned(changed, WebhookSerializer)

    @management(
        "deleteWebhook",
        "Delete a webhook of a tenant, with its deliveries",
        answers={204: None},
        problems=(404,),
    )
    def delete(self, request: Request, slug: str, webhook_id: UUID) -> Response:
        webhooks.delete_webhook(webhook_id=self.webhook(webhook_id).pk, **self.acting())
        return Response(status=204)


class WebhookRotationView(_WebhookView):
    @management(
        "rotateWebhookSecret",
        "Rotate the secret of a webhook",
        description="The answer has the new `secret`, once. For a day the former one signs, too.",
        parameters=[etag(200)],
        answers={200: MadeWebhookSerializer},
        problems=(404,),
    )
    def post(self, request: Request, slug: str, webhook_id: UUID) -> Response:
        rotated, secret = webhooks.rotate_secret(webhook_id=self.webhook(webhook_id).pk, **self.acting())
        return self.made(rotated, secret, status=200)


class WebhookDisablingView(_WebhookView):
    @management(
        "disableWebhook",
        "Disable a webhook",
        description="It is told nothing until it is enabled, and what waits for it has failed.",
        parameters=[etag(200)],
        answers={200: WebhookSerializer},
        problems=(404, 409),
    )
    def post(self, request: Request, slug: str, webhook_id: UUID) -> Response:
        disabled = webhooks.disable_webhook(webhook_id=self.webhook(webhook_id).pk, **self.acting())
        return self.versioned(disabled, WebhookSerializer)


class WebhookEnablingView(_WebhookView):
    @management(
        "enableWebhook",
        "Enable a webhook",
        description="It is told what happens from now on.",
        parameters=[etag(200)],
        answers={200: WebhookSerializer},
        problems=(404, 409),
    )
    def post(self, request: Request, slug: str, webhook_id: UUID) -> Response:
        enabled = webhooks.enable_webhook(webhook_id=self.webhook(webhook_id).pk, **self.acting())
        return self.versioned(enabled, WebhookSerializer)


class WebhookTestView(_WebhookView):
    @management(
        "testWebhook",
        "Send a webhook a test",
        description="A worker sends it within seconds; the deliveries say what came of it.",
        answers={204: None},
        problems=(404, 409),
    )
    def post(self, request: Request, slug: str, webhook_id: UUID) -> Response:
        webhooks.send_test(webhook_id=self.webhook(webhook_id).pk, **self.acting())
        return Response(status=204)


class SendingAgainView(_WebhookView):
    @management(
        "sendWebhookAgain",
        "Send a delivery again, or all that failed",
        request=SendAgainSerializer,
        answers={200: SentAgainSerializer},
        problems=(404, 409),
    )
    def post(self, request: Request, slug: str, webhook_id: UUID) -> Response:
        given, webhook = self.body(SendAgainSerializer), self.webhook(webhook_id)
        chosen = given.get("delivery_id")
        count = webhooks.send_again(webhook_id=webhook.pk, delivery_id=chosen, **self.acting())
        return Response({"count": count})


class WebhookDeliveriesView(_WebhookView):
    @management(
        "listWebhookDeliveries",
        "List the deliveries of a webhook, newest first",
        description="Those of the last 14 days, without what they are about.",
        parameters=[PageQuery],
        answers={200: page_of(WebhookDeliverySerializer)},
        problems=(404,),
    )
    def get(self, request: Request, slug: str, webhook_id: UUID) -> Response:
        given, webhook = self.query(PageQuery), self.webhook(webhook_id)
        rows = WebhookDelivery.objects.filter(endpoint=webhook)
        return self.listed(rows, WebhookDeliverySerializer, given=given, ordering=("-occurred_at", "-id"))
