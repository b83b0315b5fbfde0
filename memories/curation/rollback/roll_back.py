"""Roll back what came of a session, an agent, a key or a time: one change set, which reverting.revert() takes back."""

import uuid
from collections.abc import Collection, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F, OuterRef, Q, QuerySet, Subquery

from memories import audit
from memories.audit import Actor
from memories.curation.change_sets import Changes, steps
from memories.curation.people.errors import PersonMerged
from memories.curation.profile.sections import trust_of
from memories.curation.review import item_states
from memories.curation.rollback.selection import ROLL_BACK, Selector, revisions, touched, touched_sections
from memories.models import (
    Change,
    ChangeSet,
    EndUser,
    Fact,
    FactEvidence,
    FactRevision,
    ProfileRevision,
    Status,
)
from memories.models.ids import parse_uuid
from memories.reconcile import review_items

EXAMPLES = 10


@dataclass(frozen=True)
class RollbackPreview:
    """What a roll back would do now, with the newest facts of each kind."""

    counts: dict[str, int]
    trashed: list[Fact]
    put_back: list[Fact]
    kept: list[Fact]


def preview_rollback(selector: Selector) -> RollbackPreview:
    """Counts and examples; nothing is changed, and what happens meanwhile still changes them.

    A fact that another one has replaced by now counts as put back here; roll_back() will keep it.
    """
    facts, sections = touched(selector), touched_sections(selector)
    kinds = {
        "trashed": facts.filter(stays=False, first=1),
        "put_back": facts.filter(stays=False, first__gt=1),
        "kept": facts.filter(stays=True),
    }
    counts = {name: rows.count() for name, rows in kinds.items()}
    counts["sections"] = sections.filter(stays=False).count()
    counts["kept"] += sections.filter(stays=True).count()
    return RollbackPreview(
        counts, **{name: list(rows.order_by("-created_at", "-id")[:EXAMPLES]) for name, rows in kinds.items()}
    )


def roll_back(*, selector: Selector, actor: Actor, now: datetime, reason: str = "") -> Changes:
    """Take back what the selected runs, or the key, made of facts and profiles; for operators and commands alone.

    A fact that they made goes to the trash, and is not refused: the same may honestly be said again. One that they only
    changed gets back what it was before. An operator's word, and what somebody else changed since, stays and is
    counted; so does all evidence. An extraction of these sessions that is in flight, or comes later, makes new facts:
    delete the session, or roll back once more.
    """
    changes = Changes(actor=actor, now=now, reason=reason)
    with transaction.atomic():
        people, facts = _lock(selector)
        kept = touched(selector).filter(stays=True).count()
        changes.counts.update(trashed=0, put_back=0, sections=0, kept=kept)
        going = list(touched(selector).filter(stays=False).order_by("pk").values_list("pk", "first"))
        made = [pk for pk, first in going if first == 1]
        for fact in _read(made):
            with changes.changing(fact, ROLL_BACK):
                fact.status, fact.trashed_at = Status.TRASHED, now
            changes.counts["trashed"] += 1
        put_back = set()
        for fact in _read([pk for pk, first in going if first != 1]):
            is_done = _put_back_before(changes, fact, selector)
            changes.counts["put_back" if is_done else "kept"] += 1
            put_back |= {fact.pk} if is_done else set()
        for ids in steps(made):
            _join_again(ids, put_back, changes)
        for row in touched_sections(selector).select_related("end_user"):
            changes.counts["kept" if row.stays else "sections"] += 1
            if not row.stays:
                _put_section_back(changes, row)
        for ids in steps(facts):
            review_items.settle(ids, now=now, change_set=changes.id)
        # About one person it is deleted with them.
        changes.save(ROLL_BACK, people[0] if len(people) == 1 else selector.tenant)
        audit.record(
            actor=actor,
            verb=ROLL_BACK,
            target=ChangeSet,
            object_id=changes.id,
            tenant=selector.tenant,
            now=now,
            counts=dict(changes.counts),
        )
    return changes


def lock_for_undo(done: ChangeSet) -> None:
    """Lock whose facts and sections the roll back changed, in one order. Errors: PersonMerged."""
    facts = FactRevision.objects.filter(change_set=done.pk).values("fact__end_user")
    sections = ProfileRevision.objects.filter(change_set=done.pk).values("end_user")
    locked = {person.pk for person in _lock_people(facts, sections)}
    # The facts of somebody who was merged while we waited are another person's by now.
    if not locked.issuperset(facts.values_list("fact__end_user", flat=True)):
        raise PersonMerged


def _lock(selector: Selector) -> tuple[list[EndUser], list[uuid.UUID]]:
    """Lock everything that the roll back touches; returns the people and the ids of the facts.

    People come first, as in debounce.hold(), so that no extraction commits meanwhile; then all facts in one order.
    """
    people = _lock_people(touched(selector).values("end_user"), touched_sections(selector).values("end_user"))
    rows = Fact.objects.select_for_update(no_key=True).filter(pk__in=touched(selector).values("pk"))
    return people, list(rows.order_by("pk").values_list("pk", flat=True))


def _lock_people(*ids: QuerySet[Any, Any]) -> list[EndUser]:
    """The people of these rows, locked in one order."""
    named = Q(pk__in=ids[0]) | Q(pk__in=ids[1])
    people = EndUser.objects.select_for_update(of=("self",), no_key=True).select_related("tenant")
    return list(people.filter(named).order_by("pk"))


def _read(facts: Sequence[uuid.UUID]) -> Iterator[Fact]:
    """The facts, some hundred rows at a time, however many they are."""
    for ids in steps(facts):
        yield from list(Fact.objects.filter(pk__in=ids).select_related("tenant", "end_user").order_by("pk"))


def _put_back_before(changes: Changes, fact: Fact, selector: Selector) -> bool:
    """Make the fact what it was before the selected revisions; False when another one has replaced it by now."""
    own = list(revisions(selector).filter(fact=fact).order_by("-version"))
    state = {name: value for revision in own for name, value in revision.before.items()}
    was = copy(fact)
    audit.put_back(was, state)
    if was.status == Status.ACTIVE != fact.status and _is_replaced(was, fact.superseded_by_id):
        return False
    if not changes.put_back(fact, ROLL_BACK, state):
        return False
    if fact.status == Status.PENDING:
        item_states.wait_again(fact, now=changes.now)
    return True


def _is_replaced(fact: Fact, successor: uuid.UUID | None) -> bool:
    """Whether its successor is still active, or another active fact has a value for its key by now."""
    active = Fact.objects.of(fact.tenant, fact.end_user).filter(status=Status.ACTIVE).exclude(pk=fact.pk)
    rivals = Q(agent_id=fact.agent_id, category=fact.category, key=fact.key) if fact.key and fact.value else Q()
    in_place = Q(pk=successor) | rivals if successor else rivals
    return bool(in_place) and active.filter(in_place).exists()


def _join_again(made: Sequence[uuid.UUID], put_back: Collection[uuid.UUID], changes: Changes) -> None:
    """Give a fact that a run had split its evidence back: the split moved it to the earlier part, which is gone now."""
    # A fact is never older than its own evidence, unless it got that from another.
    begun = FactRevision.objects.filter(fact=OuterRef("fact"), version=1)
    rows = FactEvidence.objects.filter(fact__in=made).annotate(begun=Subquery(begun.values("created_at")[:1]))
    moved = list(rows.filter(created_at__lt=F("begun")).order_by("pk").values_list("pk", "fact", "turn"))
    wholes = {part: _split_from(part, put_back) for _row, part, _turn in moved}
    for row, part, turn in moved:
        whole = wholes[part]
        # What cites the turn already needs it no second time.
        if whole and not FactEvidence.objects.filter(fact=whole, turn=turn, turn__isnull=False).exists():
            FactEvidence.objects.filter(pk=row).update(fact=whole)
            changes.note(Change.Table.EVIDENCE, Change.Action.CHANGED, row, before={"fact": str(part)})


def _split_from(part: uuid.UUID, put_back: Collection[uuid.UUID]) -> uuid.UUID | None:
    """The fact of these that the part was split from: what came between the two names it as its successor."""
    seen = {part}
    while True:
        between = _successor_at_first(part)
        whole = _successor_at_first(between) if between else None
        if whole is None or whole in put_back or whole in seen:
            return whole if whole in put_back else None
        # It was itself split off before.
        seen.add(whole)
        part = whole


def _successor_at_first(fact: uuid.UUID) -> uuid.UUID | None:
    """What its first version names as its successor."""
    after = FactRevision.objects.filter(fact=fact, version=1).values_list("after", flat=True).first() or {}
    return parse_uuid(after.get("superseded_by") or "")


def _put_section_back(changes: Changes, row: Any) -> None:
    """Give the section the text that it had before its `first` version; an empty one empties it."""
    own = ProfileRevision.objects.of(row)
    before = copy(row)
    row.summary = own.get(version=row.first).before
    row.actor_kind, row.extraction, row.prompt_version = changes.actor.kind, None, ""
    row.trust, row.evidence = trust_of(row), []
    changes.revise_section(row, ROLL_BACK, before)
