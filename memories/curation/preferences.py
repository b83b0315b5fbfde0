"""What operators set for themselves."""

from datetime import datetime

from django.db import transaction

from memories import audit
from memories.audit import Actor
from memories.models import Operator


def set_preferences(*, operator: Operator, language: str, time_zone: str, actor: Actor, now: datetime) -> None:
    """The language ("": the browser's) and the IANA zone that pages are told in to this operator."""
    with transaction.atomic():
        Operator.objects.filter(pk=operator.pk).update(language=language, time_zone=time_zone)
        audit.record(actor=actor, verb="set_preferences", target=operator, object_id=operator.pk, tenant=None, now=now)
