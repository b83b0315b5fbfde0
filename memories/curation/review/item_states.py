"""How review items follow their facts: closed by a decision, open again when it is taken back."""

from collections.abc import Iterable
from datetime import datetime

from memories.curation.change_sets import Changes
from memories.facts import review_items
from memories.facts.review_items import REASON_OF_FLAG, REASON_OF_TRUST, ReviewQuestion
from memories.models import Fact, ReviewItem

State, Reason = ReviewItem.State, ReviewItem.Reason


def close(item: ReviewItem, state: str, changes: Changes) -> None:
    """Mark the item as decided by these changes."""
    for fact in (item.fact, item.known):
        if fact:
            changes.record_unchanged(fact)
    item.state, item.decided_by, item.decided_at, item.note = state, changes.actor.id, changes.now, changes.reason
    item.change_set = changes.id
    item.version += 1
    item.save()


def close_all(fact: Fact, state: str, changes: Changes) -> None:
    """Decide all open items about this suggestion with it."""
    waiting = ReviewItem.objects.waiting().filter(fact=fact).select_related("fact", "known")
    for item in waiting.select_for_update(of=("self",)).order_by("pk"):
        close(item, state, changes)


def close_answered_items(changes: Changes) -> None:
    """Settle the items that the decision answered without being about them."""
    review_items.close_answered_items(changes.facts, now=changes.now, change_set=changes.id)


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
        item.change_set = None
        item.version += 1
        item.save()
