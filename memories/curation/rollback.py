"""Roll back: what came of a session, an agent, a key or a time is taken back in one audited action."""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from memories import audit
from memories.audit import Actor
from memories.curation import rollback_facts, rollback_profile
from memories.curation.change_sets import ChangeSet
from memories.curation.rollback_selection import ROLL_BACK, UNDO, Selector, touched, touched_sections
from memories.exceptions import NotFound
from memories.models import EndUser, Fact, FactRevision, ProfileRevision, Tenant
from memories.pipeline import review_items

STEP = 500
EXAMPLES = 10


@dataclass
class RolledBack:
    """Facts moved to the trash, facts put back to what they were, sections put back, and what stayed as it is."""

    change_set: uuid.UUID
    trashed: int = 0
    put_back: int = 0
    sections: int = 0
    kept: int = 0

    @property
    def counts(self) -> dict[str, int]:
        return {name: value for name, value in vars(self).items() if name != "change_set"}


@dataclass(frozen=True)
class Preview:
    """What a roll back would do now, with the newest facts of each lot."""

    counts: dict[str, int]
    trashed: list[Fact]
    put_back: list[Fact]
    kept: list[Fact]


def preview_rollback(selector: Selector) -> Preview:
    """Counts and examples; nothing is changed, and what happens meanwhile still changes them.

    A fact in whose place something else stands by now is told as put back, and turns out to be kept.
    """
    facts, sections = touched(selector), touched_sections(selector)
    lots = {
        "trashed": facts.filter(stays=False, first=1),
        "put_back": facts.filter(stays=False, first__gt=1),
        "kept": facts.filter(stays=True),
    }
    counts = {name: lot.count() for name, lot in lots.items()}
    counts["sections"] = sections.filter(stays=False).count()
    counts["kept"] += sections.filter(stays=True).count()
    return Preview(counts, **{name: list(lot.order_by("-created_at", "-id")[:EXAMPLES]) for name, lot in lots.items()})


def roll_back(*, selector: Selector, actor: Actor, now: datetime, reason: str = "") -> RolledBack:
    """Take back what the selected runs, or the key, made of facts and profiles; for operators and commands alone.

    A fact born there goes to the trash, and nothing refuses it: the same may honestly be said again. One that was only
    changed there is as it was before. An operator's word, and what somebody else changed since, stays and is counted;
    so does all evidence. An extraction of these sessions that is in flight, or comes later, makes new facts: delete the
    session, or roll back once more.
    """
    changes = ChangeSet(actor=actor, now=now, reason=reason)
    done = RolledBack(changes.id)
    with transaction.atomic():
        facts = _lock(selector)
        done.kept = touched(selector).filter(stays=True).count()
        born, changed = ([pk for pk, first in _going(selector) if (first == 1) is there] for there in (True, False))
        for some in _read(born):
            done.trashed += rollback_facts.trash(changes, some)
        for some in _read(changed):
            for fact in some:
                _count(done, "put_back", rollback_facts.put_back(changes, fact, selector))
        for row in touched_sections(selector).select_related("end_user"):
            _count(done, "sections", not row.stays and rollback_profile.put_back(changes, row))
        for ids in _steps(facts):
            review_items.settle(ids, now=now)
        _record(changes, ROLL_BACK, done, change_set=done.change_set, tenant=selector.tenant)
    return done


def undo_rollback(*, change_set: uuid.UUID, actor: Actor, now: datetime, reason: str = "") -> RolledBack:
    """Take a roll back back: facts and sections that changed since stay as they are and are counted as kept.

    The counts are those of what was put back. Errors: NotFound.
    """
    changes = ChangeSet(actor=actor, now=now, reason=reason)
    done = RolledBack(changes.id)
    with transaction.atomic():
        facts = FactRevision.objects.filter(change_set=change_set, verb=ROLL_BACK).order_by("fact")
        sections = ProfileRevision.objects.filter(change_set=change_set, verb=ROLL_BACK).order_by("pk")
        people = _lock_people(facts.values("fact__end_user"), sections.values("end_user"))
        if not people:
            raise NotFound
        for revision in facts.iterator(STEP):
            if _count(done, "put_back", rollback_facts.undo(changes, revision)):
                rollback_facts.reopen([revision.fact_id], since=revision.created_at)
        for row in sections.select_related("end_user__tenant"):
            _count(done, "sections", rollback_profile.undo(changes, row))
        _record(changes, UNDO, done, change_set=change_set, tenant=people[0].tenant)
    return done


def _lock(selector: Selector) -> list[uuid.UUID]:
    """Keep everybody else from what the roll back touches; the ids of the facts.

    People come first, as in debounce.hold(), so that no extraction commits meanwhile; then all facts in one order.
    """
    _lock_people(touched(selector).values("end_user"), touched_sections(selector).values("end_user"))
    rows = Fact.objects.select_for_update(no_key=True).filter(pk__in=touched(selector).values("pk"))
    return list(rows.order_by("pk").values_list("pk", flat=True))


def _lock_people(*those: QuerySet[Any, Any]) -> list[EndUser]:
    """The people of these rows, locked in one order."""
    named = Q(pk__in=those[0]) | Q(pk__in=those[1])
    people = EndUser.objects.select_for_update(of=("self",), no_key=True).select_related("tenant")
    return list(people.filter(named).order_by("pk"))


def _going(selector: Selector) -> list[tuple[uuid.UUID, int]]:
    """Facts that do not stay as they are, each with the first version that is taken back."""
    return list(touched(selector).filter(stays=False).order_by("pk").values_list("pk", "first"))


def _read(facts: Sequence[uuid.UUID]) -> Iterator[list[Fact]]:
    """Some hundred facts at a time, however many they are."""
    for some in _steps(facts):
        yield list(Fact.objects.filter(pk__in=some).select_related("tenant", "end_user").order_by("pk"))


def _steps(facts: Sequence[uuid.UUID]) -> Iterator[Sequence[uuid.UUID]]:
    return (facts[start : start + STEP] for start in range(0, len(facts), STEP))


def _count(done: RolledBack, name: str, is_done: bool) -> bool:
    name = name if is_done else "kept"
    setattr(done, name, getattr(done, name) + 1)
    return is_done


def _record(changes: ChangeSet, verb: str, done: RolledBack, *, change_set: uuid.UUID, tenant: Tenant) -> None:
    audit.record(
        actor=changes.actor,
        verb=verb,
        target=done,
        object_id=change_set,
        tenant=tenant,
        now=changes.now,
        counts=done.counts,
    )
