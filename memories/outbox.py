"""The outbox of webhooks: an event is written in the transaction of the change, a row for each endpoint that wants it.

One statement writes all of them. A tenant without webhooks costs none where its row was read anyway.
"""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import connection
from psycopg.types.json import Jsonb

from memories.models import EndUser, Event, Fact, Status, Tenant

# The endpoint's row is locked against its deletion, which waits for us, or comes before and leaves nothing to tell.
_PUBLISH = """
    INSERT INTO memories_webhookdelivery
        (id, tenant_id, endpoint_id, end_user_id, event, data, once, state, occurred_at, attempts, failure)
    SELECT gen_random_uuid(), e.tenant_id, e.id, told.person, told.event, told.data, told.once, 'waiting', %(now)s,
        0, ''
    FROM memories_webhookendpoint e,
        unnest(%(events)s::text[], %(people)s::uuid[], %(data)s::jsonb[], %(once)s::text[])
            AS told(event, person, data, once)
    WHERE e.tenant_id = %(tenant)s AND e.disabled_at IS NULL AND told.event = ANY(e.events)
    FOR KEY SHARE OF e
    ON CONFLICT DO NOTHING
"""


# What an event with content says of a fact. When one of these changes, consumers have an old copy.
SAID_OF_FACT = ("agent_id", "category", "key", "value", "content")


@dataclass(frozen=True)
class WebhookEvent:
    """An event: ids, codes and times alone. `person`: whose memory it is about, and with whom it goes.

    `once`: an endpoint is told it once, however often it is written.
    """

    event: Event
    data: Mapping[str, Any] = field(default_factory=dict)
    person: uuid.UUID | None = None
    once: str = ""


def publish(
    tenant_id: uuid.UUID, happened: Iterable[WebhookEvent], *, now: datetime, tenant: Tenant | None = None
) -> None:
    """Write what happened for each endpoint that wants it, in the caller's transaction.

    `tenant`: its row, where the caller has read it: it says whether anybody wants these events.
    """
    found = list(happened)
    if tenant is not None:
        found = [one for one in found if one.event in tenant.webhook_events]
    if not found:
        return
    values: dict[str, Any] = {
        "tenant": tenant_id,
        "now": now,
        "events": [str(one.event) for one in found],
        "people": [one.person for one in found],
        "data": [Jsonb({name: _plain(value) for name, value in one.data.items()}) for one in found],
        "once": [one.once for one in found],
    }
    with connection.cursor() as cursor:
        cursor.execute(_PUBLISH, values)


def is_wanted(tenant: Tenant, event: Event) -> bool:
    """Whether an endpoint of the tenant wants such events: to gather what they say is worth it."""
    return event in tenant.webhook_events


def facts_changed(changed: Sequence[tuple[Fact, Mapping[str, Any]]], *, now: datetime) -> None:
    """Publish facts that came into use, say something else, were replaced or went out of use. Each with its snapshot
    before the change."""
    happened: dict[uuid.UUID, list[WebhookEvent]] = {}
    tenants: dict[uuid.UUID, Tenant | None] = {}
    for fact, before in changed:
        event = _event_of(before.get("status"), fact.status)
        if event is None and fact.status == Status.ACTIVE and _says_something_else(fact, before):
            event = Event.FACT_UPDATED
        if event is None:
            continue
        data: dict[str, Any] = {"fact_id": fact.pk, "person_id": fact.end_user_id}
        if event == Event.FACT_SUPERSEDED:
            data["superseded_by"] = fact.superseded_by_id
        happened.setdefault(fact.tenant_id, []).append(WebhookEvent(event, data, fact.end_user_id))
        tenants[fact.tenant_id] = tenants.get(fact.tenant_id) or _tenant_read(fact)
    for tenant_id, events in happened.items():
        publish(tenant_id, events, now=now, tenant=tenants[tenant_id])


def facts_gone(tenant: Tenant, gone: Iterable[tuple[uuid.UUID, uuid.UUID]], *, now: datetime) -> None:
    """Publish facts in use that are deleted, or go to the trash by hand-written SQL: each with its person."""
    happened = [
        WebhookEvent(Event.FACT_FORGOTTEN, {"fact_id": fact, "person_id": person}, person) for fact, person in gone
    ]
    publish(tenant.pk, happened, now=now, tenant=tenant)


def _event_of(was: str | None, status: str) -> Event | None:
    if was == status or Status.ACTIVE not in (was, status):
        return None
    if status == Status.ACTIVE:
        return Event.FACT_CREATED
    return Event.FACT_SUPERSEDED if status == Status.SUPERSEDED else Event.FACT_FORGOTTEN


def _says_something_else(fact: Fact, before: Mapping[str, Any]) -> bool:
    return any(before.get(name, getattr(fact, name)) != getattr(fact, name) for name in SAID_OF_FACT)


def _tenant_read(fact: Fact) -> Tenant | None:
    """The tenant's row, if it was read with the fact or its person."""
    for row, name in ((fact, "tenant"), (fact, "end_user")):
        found = row._state.fields_cache.get(name)
        if isinstance(found, EndUser):
            found = found._state.fields_cache.get("tenant")
        if isinstance(found, Tenant):
            return found
    return None


def _plain(value: Any) -> Any:
    if isinstance(value, uuid.UUID):
        return str(value)
    return value.isoformat() if isinstance(value, datetime) else value
