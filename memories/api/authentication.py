"""API keys: `Authorization: Bearer mh_<prefix>_<secret>`; the tenant comes from the key alone."""

from dataclasses import dataclass
from typing import ClassVar

from django.utils import timezone
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from memories import curation
from memories.api.request_ids import request_id_of
from memories.audit import Actor, kept_request_id
from memories.models import ActorKind, APIKey, Tenant


@dataclass(frozen=True)
class Caller:
    """Who calls: an API key, and through it a tenant."""

    key: APIKey
    actor: Actor
    is_authenticated: ClassVar[bool] = True

    @property
    def tenant(self) -> Tenant:
        return self.key.tenant


def caller_of(request: Request) -> Caller | None:
    """The caller that KeyAuthentication found."""
    user: object = request.user
    return user if isinstance(user, Caller) else None


class KeyAuthentication(BaseAuthentication):
    """One query per request: the key with its tenant."""

    def authenticate(self, request: Request) -> tuple[Caller, APIKey] | None:
        """The caller and the key; None without the header. Errors: AuthenticationFailed, the same for every reason."""
        header = request.headers.get("Authorization")
        if header is None:
            return None
        scheme, _, plaintext = header.strip().partition(" ")
        known = scheme.lower() == "bearer"
        key = curation.authenticate_key(plaintext=plaintext.strip(), now=timezone.now()) if known else None
        if key is None:
            raise AuthenticationFailed("This API key is not known, or has expired or been revoked.")
        actor = Actor(kind=ActorKind.KEY, id=str(key.pk), request_id=kept_request_id(request_id_of(request)))
        return Caller(key=key, actor=actor), key

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="memory-hub"'
