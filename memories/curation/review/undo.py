"""Undoing a decision: its facts are what they were, and the review items that it closed are open again."""

import uuid
from datetime import datetime

from django.utils.translation import gettext as _

from memories.audit import Actor
from memories.curation.reverting import revert
from memories.exceptions import Conflict, NotFound, PreconditionFailed
from memories.models import ReviewItem

State = ReviewItem.State
DECIDED = (State.APPROVED, State.REJECTED, State.KEPT_BOTH, State.MERGED)


def undo_decision(
    *, item_id: uuid.UUID, actor: Actor, now: datetime, expected_version: int | None = None, reason: str = ""
) -> ReviewItem:
    """Revert the change set that decided the item.

    Errors: NotFound, Conflict (nothing is decided, or it has changed since), PreconditionFailed, DuplicateFact.
    """
    item = ReviewItem.objects.filter(pk=item_id).first()
    if item is None:
        raise NotFound
    if item.change_set is None or not may_undo(item):
        raise Conflict(_("There is nothing to undo. This item is still open, or it was closed automatically."))
    if expected_version is not None and expected_version != item.version:
        raise PreconditionFailed
    # Whoever undoes this decision meanwhile, or decides anew, has reverted this change set.
    revert(change_set=item.change_set, actor=actor, now=now, reason=reason)
    item.refresh_from_db()
    return item


def may_undo(item: ReviewItem) -> bool:
    """Whether somebody decided the item, so that an undo can be tried."""
    return item.state in DECIDED and item.change_set is not None
