"""What staff may do to a tenant's settings."""

from datetime import datetime
from typing import Any

from django.db import transaction

from memories import audit, conf
from memories.audit import Actor
from memories.models import Tenant
from memories.pipeline import decay
from memories.pipeline.redaction import redact_message, redact_text

_LONGEST_NAME = 200
# Not a setting: whoever saves a form that was open for long must not turn them back.
_NO_SETTING = ("id", "slug", "created_at", "decayed_on", "offboarded_at", "before_offboarding")
_SETTINGS = [field.name for field in Tenant._meta.concrete_fields if field.name not in _NO_SETTING]


def save_tenant(*, tenant: Tenant, actor: Actor, now: datetime) -> Tenant:
    """Save a tenant's settings, made or changed in a form, without secrets; new guidance gets a new version.

    Numbers that cannot be used are dropped. The audit event's counts name the numbers that changed. When one of them
    decides how memories fade, a task plans anew when each is forgotten.
    """
    _without_secrets(tenant)
    tenant.numbers = conf.own_numbers(tenant.numbers)
    with transaction.atomic():
        known = Tenant.objects.select_for_update().filter(pk=tenant.pk).first()
        changed = _changed_numbers(known, tenant)
        if known is None:
            tenant.created_at = now
            tenant.save()
        else:
            new_words = known.extraction_guidance != tenant.extraction_guidance
            if known.offboarded_at:
                # A form that was open before it must not switch it on again.
                tenant.capture = tenant.serve = False
            tenant.guidance_version = known.guidance_version + new_words
            tenant.save(update_fields=_SETTINGS)
        if known and conf.FADING.intersection(changed):
            # In this transaction: the task is there when the numbers are, and not before.
            decay.replan(tenant_id=tenant.pk)
        given: dict[str, Any] = {"target": tenant, "object_id": tenant.pk, "tenant": tenant, "now": now}
        audit.record(actor=actor, verb="update" if known else "add", counts=dict.fromkeys(changed, 1), **given)
    return tenant


def _without_secrets(tenant: Tenant) -> None:
    tenant.extraction_guidance = redact_text(tenant.extraction_guidance)[0]
    tenant.signal_phrases = redact_message(content="", metadata=tenant.signal_phrases).metadata
    tenant.name = redact_text(tenant.name)[0][:_LONGEST_NAME]


def _changed_numbers(known: Tenant | None, tenant: Tenant) -> list[str]:
    """Names of the numbers that are others than before, in the order of the table."""
    before, after = conf.own_numbers(known.numbers if known else {}), tenant.numbers
    return [name for name in conf.NUMBERS if before.get(name) != after.get(name)]
