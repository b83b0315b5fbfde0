"""Operators' decisions about review items: approve, reject, approve with other words, keep both, merge."""

import uuid
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from memories import content_policy
from memories.audit import Actor
from memories.content_policy import Road
from memories.curation.change_sets import Changes, refusals_against
from memories.curation.episodes import next_version, rewrite
from memories.curation.facts.approving import approve_suggestion
from memories.curation.facts.changing import approve, state_binding, supersede_rivals
from memories.curation.profile.sections import take_proposed_section
from memories.curation.review.deciding import Choice, ExpectedVersions, deciding
from memories.curation.review.suggestions import turn_down
from memories.curation.statements.scrubbing import scrubbed_episode, scrubbed_fact
from memories.exceptions import Conflict, InvalidInput
from memories.models import Episode, EpisodeStatus, Fact, ProfileRevision, RelationType, ReviewItem, Status
from memories.models.folding import fold
from memories.models.memories.episodes import TEXTS
from memories.models.memories.refusals import refusal_key_of_text
from memories.text import value_texts
from memories.text.secrets.scrubbing import scrubbed_text

Kind = ReviewItem.Kind


def approve_item(
    *, item_id: uuid.UUID, actor: Actor, now: datetime, expected: ExpectedVersions | None = None, reason: str = ""
) -> ReviewItem:
    """Accept the proposal: a suggestion becomes active and supersedes what it contradicts, also an operator's word, but
    an agent's supersedes nothing of the person's own, and one that was said before what it contradicts is kept as what
    held until then; a fact that was proposed to be out of date is archived, and one that an agent
    asks to forget is forgotten; a proposed section is written; a poor episode is served.

    Errors: NotFound, Conflict (decided meanwhile), PreconditionFailed (changed since `expected`).
    """
    with deciding(item_id, Choice.APPROVE, actor=actor, now=now, reason=reason, expected=expected) as (item, changes):
        if item.proposed_section:
            _decide_section(item.proposed_section, changes)
        elif item.episode:
            _serve(item.episode, changes)
        elif item.fact:
            instead_of = [item.known.pk] if item.known else []
            if item.fact.status == Status.PENDING:
                approve_suggestion(item.fact, changes, instead_of=instead_of)
            else:
                supersede_rivals(item.fact, changes, instead_of=instead_of)
        elif item.known and item.reason == ReviewItem.Reason.FORGET_ASKED:
            changes.trash([item.known], "forget")
            changes.refuse(item.known, refusals_against(item.known))
        elif item.known:
            # It is true no longer, and nothing takes its place.
            with changes.changing(item.known, "approve"):
                item.known.status, item.known.valid_to = Status.ARCHIVED, now
    return item


def reject_item(
    *, item_id: uuid.UUID, actor: Actor, now: datetime, reason: str, expected: ExpectedVersions | None = None
) -> ReviewItem:
    """Turn the proposal down: a suggestion is rejected and refused for good; a possible duplicate is archived in favour
    of the existing fact, and not refused; a poor episode goes to the trash; otherwise all stays as it is.

    Errors: as approve_item().
    """
    with deciding(item_id, Choice.REJECT, actor=actor, now=now, reason=reason, expected=expected) as (item, changes):
        if item.episode:
            with next_version(item.episode, "reject", changes):
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
    expected: ExpectedVersions | None = None,
    reason: str = "",
) -> ReviewItem:
    """Accept the proposal with the named fields as the operator writes them, as an operator's word: `content` and
    `category` of a fact, `summary` of a section, those of an episode. What a fact said before is refused.

    Errors: as approve_item(), InvalidInput, DuplicateFact (another live fact says the same).
    """
    with deciding(item_id, Choice.EDIT, actor=actor, now=now, reason=reason, expected=expected) as (item, made):
        if item.episode:
            _serve(item.episode, made, scrubbed_episode(changes))
        elif item.proposed_section:
            _decide_section(item.proposed_section, made, summary=changes["summary"])
        elif item.fact:
            _reword(item, item.fact, scrubbed_fact(changes), made)
    return item


def keep_both(
    *, item_id: uuid.UUID, actor: Actor, now: datetime, expected: ExpectedVersions | None = None, reason: str = ""
) -> ReviewItem:
    """Serve both facts; those of a conflict are related as contradicting. Errors: as approve_item()."""
    with deciding(item_id, Choice.KEEP_BOTH, actor=actor, now=now, reason=reason, expected=expected) as (item, changes):
        fact, existing = _pair(item)
        if fact.status == Status.PENDING:
            approve(fact, changes, "keep_both")
        if item.kind == Kind.CONFLICT:
            changes.relate(fact, existing, RelationType.CONTRADICTS)
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
    expected: ExpectedVersions | None = None,
) -> ReviewItem:
    """Keep one of the two, with `content` as an operator's word and the evidence of both; it supersedes the other.

    Errors: as approve_item(), InvalidInput, DuplicateFact (a third live fact says the same).
    """
    content = scrubbed_text(content).strip()
    with deciding(item_id, Choice.MERGE, actor=actor, now=now, reason=reason, expected=expected) as (item, changes):
        fact, existing = _pair(item)
        if not content or survivor not in (fact.pk, existing.pk):
            fault = _("One of the two must stay, with a text.")
            raise InvalidInput.at("content" if not content else "survivor", fault)
        kept, other = (fact, existing) if survivor == fact.pk else (existing, fact)
        if not other.can_be_superseded_by(kept):
            raise Conflict(_("One of the two is an agent's and the other is the end user's own. Keep the latter."))
        # First, so that the survivor may take its very text.
        changes.supersede(other, by=kept)
        changes.remove_refusals_of(kept)
        with changes.changing(kept, "merge"):
            state_binding(kept, content, actor=changes.actor, now=changes.now)
            kept.category, kept.status = category or kept.category, Status.ACTIVE
        changes.copy_evidence(of=other, to=kept)
        changes.relate(kept, other, RelationType.DERIVED_FROM)
        supersede_rivals(kept, changes)
    return item


def _decide_section(revision: ProfileRevision, changes: Changes, summary: str | None = None) -> None:
    """Write the proposed text of a section of the profile, or `summary` instead of it."""
    take_proposed_section(revision=revision, summary=summary, changes=changes)


def _serve(episode: Episode, changes: Changes, stated: dict[str, Any] | None = None) -> None:
    with next_version(episode, "approve", changes):
        episode.status = EpisodeStatus.ACTIVE
        if stated:
            rewrite(episode, stated, actor=changes.actor)
        content_policy.check(
            episode.tenant, Road.EPISODE, value_texts.strings([getattr(episode, name) for name in TEXTS])
        )


def _reword(item: ReviewItem, fact: Fact, stated: dict[str, Any], changes: Changes) -> None:
    """Make the fact active in other words; no job stores the old ones again."""
    content = stated.get("content", "").strip()
    if not content:
        raise InvalidInput.at("content", _("Enter the corrected text, or reject it."))
    changes.remove_refusals_of(fact)
    if fold(content) != fold(fact.content):
        changes.refuse(fact, [refusal_key_of_text(fact.content)])
    with changes.changing(fact, "edit"):
        state_binding(fact, content, actor=changes.actor, now=changes.now)
        fact.category, fact.status = stated.get("category") or fact.category, Status.ACTIVE
    changes.remove_refusals_of(fact)
    supersede_rivals(fact, changes, instead_of=[item.known.pk] if item.known else [])


def _pair(item: ReviewItem) -> tuple[Fact, Fact]:
    if item.fact is None or item.known is None:
        raise Conflict
    return item.fact, item.known
