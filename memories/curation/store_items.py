"""Deletes an item of the store."""

import uuid
from datetime import datetime

from django.db import transaction

from memories import audit
from memories.audit import Actor
from memories.exceptions import NotFound, PreconditionFailed
from memories.models import StoreItem


def delete_store_item(*, item_id: uuid.UUID, expected: datetime, actor: Actor, now: datetime) -> None:
    """Delete the item for good; `expected` is when it was last written, as the operator saw it.

    Errors: NotFound (somebody deleted it, or it expired), PreconditionFailed (written since).
    """
    with transaction.atomic():
        item = StoreItem.objects.select_for_update(of=("self",)).select_related("tenant").filter(pk=item_id).first()
        if item is None:
            raise NotFound
        if item.updated_at != expected:
            raise PreconditionFailed
        audit.record(actor=actor, verb="delete", target=item, now=now)
        item.delete()
