"""No person has more active facts than the rules allow: what is worth least is archived (rules.md, 5.6)."""

import uuid
from collections.abc import Iterable
from datetime import datetime

from django.db.models import Q

from memories.models import Category, Fact, Source, Status
from memories.models.facts import FactQuerySet
from memories.pipeline.desk import Desk
from memories.pipeline.gate import rank
from memories.scoring.capacity import worth

_BINDING = Q(binding=True) | Q(pinned=True) | Q(locked=True)
_WEIGHED = (
    "category", "source", "trust", "confidence", "mentions", "binding", "pinned", "locked", "last_confirmed_at",
    "last_recalled_at", "created_at",
)  # fmt: skip


def keep_within(desk: Desk, limit: int) -> None:
    """Archive what is beyond `limit` (0: none). An operator's word counts and stays, as no job may change it."""
    run, now = desk.writer.run, desk.writer.now
    facts = Fact.objects.of(run.tenant, run.end_user).active(now=now)
    surplus = _surplus(facts, limit, now=now) if limit else []
    for fact in _locked(facts, surplus):
        desk.writer.archive(fact)
        desk.over.add(fact.pk)
        desk.count("archived")


def _surplus(facts: FactQuerySet, limit: int, *, now: datetime) -> list[uuid.UUID]:
    """Those to archive, the least first: lower trust before higher, corrections after all others of their trust."""
    active = list(facts.only(*_WEIGHED).order_by("pk"))
    ours = (fact for fact in active if not fact.protected)
    least = sorted(ours, key=lambda fact: (rank(fact.trust), _is_correction(fact), _worth(fact, now), fact.created_at))
    return [fact.pk for fact in least[: max(0, len(active) - limit)]]


def _locked(facts: FactQuerySet, surplus: Iterable[uuid.UUID]) -> list[Fact]:
    """Those that nobody is changing at this moment: to wait here, after other locks, could be to wait for each other.

    The next batch archives what is left over.
    """
    chosen = list(surplus)
    if not chosen:
        return []
    unbound = facts.filter(pk__in=chosen, status=Status.ACTIVE).exclude(_BINDING)
    return list(unbound.order_by("pk").select_for_update(no_key=True, skip_locked=True))


def _is_correction(fact: Fact) -> bool:
    return fact.category == Category.CORRECTION or fact.source == Source.CORRECTED


def _worth(fact: Fact, now: datetime) -> float:
    last = max(fact.last_confirmed_at, fact.last_recalled_at or fact.last_confirmed_at)
    return worth(confidence=fact.confidence, last_used=last, mentions=fact.mentions, now=now)
