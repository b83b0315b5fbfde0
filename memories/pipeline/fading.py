"""Keeps what is stored of fading true: the score, which time changes, and the date, which a tenant's numbers change."""

import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import QuerySet

from memories import conf
from memories.models import EndUser, Episode, EpisodeStatus, Fact, Status, Tenant

# People of one step: some hundred memories each.
STEP = 20
# A stored score this near to the true one is left alone: each is written every few days instead of every night.
DRIFT = 0.02
SECOND = timedelta(seconds=1)
# What refresh_decay() reads and sets.
_COMMON = ("importance", "pinned", "binding", "last_recalled_at", "decay_score", "forget_at")
_OF_FACTS = (*_COMMON, "category", "mentions", "locked", "last_confirmed_at")
_OF_EPISODES = (*_COMMON, "ended_at")


def people_after(tenant: Tenant, reached: uuid.UUID | None) -> list[uuid.UUID]:
    """The next people of the tenant, in the order in which the hub met them; without those under restriction."""
    people = EndUser.objects.filter(tenant=tenant, restricted_at=None)
    if reached:
        people = people.filter(pk__gt=reached)
    return list(people.order_by("pk").values_list("pk", flat=True)[:STEP])


def refresh(people: Sequence[uuid.UUID], *, rules: conf.Rules, now: datetime) -> int:
    """Write the scores and dates that are no longer true of these people's active memories; how many.

    Neither version nor updated_at changes, and there is no revision.
    """
    facts = Fact.objects.filter(end_user__in=people, status=Status.ACTIVE).only(*_OF_FACTS)
    episodes = Episode.objects.filter(end_user__in=people, status=EpisodeStatus.ACTIVE).only(*_OF_EPISODES)
    return _refresh(facts, rules, now) + _refresh(episodes, rules, now)


def _refresh(rows: QuerySet[Any], rules: conf.Rules, now: datetime) -> int:
    stale = [row.pk for row in rows if _differs(row, rules, now)]
    if not stale:
        return 0
    with transaction.atomic():
        # Read again under locks: who recalls or edits one meanwhile sets both himself, and is not waited for.
        locked = rows.filter(pk__in=stale).select_for_update(no_key=True, skip_locked=True).order_by("pk")
        written = [row for row in locked if _differs(row, rules, now)]
        _write(rows.model._meta.db_table, written)
    return len(written)


def _differs(row: Fact | Episode, rules: conf.Rules, now: datetime) -> bool:
    """Set both anew; whether they were wrong."""
    score, date = row.decay_score, row.forget_at
    row.refresh_decay(now=now, rules=rules)
    if abs(row.decay_score - score) > DRIFT:
        return True
    if date is None or row.forget_at is None:
        return date is not row.forget_at
    return abs(row.forget_at - date) > SECOND


def _write(table: str, rows: Sequence[Fact | Episode]) -> None:
    statement = f"""
        UPDATE {table} memory SET decay_score = told.score, forget_at = told.forget_at
        FROM unnest(%s::uuid[], %s::float8[], %s::timestamptz[]) told (id, score, forget_at)
        WHERE memory.id = told.id"""  # noqa: S608 - the tables' names are ours
    told: list[Any] = [[row.pk for row in rows], [row.decay_score for row in rows], [row.forget_at for row in rows]]
    with connection.cursor() as cursor:
        cursor.execute(statement, told)
