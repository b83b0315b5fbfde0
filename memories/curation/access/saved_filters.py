"""Operators' saved filters of the lists."""

import uuid
from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from memories import audit
from memories.audit import Actor
from memories.exceptions import Conflict
from memories.models import Operator, SavedFilter

# The page of a list counts the rows of each of its filters.
MOST = 12


def save_filter(
    *, operator: Operator, model: str, name: str, choices: dict[str, str], actor: Actor, now: datetime
) -> SavedFilter:
    """Save the choices under the name, over an older filter of that name. Errors: Conflict beyond MOST of a list."""
    with transaction.atomic():
        # Two windows of one operator count in turn.
        Operator.objects.select_for_update(no_key=True).get(pk=operator.pk)
        mine = SavedFilter.objects.filter(operator=operator, model=model)
        if mine.exclude(name=name).count() >= MOST:
            raise Conflict(_("You have reached the limit of saved filters for this list. Delete one first."))
        given = {"choices": choices, "created_at": now}
        row, _made = mine.update_or_create(operator=operator, model=model, name=name, defaults=given)
        audit.record(actor=actor, verb="save_filter", target=row, now=now)
    return row


def forget_filter(*, operator: Operator, filter_id: uuid.UUID, actor: Actor, now: datetime) -> None:
    """Delete one of the operator's own filters; a second time, or of another operator, changes nothing."""
    with transaction.atomic():
        gone, _of = SavedFilter.objects.filter(operator=operator, pk=filter_id).delete()
        if gone:
            verb = "forget_filter"
            audit.record(actor=actor, verb=verb, target=SavedFilter, object_id=filter_id, tenant=None, now=now)
