"""How review items follow their facts: closed by a decision, open again when it is taken back."""

import uuid
from collections.abc import Iterable
from datetime import datetime

from memories.curation.change_sets import ChangeSet
from memories.models import BatchEntry, Fact, ReviewItem
from memories.reconcile import review_items
from memories.reconcile.review_items import REASON_OF_FLAG, REASON_OF_TRUST, ReviewQuestion

State, Reason = ReviewItem.State, ReviewItem.Reason


def close(item: ReviewItem, state: str, changes: ChangeSet) -> None:
    """Mark the item as decided, with what its undo needs."""
    for fact in (item.fact, item.known):
        if fact:
            # Also one that the decision did not change: it was about it.
            changes.versions.setdefault(str(fact.pk), fact.version)
    item.state, item.decided_by, item.decided_at, item.note = state, changes.actor.id, changes.now, changes.reason
    item.change_set, item.traces = changes.id, changes.traces
    item.version += 1
    item.save()


def close_all(fact: Fact, state: str, changes: ChangeSet) -> None:
    """Decide all open items about this suggestion with it."""
    waiting = ReviewItem.objects.waiting().filter(fact=fact).select_related("fact", "known")
    for item in waiting.select_for_update(of=("self",)).order_by("pk"):
        close(item, state, changes)


def settle(changes: ChangeSet) -> None:
    """Settle the items that the decision answered without being about them."""
    touched = [uuid.UUID(pk) for pk in changes.versions]
    review_items.settle(touched, now=changes.now, change_set=changes.id)


def wait_again(fact: Fact, *, now: datetime) -> None:
    """Reopen the last items of a suggestion that waits again, or ask anew."""
    if ReviewItem.objects.waiting().filter(fact=fact).exists():
        return
    last = ReviewItem.objects.filter(fact=fact).order_by("-decided_at").first()
    if last is None:
        flagged = [reason for flag, reason in REASON_OF_FLAG.items() if flag in fact.flags]
        reason = flagged[0] if flagged else REASON_OF_TRUST.get(fact.trust, Reason.SUGGESTED)
        review_items.ask(ReviewQuestion(reason, fact=fact), run=fact.extraction, now=now)
        return
    closed = ReviewItem.objects.filter(fact=fact, change_set=last.change_set) if last.change_set else [last]
    reopen(closed)


def reopen(items: Iterable[ReviewItem]) -> None:
    """Open the items again; one whose question has been asked anew meanwhile is settled instead."""
    for item in items:
        about = {"fact": item.fact_id, "known": item.known_id, "episode": item.episode_id}
        same = ReviewItem.objects.waiting().filter(**about, kind=item.kind)
        asked_anew = item.proposed_section_id is None and same.exists()
        item.state = State.SETTLED if asked_anew else State.OPEN
        item.decided_by, item.decided_at, item.note = "", None, ""
        item.change_set, item.traces = None, {}
        item.version += 1
        item.save()


def follow(fact: Fact, *, since: int) -> None:
    """An undo made the fact again what it was at version `since`: a decision that left it there can still be undone."""
    left = ReviewItem.objects.filter(end_user=fact.end_user_id, traces__versions__contains={str(fact.pk): since})
    for item in left:
        item.traces["versions"][str(fact.pk)] = fact.version
        item.save(update_fields=["traces"])
    BatchEntry.objects.filter(fact=fact, version=since, undone=False).update(version=fact.version)
