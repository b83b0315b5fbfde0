"""API keys: made and shown once, checked in constant time, revoked at once."""

import hashlib
import hmac
import secrets
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from memories import audit
from memories.audit import Actor
from memories.exceptions import Conflict
from memories.models import APIKey, Tenant
from memories.models.hand_written import columns_of, first, read, selected

PREFIX_LENGTH = 10
SECRET_BYTES = 32
# A write per request would cost more than the request; five minutes are exact enough to find unused keys.
LAST_USED_STEP = timedelta(minutes=5)
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
_KEY, _TENANT = columns_of(APIKey), columns_of(Tenant)
# By hand: every request begins with it.
_FIND = f"""
    SELECT {selected("k", _KEY)}, {selected("t", _TENANT)}
    FROM memories_apikey k JOIN memories_tenant t ON t.id = k.tenant_id
    WHERE k.prefix = %(prefix)s AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > %(now)s)
"""  # noqa: S608  (columns of our own models)


def create_api_key(
    *, tenant: Tenant, name: str, scopes: list[str], actor: Actor, now: datetime, expires_at: datetime | None = None
) -> tuple[APIKey, str]:
    """Make a key; the second value is the plaintext `mh_<prefix>_<secret>`, which is kept nowhere.

    Errors: Conflict when the tenant is off-boarded.
    """
    prefix = "".join(secrets.choice(_LETTERS) for _ in range(PREFIX_LENGTH))
    plaintext = f"mh_{prefix}_{secrets.token_urlsafe(SECRET_BYTES)}"
    with transaction.atomic():
        # Locked, a tenant cannot be off-boarded past a key that is being made.
        if Tenant.objects.select_for_update(no_key=True).get(pk=tenant.pk).offboarded_at:
            raise Conflict(_("The tenant is off-boarded: take it back before you make a key for it."))
        key = APIKey.objects.create(
            tenant=tenant,
            name=name,
            prefix=prefix,
            digest=_digest(plaintext),
            scopes=scopes,
            created_at=now,
            expires_at=expires_at,
        )
        audit.record(actor=actor, verb="create", target=key, object_id=key.pk, tenant=tenant, now=now)
    return key, plaintext


def authenticate_key(*, plaintext: str, now: datetime) -> APIKey | None:
    """The usable key with this plaintext, its tenant joined, or None; one query."""
    marker, _, rest = plaintext.partition("_")
    prefix, _, secret = rest.partition("_")
    if marker != "mh" or not secret or len(prefix) != PREFIX_LENGTH or not set(prefix) <= set(_LETTERS):
        return None
    key = _usable_key(prefix=prefix, now=now)
    if key is None or not hmac.compare_digest(_digest(plaintext), bytes(key.digest)):
        return None
    _note_use(key, now=now)
    return key


def revoke_api_key(*, key: APIKey, actor: Actor, now: datetime) -> None:
    """Refuse the key from now on; a second time changes nothing."""
    with transaction.atomic():
        if APIKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=now):
            audit.record(actor=actor, verb="revoke", target=key, object_id=key.pk, tenant=key.tenant, now=now)


def _digest(plaintext: str) -> bytes:
    # The secret is random and long: a slow hash would protect nothing and cost every request.
    return hashlib.sha256(plaintext.encode()).digest()


def _usable_key(*, prefix: str, now: datetime) -> APIKey | None:
    row = first(_FIND, {"prefix": prefix, "now": now})
    if row is None:
        return None
    values = iter(row)
    key = read(APIKey, _KEY, values)
    key.tenant = read(Tenant, _TENANT, values)
    return key


def _note_use(key: APIKey, *, now: datetime) -> None:
    if key.last_used_at is None or now - key.last_used_at >= LAST_USED_STEP:
        stale = Q(last_used_at=None) | Q(last_used_at__lte=now - LAST_USED_STEP)
        APIKey.objects.filter(stale, pk=key.pk).update(last_used_at=now)
