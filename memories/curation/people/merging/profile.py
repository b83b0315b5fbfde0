"""Profiles of two people who are merged: a section that only one has moves, of two texts the other's is proposed."""

from collections.abc import Sequence
from copy import copy
from enum import Enum, auto
from functools import reduce
from operator import or_

from django.db.models import Q

from memories.curation.change_sets import Changes
from memories.curation.people.merging.locks import Pair
from memories.curation.people.merging.rows import move_change_sets, moved
from memories.facts import review_items
from memories.facts.review_items import ReviewQuestion
from memories.models import Change, ChangeSet, EndUser, ProfileRevision, ProfileSection, ReviewItem
from memories.models.folding import fold

Table = Change.Table
MERGE = "merge_people"


class SectionOutcome(Enum):
    """What becomes of a section of the merged person."""

    # The survivor has none: the section moves as it is, with its history.
    MOVED = auto()
    # Its text replaces the survivor's: an operator wrote it, or the survivor's is empty.
    WRITTEN = auto()
    # The survivor's stays, and the other text is proposed.
    ASKED = auto()
    # It is empty, or the same.
    LEFT = auto()


# The agent ("" for the person's own) and the section.
Name = tuple[str, str]


def outcomes(survivor: EndUser, merged: EndUser) -> dict[Name, SectionOutcome]:
    """By section of the merged person, and of their agents."""
    ours = {_name(row): row for row in ProfileSection.objects.filter(end_user=survivor)}
    theirs = ProfileSection.objects.filter(end_user=merged).order_by("agent_id", "section")
    return {_name(row): _outcome(ours.get(_name(row)), row) for row in theirs}


def join(pair: Pair, changes: Changes) -> None:
    """Carry the outcomes out; counts sections taken over and proposals."""
    outcome_of = outcomes(*pair.people)
    rows = {
        (row.end_user_id, *_name(row)): row
        for row in ProfileSection.objects.select_for_update(of=("self",)).filter(end_user__in=pair.people)
    }
    for name, outcome in outcome_of.items():
        ours, theirs = (rows.get((person.pk, *name)) for person in pair.people)
        if ours and theirs and outcome == SectionOutcome.WRITTEN:
            _write(ours, theirs, pair, changes)
        elif ours and theirs and outcome == SectionOutcome.ASKED:
            _propose(ours, theirs, pair, changes)
    _move(pair, changes, [name for name, outcome in outcome_of.items() if outcome == SectionOutcome.MOVED])
    found = list(outcome_of.values())
    changes.counts["sections"] = len(found) - found.count(SectionOutcome.LEFT)
    changes.counts["proposed"] = found.count(SectionOutcome.ASKED)


def separate(pair: Pair, done: ChangeSet) -> None:
    """Undo join() but for texts that it wrote: what moved goes back with what was written of it since."""
    sections = ProfileSection.objects.filter(pk__in=moved(done, Table.SECTION))
    names = list(sections.values_list("agent_id", "section"))
    # What the merge proposed and nobody has decided goes, and with it the review items.
    proposed = ProfileRevision.objects.filter(change_set=done.pk, verb=MERGE, version=None)
    open_ones = ReviewItem.objects.waiting().filter(proposed_section__in=proposed).select_for_update(of=("self",))
    withdrawn = list(open_ones.order_by("pk").values_list("proposed_section", flat=True))
    ProfileRevision.objects.filter(pk__in=withdrawn).delete()
    since = _named(names) & Q(created_at__gte=done.created_at)
    ours = ProfileRevision.objects.filter(end_user=pair.survivor)
    going = ours.filter(since | Q(pk__in=moved(done, Table.REVISION)))
    move_change_sets(going, to=pair.merged)
    going.update(end_user=pair.merged)
    sections.filter(end_user=pair.survivor).update(end_user=pair.merged)


def _name(row: ProfileSection) -> Name:
    return row.agent_id, row.section


def _named(names: Sequence[Name]) -> Q:
    """Rows of these sections; of none, no row."""
    each = (Q(agent_id=agent_id, section=section) for agent_id, section in names)
    return reduce(or_, each, Q(pk__in=()))


def _outcome(ours: ProfileSection | None, theirs: ProfileSection) -> SectionOutcome:
    if ours is None:
        return SectionOutcome.MOVED
    if theirs.summary and not ours.binding and (theirs.binding or not ours.summary):
        return SectionOutcome.WRITTEN
    same = fold(ours.summary) == fold(theirs.summary)
    return SectionOutcome.LEFT if same or not theirs.summary else SectionOutcome.ASKED


def _move(pair: Pair, changes: Changes, names: Sequence[Name]) -> None:
    """Move the sections with their history, and open proposals of any section."""
    rows = ProfileSection.objects.filter(_named(names), end_user=pair.merged)
    changes.move(Table.SECTION, list(rows.values_list("pk", flat=True)))
    waiting = ReviewItem.objects.waiting().filter(end_user=pair.merged).exclude(proposed_section=None)
    moving = _named(names) | Q(pk__in=waiting.values("proposed_section"))
    history = ProfileRevision.objects.filter(moving, end_user=pair.merged)
    changes.move(Table.REVISION, list(history.values_list("pk", flat=True)))
    move_change_sets(history, to=pair.survivor)
    history.update(end_user=pair.survivor)
    rows.update(end_user=pair.survivor)


def _write(ours: ProfileSection, theirs: ProfileSection, pair: Pair, changes: Changes) -> None:
    before = copy(ours)
    ours.end_user = pair.survivor
    ours.summary, ours.binding, ours.actor_kind = theirs.summary, theirs.binding, theirs.actor_kind
    ours.extraction_id, ours.prompt_version = theirs.extraction_id, theirs.prompt_version
    ours.trust, ours.evidence = theirs.trust, theirs.evidence
    changes.revise_section(ours, MERGE, before)


def _propose(ours: ProfileSection, theirs: ProfileSection, pair: Pair, changes: Changes) -> None:
    proposal = ProfileRevision.objects.create(
        tenant_id=pair.survivor.tenant_id,
        end_user=pair.survivor,
        agent_id=ours.agent_id,
        section=ours.section,
        version=None,
        verb=MERGE,
        actor_kind=changes.actor.kind,
        actor_id=changes.actor.id,
        before=ours.summary,
        after=theirs.summary,
        extraction_id=theirs.extraction_id,
        trust=theirs.trust,
        evidence=theirs.evidence,
        change_set=changes.id,
        created_at=changes.now,
    )
    question = ReviewQuestion(ReviewItem.Reason.OTHER_PERSON, proposed_section=proposal)
    review_items.ask(question, run=None, now=changes.now)
