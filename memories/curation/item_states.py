"""How review items follow their facts: closed by a decision, open again when it is taken back."""

import uuid
from collections.abc import Iterable
from datetime import datetime

from memories.curation.change_sets import ChangeSet
from memories.models import BatchEntry, Fact, ReviewItem
from memories.pipeline import review_items
from memories.pipeline.review_items import REASON_OF_FLAG, REASON_OF_TRUST, Question

State, Reason = ReviewItem.State, ReviewItem.Reason


def close(item: ReviewItem, state: str, changes: ChangeSet) -> None:
    """The item is decided, with what its undo goes by."""
    for fact in (item.fact, item.known):
        if fact:
            # Untouched, it counts all the same: the decision was about it.
            changes.versions.setdefault(str(fact.pk), fact.version)
    item.state, item.decided_by, item.decided_at, item.note = state, changes.actor.id, changes.now, changes.reason
    item.change_set, item.traces = changes.id, changes.traces
    item.version += 1
    item.save()


def close_all(fact: Fact, state: str, changes: ChangeSet) -> None:
    """Whatever waits about this suggestion is decided with it."""
    waiting = ReviewItem.objects.waiting().filter(fact=fact).select_related("fact", "known")
    for item in waiting.select_for_update(of=("self",)).order_by("pk"):
        close(item, state, changes)


def settle(changes: ChangeSet) -> None:
    """Close the items that the decision has answered without being about them."""
    touched = [uuid.UUID(pk) for pk in changes.versions]
    review_items.settle(touched, now=changes.now, change_set=changes.id)


def wait_again(fact: Fact, *, now: datetime) -> None:
    """A suggestion that waits again is asked about again, as it was last."""
    if ReviewItem.objects.waiting().filter(fact=fact).exists():
        return
    last = ReviewItem.objects.filter(fact=fact).order_by("-decided_at").first()
    if last is None:
        review_items.ask(Question(_why(fact), fact=fact), run=fact.extraction, now=now)
        return
    closed = ReviewItem.objects.filter(fact=fact, change_set=last.change_set) if last.change_set else [last]
    reopen(closed)


def reopen(items: Iterable[ReviewItem]) -> None:
    """They wait again; one that has been asked anew meanwhile is left to that."""
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
    """The fact is again what it was at version `since`: a decision that left it there can be undone as before."""
    left = ReviewItem.objects.filter(end_user=fact.end_user_id, traces__versions__contains={str(fact.pk): since})
    for item in left:
        item.traces["versions"][str(fact.pk)] = fact.version
        item.save(update_fields=["traces"])
    BatchEntry.objects.filter(fact=fact, version=since, undone=False).update(version=fact.version)


def _why(fact: Fact) -> ReviewItem.Reason:
    flagged = [reason for flag, reason in REASON_OF_FLAG.items() if flag in fact.flags]
    return flagged[0] if flagged else REASON_OF_TRUST.get(fact.trust, Reason.SUGGESTED)
