"""Outages: which model endpoint does not answer, since when, what waits for it, and when it is asked again."""

import uuid
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, F, Q, QuerySet
from django.db.models.functions import Now

from memories import conf
from memories.models import EndpointState, LanguageModel, Session, SessionQueue, Tenant, WorkingMemory
from memories.queue import circuit_breaker


@dataclass(frozen=True)
class Outage:
    """An endpoint whose circuit is open.

    `tenant`: whose own endpoint it is; None: the hub's. `since`: the first failure. `next_try`: the end of the pause;
    None: over, the next batch or the watch of parked work asks. `waiting`: sessions whose extraction or working memory
    is due, or was parked by the outage.
    """

    tenant: Tenant | None
    since: datetime | None
    next_try: datetime | None
    waiting: int


def outages(tenants: QuerySet[Tenant]) -> list[Outage]:
    """The outages that these tenants meet, the hub's first. One query when there is none."""
    if conf.llm().mode == conf.LLM_OFF:
        return []
    mine = Q(tenant=None) | Q(tenant__in=tenants.order_by().values("pk"))
    states = EndpointState.objects.with_clock().filter(mine, failures__gte=circuit_breaker.FAILURES_TO_OPEN)
    states = states.select_related("tenant").order_by(F("tenant").asc(nulls_first=True))
    return [_outage(state, tenants) for state in states]


def outage_of(tenant_id: uuid.UUID) -> Outage | None:
    """The outage of the endpoint that this tenant's batches ask."""
    found = outages(Tenant.objects.filter(pk=tenant_id))
    has_own = bool(found) and LanguageModel.objects.others().filter(tenant=tenant_id).exists()
    return next((outage for outage in found if (outage.tenant is not None) == has_own), None)


def waiting() -> Q:
    """The sessions that wait for an endpoint whose circuit is open: those that the outages count."""
    if conf.llm().mode == conf.LLM_OFF:
        return Q(pk__in=[])
    down = EndpointState.objects.filter(failures__gte=circuit_breaker.FAILURES_TO_OPEN)
    own = LanguageModel.objects.others().values("tenant")
    asks = Q(tenant__in=down.filter(tenant__isnull=False).values("tenant"))
    asks |= ~Q(tenant__in=own) & Q(Exists(down.filter(tenant=None)))
    return asks & (_waits("queue__") | _waits("working_memory__"))


def _waits(path: str = "") -> Q:
    """The queue rows that are due, or were parked by an outage; `path` leads to the row."""
    due = {f"{path}parked_at": None, f"{path}due_at__lte": Now()}
    parked = {f"{path}parked_at__isnull": False, f"{path}failure__in": circuit_breaker.OUTAGES}
    return Q(**due) | Q(**parked)


def _outage(state: EndpointState, tenants: QuerySet[Tenant]) -> Outage:
    pauses = [until for until in (state.until, state.stated_until) if until and until > state.clock]
    rows = circuit_breaker.rows_of(state.tenant_id) & _waits()
    sessions = Session.objects.filter(tenant__in=tenants.order_by().values("pk"))
    kinds = [model._default_manager.filter(rows).values("pk") for model in (SessionQueue, WorkingMemory)]
    return Outage(
        tenant=state.tenant,
        since=state.failing_since,
        next_try=max(pauses, default=None),
        waiting=sessions.filter(Q(pk__in=kinds[0]) | Q(pk__in=kinds[1])).count(),
    )
