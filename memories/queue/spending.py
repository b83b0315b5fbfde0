"""What model calls cost: the sums of a tenant's day, and whether a daily cap is reached.

The calls of a day are counted when they were answered, each in a statement of its own, so that what an attempt throws
away counts, too. A batch is held against the caps when it is claimed. Batches that several workers have claimed by then
are carried out, so a cap can be exceeded by the calls that were in flight.
"""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock_time
from decimal import Decimal
from typing import Any

from django.db import connection

from memories import conf
from memories.llm.prices import cost_of
from memories.models import Attachment, DailySpending, LanguageModel, ModelUse, SessionQueue, Tenant, WorkingMemory
from memories.time_zones import zone_or_utc

# Code of a row that waits for the end of the tenant's day.
CAPPED = "daily_cap"
# The row is locked to the end of the transaction: this is its last statement.
_ADD = """
    INSERT INTO memories_modeluse (tenant_id, day, purpose, calls, prompt_tokens, completion_tokens, cost)
    VALUES (%s, %s, %s, %s, %s, %s, %s)
    ON CONFLICT (tenant_id, day, purpose) DO UPDATE SET
        calls = memories_modeluse.calls + excluded.calls,
        prompt_tokens = memories_modeluse.prompt_tokens + excluded.prompt_tokens,
        completion_tokens = memories_modeluse.completion_tokens + excluded.completion_tokens,
        cost = CASE WHEN excluded.cost IS NULL THEN memories_modeluse.cost
            ELSE coalesce(memories_modeluse.cost, 0) + excluded.cost END
"""
# What an endpoint reports may be anything: the sum stays what the column can hold.
_COUNT = """
    INSERT INTO memories_dailyspending (tenant_id, day, tokens, cost)
    SELECT id, %(day)s, %(tokens)s, %(cost)s FROM memories_tenant WHERE id = %(tenant)s
    ON CONFLICT (tenant_id, day) DO UPDATE SET
        tokens = memories_dailyspending.tokens + excluded.tokens,
        cost = least(memories_dailyspending.cost + excluded.cost, 99999999)
"""


@dataclass
class Spent:
    """Tokens of an attempt's calls, as the endpoint reported them."""

    prompt_tokens: int = 0
    completion_tokens: int = 0

    def add(self, prompt_tokens: int, completion_tokens: int) -> None:
        self.prompt_tokens += prompt_tokens
        self.completion_tokens += completion_tokens


@dataclass(frozen=True)
class Day:
    """A tenant's day by its own clock: what was used, the caps (None: there is none), when it ends."""

    tokens: int
    cost: Decimal
    most_tokens: int | None
    most_cost: Decimal | None
    ends_at: datetime

    @property
    def is_over_tokens(self) -> bool:
        return self.most_tokens is not None and self.tokens >= self.most_tokens

    @property
    def is_over_cost(self) -> bool:
        return self.most_cost is not None and self.cost >= self.most_cost

    @property
    def is_capped(self) -> bool:
        return self.is_over_tokens or self.is_over_cost


def note(
    tenant: Tenant, purpose: ModelUse.Purpose, *, calls: int, spent: Spent, prices: conf.Prices | None, now: datetime
) -> None:
    """Add the calls to the tenant's day of this purpose, in the transaction of what they were for."""
    if not calls:
        return
    tokens = (spent.prompt_tokens, spent.completion_tokens)
    day = now.astimezone(UTC).date()
    with connection.cursor() as cursor:
        cursor.execute(_ADD, [tenant.pk, day, purpose, calls, *tokens, cost_of(*tokens, prices)])


def count(
    tenant: Tenant, *, prompt_tokens: int, completion_tokens: int, prices: conf.Prices | None, now: datetime
) -> None:
    """Count an answer for the daily caps; outside of any transaction, at once."""
    tokens = prompt_tokens + completion_tokens
    if not tokens:
        return
    cost = cost_of(prompt_tokens, completion_tokens, prices) or Decimal(0)
    values: dict[str, Any] = {
        "tenant": tenant.pk,
        "day": _day_of(tenant, now),
        "tokens": tokens,
        "cost": min(cost, Decimal(99999999)),
    }
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, values)


def day_of(tenant: Tenant, own: LanguageModel | None, *, now: datetime) -> Day:
    """What the tenant's day has used, and its caps; `own` is the row that has them."""
    found = DailySpending.objects.filter(tenant=tenant, day=_day_of(tenant, now)).first()
    return _day(tenant, own, found, now=now)


def capped(rows: Iterable[LanguageModel], *, now: datetime) -> list[tuple[Tenant, Day]]:
    """The tenants of these rows (with their tenants) that have reached a daily cap; one query, none without caps."""
    with_caps = [row for row in rows if row.daily_tokens is not None or row.daily_cost is not None]
    around = (now.astimezone(UTC) - timedelta(days=2)).date()
    found = DailySpending.objects.filter(tenant__in=[row.pk for row in with_caps], day__gte=around) if with_caps else []
    spent = {(row.tenant_id, row.day): row for row in found}
    days = [(row, _day(row.tenant, row, spent.get((row.pk, _day_of(row.tenant, now))), now=now)) for row in with_caps]
    return [(row.tenant, day) for row, day in days if day.is_capped]


def days_of(tenants: Iterable[Tenant], *, now: datetime) -> dict[uuid.UUID, Day]:
    """The day of each of these tenants, with its caps; two queries."""
    listed = list(tenants)
    around = (now.astimezone(UTC) - timedelta(days=2)).date()
    owns = LanguageModel.objects.in_bulk([tenant.pk for tenant in listed])
    spent = {(row.tenant_id, row.day): row for row in DailySpending.objects.filter(tenant__in=listed, day__gte=around)}
    return {
        tenant.pk: _day(tenant, owns.get(tenant.pk), spent.get((tenant.pk, _day_of(tenant, now))), now=now)
        for tenant in listed
    }


def wait_until(tenant: Tenant, own: LanguageModel, *, now: datetime) -> datetime | None:
    """When the tenant may ask its model again, if a daily cap is reached; inside the caller's transaction.

    The row of the caps is locked then: a cap that is raised meanwhile finds the queue row that waits for it.
    """
    has_caps = own.daily_tokens is not None or own.daily_cost is not None
    if not has_caps or not day_of(tenant, own, now=now).is_capped:
        return None
    present = LanguageModel.objects.select_for_update(no_key=True).filter(pk=tenant.pk).first()
    day = day_of(tenant, present, now=now)
    return day.ends_at if day.is_capped else None


def resume(tenant_id: uuid.UUID) -> int:
    """Make due what waits for the end of the tenant's day, after its caps were changed; how many rows.

    In a transaction after that of the change. What still exceeds a cap waits again.
    """
    pictures = Attachment.objects.pending().filter(tenant=tenant_id, failure=CAPPED, lease_token=None)
    return pictures.update(lease_until=None, failure="") + sum(
        rows.unclaimed().filter(failure=CAPPED, session__tenant=tenant_id).revive()
        for rows in (SessionQueue.objects, WorkingMemory.objects)
    )


def _day(tenant: Tenant, own: LanguageModel | None, found: DailySpending | None, *, now: datetime) -> Day:
    tomorrow = _day_of(tenant, now) + timedelta(days=1)
    return Day(
        tokens=found.tokens if found else 0,
        cost=found.cost if found else Decimal(0),
        most_tokens=own.daily_tokens if own else None,
        most_cost=own.daily_cost if own else None,
        ends_at=datetime.combine(tomorrow, clock_time.min, tzinfo=zone_or_utc(tenant.time_zone)).astimezone(UTC),
    )


def _day_of(tenant: Tenant, now: datetime) -> date:
    return now.astimezone(zone_or_utc(tenant.time_zone)).date()
