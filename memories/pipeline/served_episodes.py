"""Which episodes may be served, in a statement written by hand: it stands before every reply of an agent."""

import uuid
from datetime import datetime
from typing import NamedTuple

from memories import conf
from memories.models import EmbeddingSpace, EndUser
from memories.pipeline import lone_units, rows
from memories.pipeline.findings import Filters
from memories.pipeline.lone_units import DAY, Seen, today
from memories.scoring.decay import Remembered, decay_score
from memories.scoring.ranking import Units
from memories.scoring.weighting import Weights

# EpisodeQuerySet's active(); what importance left from the start is below the gate for ever.
_SERVED = """
    SELECT e.id, e.session_id, e.first_number, e.last_number, e.summary, e.importance, e.quality,
        e.pinned OR e.binding, e.ended_at, greatest(e.created_at, e.last_recalled_at), e.content_hash, e.terms,
        s.external_id, s.agent_id,
        hashint8extended(v.id, v.xmin::text::bigint)
    FROM memories_episode e JOIN memories_session s ON s.id = e.session_id
    LEFT JOIN memories_episodevector v
        ON v.episode_id = e.id AND v.space_id = %(space)s AND v.text_digest = e.content_hash
    WHERE e.tenant_id = %(tenant)s AND e.end_user_id = %(person)s AND e.status = 'active'
        AND (e.expires_at IS NULL OR e.expires_at > %(now)s) AND e.importance > %(least)s
    ORDER BY e.ended_at DESC, e.id DESC
"""
_VECTORS = """
    SELECT v.episode_id, v.language, halfvec_send(v.vector) FROM memories_episodevector v
    JOIN memories_episode e ON e.id = v.episode_id AND e.content_hash = v.text_digest
    WHERE v.tenant_id = %s AND v.space_id = %s AND v.end_user_id = %s AND e.status = 'active'
"""


class Served(NamedTuple):
    """An episode with the caller's ids of its session; `stamp` is another one after every change of its vector, `left`
    what decay leaves of its importance today (rules.md, 7.1)."""

    id: uuid.UUID
    session: uuid.UUID
    first_number: int
    last_number: int
    summary: str
    importance: float
    quality: float
    stays: bool
    ended_at: datetime
    last_reinforced: datetime
    content_hash: bytes
    terms: bytes | None
    session_id: str
    agent_id: str
    stamp: int | None
    left: float = 0.0

    def fits(self, filters: Filters) -> bool:
        """Whether the filters of time, agent and session leave it; it took place when it ended."""
        return not (
            (filters.since and self.ended_at < filters.since)
            or (filters.until and self.ended_at >= filters.until)
            or filters.agent_id not in (None, self.agent_id)
            or filters.session_id not in (None, self.session_id)
        )


def served(person: EndUser, space: EmbeddingSpace | None, *, rules: conf.Rules, now: datetime) -> list[Served]:
    """All episodes that may be served, newest first; with stamps of their vectors of `space`."""
    given = {
        "tenant": person.tenant_id,
        "person": person.pk,
        "space": space.pk if space else None,
        "now": now,
        "least": rules.served_importance,
    }
    day = today(now)
    found = (_decayed(Served(*row), rules, day) for row in rows.fetched(_SERVED, given))
    return [one for one in found if one.left > rules.served_importance]


def units(person: EndUser, episodes: list[Served], space: EmbeddingSpace | None) -> Units:
    """What scoring needs of the episodes, which were read with the stamps of `space`."""

    def seen(space: EmbeddingSpace) -> Seen:
        return rows.fetched(_VECTORS, [person.tenant_id, space.pk, person.pk])

    stamp = [one.stamp for one in episodes]
    return lone_units.units(("episode", person.pk), episodes, space, stamp=stamp, seen=seen)


def weights(episodes: list[Served], *, now: datetime) -> Weights:
    """In the place of confidence stands quality; an episode is as old as its last turn."""
    day = today(now)
    return Weights.of((one.quality, one.left, float((day - one.ended_at) // DAY)) for one in episodes)


def _decayed(episode: Served, rules: conf.Rules, day: datetime) -> Served:
    if episode.stays:
        return episode._replace(left=episode.importance)
    return episode._replace(left=decay_score(Remembered(episode.importance, episode.last_reinforced), rules, now=day))
