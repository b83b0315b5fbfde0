"""API keys: made and shown once, checked in constant time, rotated, revoked at once."""

import base64
import hashlib
import hmac
import re
import secrets
import uuid
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar
from urllib.parse import unquote

from django.db import IntegrityError, OperationalError, transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from memories import audit
from memories.audit import Actor
from memories.capture import get_or_create
from memories.curation.people.external_ids import LONGEST_ID, check_id
from memories.exceptions import Conflict, InvalidInput, PersonRestricted, PreconditionFailed
from memories.invisible import strip_invisible
from memories.models import APIKey, EndUser, ManagementKey, Scope, Tenant, WritesAs
from memories.models.access.api_keys import OPERATORS
from memories.models.hand_written import columns_of, first, read, selected
from memories.text.secrets.redaction import redact_text

K = TypeVar("K", APIKey, ManagementKey)
# What a key begins with: those of tenants, and management keys.
OF_TENANT, OF_MANAGEMENT = "mh", "mhm"
LONGEST_NAME = 100
PREFIX_LENGTH = 10
SECRET_BYTES = 32
# A write per request would cost more than the request; five minutes are exact enough to find unused keys.
LAST_USED_STEP = timedelta(minutes=5)
# Days for which a key is valid by default.
DEFAULT_DAYS = 365
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
# A key in a text, whether it is usable or not; and what is long enough to be one in base64, as in Basic authentication.
_IN_TEXT = re.compile(rf"(?:{OF_TENANT}|{OF_MANAGEMENT})_[a-z0-9]{{{PREFIX_LENGTH}}}_", re.IGNORECASE)
_IN_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{60,}")
_KEY, _TENANT = columns_of(APIKey), columns_of(Tenant)
# By hand: every request begins with it.
_FIND = f"""
    SELECT {selected("t", _TENANT)}, {selected("k", _KEY)}
    FROM memories_apikey k JOIN memories_tenant t ON t.id = k.tenant_id
    WHERE k.prefix = %(prefix)s AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > %(now)s)
"""  # noqa: S608  (columns of our own models)


@dataclass(frozen=True)
class Binding:
    """What a key is bound to: one person by the caller's id, one agent, both or neither; whose words it writes, and
    whose memory a session becomes that it opens.

    Without `writes_as` its words are the agent's where it has one, else the user's, but for what agents write by MCP.
    Without `memory_of` it is as the tenant says.
    """

    user_id: str = ""
    agent_id: str = ""
    writes_as: str = ""
    memory_of: str = ""

    @classmethod
    def of(cls, key: APIKey) -> "Binding":
        """That of a key, for another one like it."""
        by_default = key.writes_as == WritesAs.USER and not key.speaks_for_user
        return cls(key.user_id, key.agent_id, "" if by_default else key.writes_as, key.memory_of)

    def columns(self) -> dict[str, Any]:
        """As they are stored. Errors: InvalidInput for what the API does not take as an id."""
        for name, given in (("user_id", self.user_id), ("agent_id", self.agent_id)):
            if given:
                check_id(given, at=name)
        agent_id = self.agent_id.lower()
        if len(agent_id) > LONGEST_ID:
            raise InvalidInput.at(
                "agent_id", _("The name becomes too long when it is lower-cased. Choose a shorter name.")
            )
        by_default = WritesAs.AGENT if agent_id else WritesAs.USER
        return {
            "user_id": self.user_id,
            "agent_id": agent_id,
            "writes_as": self.writes_as or by_default,
            "speaks_for_user": self.writes_as == WritesAs.USER,
            "memory_of": self.memory_of,
        }


UNBOUND = Binding()


def create_api_key(
    *,
    tenant: Tenant,
    name: str,
    scopes: list[str],
    actor: Actor,
    now: datetime,
    expires_at: datetime | None = None,
    binding: Binding = UNBOUND,
    key_id: uuid.UUID | None = None,
) -> tuple[APIKey, str]:
    """Make a key; the second value is the plaintext `mh_<prefix>_<secret>`, which is stored nowhere.

    With a `key_id` it is made once. Errors: InvalidInput (the binding's ids), Conflict when the tenant is off-boarded
    or there is a key with this id; PersonRestricted and Erased for the person to whom it would be bound.
    """
    bound = binding.columns()
    prefix, plaintext = _new_plaintext(OF_TENANT)
    with transaction.atomic():
        # Locked, a tenant cannot be off-boarded past a key that is being made.
        if Tenant.objects.select_for_update(no_key=True).get(pk=tenant.pk).offboarded_at:
            raise Conflict(_("The tenant is off-boarded. Restore it before you create a key for it."))
        if binding.user_id:
            # An erasure restricts its person first, and then deletes their keys under the tenant's lock: a key that is
            # made after that would keep the id.
            if EndUser.objects.called(tenant, binding.user_id).exclude(restricted_at=None).exists():
                raise PersonRestricted
            get_or_create.refuse_erased(tenant, binding.user_id)
        key = APIKey(
            tenant=tenant,
            name=_clean_name(name),
            prefix=prefix,
            digest=_digest(plaintext),
            scopes=scopes,
            created_at=now,
            expires_at=expires_at,
            **bound,
        )
        if key_id:
            key.pk = key_id
        _insert(key)
        audit.record(actor=actor, verb="create", target=key, object_id=key.pk, tenant=tenant, now=now)
    return key, plaintext


def create_management_key(
    *,
    name: str,
    tenant: Tenant | None,
    gives: list[str],
    actor: Actor,
    now: datetime,
    expires_at: datetime | None,
    operators: bool = False,
) -> tuple[ManagementKey, str]:
    """Make a management key, of all tenants or of one; the second value is the plaintext `mhm_<prefix>_<secret>`.
    `operators`: it may manage them.

    For a command on the server alone: no key of any kind makes one.
    """
    prefix, plaintext = _new_plaintext(OF_MANAGEMENT)
    with transaction.atomic():
        key = ManagementKey.objects.create(
            tenant=tenant,
            name=_clean_name(name),
            prefix=prefix,
            digest=_digest(plaintext),
            gives=[scope for scope in Scope.values if scope in gives] + [OPERATORS] * operators,
            created_at=now,
            expires_at=expires_at,
        )
        audit.record(actor=actor, verb="create", target=key, object_id=key.pk, tenant=tenant, now=now)
    return key, plaintext


def authenticate_management_key(*, plaintext: str, now: datetime) -> ManagementKey | None:
    """The usable management key with this plaintext, or None; one query."""
    prefix = _prefix_of(plaintext, OF_MANAGEMENT)
    if not prefix:
        return None
    unexpired = Q(expires_at=None) | Q(expires_at__gt=now)
    usable = ManagementKey.objects.select_related("tenant").filter(unexpired, prefix=prefix, revoked_at=None)
    return _used(usable.first(), plaintext, now=now)


def revoke_management_key(*, key: ManagementKey, actor: Actor, now: datetime) -> None:
    """Refuse the key from now on; a second time changes nothing. The keys that it made stay."""
    with transaction.atomic():
        if ManagementKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=now):
            audit.record(actor=actor, verb="revoke", target=key, now=now)


def authenticate_key(*, plaintext: str, now: datetime) -> APIKey | None:
    """The usable key with this plaintext, its tenant joined, or None; one query."""
    prefix = _prefix_of(plaintext, OF_TENANT)
    row = first(_FIND, {"prefix": prefix, "now": now}) if prefix else None
    key = None
    if row is not None:
        values = iter(row)
        tenant = read(Tenant, _TENANT, values)
        key = read(APIKey, _KEY, values, tenant=tenant)
    return _used(key, plaintext, now=now)


def rotate_api_key(*, key: APIKey, ends_at: datetime, actor: Actor, now: datetime) -> tuple[APIKey, str]:
    """Make a successor like the key, valid for as long a time, and refuse the key itself from `ends_at` on.

    A key that expires earlier still does. The second value is the successor's plaintext, which is stored nowhere.
    Errors: Conflict when the key was rotated before, is not usable any more, or its tenant is off-boarded.
    """
    with transaction.atomic():
        old = _locked(key)
        if old.successor_id:
            raise Conflict(_("This key was already rotated. Its page names the new key."))
        _check_usable(old, now=now)
        span = old.expires_at - old.created_at if old.expires_at else None
        successor, plaintext = create_api_key(
            tenant=old.tenant,
            name=old.name,
            scopes=old.scopes,
            expires_at=now + span if span else None,
            actor=actor,
            now=now,
            binding=Binding.of(old),
        )
        old.successor = successor
        old.expires_at = min(old.expires_at, ends_at) if old.expires_at else ends_at
        old.save(update_fields=["successor", "expires_at"])
        audit.record(actor=actor, verb="rotate", target=old, now=now)
    return successor, plaintext


def put_off_end(*, key: APIKey, ends_at: datetime, expected: datetime | None, actor: Actor, now: datetime) -> APIKey:
    """Let a rotated key that still works go on until `ends_at`; `expected` is when it would have ended.

    Errors: Conflict when it was not rotated or is over; PreconditionFailed when its end was changed meanwhile.
    """
    with transaction.atomic():
        old = _locked(key)
        if not old.successor_id:
            raise Conflict(_("This key was not rotated, so it has no end to extend."))
        _check_usable(old, now=now)
        if old.expires_at != expected:
            raise PreconditionFailed
        old.expires_at = ends_at
        old.save(update_fields=["expires_at"])
        audit.record(actor=actor, verb="put_off_end", target=old, now=now)
    return old


def revoke_api_key(*, key: APIKey, actor: Actor, now: datetime) -> None:
    """Refuse the key from now on, also after its tenant's off-boarding is undone; a second time changes nothing."""
    # In one statement: an undo of the off-boarding at this moment comes before it, or after it and finds no mark.
    unrevoked = Q(revoked_at=None) | Q(revoked_with_tenant=True)
    with transaction.atomic():
        if APIKey.objects.filter(unrevoked, pk=key.pk).update(revoked_at=now, revoked_with_tenant=False):
            audit.record(actor=actor, verb="revoke", target=key, now=now)


def holds_key(text: str) -> bool:
    """Whether a text is or contains what looks like a key of the hub: as it is, percent-encoded or in base64."""
    if _IN_TEXT.search(text) or ("%" in text and _IN_TEXT.search(unquote(text))):
        return True
    encoded = (one.replace("-", "+").replace("_", "/") for one in _IN_BASE64.findall(text))
    # A rest of one letter is no byte.
    decoded = (base64.b64decode(one[: len(one) - (len(one) % 4 == 1)] + "==").decode("latin-1") for one in encoded)
    return any(map(_IN_TEXT.search, decoded))


def _new_plaintext(marker: str) -> tuple[str, str]:
    """A prefix, and the plaintext that begins with it."""
    prefix = "".join(secrets.choice(_LETTERS) for _ in range(PREFIX_LENGTH))
    return prefix, f"{marker}_{prefix}_{secrets.token_urlsafe(SECRET_BYTES)}"


def _prefix_of(plaintext: str, marker: str) -> str:
    """The prefix of a key of this kind; empty for anything else."""
    given, _, rest = plaintext.partition("_")
    prefix, _, secret = rest.partition("_")
    fits = given == marker and secret and len(prefix) == PREFIX_LENGTH and set(prefix) <= set(_LETTERS)
    return prefix if fits else ""


def _used(key: K | None, plaintext: str, *, now: datetime) -> K | None:
    """The key, with its use noted, if the plaintext is its own."""
    if key is None or not hmac.compare_digest(_digest(plaintext), bytes(key.digest)):
        return None
    if key.last_used_at is None or now - key.last_used_at >= LAST_USED_STEP:
        stale = Q(last_used_at=None) | Q(last_used_at__lte=now - LAST_USED_STEP)
        # On a cluster keys are on each node: one that is away is no reason to refuse tenants of the others.
        with suppress(OperationalError):
            type(key)._default_manager.filter(stale, pk=key.pk).update(last_used_at=now)
    return key


def _clean_name(name: str) -> str:
    """People paste keys where a name belongs, and every page shows names."""
    return redact_text(strip_invisible(name).strip())[0][:LONGEST_NAME]


def _insert(key: APIKey) -> None:
    try:
        # A savepoint: two can make a key with the same id at once, for different tenants.
        with transaction.atomic():
            key.save(force_insert=True)
    except IntegrityError:
        # Perhaps another tenant's, which this statement may not look at.
        raise Conflict(_("There is a key with this id. Its secret was shown once: rotate it.")) from None


def _locked(key: APIKey) -> APIKey:
    """Lock the tenant, then the key: the order of off-boarding, so that neither waits for the other."""
    Tenant.objects.select_for_update(no_key=True).get(pk=key.tenant_id)
    found: APIKey = APIKey.objects.select_for_update(of=("self",)).select_related("tenant").get(pk=key.pk)
    return found


def _check_usable(key: APIKey, *, now: datetime) -> None:
    if key.revoked_at or (key.expires_at and key.expires_at <= now):
        raise Conflict(_("This key no longer works. Create a new key."))


def _digest(plaintext: str) -> bytes:
    # The secret is random and long: a slow hash would protect nothing and cost every request.
    return hashlib.sha256(plaintext.encode()).digest()
