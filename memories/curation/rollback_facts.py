"""The facts of a roll back: each is locked already, and each change of one leaves a revision of the change set."""

import uuid
from collections.abc import Iterable, Sequence
from copy import copy
from datetime import datetime
from typing import Any

from django.db.models import Q

from memories import audit
from memories.curation import item_states
from memories.curation.change_sets import ChangeSet
from memories.curation.rollback_selection import ROLL_BACK, UNDO, Selector, revisions
from memories.exceptions import DuplicateFact
from memories.models import Fact, FactRevision, ReviewItem, Status


def trash(changes: ChangeSet, facts: Iterable[Fact]) -> int:
    """Move the facts to the trash; how many. No refusal: the same may honestly be said again."""
    count = 0
    for fact in facts:
        with changes.changing(fact, ROLL_BACK):
            fact.status, fact.trashed_at = Status.TRASHED, changes.now
        count += 1
    return count


def put_back(changes: ChangeSet, fact: Fact, selector: Selector) -> bool:
    """Make the fact what it was before the selected revisions; False when something stands in its place by now."""
    own = list(revisions(selector).filter(fact=fact).order_by("-version"))
    state = {name: value for revision in own for name, value in revision.before.items()}
    was = copy(fact)
    audit.put_back(was, state)
    if was.status == Status.ACTIVE != fact.status and _is_replaced(was, fact.superseded_by_id):
        return False
    if not _put_back(changes, fact, state, ROLL_BACK):
        return False
    if fact.status == Status.PENDING:
        reopen([fact.pk], since=own[-1].created_at)
    return True


def undo(changes: ChangeSet, revision: FactRevision) -> bool:
    """Take back what a roll back did to a fact; False when it changed since, or another one says the same by now."""
    rows = Fact.objects.select_for_update(of=("self",), no_key=True).select_related("tenant")
    fact = rows.get(pk=revision.fact_id)
    return fact.version == revision.version and _put_back(changes, fact, revision.before, UNDO)


def reopen(facts: Sequence[uuid.UUID], *, since: datetime) -> None:
    """Questions about these facts that something else has settled since then wait again."""
    about = Q(fact__in=facts) | Q(known__in=facts)
    settled = ReviewItem.objects.filter(about, state=ReviewItem.State.SETTLED, decided_at__gte=since)
    item_states.reopen(settled)


def _is_replaced(fact: Fact, successor: uuid.UUID | None) -> bool:
    """Whether its successor is still served, or another fact has a value for its key by now."""
    served = Fact.objects.of(fact.tenant, fact.end_user).filter(status=Status.ACTIVE).exclude(pk=fact.pk)
    rivals = Q(agent_id=fact.agent_id, category=fact.category, key=fact.key) if fact.key and fact.value else Q()
    in_place = Q(pk=successor) | rivals if successor else rivals
    return bool(in_place) and served.filter(in_place).exists()


def _put_back(changes: ChangeSet, fact: Fact, state: dict[str, Any], verb: str) -> bool:
    """False when another live fact has its text, which fact_text_once forbids."""
    try:
        with changes.changing(fact, verb):
            audit.put_back(fact, state)
    except DuplicateFact:
        return False
    return True
