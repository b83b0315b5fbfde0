"""What agents did in the last days: turns of their sessions, facts made of these, and what became of the facts."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import Aggregate, Count, F, Q, Sum
from django.db.models.functions import Coalesce

from memories.models import ActorKind, Agent, ChangeSet, Fact, Session, Status, Turn

SPANS = (7, 30, 90)
# Verbs of operators that give a fact other words: on its page, and in the review queue.
CORRECTING = ("correct", "edit")
NAMES = ("people", "turns", "facts", "pending", "rejected", "corrections")


def figures_of(
    agents: Iterable[Agent], spans: Sequence[int], *, now: datetime
) -> dict[tuple[Any, str], dict[int, dict[str, int]]]:
    """For each (tenant, agent id) the figures of each span of days; four queries."""
    named = {(one.tenant_id, one.agent_id) for one in agents}
    tenants, ids = {tenant for tenant, _agent in named}, {agent for _tenant, agent in named}
    begins = {days: now - timedelta(days=days) for days in spans}
    since = min(begins.values())
    # What retention deleted is no turn any more, and a session without turns is no talk.
    sessions = Session.objects.filter(
        tenant__in=tenants, agent_id__in=ids, last_turn_at__gte=since, turn_count__gt=F("deleted_number")
    )
    # A session that began within a span has all its turns there, and counts them itself. Of those that were under way
    # at its beginning, and of these alone, turns are counted one by one.
    under_way = [Q(session__created_at__lt=begin, session__last_turn_at__gte=begin) for begin in begins.values()]
    turns = Turn.objects.filter(
        reduce(or_, under_way), session__tenant__in=tenants, session__agent_id__in=ids, created_at__gte=since
    )
    facts = Fact.objects.filter(tenant__in=tenants, created_at__gte=since, extraction__session__agent_id__in=ids)
    changes = ChangeSet.objects.filter(
        tenant__in=tenants,
        created_at__gte=since,
        verb__in=CORRECTING,
        actor_kind=ActorKind.OPERATOR,
        undone_at=None,
    ).annotate(
        agent=Coalesce("fact__extraction__session__agent_id", "item__fact__extraction__session__agent_id"),
    )
    found: dict[tuple[Any, str], dict[int, dict[str, int]]] = defaultdict(
        lambda: {days: dict.fromkeys(NAMES, 0) for days in spans}
    )
    for rows, agent, counts in (
        (sessions, "agent_id", _of_sessions),
        (turns, "session__agent_id", _of_turns),
        (facts, "extraction__session__agent_id", _of_facts),
        (changes.filter(agent__in=ids), "agent", _of_changes),
    ):
        wanted = {f"{name}_{days}": count for days, begin in begins.items() for name, count in counts(begin).items()}
        for row in rows.order_by().values("tenant", agent).annotate(**wanted):
            key = row.pop("tenant"), row.pop(agent)
            for name, count in row.items():
                figure, days = name.rsplit("_", 1)
                found[key][int(days)][figure] += count
    return found


def _of_sessions(begin: datetime) -> dict[str, Aggregate]:
    turns = Sum(F("turn_count") - F("deleted_number"), filter=Q(created_at__gte=begin), default=0)
    return {"people": Count("end_user", filter=Q(last_turn_at__gte=begin), distinct=True), "turns": turns}


def _of_turns(begin: datetime) -> dict[str, Aggregate]:
    return {"turns": Count("pk", filter=Q(created_at__gte=begin, session__created_at__lt=begin))}


def _of_facts(begin: datetime) -> dict[str, Aggregate]:
    # No join here repeats a row, and to find that out PostgreSQL would sort all of them for each count.
    made = Q(created_at__gte=begin)
    return {
        "facts": Count("pk", filter=made),
        "pending": Count("pk", filter=made & Q(status=Status.PENDING)),
        "rejected": Count("pk", filter=made & Q(status=Status.REJECTED)),
    }


def _of_changes(begin: datetime) -> dict[str, Aggregate]:
    return {"corrections": Count("pk", filter=Q(created_at__gte=begin))}


def rate_of(figures: dict[str, int]) -> float | None:
    """The share of the facts that were rejected; None of no facts."""
    return figures["rejected"] / figures["facts"] if figures["facts"] else None
