"""Review items: questions that a job may not decide. They are closed when something else has decided them."""

import uuid
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import F, Q

from memories import outbox
from memories.models import (
    Episode,
    EpisodeStatus,
    Event,
    ExtractionRun,
    Fact,
    ProfileRevision,
    ReviewItem,
    Status,
    Trust,
)
from memories.outbox import WebhookEvent
from memories.text.injection import detection

Kind, Reason = ReviewItem.Kind, ReviewItem.Reason
# The flag of a fact that the rules mode suggests: nobody asked to remember it.
SUGGESTED = "suggested_by_rules"
# The flag of a fact that is in the person's words, and not what they said with them.
NOT_AS_SAID = "not_as_said"
# The flag of a fact that gives the person money or rights by their own word.
CLAIMS_RIGHTS = "claims_rights"
# The flags of a fact that a reflection proposes: whatever its trust, an operator decides.
HABIT, CHANGE_OF_MIND = "reflected_habit", "reflected_change_of_mind"
RECURRING_PROBLEM = "reflected_recurring_problem"
KIND_OF: dict[str, ReviewItem.Kind] = {
    Reason.ASSISTANT_TRUST: Kind.QUARANTINED,
    Reason.TOOL_TRUST: Kind.QUARANTINED,
    Reason.SUGGESTED: Kind.QUARANTINED,
    Reason.NOT_AS_SAID: Kind.QUARANTINED,
    Reason.LESS_SURE: Kind.CONFLICT,
    Reason.OUTRANKED: Kind.CONFLICT,
    Reason.OPERATORS_WORD: Kind.CONFLICT,
    Reason.REFUSED_BEFORE: Kind.CONFLICT,
    Reason.NEAR_REFUSED: Kind.CONFLICT,
    Reason.REMOVAL: Kind.CONFLICT,
    Reason.PROPOSED: Kind.CONFLICT,
    Reason.FORGET_ASKED: Kind.CONFLICT,
    Reason.OTHER_PERSON: Kind.CONFLICT,
    Reason.IMPORTED: Kind.CONFLICT,
    Reason.NOT_JUDGED: Kind.DUPLICATE,
    Reason.INSTRUCTIONS: Kind.FLAGGED,
    Reason.CLAIMS_RIGHTS: Kind.FLAGGED,
    Reason.POSSIBLE_SECRET: Kind.HELD,
    Reason.POOR_QUALITY: Kind.EPISODE,
    Reason.HABIT: Kind.PATTERN,
    Reason.CHANGE_OF_MIND: Kind.PATTERN,
    Reason.RECURRING_PROBLEM: Kind.PATTERN,
}
# Why a fact waits for what its flags say, the gravest first; without one, for its trust.
REASON_OF_FLAG: dict[str, ReviewItem.Reason] = {
    detection.INSTRUCTIONS: Reason.INSTRUCTIONS,
    detection.POSSIBLE_SECRET: Reason.POSSIBLE_SECRET,
    CLAIMS_RIGHTS: Reason.CLAIMS_RIGHTS,
    NOT_AS_SAID: Reason.NOT_AS_SAID,
    SUGGESTED: Reason.SUGGESTED,
    HABIT: Reason.HABIT,
    CHANGE_OF_MIND: Reason.CHANGE_OF_MIND,
    RECURRING_PROBLEM: Reason.RECURRING_PROBLEM,
}
REASON_OF_TRUST: dict[str, ReviewItem.Reason] = {
    Trust.ASSISTANT: Reason.ASSISTANT_TRUST,
    Trust.TOOL: Reason.TOOL_TRUST,
}


@dataclass(frozen=True)
class ReviewQuestion:
    """What is to be decided: whether `fact` holds, beside or instead of `known`; without a `fact`, whether `known`
    still does. One of the two is given, or the proposed text of a section, or an episode that may be too poor."""

    reason: ReviewItem.Reason
    fact: Fact | None = None
    known: Fact | None = None
    proposed_section: ProfileRevision | None = None
    episode: Episode | None = None


def ask(question: ReviewQuestion, *, run: ExtractionRun | None, now: datetime) -> None:
    """Open an item, unless the same one is open already; inside the caller's transaction."""
    ask_all([question], run=run, now=now)


def ask_all(questions: Iterable[ReviewQuestion], *, run: ExtractionRun | None, now: datetime) -> None:
    """The same for many, in one statement."""
    items = [_item(question, run=run, now=now) for question in questions]
    # Two batches may ask the same question: review_open_once and review_episode_once keep one row.
    ReviewItem.objects.bulk_create(items, ignore_conflicts=True)
    if items and outbox.is_wanted(items[0].end_user.tenant, Event.REVIEW_OPENED):
        _publish(items, now=now)


def _publish(items: list[ReviewItem], *, now: datetime) -> None:
    """Tell webhooks of those that were opened: another batch may have asked the same."""
    opened = set(ReviewItem.objects.filter(pk__in=[item.pk for item in items]).values_list("pk", flat=True))
    happened = [
        WebhookEvent(
            Event.REVIEW_OPENED,
            {
                "review_item_id": item.pk,
                "person_id": item.end_user_id,
                "kind": item.kind,
                "reason": item.reason,
                "fact_id": item.fact_id,
                "episode_id": item.episode_id,
            },
            person=item.end_user_id,
        )
        for item in items
        if item.pk in opened
    ]
    outbox.publish(items[0].tenant_id, happened, now=now, tenant=items[0].end_user.tenant)


def _item(question: ReviewQuestion, *, run: ExtractionRun | None, now: datetime) -> ReviewItem:
    about = question.fact or question.known or question.proposed_section or question.episode
    if about is None:
        raise TypeError("a question is about a fact, a section or an episode")
    person = about.end_user
    return ReviewItem(
        tenant_id=person.tenant_id,
        end_user=person,
        kind=KIND_OF[question.reason],
        reason=question.reason,
        fact=question.fact,
        known=question.known,
        proposed_section=question.proposed_section,
        episode=question.episode,
        extraction=run,
        created_at=now,
    )


def close_answered_items(facts: Collection[uuid.UUID], *, now: datetime, change_set: uuid.UUID | None = None) -> int:
    """Close the items of these facts whose question is decided; how many. An undo of `change_set` opens them again.

    A proposal is settled once it is not pending any more; one that was stored as a possible duplicate, once it is not
    active any more. If the fact that it conflicts with is not active any more, only a pending proposal stays open.
    """
    gone = ~Q(fact=None) & ~Q(fact__status__in=[Status.ACTIVE, Status.PENDING])
    served = Q(fact__status=Status.ACTIVE) & ~Q(kind=Kind.DUPLICATE)
    # Without a fact its status is null, and "not pending" of null is not true.
    proposes_nothing = Q(fact=None) | ~Q(fact__status=Status.PENDING)
    alone = ~Q(known=None) & ~Q(known__status=Status.ACTIVE) & proposes_nothing
    items = ReviewItem.objects.waiting().filter(Q(fact__in=facts) | Q(known__in=facts))
    settled = items.filter(gone | served | alone).values("pk")
    return ReviewItem.objects.filter(pk__in=settled).update(
        state=ReviewItem.State.SETTLED, decided_at=now, change_set=change_set, version=F("version") + 1
    )


def flag_lost_evidence(facts: Collection[uuid.UUID], *, now: datetime) -> int:
    """Note on the open items of these patterns that a part of their evidence goes; returns how many.

    The item is another one by that: a decision of somebody who has not seen it is refused.
    """
    items = ReviewItem.objects.waiting().filter(fact__in=facts, kind=Kind.PATTERN).values("pk")
    return ReviewItem.objects.filter(pk__in=items).update(lost_at=now, version=F("version") + 1)


def detach_conflicts(facts: Collection[uuid.UUID]) -> None:
    """Before these facts are deleted: a suggestion in conflict with one of them waits by itself from now on."""
    conflicts = ReviewItem.objects.waiting().filter(known__in=facts, fact__status=Status.PENDING)
    for item in conflicts.exclude(fact__in=facts).select_for_update(of=("self",)).order_by("pk"):
        alone = ReviewItem.objects.waiting().filter(fact=item.fact_id, known=None, kind=item.kind)
        if not alone.exists():
            item.known = None
            item.version += 1
            item.save()


def close_answered_items_of_episode(episode: Episode, *, now: datetime, change_set: uuid.UUID | None = None) -> int:
    """Close the items of an episode that is not pending any more; how many. `change_set` as in
    close_answered_items()."""
    if episode.status == EpisodeStatus.PENDING:
        return 0
    items = ReviewItem.objects.waiting().filter(episode=episode)
    return items.update(state=ReviewItem.State.SETTLED, decided_at=now, change_set=change_set, version=F("version") + 1)
