"""Memories of plain kinds in a roll back and a clearing, and how either is undone: what it deleted names its change set
(memories/kinds/kind.py)."""

from typing import Any

from django.db.models import QuerySet

from memories.curation.change_sets import Changes
from memories.curation.rollback.selection import Selector, touched_rows
from memories.kinds import PLAIN, Kind
from memories.models import ChangeSet, EndUser


def roll_back(selector: Selector, changes: Changes) -> None:
    """Move the selected rows to the trash, and count them; the people are locked."""
    for kind in PLAIN:
        changes.counts[kind.plural] += clear(touched_rows(selector, kind), changes)


def counts(selector: Selector) -> dict[str, int]:
    """Kind → how many rows roll_back() would move."""
    return {kind.plural: touched_rows(selector, kind).count() for kind in PLAIN}


def clear(rows: QuerySet[Any], changes: Changes) -> int:
    """Move these rows of locked people to the trash; returns how many."""
    return rows.filter(trashed_at=None).update(trashed_at=changes.now, change_set=changes.id)


def restore(done: ChangeSet, changes: Changes) -> None:
    """Take out of the trash what this change set put there, unless an operator has restored it since."""
    for kind in PLAIN:
        if count := kind.rows.filter(change_set=done.pk).update(trashed_at=None, change_set=None):
            changes.counts[kind.plural] += count


def of_person(kind: Kind, person: EndUser, agent_id: str) -> QuerySet[Any]:
    """What is not in the trash, of all agents or of one."""
    rows: QuerySet[Any] = kind.rows.of(person.tenant, person).present()
    return rows.filter(agent_id=agent_id) if agent_id else rows


def people_of(done: ChangeSet) -> list[QuerySet[Any]]:
    """Of each kind the ids of those whose memories the change set deleted."""
    return [kind.rows.filter(change_set=done.pk).values("end_user") for kind in PLAIN]
