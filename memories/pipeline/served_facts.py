"""Which facts may be served to who asks, in a statement written by hand: it stands before every reply of an agent.

FactQuerySet says the same for everybody else; tests hold the one against the other.
"""

import uuid
from collections.abc import Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any, NamedTuple

from memories import conf
from memories.models import EmbeddingSpace, EndUser
from memories.pipeline import fact_units, rows
from memories.pipeline.fact_units import FactStore, Measured
from memories.pipeline.lines import FactText
from memories.pipeline.lone_units import CAPACITY, IDLE_SECONDS, today
from memories.pipeline.shelf import StampedShelf

# The words of so many facts come with them; of more, those of the few that are told are read by a second statement.
FEW = 100
# What both parts of Written are made of; the terms, which are Measured's last, nobody asks it for.
_WEIGHED = Measured._fields[:-1]
_WRITTEN = (*_WEIGHED, *(name for name in FactText._fields if name not in _WEIGHED))
_text_of = itemgetter(*(_WRITTEN.index(name) for name in FactText._fields))
# FactQuerySet's active() and visible_to().
_GATES = """
    status = 'active' AND (expires_at IS NULL OR expires_at > %(now)s) AND confidence >= %(least)s
    AND (agent_id = '' OR agent_id = %(agent)s OR scope <> 'private')
    AND (allowed_users = '{}' OR allowed_users && (ARRAY[%(user)s]::varchar[] || ARRAY(
        SELECT external_id FROM memories_enduser WHERE id = %(person)s OR merged_into_id = %(person)s
    )))
    AND (allowed_roles = '{}' OR allowed_roles && %(roles)s::varchar[])
"""
# The person's own, and its public_beside().
_SERVED = f"""
    SELECT NAMES FROM memories_fact
    WHERE tenant_id = %(tenant)s AND end_user_id = %(person)s AND {_GATES}
    UNION ALL
    SELECT NAMES FROM memories_fact
    WHERE tenant_id = %(tenant)s AND scope = 'public' AND end_user_id <> %(person)s AND {_GATES}
        AND (SELECT p.restricted_at IS NULL AND p.serve FROM memories_enduser p WHERE p.id = end_user_id)
"""  # noqa: S608  (columns of our own models)
_NEWEST_FIRST = "ORDER BY created_at DESC, id DESC"
_MEASURED = _SERVED.replace("NAMES", ", ".join(Measured._fields)) + _NEWEST_FIRST
# A row that is written anew is another version in another place.
_VERSIONS = "bit_xor(hashtidextended(ctid, xmin::text::bigint))"
_STAMP = f"""
    WITH served AS MATERIALIZED ({_SERVED.replace("NAMES", "id, end_user_id, ctid, xmin")})
    SELECT (SELECT count(*) FROM served), (SELECT {_VERSIONS} FROM served), (
        SELECT {_VERSIONS} FROM memories_factvector
        WHERE tenant_id = %(tenant)s AND space_id = %(space)s AND end_user_id = %(person)s
    ), (
        SELECT {_VERSIONS} FROM memories_factvector
        WHERE space_id = %(space)s AND fact_id IN (SELECT id FROM served WHERE end_user_id <> %(person)s)
    )
"""  # noqa: S608  (columns of our own models)
_PLACED = ("created_at", "id", "category", "trust", "confidence")
_place_of = itemgetter(*(_WRITTEN.index(name) for name in _PLACED))
_WITH_WORDS = f"""
    SELECT {", ".join(name if name in _PLACED else f"CASE WHEN few THEN {name} END" for name in _WRITTEN)}
    FROM (
        SELECT *, count(*) OVER () <= %(few)s AS few FROM ({_SERVED.replace("NAMES", ", ".join(_WRITTEN))}) each
    ) counted
    {_NEWEST_FIRST}
"""  # noqa: S608  (columns of our own models)
_TEXTS = f"""
    SELECT {", ".join(_WRITTEN)} FROM memories_fact
    WHERE tenant_id = %(tenant)s AND (end_user_id = %(person)s OR scope = 'public') AND id = ANY(%(ids)s)
"""  # noqa: S608  (columns of our own models)


class Asker(NamedTuple):
    """For whom facts are told; an `agent_id` of "" means none."""

    user_id: str
    agent_id: str = ""
    roles: Sequence[str] = ()


class Written(NamedTuple):
    """A fact with its words, and what it is weighed by (without terms)."""

    fact: Measured
    text: FactText


class Served(NamedTuple):
    """As much of a fact as puts it in its place without a question; `row` where they are FEW, for written_of()."""

    created_at: datetime
    id: uuid.UUID
    category: str
    trust: str
    confidence: float
    row: Sequence[Any] | None


_shelf: StampedShelf[FactStore] = StampedShelf(
    capacity=CAPACITY, idle_seconds=IDLE_SECONDS, weigh=lambda store: 1 + len(store)
)


def served(person: EndUser, asker: Asker, *, rules: conf.Rules, now: datetime) -> list[Served]:
    """All facts that may be served, newest first: the person's own, and public ones of the tenant."""
    found = _read(_WITH_WORDS, person, asker, rules=rules, now=now)
    few = len(found) <= FEW
    return [Served._make((*_place_of(row), row if few else None)) for row in found]


def open_store(
    person: EndUser, asker: Asker, space: EmbeddingSpace | None, *, rules: conf.Rules, now: datetime
) -> FactStore:
    """The same with all that a question ranks them by; kept in memory while none of them and no vector changed."""
    key = (person.pk, *asker._replace(roles=tuple(asker.roles)), space.pk if space else None)
    day = today(now)
    # Before the facts: what changes in between shows at the next look.
    [seen] = _read(_STAMP, person, asker, rules=rules, now=now, space=space.pk if space else None)

    def made() -> FactStore:
        facts = measured(person, asker, rules=rules, now=now)
        return fact_units.store(person, facts, space, stamp=seen[2:], rules=rules, day=day)

    return _shelf.get_or_make(key, (seen, rules, day), made)


def measured(person: EndUser, asker: Asker, *, rules: conf.Rules, now: datetime) -> list[Measured]:
    """As they are stored."""
    return [Measured(*row) for row in _read(_MEASURED, person, asker, rules=rules, now=now)]


def written(person: EndUser, ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, Written]:
    """These facts that were served as they are stored now; one that was deleted meanwhile is not there."""
    named = {"tenant": person.tenant_id, "person": person.pk, "ids": list(ids)}
    facts = [written_of(row) for row in rows.fetched(_TEXTS, named)] if ids else []
    return {one.fact.id: one for one in facts}


def _read(
    statement: str, person: EndUser, asker: Asker, *, rules: conf.Rules, now: datetime, **more: Any
) -> list[tuple[Any, ...]]:
    given = {
        "tenant": person.tenant_id,
        "person": person.pk,
        "now": now,
        "least": rules.served_confidence,
        "agent": asker.agent_id,
        "user": asker.user_id,
        "roles": list(asker.roles),
        "few": FEW,
        **more,
    }
    return rows.fetched(statement, given)


def written_of(row: Sequence[Any]) -> Written:
    """The fact of a row: most of those that are read are not told."""
    return Written(Measured._make((*row[: len(_WEIGHED)], None)), FactText._make(_text_of(row)))
