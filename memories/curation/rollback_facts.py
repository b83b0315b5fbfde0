"""The facts of a roll back: each is locked already, and each change of one leaves a revision of the change set."""

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q

from memories import audit
from memories.audit import Actor
from memories.curation import item_states
from memories.curation.rollback_selection import ROLL_BACK, UNDO, Selector, revisions
from memories.models import Fact, FactRevision, ReviewItem, Status


@dataclass(frozen=True)
class Act:
    """Who does it, why and when, and what its revisions share."""

    actor: Actor
    reason: str
    now: datetime
    change_set: uuid.UUID


def trash(act: Act, facts: Iterable[Fact]) -> int:
    """Move the facts to the trash; how many. No refusal: the same may honestly be said again."""
    count = 0
    for fact in facts:
        before = audit.snapshot(fact)
        fact.status, fact.trashed_at = Status.TRASHED, act.now
        _keep(act, fact, before, ROLL_BACK)
        count += 1
    return count


def put_back(act: Act, fact: Fact, selector: Selector) -> bool:
    """Make the fact what it was before the selected revisions; False when something stands in its place by now."""
    own = list(revisions(selector).filter(fact=fact).order_by("-version"))
    before = audit.snapshot(fact)
    for revision in own:
        audit.put_back(fact, revision.before)
    if fact.status == Status.ACTIVE != before["status"] and _is_replaced(fact, before["superseded_by"]):
        return False
    if not _kept_unless_said(act, fact, before, ROLL_BACK):
        return False
    if fact.status == Status.PENDING:
        reopen([fact.pk], since=own[-1].created_at)
    return True


def undo(act: Act, revision: FactRevision) -> bool:
    """Take back what a roll back did to a fact; False when it changed since, or another one says the same by now."""
    fact = Fact.objects.select_for_update(no_key=True).get(pk=revision.fact_id)
    if fact.version != revision.version:
        return False
    before = audit.snapshot(fact)
    audit.put_back(fact, revision.before)
    return _kept_unless_said(act, fact, before, UNDO)


def reopen(facts: Sequence[uuid.UUID], *, since: datetime) -> None:
    """Questions about these facts that something else has settled since then wait again."""
    about = Q(fact__in=facts) | Q(known__in=facts)
    settled = ReviewItem.objects.filter(about, state=ReviewItem.State.SETTLED, decided_at__gte=since)
    item_states.reopen(settled)


def _is_replaced(fact: Fact, successor: str | None) -> bool:
    """Whether its successor is still served, or another fact has a value for its key by now."""
    served = Fact.objects.of(fact.tenant, fact.end_user).filter(status=Status.ACTIVE).exclude(pk=fact.pk)
    rivals = Q(agent_id=fact.agent_id, category=fact.category, key=fact.key) if fact.key and fact.value else Q()
    in_place = Q(pk=successor) | rivals if successor else rivals
    return bool(in_place) and served.filter(in_place).exists()


def _kept_unless_said(act: Act, fact: Fact, before: dict[str, Any], verb: str) -> bool:
    """Save it; False when another live fact has its text, which fact_text_once forbids."""
    try:
        with transaction.atomic():
            _keep(act, fact, before, verb)
    except IntegrityError:
        return False
    return True


def _keep(act: Act, fact: Fact, before: dict[str, Any], verb: str) -> None:
    fact.version += 1
    fact.updated_at = act.now
    fact.refresh_decay(now=act.now)
    fact.save()
    audit.revise(
        fact=fact,
        verb=verb,
        actor=act.actor,
        before=before,
        reason=act.reason,
        now=act.now,
        change_set=act.change_set,
    )
