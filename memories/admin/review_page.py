"""What the page of a review item shows: both texts, their evidence, what waits before and after it, and who decided."""

from dataclasses import dataclass
from typing import Any

from django.db.models import CharField, Q, QuerySet
from django.db.models.functions import Cast

from memories import curation
from memories.admin import episode_wording, review_wording
from memories.admin.authors import ANONYMOUS
from memories.admin.episode_page import range_of
from memories.admin.fact_page import citations
from memories.admin.segments import Segment, diff
from memories.models import ActorKind, Episode, Fact, Operator, ProfileSection, ReviewItem


@dataclass(frozen=True)
class Neighbours:
    """The waiting items before and after one, and how many wait."""

    previous: ReviewItem | None
    following: ReviewItem | None
    waiting: int


def shown_of(item: ReviewItem) -> dict[str, Any]:
    """All that the template needs, in nine queries at most."""
    return {
        "item": item,
        "why": review_wording.why(item),
        "state": review_wording.state_of(item),
        "kind_colour": review_wording.KIND_COLOURS[item.kind],
        "state_colour": review_wording.STATE_COLOURS[review_wording.state_of(item)],
        "choices": curation.choices_of(item),
        "effects": review_wording.effects_of(item),
        "segments": texts(item),
        "sides": [(title, fact) for title, fact in (("Proposed", item.fact), ("Known", item.known)) if fact],
        "evidence": [(title, fact, citations(fact)) for title, fact in _resting(item)],
        "neighbours": neighbours(item),
        "siblings": siblings(item),
        "decider": _decider(item),
        "may_undo": curation.may_undo(item),
        **(_shown_of_episode(item.episode) if item.episode else {}),
    }


def _shown_of_episode(episode: Episode) -> dict[str, Any]:
    return {
        "episode": episode,
        "flaws": episode_wording.flaws_of(episode.flaws),
        "poor": episode_wording.why_poor(episode),
        "range": range_of(episode),
    }


def texts(item: ReviewItem) -> list[Segment]:
    """The proposal as a diff to what it stands against; what should go is struck out."""
    if item.proposed_section:
        stands = ProfileSection.objects.filter(end_user=item.end_user_id, section=item.proposed_section.section)
        before = stands.values_list("summary", flat=True).first() if item.state == ReviewItem.State.OPEN else None
        return diff(item.proposed_section.before if before is None else before, item.proposed_section.after)
    if item.episode:
        return [Segment(item.episode.summary)]
    if item.fact and item.known:
        return diff(item.known.content, item.fact.content)
    if item.fact:
        return [Segment(item.fact.content)]
    return [Segment(item.known.content, "removed")] if item.known else []


def neighbours(item: ReviewItem) -> Neighbours:
    waiting: QuerySet[ReviewItem] = ReviewItem.objects.waiting().only("pk", "kind")
    before = Q(created_at__lt=item.created_at) | Q(created_at=item.created_at, pk__lt=item.pk)
    after = Q(created_at__gt=item.created_at) | Q(created_at=item.created_at, pk__gt=item.pk)
    return Neighbours(
        previous=waiting.filter(before).order_by("-created_at", "-pk").first(),
        following=waiting.filter(after).order_by("created_at", "pk").first(),
        waiting=waiting.count(),
    )


def siblings(item: ReviewItem) -> list[ReviewItem]:
    """What else waits about the same suggestion: decided with it when it is approved or rejected."""
    if item.fact is None or item.state != ReviewItem.State.OPEN:
        return []
    return list(ReviewItem.objects.waiting().filter(fact=item.fact).exclude(pk=item.pk))


def _resting(item: ReviewItem) -> list[tuple[str, Fact]]:
    pair = (("Evidence", item.fact), ("Evidence of what is known", item.known))
    return [(title, fact) for title, fact in pair if fact]


def _decider(item: ReviewItem) -> str:
    if not item.decided_by:
        return ""
    operators = Operator.objects.annotate(text=Cast("pk", CharField())).filter(text=item.decided_by)
    return operators.values_list("username", flat=True).first() or ANONYMOUS[ActorKind.OPERATOR]
