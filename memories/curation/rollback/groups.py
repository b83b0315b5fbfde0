"""What people said in groups, in a roll back and a clearing, and how either is undone.

What is taken back lies in the trash as a fact that names the change set. Where others said the same, that fact is a new
one with what is taken back, and the other stays with them.
"""

import uuid
from collections.abc import Iterable

from django.db.models import QuerySet

from memories.curation.change_sets import Changes
from memories.curation.groups.facts import untrash as put_fact_back
from memories.curation.rollback.selection import Selector, touched_statements
from memories.models import ChangeSet, GroupEvidence, GroupFact, MemoryGroup


def roll_back(selector: Selector, changes: Changes) -> None:
    """Take back what was selected, and count it; the people are locked."""
    if count := clear(touched_statements(selector), changes):
        changes.counts["group_facts"] += count


def clear(evidence: QuerySet[GroupEvidence], changes: Changes) -> int:
    """Take back what locked people said; returns how many statements."""
    seen = dict(evidence.values_list("pk", "fact__group"))
    _lock(seen.values())
    ids = list(evidence.filter(pk__in=seen).values_list("pk", flat=True))
    rows = GroupFact.objects.filter(evidence__in=ids).select_related("tenant", "group").distinct()
    for fact in rows.order_by("pk"):
        going = GroupEvidence.objects.filter(fact=fact, pk__in=ids)
        others = GroupEvidence.objects.filter(fact=fact).exclude(pk__in=ids)
        taken = fact
        if others.exists():
            # A fact of its own that says the same.
            names = ("tenant", "group", "about_id", "created_at", "said_at")
            taken = GroupFact(**{name: getattr(fact, name) for name in names})
            taken.set_text(fact.content)
        taken.trashed_at, taken.change_set = changes.now, changes.id
        taken.save()
        going.update(fact=taken)
    return len(ids)


def restore(done: ChangeSet, changes: Changes) -> None:
    """Take out of the trash what this change set put there, unless an operator has restored it since."""
    rows = GroupFact.objects.filter(change_set=done.pk)
    _lock(rows.values_list("group", flat=True))
    for fact in rows.select_related("tenant", "group").order_by("pk"):
        changes.counts["group_facts"] += fact.evidence.count()
        put_fact_back(fact)


def _lock(groups: Iterable[uuid.UUID]) -> None:
    """In one order; also those in the trash."""
    rows = MemoryGroup.objects.select_for_update(no_key=True).filter(pk__in=set(groups)).order_by("pk")
    list(rows.values_list("pk"))
