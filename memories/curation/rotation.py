"""Rotating a key: a new one beside the old, which goes on for a chosen time and is refused from then on."""

from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from memories import audit
from memories.audit import Actor
from memories.curation.keys import create_api_key
from memories.exceptions import Conflict, PreconditionFailed
from memories.models import APIKey, Tenant


def rotate_api_key(*, key: APIKey, ends_at: datetime, actor: Actor, now: datetime) -> tuple[APIKey, str]:
    """Make a successor like the key, good for as long a span, and refuse the key itself from `ends_at` on.

    Where it expires earlier it stays at that. The second value is the successor's plaintext, which is kept nowhere.
    Errors: Conflict when the key was rotated before, is not usable any more, or its tenant is off-boarded.
    """
    with transaction.atomic():
        old = _locked(key)
        if old.successor_id:
            raise Conflict(_("This key was rotated already; its successor is on its page."))
        _check_usable(old, now=now)
        span = old.expires_at - old.created_at if old.expires_at else None
        successor, plaintext = create_api_key(
            tenant=old.tenant,
            name=old.name,
            scopes=old.scopes,
            expires_at=now + span if span else None,
            actor=actor,
            now=now,
        )
        old.successor = successor
        old.expires_at = min(old.expires_at, ends_at) if old.expires_at else ends_at
        old.save(update_fields=["successor", "expires_at"])
        audit.record(actor=actor, verb="rotate", target=old, object_id=old.pk, tenant=old.tenant, now=now)
    return successor, plaintext


def put_off_end(*, key: APIKey, ends_at: datetime, expected: datetime | None, actor: Actor, now: datetime) -> APIKey:
    """Let a rotated key that still works go on until `ends_at`; `expected` is when it would have ended.

    Errors: Conflict when it was not rotated or is over; PreconditionFailed when its end was changed meanwhile.
    """
    with transaction.atomic():
        old = _locked(key)
        if not old.successor_id:
            raise Conflict(_("This key was not rotated: nothing ends it."))
        _check_usable(old, now=now)
        if old.expires_at != expected:
            raise PreconditionFailed
        old.expires_at = ends_at
        old.save(update_fields=["expires_at"])
        audit.record(actor=actor, verb="put_off_end", target=old, object_id=old.pk, tenant=old.tenant, now=now)
    return old


def _locked(key: APIKey) -> APIKey:
    """The key, after its tenant: the order of off-boarding, so that neither waits for the other."""
    Tenant.objects.select_for_update(no_key=True).get(pk=key.tenant_id)
    found: APIKey = APIKey.objects.select_for_update(of=("self",)).select_related("tenant").get(pk=key.pk)
    return found


def _check_usable(key: APIKey, *, now: datetime) -> None:
    if key.revoked_at or (key.expires_at and key.expires_at <= now):
        raise Conflict(_("This key is refused already: make a new one instead."))
