"""What pages show of a review item: proposal, decisions and their effects, evidence, existing facts, who decided."""

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import BooleanField, CharField, Exists, ExpressionWrapper, OuterRef, Q
from django.db.models.functions import Cast
from django.utils import timezone
from django.utils.translation import gettext as _

from memories.admin.episodes.detail import flaws_of, turns_of, why_poor
from memories.admin.facts.detail import Citation, citations, may_see_turns
from memories.admin.review import queue, waits, wording
from memories.admin.review.queue import Rows
from memories.admin.site.segments import Segment, diff
from memories.curation.facts.approving import asked_too_late
from memories.curation.review.deciding import choices_of
from memories.curation.review.undo import may_undo
from memories.models import ActorKind, Episode, EpisodeStatus, Fact, FactEvidence, Operator, ProfileSection, ReviewItem

MOST_NEARBY = 4


@dataclass(frozen=True)
class ExistingFact:
    """A fact that is stored already, its evidence, and whether the item is about it or merely near it."""

    fact: Fact
    evidence: list[Citation]
    stands_against: bool


def shown_of(item: ReviewItem, waiting: Rows, operator: Operator | AnonymousUser) -> dict[str, Any]:
    """What the page of an item shows, in twelve queries at most; `waiting`: all items that the operator may see."""
    rows = waiting.select_related(None).only("pk", "kind", "created_at")
    sides = ((_("Proposed"), _("Evidence"), item.fact), (_("Known"), _("Evidence of the existing memory"), item.known))
    return {
        **decision_of(item, operator),
        "sides": [(title, fact) for title, _heading, fact in sides if fact],
        "evidence": [(heading, fact, citations(fact, operator)) for _title, heading, fact in sides if fact],
        "previous": queue.previous(rows, item),
        "following": queue.following(rows, item),
        "waiting": waiting.count(),
    }


def decision_of(item: ReviewItem, operator: Operator | AnonymousUser) -> dict[str, Any]:
    """What is to be decided, with the effect of each decision, or who has decided it."""
    is_late = bool(asked_too_late([item], now=timezone.now()))
    deciders = _names_of({item.decided_by}) if item.decided_by else {}
    shown = {
        "item": item,
        "why": wording.review_reason(item),
        "about": wording.about(item),
        "kind_colour": wording.KIND_COLOURS[item.kind],
        "state_colour": wording.STATE_COLOURS[item.state],
        "choices": choices_of(item),
        "effects": wording.effects_of(item, is_late=is_late),
        "segments": _proposal(item),
        "siblings": _siblings(item),
        "decider": deciders.get(item.decided_by, str(ActorKind.OPERATOR.label)) if item.decided_by else "",
        "may_undo": may_undo(item),
        "labels": {choice: wording.label_of(item, choice, is_late=is_late) for choice in choices_of(item)},
        "waits": waits.wait_of(item, now=timezone.now()),
        **_desk_of(item, operator),
    }
    if item.fact and item.kind == ReviewItem.Kind.PATTERN:
        shown["pattern"] = _episodes_of(item.fact)
    if item.episode:
        shown |= {"episode": item.episode, "flaws": flaws_of(item.episode.flaws), "poor": why_poor(item.episode)}
        if may_see_turns(operator):
            shown["range"] = turns_of(item.episode)
    return shown


def _proposal(item: ReviewItem) -> list[Segment]:
    """The proposal as a diff to what it stands against; what should go is struck out."""
    if item.proposed_section:
        named = {name: getattr(item.proposed_section, name) for name in ("agent_id", "section")}
        stands = ProfileSection.objects.filter(end_user=item.end_user_id, **named)
        before = stands.values_list("summary", flat=True).first() if item.state == ReviewItem.State.OPEN else None
        return diff(item.proposed_section.before if before is None else before, item.proposed_section.after)
    if item.episode:
        return [Segment(item.episode.summary)]
    if item.fact and item.known:
        return diff(item.known.content, item.fact.content)
    if item.fact:
        return [Segment(item.fact.content)]
    return [Segment(item.known.content, "removed")] if item.known else []


def _episodes_of(fact: Fact) -> list[Episode]:
    """The episodes whose turns the fact rests on, the oldest first."""
    cited = FactEvidence.objects.filter(
        fact=fact,
        session=OuterRef("session"),
        turn_number__gte=OuterRef("first_number"),
        turn_number__lte=OuterRef("last_number"),
    )
    rows = Episode.objects.of(fact.tenant, fact.end_user).exclude(status=EpisodeStatus.TRASHED)
    return list(rows.filter(Exists(cited)).order_by("ended_at", "pk"))


def _siblings(item: ReviewItem) -> list[ReviewItem]:
    """Other open items about the same suggestion: an approval or rejection decides them, too."""
    if item.fact is None or item.state != ReviewItem.State.OPEN:
        return []
    return list(ReviewItem.objects.waiting().filter(fact=item.fact).exclude(pk=item.pk))


def _desk_of(item: ReviewItem, operator: Operator | AnonymousUser) -> dict[str, Any]:
    """Who has the item, and what is noted on it."""
    notes, me = list(item.notes.all()), str(operator.pk)
    names = _names_of({item.taken_by, *(note.actor_id for note in notes)} - {""})
    return {
        "holder": names.get(item.taken_by, str(ActorKind.OPERATOR.label)) if item.taken_by else "",
        "is_mine": item.taken_by == me,
        "notes": [
            {
                "note": note,
                "author": names.get(note.actor_id, note.get_actor_kind_display()),
                "is_mine": note.actor_kind == ActorKind.OPERATOR and note.actor_id == me,
            }
            for note in notes
        ],
    }


def _names_of(ids: set[str]) -> dict[str, str]:
    """The operators of these ids that are still there."""
    if not ids:
        return {}
    operators = Operator.objects.annotate(text=Cast("pk", CharField())).filter(text__in=ids)
    return dict(operators.values_list("text", "username"))


def evidence_of(item: ReviewItem, operator: Operator | AnonymousUser) -> dict[str, Any]:
    """What the queue shows below the decision: the evidence of the proposal, and existing facts."""
    shown = [ExistingFact(item.known, citations(item.known, operator), stands_against=True)] if item.known else []
    shown += [ExistingFact(fact, [], stands_against=False) for fact in _nearby(item)]
    return {"citations": citations(item.fact, operator) if item.fact else [], "known": shown}


def _nearby(item: ReviewItem) -> list[Fact]:
    """Other facts in force of the same key or category, the same key first."""
    about = item.fact or item.known
    if about is None or item.state != ReviewItem.State.OPEN:
        return []
    active = Fact.objects.of(item.tenant, item.end_user).active(now=timezone.now())
    others = active.filter(category=about.category).exclude(pk__in=[pk for pk in (item.fact_id, item.known_id) if pk])
    same_key = ExpressionWrapper(Q(key=about.key) & ~Q(key=""), BooleanField())
    return list(others.annotate(same_key=same_key).order_by("-same_key", "-last_confirmed_at", "pk")[:MOST_NEARBY])
