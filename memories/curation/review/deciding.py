"""The frame of every decision about a review item: its locks, what the operator saw, and which decisions fit."""

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from django.db import transaction
from django.utils.translation import gettext as _

from memories.audit import Actor
from memories.curation.change_sets import Changes
from memories.curation.episodes import lock
from memories.curation.facts.changing import lock_facts
from memories.curation.review import item_states
from memories.curation.writing import lock_person
from memories.exceptions import Conflict, NotFound, PreconditionFailed
from memories.models import EpisodeStatus, Fact, FactRevision, ReviewItem, Status


class Choice(StrEnum):
    """What can be decided; also the verb in the audit trail."""

    APPROVE = "approve"
    EDIT = "edit"
    KEEP_BOTH = "keep_both"
    MERGE = "merge"
    REJECT = "reject"


STATE_OF = {
    Choice.APPROVE: ReviewItem.State.APPROVED,
    Choice.EDIT: ReviewItem.State.APPROVED,
    Choice.KEEP_BOTH: ReviewItem.State.KEPT_BOTH,
    Choice.MERGE: ReviewItem.State.MERGED,
    Choice.REJECT: ReviewItem.State.REJECTED,
}


@dataclass(frozen=True)
class ExpectedVersions:
    """The versions that the operator looked at: of the item, and of its facts or its episode by their ids."""

    item: int
    facts: Mapping[uuid.UUID, int] = field(default_factory=dict)


def choices_of(item: ReviewItem) -> tuple[Choice, ...]:
    """Which decisions fit the item: two facts can be kept or merged only while both may be served, and what is not
    served yet can be edited."""
    if item.state != ReviewItem.State.OPEN or not _is_current(item):
        return ()
    fact = item.fact
    # A possible duplicate is served already: its words are chosen in the merge.
    unserved = item.episode or item.proposed_section or (fact and item.kind != ReviewItem.Kind.DUPLICATE)
    edit = (Choice.EDIT,) if unserved else ()
    pair = fact and item.known and item.known.status == Status.ACTIVE
    both = (Choice.KEEP_BOTH, Choice.MERGE) if pair else ()
    return (Choice.APPROVE, *edit, *both, Choice.REJECT)


@contextmanager
def deciding(
    item_id: uuid.UUID, choice: Choice, *, actor: Actor, now: datetime, reason: str, expected: ExpectedVersions | None
) -> Iterator[tuple[ReviewItem, Changes]]:
    """Lock and check the item, let the block write, close the item, settle what else this answers, record it."""
    changes = Changes(actor=actor, now=now, reason=reason)
    with transaction.atomic():
        item, _ = locked_item(item_id)
        _check(item, choice, expected)
        yield item, changes
        item_states.close(item, STATE_OF[choice], changes)
        item_states.close_answered_items(changes)
        changes.record(choice, item)


def locked_item(item_id: uuid.UUID) -> tuple[ReviewItem, dict[uuid.UUID, Fact]]:
    """Lock the item with its episode, and its facts with those that its decision changed, by their ids.

    The person first, facts in the order of their ids, the episode, then the item: extraction's commits and the verbs on
    facts and episodes take their locks in this order, too. Errors: NotFound.
    """
    found = ReviewItem.objects.filter(pk=item_id)
    lock_person(found.values_list("end_user", flat=True).first())
    # Nobody else decides it from here on: everybody who does locks the person.
    about = found.values_list("fact", "known", "change_set", "episode").first() or (None, None, None, None)
    changed = FactRevision.objects.filter(change_set=about[2]).exclude(change_set=None)
    facts = {fact.pk: fact for fact in lock_facts([*about[:2], *changed.values_list("fact", flat=True)])}
    episode = lock(about[3])
    rows = found.select_related("tenant", "end_user", "proposed_section")
    item = rows.select_for_update(of=("self",), no_key=True).first()
    if item is None:
        raise NotFound
    item.fact, item.known = (facts.get(pk) if pk else None for pk in (item.fact_id, item.known_id))
    item.episode = episode
    return item, facts


def _is_current(item: ReviewItem) -> bool:
    """Whether the question is still open in fact: a verb that answered it in passing should have settled it."""
    if item.episode:
        return item.episode.status == EpisodeStatus.PENDING
    if item.fact:
        return item.fact.status == (Status.ACTIVE if item.kind == ReviewItem.Kind.DUPLICATE else Status.PENDING)
    return item.known is None or item.known.status == Status.ACTIVE


def _check(item: ReviewItem, choice: Choice, expected: ExpectedVersions | None) -> None:
    if item.state != ReviewItem.State.OPEN:
        message = _("Somebody has decided this in the meantime: %(state)s.")
        raise Conflict(message % {"state": item.get_state_display().lower()})
    current = {memory.pk: memory.version for memory in (item.fact, item.known, item.episode) if memory}
    if expected and (expected.item != item.version or dict(expected.facts) != current):
        raise PreconditionFailed
    if not _is_current(item):
        raise Conflict(_("The memory in question has changed in the meantime. There is nothing left to decide."))
    if choice not in choices_of(item):
        raise Conflict(_("This decision is not possible here. Approve or reject the proposal."))
