"""Refreshes the stored decay scores, which change with time, and the dates, which change with a tenant's numbers.

The SQL computes what refresh_decay() of facts and episodes does for one row. A tenant may have a million of them, and
no row leaves the database. Tests compare the two.
"""

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from django.db import connection

from memories import conf
from memories.models import EndUser, Tenant
from memories.scoring.decay import EPISODE

# So many people a step: some thousand memories.
STEP = 50
# A stored score this close to the true one is kept, so that each is written every few days instead of every night.
DRIFT = 0.02
# Table, moment of the last mention, what never decays, number of mentions, the category that decides the half-life. An
# episode counts from its making.
_FACT = (
    "memories_fact",
    "last_confirmed_at",
    "pinned OR binding OR locked OR key LIKE 'profile.%%'",
    "mentions",
    "memory.category",
)
_EPISODE = ("memories_episode", "created_at", "pinned OR binding", "1", f"'{EPISODE}'")
_REFRESH = """
    WITH own AS (SELECT * FROM unnest(%(categories)s::text[], %(own)s::float8[]) own (category, days)),
    changed AS (
        SELECT memory.id, faded.score, faded.date
        FROM {table} memory LEFT JOIN own ON own.category = {category}
        CROSS JOIN LATERAL (SELECT
            greatest({mentioned}, last_recalled_at) AS last,
            CASE WHEN {kept} THEN NULL WHEN own.category IS NULL THEN %(days)s ELSE own.days END
                * (1 + ln(greatest(1, {mentions})::float8) / ln(2::float8)) AS halving
        ) since
        CROSS JOIN LATERAL (SELECT
            extract(epoch FROM %(now)s - since.last)::float8 / 86400 - %(grace)s AS fading_days,
            %(grace)s + halving / ln(2::float8) * ln(greatest(importance, %(below)s::float8) / %(below)s::float8)
                AS lasts_days
        ) ages
        CROSS JOIN LATERAL (SELECT
            -- PostgreSQL takes it for an error when next to nothing is left.
            CASE WHEN halving IS NULL THEN importance WHEN importance < 1e-9 THEN 0
                ELSE importance * power(2::float8, -least(greatest(0, fading_days) / halving, 500)) END AS score,
            CASE WHEN lasts_days < extract(epoch FROM %(end)s - since.last)::float8 / 86400
                THEN greatest(since.last + lasts_days * interval '1 day', created_at + %(grace)s * interval '1 day')
            END AS date
        ) faded
        WHERE memory.tenant_id = %(tenant)s AND memory.end_user_id = ANY(%(people)s) AND memory.status = 'active' AND (
            abs(faded.score - decay_score) > %(drift)s
            OR (faded.date IS NULL) <> (forget_at IS NULL)
            OR abs(extract(epoch FROM faded.date - forget_at)) > 1
        )
        -- Whoever recalls or edits one meanwhile sets both: do not wait for them.
        FOR NO KEY UPDATE OF memory SKIP LOCKED
    )
    UPDATE {table} memory SET decay_score = changed.score, forget_at = changed.date
    FROM changed WHERE memory.tenant_id = %(tenant)s AND memory.id = changed.id
"""
_STATEMENTS = tuple(
    _REFRESH.format(table=table, mentioned=mentioned, kept=kept, mentions=mentions, category=category)
    for table, mentioned, kept, mentions, category in (_FACT, _EPISODE)
)


def people_after(tenant: Tenant, reached: uuid.UUID | None) -> list[uuid.UUID]:
    """The next people of the tenant in the order of their ids, without those under restriction."""
    people = EndUser.objects.filter(tenant=tenant, restricted_at=None)
    if reached:
        people = people.filter(pk__gt=reached)
    return list(people.order_by("pk").values_list("pk", flat=True)[:STEP])


def refresh(tenant: Tenant, people: Sequence[uuid.UUID], *, rules: conf.Rules, now: datetime) -> int:
    """Write the scores and dates of these people's active memories that have changed; how many.

    Neither version nor updated_at changes, and there is no revision.
    """
    named: dict[str, Any] = {
        "tenant": tenant.pk,
        "people": list(people),
        "categories": list(rules.half_lives),
        "own": list(rules.half_lives.values()),
        "days": rules.half_life_days,
        "grace": rules.grace_days,
        "now": now,
        "end": datetime.max.replace(tzinfo=UTC),
        "drift": DRIFT,
    }
    written = 0
    with connection.cursor() as cursor:
        for statement, below in zip(_STATEMENTS, (rules.forget_below, rules.forget_episodes_below), strict=True):
            # Never forgotten: a threshold of 0 has no logarithm.
            cursor.execute(statement, {**named, "below": below or None})
            written += cursor.rowcount
    return written
