"""Saves a tenant's settings."""

from datetime import datetime

from django.db import transaction

from memories import audit, conf
from memories.audit import Actor
from memories.forgetting import decay
from memories.invisible import strip_invisible
from memories.models import Tenant
from memories.store import assigning
from memories.text.secrets.redaction import redact_message, redact_text

_LONGEST_NAME = 200
# Not settings: saving a form that was open for long must not turn them back.
_NO_SETTING = (
    "id", "slug", "created_at", "decayed_on", "offboarded_at", "before_offboarding", "webhook_events",
)  # fmt: skip
_SETTINGS = [field.name for field in Tenant._meta.concrete_fields if field.name not in _NO_SETTING]


def save_tenant(*, tenant: Tenant, actor: Actor, now: datetime) -> Tenant:
    """Save a tenant that a form or a command made or changed, without secrets; new guidance gets a new version.

    Numbers that cannot be used are dropped. The audit event's counts name the numbers that changed. When one of them
    decides how memories fade, a task computes anew when each is forgotten.
    """
    tenant.extraction_guidance = redact_text(tenant.extraction_guidance)[0]
    tenant.file_seed = redact_text(strip_invisible(tenant.file_seed))[0]
    tenant.dream_guide = redact_text(strip_invisible(tenant.dream_guide))[0]
    tenant.dream_model = strip_invisible(tenant.dream_model).strip()
    tenant.signal_phrases = redact_message(content="", metadata=tenant.signal_phrases).metadata
    tenant.name = redact_text(tenant.name)[0][:_LONGEST_NAME]
    tenant.numbers = conf.own_numbers(tenant.numbers)
    with transaction.atomic():
        previous = Tenant.objects.select_for_update().filter(pk=tenant.pk).first()
        numbers_before = conf.own_numbers(previous.numbers if previous else {})
        changed = [name for name in conf.NUMBERS if numbers_before.get(name) != tenant.numbers.get(name)]
        if previous is None:
            tenant.created_at = now
            tenant.save()
        else:
            if previous.offboarded_at:
                # A form that was open before the off-boarding must not switch them on again.
                tenant.capture = tenant.serve = False
            has_new_guidance = previous.extraction_guidance != tenant.extraction_guidance
            tenant.guidance_version = previous.guidance_version + has_new_guidance
            tenant.save(update_fields=_SETTINGS)
        counts = dict.fromkeys(changed, 1)
        if previous and previous.person_namespaces != tenant.person_namespaces:
            counts["store_items"] = assigning.assign(tenant, now=now)
        if previous and conf.FADING.intersection(changed):
            # In this transaction, so that the task never runs before the numbers are there.
            decay.replan(tenant_id=tenant.pk)
        audit.record(
            actor=actor,
            verb="update" if previous else "add",
            target=tenant,
            object_id=tenant.pk,
            tenant=tenant,
            now=now,
            counts=counts,
        )
    return tenant
