"""Who has a review item on their desk: a note for colleagues, which keeps nobody from deciding it."""

import uuid
from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from memories import audit
from memories.audit import Actor
from memories.exceptions import Conflict, NotFound
from memories.models import ReviewItem


def take_item(*, item_id: uuid.UUID, actor: Actor, now: datetime, expected: str = "") -> ReviewItem:
    """The operator has the open item from now on; `expected`: the id of who had it when they looked, "" for nobody.

    Errors: NotFound; Conflict when it is decided, or somebody else took it meanwhile.
    """
    return _assign(item_id, actor.id, "take_on", actor=actor, now=now, expected=expected)


def give_back_item(*, item_id: uuid.UUID, actor: Actor, now: datetime) -> ReviewItem:
    """Nobody has the open item any more. Errors: NotFound; Conflict when it is not the operator's."""
    return _assign(item_id, "", "give_back", actor=actor, now=now, expected=actor.id)


def _assign(item_id: uuid.UUID, to: str, verb: str, *, actor: Actor, now: datetime, expected: str) -> ReviewItem:
    with transaction.atomic():
        item = ReviewItem.objects.select_for_update(of=("self",), no_key=True).filter(pk=item_id).first()
        if item is None:
            raise NotFound
        if item.state != ReviewItem.State.OPEN:
            message = _("Somebody has decided this in the meantime: %(state)s.")
            raise Conflict(message % {"state": item.get_state_display().lower()})
        if item.taken_by == to:
            # Sent twice.
            return item
        if item.taken_by != expected:
            raise Conflict(_("Somebody else has taken it in the meantime."))
        item.taken_by, item.taken_at = to, now if to else None
        # The version stays: whoever looks at the item may decide it as before.
        item.save(update_fields=["taken_by", "taken_at"])
        audit.record(actor=actor, verb=verb, target=item, now=now)
    return item
