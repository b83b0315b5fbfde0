"""What agents did in the last days: turns of their sessions, facts made of these, and what became of the facts."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Coalesce

from memories.models import ActorKind, Agent, ChangeSet, Fact, Status, Turn

SPANS = (7, 30, 90)
# Verbs of operators that give a fact other words: on its page, and in the review queue.
CORRECTING = ("correct", "edit")
NAMES = ("people", "turns", "facts", "pending", "rejected", "corrections")


def figures_of(
    agents: Iterable[Agent], spans: Sequence[int], *, now: datetime
) -> dict[tuple[Any, str], dict[int, dict[str, int]]]:
    """For each (tenant, agent id) the figures of each span of days; three queries."""
    named = {(one.tenant_id, one.agent_id) for one in agents}
    tenants, ids = {tenant for tenant, _agent in named}, {agent for _tenant, agent in named}
    since = now - timedelta(days=max(spans))
    turns = Turn.objects.filter(
        # A session whose last turn is older has none of the span; its index finds the others.
        session__tenant__in=tenants,
        session__agent_id__in=ids,
        session__last_turn_at__gte=since,
        created_at__gte=since,
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
    own = {"people": ("end_user", Q()), "turns": ("pk", Q())}
    made = {
        "facts": ("pk", Q()),
        "pending": ("pk", Q(status=Status.PENDING)),
        "rejected": ("pk", Q(status=Status.REJECTED)),
    }
    found: dict[tuple[Any, str], dict[int, dict[str, int]]] = defaultdict(
        lambda: {days: dict.fromkeys(NAMES, 0) for days in spans}
    )
    for rows, agent, counts in (
        (turns, "session__agent_id", own),
        (facts, "extraction__session__agent_id", made),
        (changes.filter(agent__in=ids), "agent", {"corrections": ("pk", Q())}),
    ):
        for row in _per_span(rows, agent, counts, spans, now):
            key = row.pop("tenant"), row.pop(agent)
            for name, count in row.items():
                figure, days = name.rsplit("_", 1)
                found[key][int(days)][figure] = count
    return found


def _per_span(
    rows: QuerySet[Any], agent: str, counts: dict[str, tuple[str, Q]], spans: Sequence[int], now: datetime
) -> Iterable[dict[str, Any]]:
    """These counts (of what, and of which rows) of each agent for each span, by the names `<count>_<days>`."""
    wanted = {
        # No join here repeats a row, and to find that out PostgreSQL would sort all of them for each count.
        f"{name}_{days}": Count(
            counted, filter=only & Q(created_at__gte=now - timedelta(days=days)), distinct=counted != "pk"
        )
        for days in spans
        for name, (counted, only) in counts.items()
    }
    found: Iterable[dict[str, Any]] = rows.order_by().values("tenant", agent).annotate(**wanted)
    return found


def rate_of(figures: dict[str, int]) -> float | None:
    """The share of the facts that were rejected; None of no facts."""
    return figures["rejected"] / figures["facts"] if figures["facts"] else None
