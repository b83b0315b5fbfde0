"""API keys: `Authorization: Bearer mh_<prefix>_<secret>`, or `X-API-Key` with the key alone.

The key alone decides tenant and scopes. A management key (`mhm_…`) is of no tenant and lets in to /management alone:
the address names the tenant there, and nothing there has memories in it."""

from dataclasses import dataclass
from typing import ClassVar

from django.utils import timezone
from django.views import View
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from memories.api.request_ids import request_id_of
from memories.audit import Actor, kept_request_id
from memories.curation.access.keys import authenticate_key, authenticate_management_key
from memories.db import tenancy
from memories.models import ActorKind, APIKey, ManagementKey, Tenant
from memories.telemetry import log_fields

_UNKNOWN = "This API key is not known, or has expired or been revoked."


@dataclass(frozen=True)
class Caller:
    """The API key that calls, and its tenant."""

    key: APIKey
    actor: Actor
    is_authenticated: ClassVar[bool] = True

    @property
    def tenant(self) -> Tenant:
        return self.key.tenant

    @property
    def user_id(self) -> str:
        """The caller's id of the only person whom the key is for; empty for everybody."""
        return self.key.user_id

    @property
    def agent_id(self) -> str:
        """The only agent that the key is for, lower-cased; empty for every agent."""
        return self.key.agent_id

    @property
    def is_bound(self) -> bool:
        return bool(self.user_id or self.agent_id)


@dataclass(frozen=True)
class ManagementCaller:
    """The management key that calls."""

    key: ManagementKey
    actor: Actor
    is_authenticated: ClassVar[bool] = True


# For whoever holds a key of the other kind.
IS_MANAGEMENT_KEY = "This is a management key, which lets in to /api/v1/management alone. Use a key of the tenant."
NO_MANAGEMENT_KEY = (
    "This is a key of a tenant. /api/v1/management takes management keys (mhm_…), which the server makes."
)


def caller_of(request: Request) -> Caller | None:
    """The caller that KeyAuthentication found."""
    user: object = request.user
    return user if isinstance(user, Caller) else None


class KeyAuthentication(BaseAuthentication):
    """One query per request: the key with its tenant."""

    def authenticate(self, request: Request) -> tuple[Caller, APIKey] | None:
        """The caller and the key; None without a header. Errors: AuthenticationFailed, the same for every reason."""
        plaintext = _plaintext_of(request)
        if plaintext is None:
            return None
        key = find_key(plaintext)
        if key is None:
            if is_management_key(plaintext):
                raise PermissionDenied(IS_MANAGEMENT_KEY, code="management_key")
            raise AuthenticationFailed(_UNKNOWN)
        log_fields.note_tenant(key.tenant.slug)
        request._request.META[log_fields.ANSWERED_TENANT] = key.tenant.slug
        actor = Actor(kind=ActorKind.KEY, id=str(key.pk), request_id=kept_request_id(request_id_of(request)))
        return Caller(key=key, actor=actor), key

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="memory-hub"'


def find_key(plaintext: str) -> APIKey | None:
    """The usable key with this plaintext, or None. Statements of this request see its tenant from now on."""
    if not plaintext:
        return None
    # Whose it is, is asked of all.
    with tenancy.everything():
        key = authenticate_key(plaintext=plaintext, now=timezone.now())
    if key is not None:
        tenancy.set_current(tenancy.of_one(key.tenant_id))
    return key


class ManagementAuthentication(BaseAuthentication):
    """The key of a management call: one query per request."""

    def authenticate(self, request: Request) -> tuple[ManagementCaller, ManagementKey] | None:
        """The caller and the key; None without a header. Errors: AuthenticationFailed; PermissionDenied for a tenant's
        key."""
        plaintext = _plaintext_of(request)
        if plaintext is None:
            return None
        with tenancy.everything():
            key = authenticate_management_key(plaintext=plaintext, now=timezone.now())
        if key is None:
            if find_key(plaintext):
                raise PermissionDenied(NO_MANAGEMENT_KEY, code="no_management_key")
            raise AuthenticationFailed(_UNKNOWN)
        # ManagementEndpoint narrows it to the tenant of the address.
        tenancy.set_current(tenancy.of_one(key.tenant_id) if key.tenant_id else tenancy.EVERYTHING)
        actor = Actor(kind=ActorKind.KEY, id=str(key.pk), request_id=kept_request_id(request_id_of(request)))
        return ManagementCaller(key=key, actor=actor), key

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="memory-hub"'


def is_management_key(plaintext: str) -> bool:
    """Whether a plaintext that is no tenant's key is a usable management key, to tell its holder so."""
    with tenancy.everything():
        return authenticate_management_key(plaintext=plaintext, now=timezone.now()) is not None


def _plaintext_of(request: Request) -> str | None:
    """What stands where a key belongs: empty for another scheme, None without a header. Authorization comes first."""
    header = request.headers.get("Authorization")
    if header is None:
        alone = request.headers.get("X-API-Key")
        return None if alone is None else alone.strip()
    scheme, _, plaintext = header.strip().partition(" ")
    return plaintext.strip() if scheme.lower() == "bearer" else ""


class HasManagementKey(BasePermission):
    """Lets management keys in. What a key for one tenant reaches, ManagementEndpoint decides."""

    def has_permission(self, request: Request, view: View) -> bool:
        user: object = request.user
        return isinstance(user, ManagementCaller)


class HasScope(BasePermission):
    """Each operation names the scope that it needs (`@operation(scope=…)`). A key without it gets 403 with its name.

    An operation without a scope lets nobody in.
    """

    def has_permission(self, request: Request, view: View) -> bool:
        caller = caller_of(request)
        if caller is None:
            return False
        method = (request.method or "").lower()
        operation = getattr(view, method, None) if method in view.http_method_names else None
        if operation is None:
            # The view answers 405.
            return True
        scope = getattr(operation, "scope", None)
        if scope is None or scope not in caller.key.scopes:
            raise PermissionDenied(f"This key lacks the scope '{scope}'.", code="missing_scope")
        return True
