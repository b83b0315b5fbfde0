"""Roll back what came of a session, an agent, a key or a time, in one audited action; and the undo of that.

Each fact and section that it changes leaves a revision of its change set.
"""

import uuid
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from memories import audit
from memories.audit import Actor
from memories.curation.change_sets import Changes
from memories.curation.profile.sections import trust_of
from memories.curation.review import item_states
from memories.curation.rollback.selection import ROLL_BACK, UNDO, Selector, revisions, touched, touched_sections
from memories.exceptions import DuplicateFact, NotFound
from memories.models import (
    EndUser,
    Fact,
    FactRevision,
    ProfileRevision,
    ProfileSection,
    ReviewItem,
    Status,
    Tenant,
)
from memories.reconcile import review_items

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

    def count(self, name: str, is_done: bool) -> bool:
        name = name if is_done else "kept"
        setattr(self, name, getattr(self, name) + 1)
        return is_done


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


def roll_back(*, selector: Selector, actor: Actor, now: datetime, reason: str = "") -> RolledBack:
    """Take back what the selected runs, or the key, made of facts and profiles; for operators and commands alone.

    A fact that they made goes to the trash, and is not refused: the same may honestly be said again. One that they only
    changed gets back what it was before. An operator's word, and what somebody else changed since, stays and is
    counted; so does all evidence. An extraction of these sessions that is in flight, or comes later, makes new facts:
    delete the session, or roll back once more.
    """
    changes = Changes(actor=actor, now=now, reason=reason)
    done = RolledBack(changes.id)
    with transaction.atomic():
        facts = _lock(selector)
        done.kept = touched(selector).filter(stays=True).count()
        going = list(touched(selector).filter(stays=False).order_by("pk").values_list("pk", "first"))
        for fact in _read([pk for pk, first in going if first == 1]):
            with changes.changing(fact, ROLL_BACK):
                fact.status, fact.trashed_at = Status.TRASHED, now
            done.trashed += 1
        for fact in _read([pk for pk, first in going if first != 1]):
            done.count("put_back", _put_back_before(changes, fact, selector))
        for row in touched_sections(selector).select_related("end_user"):
            if done.count("sections", not row.stays):
                own = ProfileRevision.objects.filter(end_user=row.end_user_id, section=row.section)
                _write_section(changes, row, own.get(version=row.first).before, ROLL_BACK)
        for ids in _steps(facts):
            review_items.settle(ids, now=now)
        _record(changes, ROLL_BACK, done, change_set=done.change_set, tenant=selector.tenant)
    return done


def undo_rollback(*, change_set: uuid.UUID, actor: Actor, now: datetime, reason: str = "") -> RolledBack:
    """Undo a roll back: facts and sections that changed since stay as they are and are counted as kept.

    The counts are those of what was put back. Errors: NotFound.
    """
    changes = Changes(actor=actor, now=now, reason=reason)
    done = RolledBack(changes.id)
    with transaction.atomic():
        facts = FactRevision.objects.filter(change_set=change_set, verb=ROLL_BACK).order_by("fact")
        sections = ProfileRevision.objects.filter(change_set=change_set, verb=ROLL_BACK).order_by("pk")
        people = _lock_people(facts.values("fact__end_user"), sections.values("end_user"))
        if not people:
            raise NotFound
        for revision in facts.iterator(STEP):
            if done.count("put_back", _undo_fact(changes, revision)):
                _reopen(revision.fact_id, since=revision.created_at)
        for row in sections.select_related("end_user__tenant"):
            done.count("sections", _undo_section(changes, row))
        _record(changes, UNDO, done, change_set=change_set, tenant=people[0].tenant)
    return done


def _lock(selector: Selector) -> list[uuid.UUID]:
    """Lock everything that the roll back touches; returns the ids of the facts.

    People come first, as in debounce.hold(), so that no extraction commits meanwhile; then all facts in one order.
    """
    _lock_people(touched(selector).values("end_user"), touched_sections(selector).values("end_user"))
    rows = Fact.objects.select_for_update(no_key=True).filter(pk__in=touched(selector).values("pk"))
    return list(rows.order_by("pk").values_list("pk", flat=True))


def _lock_people(*ids: QuerySet[Any, Any]) -> list[EndUser]:
    """The people of these rows, locked in one order."""
    named = Q(pk__in=ids[0]) | Q(pk__in=ids[1])
    people = EndUser.objects.select_for_update(of=("self",), no_key=True).select_related("tenant")
    return list(people.filter(named).order_by("pk"))


def _read(facts: Sequence[uuid.UUID]) -> Iterator[Fact]:
    """The facts, some hundred rows at a time, however many they are."""
    for ids in _steps(facts):
        yield from list(Fact.objects.filter(pk__in=ids).select_related("tenant", "end_user").order_by("pk"))


def _steps(facts: Sequence[uuid.UUID]) -> Iterator[Sequence[uuid.UUID]]:
    return (facts[start : start + STEP] for start in range(0, len(facts), STEP))


def _put_back_before(changes: Changes, fact: Fact, selector: Selector) -> bool:
    """Make the fact what it was before the selected revisions; False when another one has replaced it by now."""
    own = list(revisions(selector).filter(fact=fact).order_by("-version"))
    state = {name: value for revision in own for name, value in revision.before.items()}
    was = copy(fact)
    audit.put_back(was, state)
    if was.status == Status.ACTIVE != fact.status and _is_replaced(was, fact.superseded_by_id):
        return False
    if not _put_back(changes, fact, state, ROLL_BACK):
        return False
    if fact.status == Status.PENDING:
        _reopen(fact.pk, since=own[-1].created_at)
    return True


def _is_replaced(fact: Fact, successor: uuid.UUID | None) -> bool:
    """Whether its successor is still active, or another active fact has a value for its key by now."""
    active = Fact.objects.of(fact.tenant, fact.end_user).filter(status=Status.ACTIVE).exclude(pk=fact.pk)
    rivals = Q(agent_id=fact.agent_id, category=fact.category, key=fact.key) if fact.key and fact.value else Q()
    in_place = Q(pk=successor) | rivals if successor else rivals
    return bool(in_place) and active.filter(in_place).exists()


def _undo_fact(changes: Changes, revision: FactRevision) -> bool:
    """False when the fact has changed since, or another one has its text by now."""
    rows = Fact.objects.select_for_update(of=("self",), no_key=True).select_related("tenant")
    fact = rows.get(pk=revision.fact_id)
    return fact.version == revision.version and _put_back(changes, fact, revision.before, UNDO)


def _put_back(changes: Changes, fact: Fact, state: dict[str, Any], verb: str) -> bool:
    """False when another live fact has its text, which fact_text_once forbids."""
    try:
        with changes.changing(fact, verb):
            audit.put_back(fact, state)
    except DuplicateFact:
        return False
    return True


def _reopen(fact_id: uuid.UUID, *, since: datetime) -> None:
    """Reopen the items about this fact that something else has settled since then."""
    about = Q(fact__in=[fact_id]) | Q(known__in=[fact_id])
    item_states.reopen(ReviewItem.objects.filter(about, state=ReviewItem.State.SETTLED, decided_at__gte=since))


def _undo_section(changes: Changes, revision: ProfileRevision) -> bool:
    """False when somebody has written the section since."""
    rows = ProfileSection.objects.select_for_update(of=("self",)).select_related("end_user")
    row = rows.filter(end_user=revision.end_user_id, section=revision.section).first()
    if row is None or row.version != revision.version:
        return False
    _write_section(changes, row, revision.before, UNDO)
    return True


def _write_section(changes: Changes, row: ProfileSection, text: str, verb: str) -> None:
    """Give the section a text that it had before; an empty one empties it."""
    before = copy(row)
    row.summary, row.actor_kind, row.extraction, row.prompt_version = text, changes.actor.kind, None, ""
    row.trust, row.evidence = trust_of(row), []
    changes.revise_section(row, verb, before)


def _record(changes: Changes, verb: str, done: RolledBack, *, change_set: uuid.UUID, tenant: Tenant) -> None:
    audit.record(
        actor=changes.actor,
        verb=verb,
        target=done,
        object_id=change_set,
        tenant=tenant,
        now=changes.now,
        counts=done.counts,
    )
