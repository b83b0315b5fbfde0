"""Undoing a decision: its facts are what they were, and the review items that it closed are open again."""

import uuid
from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from memories import audit
from memories.audit import Actor
from memories.curation.change_sets import ChangeSet, take_back
from memories.curation.episodes import next_version, put_back
from memories.curation.profile.sections import undo_profile_change
from memories.curation.review import item_states
from memories.curation.review.deciding import locked_item
from memories.exceptions import Conflict, PreconditionFailed
from memories.models import Fact, FactRevision, ProfileRevision, ReviewItem

State = ReviewItem.State
DECIDED = (State.APPROVED, State.REJECTED, State.KEPT_BOTH, State.MERGED)


def undo_decision(
    *, item_id: uuid.UUID, actor: Actor, now: datetime, expected_version: int | None = None, reason: str = ""
) -> ReviewItem:
    """Undo the whole decision, as long as none of its facts, nor its episode, has changed since.

    Errors: NotFound, Conflict (nothing is decided, or it has changed since), PreconditionFailed, DuplicateFact.
    """
    changes = ChangeSet(actor=actor, now=now, reason=reason)
    with transaction.atomic():
        item, facts = locked_item(item_id)
        _check(item, facts, expected_version)
        # The last change first: of two facts with one text only one is live at a time.
        for revision in FactRevision.objects.filter(change_set=item.change_set).order_by("-id"):
            fact = facts[revision.fact_id]
            with changes.changing(fact, "undo"):
                audit.put_back(fact, revision.before)
            item_states.follow(fact, since=revision.version - 1)
        if item.proposed_section and item.state == State.APPROVED:
            for written in ProfileRevision.objects.filter(change_set=item.change_set):
                undo_profile_change(
                    revision=written, actor=actor, now=now, change_set=changes.id, reason=changes.reason
                )
        if item.episode:
            with next_version(item.episode, "undo", changes):
                put_back(item.episode, item.traces["episode"]["before"])
        take_back(item.end_user, item.traces)
        closed = ReviewItem.objects.filter(change_set=item.change_set).select_for_update(of=("self",))
        item_states.reopen(closed.order_by("pk"))
        item_states.settle(changes)
        audit.record(actor=actor, verb="undo", target=item, object_id=item.pk, tenant=item.tenant, now=now)
    item.refresh_from_db()
    return item


def may_undo(item: ReviewItem) -> bool:
    """Whether somebody decided the item, so that an undo can be tried."""
    return item.state in DECIDED and item.change_set is not None


def _check(item: ReviewItem, facts: dict[uuid.UUID, Fact], expected_version: int | None) -> None:
    if not may_undo(item):
        raise Conflict(_("There is nothing to undo: this waits for a decision, or was settled by something else."))
    if expected_version is not None and expected_version != item.version:
        raise PreconditionFailed
    left_at: dict[str, int] = item.traces.get("versions", {})
    if left_at != {pk: facts[uuid.UUID(pk)].version for pk in left_at if uuid.UUID(pk) in facts}:
        raise Conflict(_("This cannot be undone any more: one of its facts has changed since."))
    if item.episode and item.episode.version != item.traces.get("episode", {}).get("version"):
        raise Conflict(_("This cannot be undone any more: the episode has changed since."))
