"""Merges two people who are one: what is remembered of the one becomes the other's, and its id leads there.

One transaction and change set: killed anywhere, it leaves nothing. reverting.revert() takes it back.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from django.utils.translation import gettext as _

from memories import audit, conf
from memories.audit import Actor
from memories.curation.change_sets import Changes
from memories.curation.people.errors import PersonMerged
from memories.curation.people.merging import facts, files, graph, groups, plain, profile, records, trajectories
from memories.curation.people.merging.locks import Pair, discard_work_in_flight, lock, retry_when_locked
from memories.curation.people.merging.rows import (
    move_questions,
    move_refusals,
    reassign,
    rename_sessions,
    same_session_ids,
    share_kept_answers,
)
from memories.curation.review import item_states
from memories.exceptions import PreconditionFailed
from memories.models import (
    Change,
    ChangeSet,
    EndUser,
    Episode,
    Fact,
    FactRefusal,
    ProfileSection,
    ReviewItem,
    Session,
    Status,
    Turn,
)

MERGE = "merge"
Table = Change.Table


@dataclass(frozen=True)
class PersonMergePreview:
    """What a merge would do now: what each of the two has, what both have, what becomes of each section of the profile,
    the fields that the survivor takes over, and how many active facts they have beyond the capacity."""

    survivor: Mapping[str, int]
    merged: Mapping[str, int]
    same_texts: int
    same_keys: int
    refused: int
    same_sessions: int
    sections: Mapping[profile.Name, profile.SectionOutcome]
    taken: list[str] = field(default_factory=list)
    beyond: int = 0


def preview_person_merge(*, survivor: EndUser, merged: EndUser) -> PersonMergePreview:
    """Counts; nothing is changed, and what happens meanwhile still changes them."""
    ours, theirs = _counts(survivor), _counts(merged)
    same_texts = facts.same_texts(merged, survivor).count()
    capacity = conf.rules(survivor.tenant).capacity
    active = ours["active"] + theirs["active"] - same_texts
    return PersonMergePreview(
        survivor=ours,
        merged=theirs,
        same_texts=same_texts,
        same_keys=len(facts.same_keys(survivor, merged)),
        refused=len(facts.refused_by_other(survivor, merged)),
        same_sessions=same_session_ids(survivor, merged).count(),
        sections=profile.outcomes(survivor, merged),
        taken=records.fields_to_take(Pair(survivor, merged)),
        beyond=max(0, active - capacity) if capacity else 0,
    )


def merge_people(
    *,
    survivor: uuid.UUID,
    merged: uuid.UUID,
    actor: Actor,
    now: datetime,
    expected: tuple[int, int] | None = None,
    reason: str = "",
) -> Changes:
    """Give the survivor what is remembered of `merged`; the id of `merged` leads to the survivor from then on.

    A text that both have stays once, two facts about one key become a review item, and of two texts of a section one is
    proposed; a session whose id the survivor has as well gets another one. What is being extracted, embedded or
    compacted of either is discarded and begun anew. `expected` are both generations as the preview had them.

    Errors: NotFound, Conflict, PersonRestricted, PersonMerged, PreconditionFailed (merged or parted meanwhile),
    PeopleBusy (somebody writes to them at this moment).
    """
    changes = Changes(actor=actor, now=now, reason=reason)
    return retry_when_locked(lambda: _merge(survivor, merged, changes, expected))


def _merge(survivor: uuid.UUID, merged: uuid.UUID, decided: Changes, expected: tuple[int, int] | None) -> Changes:
    # Its own: an attempt whose transaction was rolled back leaves no trace in the next.
    changes = Changes(actor=decided.actor, now=decided.now, reason=decided.reason, id=decided.id)
    pair = lock(survivor, merged)
    if any(person.merged_into_id for person in pair.people):
        raise PersonMerged(_("One of the two has already been merged. Open the person they were merged into."))
    if expected is not None and expected != tuple(person.generation for person in pair.people):
        raise PreconditionFailed
    # Compared before they are one person's.
    keys, refused = facts.same_keys(*pair.people), facts.refused_by_other(*pair.people)
    _join(pair, changes)
    changes.counts["asked"] = facts.ask(keys, refused, changes)
    records.join(pair, changes)
    discard_work_in_flight(pair)
    changes.save(MERGE, pair.survivor, merged=pair.merged)
    for target, pk in ((EndUser, pair.survivor.pk), (EndUser, pair.merged.pk), (ChangeSet, changes.id)):
        audit.record(
            actor=changes.actor,
            verb=MERGE,
            target=target,
            object_id=pk,
            tenant=pair.survivor.tenant,
            now=changes.now,
            counts=dict(changes.counts),
        )
    return changes


def _join(pair: Pair, changes: Changes) -> None:
    """Move everything, and count it."""
    survivor, merged = pair.people
    counts = changes.counts
    counts["twins"], counts["renamed"] = facts.merge_duplicates(pair, changes), rename_sessions(pair, changes)
    sessions = list(Session.objects.filter(end_user=merged).values_list("pk", flat=True))
    theirs = list(Fact.objects.filter(end_user=merged).values_list("pk", flat=True))
    counts["sessions"], counts["facts"] = changes.move(Table.SESSION, sessions), changes.move(Table.FACT, theirs)
    reassign(sessions, theirs, to=survivor)
    profile.join(pair, changes)
    files.join(pair, changes)
    plain.join(pair, changes)
    trajectories.join(pair, changes)
    graph.join(pair, changes)
    groups.join(pair, changes)
    counts["refusals"] = move_refusals(changes, frm=merged, to=survivor)
    counts["questions"] = move_questions(frm=merged, to=survivor)
    share_kept_answers(frm=merged, to=survivor)
    item_states.close_answered_items(changes)


def _counts(person: EndUser) -> dict[str, int]:
    """How much is remembered of one person."""
    own = Fact.objects.filter(end_user=person)
    return {
        "sessions": Session.objects.filter(end_user=person).count(),
        "turns": Turn.objects.filter(end_user=person).count(),
        "facts": own.count(),
        "active": own.filter(status=Status.ACTIVE).count(),
        "episodes": Episode.objects.filter(end_user=person).count(),
        "sections": ProfileSection.objects.written().filter(end_user=person).count(),
        "questions": ReviewItem.objects.waiting().filter(end_user=person).count(),
        "refusals": FactRefusal.objects.filter(end_user=person).count(),
    }
