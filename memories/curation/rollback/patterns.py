"""What reflections proposed in a roll back, and how it is undone: a proposal rests on episodes of several sessions.

A proposal that waits loses the evidence that is rolled back; without any it goes to the trash. What an operator
approved, edited or rejected stays as it is.
"""

import uuid
from collections import Counter
from datetime import datetime
from typing import Any

from django.db.models import Exists, F, OuterRef, QuerySet

from memories.curation.change_sets import Changes
from memories.curation.rollback.selection import ROLL_BACK, Selector, runs
from memories.facts import review_items
from memories.models import Change, ChangeSet, Fact, FactEvidence, ReviewItem, Session, Status, Turn

Table, Action = Change.Table, Change.Action


def resting(selector: Selector) -> QuerySet[Fact]:
    """The proposals that wait and rest, among others, on what is rolled back."""
    waiting = Fact.objects.filter(tenant=selector.tenant, status=Status.PENDING).reflected()
    if selector.end_user:
        waiting = waiting.filter(end_user=selector.end_user)
    return waiting.filter(Exists(_evidence(selector).filter(fact=OuterRef("pk"))))


def count(selector: Selector) -> int:
    """How many proposals would lose evidence, or go."""
    return resting(selector).count()


def roll_back(selector: Selector, changes: Changes) -> None:
    """Take the evidence away, and count the proposals; the people are locked."""
    rows = resting(selector).select_for_update(of=("self",), no_key=True).select_related("tenant", "end_user")
    facts = list(rows.order_by("pk"))
    gone = list(_evidence(selector).filter(fact__in=facts).order_by("pk"))
    for row in gone:
        before: dict[str, Any] = {
            "fact": str(row.fact_id),
            "turn": str(row.turn_id) if row.turn_id else None,
            "session": str(row.session_id),
            "turn_number": row.turn_number,
            "created_at": row.created_at.isoformat(),
        }
        changes.record_row_change(Table.EVIDENCE, Action.DELETED, row.pk, before=before)
    FactEvidence.objects.filter(pk__in=[row.pk for row in gone]).delete()
    left = set(FactEvidence.objects.filter(fact__in=facts).values_list("fact", flat=True))
    changes.trash([fact for fact in facts if fact.pk not in left], ROLL_BACK)
    review_items.flag_lost_evidence(left, now=changes.now)
    changes.counts["patterns"] += len(facts)


def facts_of(done: ChangeSet) -> list[uuid.UUID]:
    """The proposals that lost evidence in this roll back."""
    return _ids(_taken(done), "fact")


def restore(done: ChangeSet) -> None:
    """Give the proposals the evidence back, as far as they and its turns are still there; the people are locked."""
    taken = _taken(done)
    facts = set(Fact.objects.filter(pk__in=_ids(taken, "fact")).values_list("pk", flat=True))
    turns = set(Turn.objects.filter(pk__in=_ids(taken, "turn")).values_list("pk", flat=True))
    sessions = set(Session.objects.filter(pk__in=_ids(taken, "session")).values_list("pk", flat=True))
    rows = [
        FactEvidence(
            pk=change.number,
            tenant_id=done.tenant_id,
            fact_id=uuid.UUID(change.before["fact"]),
            turn_id=change.before["turn"],
            session_id=change.before["session"],
            turn_number=change.before["turn_number"],
            created_at=datetime.fromisoformat(change.before["created_at"]),
        )
        for change in taken
        if uuid.UUID(change.before["fact"]) in facts
        and uuid.UUID(change.before["session"]) in sessions
        and (change.before["turn"] is None or uuid.UUID(change.before["turn"]) in turns)
    ]
    FactEvidence.objects.bulk_create(rows, ignore_conflicts=True)
    lost = Counter(uuid.UUID(change.before["fact"]) for change in taken)
    lost.subtract(row.fact_id for row in rows)
    whole = [fact for fact, count in lost.items() if not count]
    # What was lost at another time stays noted.
    ReviewItem.objects.filter(fact__in=whole, lost_at=done.created_at).update(lost_at=None, version=F("version") + 1)


def _evidence(selector: Selector) -> QuerySet[FactEvidence]:
    """Of a session all its turns; else of the turns that the selected runs read, or that the key posted."""
    if selector.session and not (selector.key or selector.since or selector.until):
        return FactEvidence.objects.filter(session=selector.session)
    read = runs(selector).filter(
        session=OuterRef("session"), first_number__lte=OuterRef("turn_number"), last_number__gte=OuterRef("turn_number")
    )
    rows = FactEvidence.objects.filter(Exists(read))
    return rows.filter(turn__key_id=selector.key) if selector.key else rows


def _taken(done: ChangeSet) -> list[Change]:
    return list(done.changes.filter(table=Table.EVIDENCE, action=Action.DELETED).order_by("number"))


def _ids(taken: list[Change], name: str) -> list[uuid.UUID]:
    return [uuid.UUID(change.before[name]) for change in taken if change.before[name]]
