"""Agents are listed when they are first seen: each process writes those that it does not know yet, once."""

import time
import uuid
from collections.abc import Iterable

from django.db import transaction
from django.db.models.functions import Now

from memories.models import Agent, Tenant

# More than a process meets; where there are more, they are written again.
_MOST_CACHED = 50_000
# After so long an agent is written again: an erasure may have removed it.
_CACHE_SECONDS = 300.0
# Tenant and agent → until when it need not be written.
_cached: dict[tuple[uuid.UUID, str], float] = {}


def note_agents(tenant: Tenant, agent_ids: Iterable[str]) -> None:
    """List the agents ("" means none) where they are missing; no statement for those that the process knows.

    Call it before persons and sessions are locked. All requests write their agents first, in one statement and in the
    same order, so that two with the same new agents cannot deadlock.
    """
    now = time.monotonic()
    new = sorted({agent_id for agent_id in agent_ids if agent_id and _cached.get((tenant.pk, agent_id), 0.0) <= now})
    if not new:
        return
    rows = [Agent(tenant=tenant, agent_id=agent_id, created_at=Now()) for agent_id in new]
    # Of two requests at once the second finds the rows.
    Agent.objects.bulk_create(rows, ignore_conflicts=True)
    transaction.on_commit(lambda: _know(tenant.pk, new))


def _know(tenant: uuid.UUID, agent_ids: Iterable[str]) -> None:
    if len(_cached) >= _MOST_CACHED:
        _cached.clear()
    until = time.monotonic() + _CACHE_SECONDS
    _cached.update({(tenant, agent_id): until for agent_id in agent_ids})
