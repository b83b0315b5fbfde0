"""What operators decide about review items: whether a proposal holds, beside or instead of what is known."""

import uuid
from datetime import datetime
from typing import Any

from memories.audit import Actor
from memories.curation import profile
from memories.curation.change_sets import ChangeSet
from memories.curation.deciding import Choice, Seen, deciding
from memories.curation.episode_changes import changing, rewrite
from memories.curation.fact_changes import approve, make_way
from memories.curation.review import turn_down
from memories.curation.scrubbing import episode_without_secrets, without_secrets
from memories.exceptions import Conflict, InvalidInput
from memories.models import (
    Episode,
    EpisodeStatus,
    Fact,
    FactRefusal,
    ProfileRevision,
    RelationType,
    ReviewItem,
    Source,
    Status,
    Trust,
)
from memories.models.folding import fold, refusal_of_text
from memories.pipeline.redaction import redact_text

Kind = ReviewItem.Kind


def approve_item(
    *, item_id: uuid.UUID, actor: Actor, now: datetime, seen: Seen | None = None, reason: str = ""
) -> ReviewItem:
    """The proposal holds: a suggestion becomes active, and what it stands against is superseded by it, also an
    operator's word; what was said to be true no longer is archived; a proposed section is written; a poor episode is
    served.

    Errors: NotFound, Conflict (decided meanwhile), PreconditionFailed (not as `seen`).
    """
    with deciding(item_id, Choice.APPROVE, actor=actor, now=now, reason=reason, seen=seen) as (item, changes):
        if item.proposed_section:
            _decide_section(item.proposed_section, changes)
        elif item.episode:
            _serve(item.episode, changes)
        elif item.fact:
            _let_hold(item, item.fact, changes)
        elif item.known:
            _end(item.known, changes)
    return item


def reject_item(
    *, item_id: uuid.UUID, actor: Actor, now: datetime, reason: str, seen: Seen | None = None
) -> ReviewItem:
    """The proposal goes: a suggestion is rejected and refused for good; a possible duplicate is archived in favour of
    what is known, and nothing refuses it; a poor episode goes to the trash; otherwise all stays as it is.
    Errors: as approve_item().
    """
    with deciding(item_id, Choice.REJECT, actor=actor, now=now, reason=reason, seen=seen) as (item, changes):
        if item.episode:
            with changing(item.episode, "reject", changes):
                item.episode.status, item.episode.trashed_at = EpisodeStatus.TRASHED, now
        if item.fact:
            with changes.changing(item.fact, "reject"):
                if item.kind == Kind.DUPLICATE:
                    item.fact.status, item.fact.valid_to = Status.ARCHIVED, now
                    item.fact.superseded_by = item.known
                else:
                    turn_down(item.fact, changes)
    return item


def approve_edited(
    *,
    item_id: uuid.UUID,
    changes: dict[str, Any],
    actor: Actor,
    now: datetime,
    seen: Seen | None = None,
    reason: str = "",
) -> ReviewItem:
    """The proposal holds with the named fields as the operator writes them, as an operator's word: `content` and
    `category` of a fact, `summary` of a section, those of an episode. What a fact said before is refused.

    Errors: as approve_item(), InvalidInput, DuplicateFact (another live fact says the same).
    """
    with deciding(item_id, Choice.EDIT, actor=actor, now=now, reason=reason, seen=seen) as (item, made):
        if item.episode:
            _serve(item.episode, made, episode_without_secrets(changes))
        elif item.proposed_section:
            _decide_section(item.proposed_section, made, summary=changes["summary"])
        elif item.fact:
            _say_instead(item, item.fact, without_secrets(changes), made)
    return item


def keep_both(
    *, item_id: uuid.UUID, actor: Actor, now: datetime, seen: Seen | None = None, reason: str = ""
) -> ReviewItem:
    """Both are served; of a conflict it is noted that they contradict each other. Errors: as approve_item()."""
    with deciding(item_id, Choice.KEEP_BOTH, actor=actor, now=now, reason=reason, seen=seen) as (item, changes):
        fact, known = _pair(item)
        if fact.status == Status.PENDING:
            approve(fact, changes, "keep_both")
        if item.kind == Kind.CONFLICT:
            changes.relate(fact, known, RelationType.CONTRADICTS)
    return item


def merge_items(
    *,
    item_id: uuid.UUID,
    survivor: uuid.UUID,
    content: str,
    actor: Actor,
    now: datetime,
    reason: str,
    category: str | None = None,
    seen: Seen | None = None,
) -> ReviewItem:
    """One of the two stays, says `content` as an operator's word and rests on the turns of both; the other is
    superseded by it.

    Errors: as approve_item(), InvalidInput, DuplicateFact (a third live fact says the same).
    """
    content = redact_text(content)[0].strip()
    with deciding(item_id, Choice.MERGE, actor=actor, now=now, reason=reason, seen=seen) as (item, changes):
        fact, known = _pair(item)
        if not content or survivor not in (fact.pk, known.pk):
            raise InvalidInput.at("content" if not content else "survivor", "One of the two has to stay, with a text.")
        kept, other = (fact, known) if survivor == fact.pk else (known, fact)
        # First, so that the survivor may take its very text.
        changes.supersede(other, by=kept)
        changes.lift_refusals(kept)
        with changes.changing(kept, "merge"):
            _say_for_good(kept, content, category or kept.category, now=now)
        changes.copy_evidence(of=other, to=kept)
        changes.relate(kept, other, RelationType.DERIVED_FROM)
        make_way(kept, changes)
    return item


def _let_hold(item: ReviewItem, fact: Fact, changes: ChangeSet) -> None:
    if fact.status == Status.PENDING:
        approve(fact, changes)
    make_way(fact, changes, instead_of=[item.known.pk] if item.known else [])


def _say_instead(item: ReviewItem, fact: Fact, stated: dict[str, Any], changes: ChangeSet) -> None:
    """The fact holds in other words, and no job says the old ones again."""
    content = stated.get("content", "").strip()
    if not content:
        raise InvalidInput.at("content", "Write what it should say, or reject it.")
    changes.lift_refusals(fact)
    if fold(content) != fold(fact.content):
        changes.refuse(fact, [(FactRefusal.Kind.TEXT, refusal_of_text(fact.content))])
    with changes.changing(fact, "edit"):
        _say_for_good(fact, content, stated.get("category") or fact.category, now=changes.now)
    changes.lift_refusals(fact)
    make_way(fact, changes, instead_of=[item.known.pk] if item.known else [])


def _serve(episode: Episode, changes: ChangeSet, stated: dict[str, Any] | None = None) -> None:
    with changing(episode, "approve", changes):
        episode.status = EpisodeStatus.ACTIVE
        if stated:
            rewrite(episode, stated, changes)


def _end(known: Fact, changes: ChangeSet) -> None:
    """It is true no longer, and nothing stands in its place."""
    with changes.changing(known, "approve"):
        known.status, known.valid_to = Status.ARCHIVED, changes.now


def _pair(item: ReviewItem) -> tuple[Fact, Fact]:
    if item.fact is None or item.known is None:
        raise Conflict
    return item.fact, item.known


def _say_for_good(fact: Fact, content: str, category: str, *, now: datetime) -> None:
    if fold(content) != fold(fact.content):
        # It was that of the old text; the key stays.
        fact.value = ""
    fact.say(content)
    fact.category, fact.status, fact.flags, fact.binding = category, Status.ACTIVE, [], True
    fact.source, fact.trust, fact.confidence, fact.stated_confidence = Source.CORRECTED, Trust.OPERATOR, 1.0, 1.0
    fact.last_confirmed_at = now


def _decide_section(revision: ProfileRevision, changes: ChangeSet, summary: str | None = None) -> None:
    """Write the proposed text of a section of the profile, or `summary` instead of it."""
    profile.take_proposed_section(
        revision=revision,
        summary=summary,
        actor=changes.actor,
        now=changes.now,
        change_set=changes.id,
        reason=changes.reason,
    )
