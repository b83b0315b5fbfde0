"""What the pages show of a review item: both texts, their evidence, what is known besides, and who decided."""

from dataclasses import dataclass
from typing import Any

from django.db.models import BooleanField, CharField, ExpressionWrapper, Q
from django.db.models.functions import Cast
from django.utils import timezone
from django.utils.translation import gettext as _

from memories import curation
from memories.admin import episode_wording, review_queue, review_wording
from memories.admin.authors import unnamed
from memories.admin.episode_page import range_of
from memories.admin.fact_page import Citation, citations
from memories.admin.review_queue import Rows
from memories.admin.segments import Segment, diff
from memories.models import ActorKind, Episode, Fact, Operator, ProfileSection, ReviewItem

MOST_BESIDES = 4


@dataclass(frozen=True)
class Neighbours:
    """The waiting items before and after one, and how many wait."""

    previous: ReviewItem | None
    following: ReviewItem | None
    waiting: int


@dataclass(frozen=True)
class Known:
    """A fact that is known already, its evidence, and whether the item is about it or merely near it."""

    fact: Fact
    evidence: list[Citation]
    stands_against: bool


def shown_of(item: ReviewItem, waiting: Rows) -> dict[str, Any]:
    """All that the page of an item needs, in nine queries at most; `waiting`: what the operator may see of it all."""
    return {
        **decided_of(item),
        "sides": [(title, fact) for title, fact in ((_("Proposed"), item.fact), (_("Known"), item.known)) if fact],
        "evidence": [(title, fact, citations(fact)) for title, fact in _resting(item)],
        "neighbours": neighbours(item, waiting),
    }


def decided_of(item: ReviewItem) -> dict[str, Any]:
    """What is to be decided, with what each decision does, or who has decided it."""
    return {
        "item": item,
        "why": review_wording.why(item),
        "about": review_wording.about(item),
        "kind_colour": review_wording.KIND_COLOURS[item.kind],
        "state_colour": review_wording.STATE_COLOURS[item.state],
        "choices": curation.choices_of(item),
        "effects": review_wording.effects_of(item),
        "segments": texts(item),
        "siblings": siblings(item),
        "decider": _decider(item),
        "may_undo": curation.may_undo(item),
        **(_shown_of_episode(item.episode) if item.episode else {}),
    }


def resting_on(item: ReviewItem) -> dict[str, Any]:
    """What the queue shows below the decision: the evidence of the proposal, and what is known already."""
    besides = [Known(fact, [], stands_against=False) for fact in _besides(item)]
    against = [Known(item.known, citations(item.known), stands_against=True)] if item.known else []
    return {"citations": citations(item.fact) if item.fact else [], "known": [*against, *besides]}


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


def neighbours(item: ReviewItem, waiting: Rows) -> Neighbours:
    rows = waiting.select_related(None).only("pk", "kind", "created_at")
    return Neighbours(review_queue.previous(rows, item), review_queue.following(rows, item), waiting.count())


def siblings(item: ReviewItem) -> list[ReviewItem]:
    """What else waits about the same suggestion: decided with it when it is approved or rejected."""
    if item.fact is None or item.state != ReviewItem.State.OPEN:
        return []
    return list(ReviewItem.objects.waiting().filter(fact=item.fact).exclude(pk=item.pk))


def _besides(item: ReviewItem) -> list[Fact]:
    """Other facts in force of the same key or category, the same key first."""
    about = item.fact or item.known
    if about is None or item.state != ReviewItem.State.OPEN:
        return []
    active = Fact.objects.of(item.tenant, item.end_user).active(now=timezone.now())
    others = active.filter(category=about.category).exclude(pk__in=[pk for pk in (item.fact_id, item.known_id) if pk])
    same_key = ExpressionWrapper(Q(key=about.key) & ~Q(key=""), BooleanField())
    return list(others.annotate(same_key=same_key).order_by("-same_key", "-last_confirmed_at", "pk")[:MOST_BESIDES])


def _shown_of_episode(episode: Episode) -> dict[str, Any]:
    return {
        "episode": episode,
        "flaws": episode_wording.flaws_of(episode.flaws),
        "poor": episode_wording.why_poor(episode),
        "range": range_of(episode),
    }


def _resting(item: ReviewItem) -> list[tuple[str, Fact]]:
    pair = ((_("Evidence"), item.fact), (_("Evidence of what is known"), item.known))
    return [(title, fact) for title, fact in pair if fact]


def _decider(item: ReviewItem) -> str:
    if not item.decided_by:
        return ""
    operators = Operator.objects.annotate(text=Cast("pk", CharField())).filter(text=item.decided_by)
    return operators.values_list("username", flat=True).first() or unnamed(ActorKind.OPERATOR)
