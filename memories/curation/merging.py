"""Two people who are one: what is remembered of the one becomes the other's, and its id leads there.

The preview tells it beforehand, `merging_undo` takes it back. One transaction: killed anywhere, it never was.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from memories import audit, conf
from memories.audit import Actor
from memories.curation import item_states, merging_profile, merging_records, merging_sessions, merging_texts
from memories.curation.change_sets import ChangeSet
from memories.curation.merging_locks import Pair, begin_anew, check_present, lock, patiently
from memories.curation.merging_rows import Kind, carry, move_questions, move_refusals, note, noted, tell_of_both
from memories.exceptions import PreconditionFailed
from memories.models import (
    EndUser,
    Episode,
    Fact,
    FactRefusal,
    PersonMerge,
    ProfileSection,
    ReviewItem,
    Session,
    Status,
    Turn,
)

VERB = "merge"


@dataclass(frozen=True)
class PersonMergePreview:
    """What a merge would do now: what each of the two has, where they meet, the sections in question by their fate,
    fields of the record that the survivor takes over, and how many active facts they have beyond the capacity."""

    survivor: Mapping[str, int]
    merged: Mapping[str, int]
    same_texts: int
    same_keys: int
    refused: int
    same_sessions: int
    sections: Mapping[str, merging_profile.Fate]
    taken: list[str] = field(default_factory=list)
    beyond: int = 0


def preview_person_merge(*, survivor: EndUser, merged: EndUser) -> PersonMergePreview:
    """Counts; nothing is changed, and what happens meanwhile still changes them."""
    ours, theirs = _has(survivor), _has(merged)
    same_texts = merging_texts.same_texts(merged, survivor).count()
    capacity = conf.rules(survivor.tenant).capacity
    active = ours["active"] + theirs["active"] - same_texts
    return PersonMergePreview(
        survivor=ours,
        merged=theirs,
        same_texts=same_texts,
        same_keys=len(merging_texts.same_keys(survivor, merged)),
        refused=len(merging_texts.ruled_out(survivor, merged)),
        same_sessions=merging_sessions.same_ids(survivor, merged).count(),
        sections=merging_profile.fates(survivor, merged),
        taken=merging_records.taken(Pair(survivor, merged)),
        beyond=max(0, active - capacity) if capacity else 0,
    )


def merge_people(
    *,
    survivor: uuid.UUID,
    merged: uuid.UUID,
    actor: Actor,
    now: datetime,
    seen: tuple[int, int] | None = None,
    reason: str = "",
) -> PersonMerge:
    """What is remembered of `merged` becomes the survivor's; the id of `merged` leads to the survivor from then on.

    A text that both have stays once, two facts about one key become a question, and of two texts of a section one
    waits for an operator; a session whose id the survivor has as well gets another one. What is being extracted,
    embedded or summed up of either is thrown away and begun anew. `seen` are both generations as the preview had them.

    Errors: NotFound, Conflict, PersonRestricted, PersonMerged, PreconditionFailed (merged or parted meanwhile),
    PeopleBusy (somebody writes to them at this moment).
    """
    changes = ChangeSet(actor=actor, now=now, reason=reason)
    return patiently(lambda: _merge(survivor, merged, changes, seen))


def _merge(survivor: uuid.UUID, merged: uuid.UUID, decided: ChangeSet, seen: tuple[int, int] | None) -> PersonMerge:
    # Its own: an attempt that had to give way leaves no trace in the next.
    changes = ChangeSet(actor=decided.actor, now=decided.now, reason=decided.reason, id=decided.id)
    pair = lock(survivor, merged)
    check_present(pair)
    if seen is not None and seen != tuple(person.generation for person in pair.people):
        raise PreconditionFailed
    merge = PersonMerge.objects.create(
        pk=changes.id, tenant=pair.survivor.tenant, survivor=pair.survivor, merged=pair.merged, created_at=changes.now
    )
    # Told apart before they are one person's.
    keys, refused = merging_texts.same_keys(*pair.people), merging_texts.ruled_out(*pair.people)
    merge.counts = _join(pair, merge, changes)
    merge.counts["asked"] = merging_texts.ask(keys, refused, changes)
    merging_records.join(pair, merge)
    begin_anew(pair)
    merge.save()
    _record(merge, VERB, changes)
    return merge


def _join(pair: Pair, merge: PersonMerge, changes: ChangeSet) -> dict[str, int]:
    """Everything moves; counts of it."""
    survivor, merged = pair.people
    counts = {"twins": merging_texts.fold_twins(pair, changes), "renamed": merging_sessions.rename(pair, merge)}
    note(merge, Kind.EVIDENCE, changes.evidence)
    for kind, model in ((Kind.SESSION, Session), (Kind.FACT, Fact)):
        rows = model._default_manager.filter(end_user=merged)
        counts[f"{kind}s"] = note(merge, kind, list(rows.values_list("pk", flat=True)))
    carry(noted(merge, Kind.SESSION), noted(merge, Kind.FACT), to=survivor)
    counts |= merging_profile.join(pair, merge, changes)
    counts["refusals"] = move_refusals(merge, frm=merged, to=survivor)
    counts["questions"] = move_questions(frm=merged, to=survivor)
    tell_of_both(frm=merged, to=survivor)
    item_states.settle(changes)
    return counts


def _has(person: EndUser) -> dict[str, int]:
    """How much is remembered of one person."""
    facts = Fact.objects.filter(end_user=person)
    return {
        "sessions": Session.objects.filter(end_user=person).count(),
        "turns": Turn.objects.filter(end_user=person).count(),
        "facts": facts.count(),
        "active": facts.filter(status=Status.ACTIVE).count(),
        "episodes": Episode.objects.filter(end_user=person).count(),
        "sections": ProfileSection.objects.written().filter(end_user=person).count(),
        "questions": ReviewItem.objects.waiting().filter(end_user=person).count(),
        "refusals": FactRefusal.objects.filter(end_user=person).count(),
    }


def _record(merge: PersonMerge, verb: str, changes: ChangeSet) -> None:
    """In the trail of both, and of the merge, by which it is undone."""
    for target in (merge.survivor, merge.merged, merge):
        audit.record(
            actor=changes.actor,
            verb=verb,
            target=target,
            object_id=target.pk,
            tenant=merge.tenant,
            now=changes.now,
            counts=merge.counts,
        )
