"""Episodes that may be served (rules.md, 8.2), and their order for a query: by relevance, quality and decay."""

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import numpy as np

from memories import conf
from memories.db import binary_rows
from memories.db.row_versions import version_of_vector
from memories.models import EmbeddingSpace, EndUser, Episode
from memories.models.hand_written import condition, parameter
from memories.models.memories.episodes import EXTRACTIVE
from memories.models.memories.visibility import Conversations, served_episodes
from memories.retrieval import memory_index
from memories.retrieval.cache import indexes
from memories.retrieval.evidence import Level
from memories.retrieval.hits import EPISODE, Evidence, Finding, SearchFilters
from memories.retrieval.memory_index import DAY, Memories, MemoryRanking, today
from memories.retrieval.outdated import Written
from memories.retrieval.prepared_query import PreparedQuery
from memories.scoring.decay import Remembered, decay_score
from memories.scoring.weighting import Weights

# By hand, because an agent waits for it before every reply.
_SERVED = f"""
    SELECT e.id, e.session_id, e.first_number, e.last_number, e.summary, e.importance, e.quality,
        e.pinned OR e.binding, e.ended_at, greatest(e.created_at, e.last_recalled_at), e.content_hash, e.terms,
        s.external_id, s.agent_id, s.memory_of, e.extractor = %(extractive)s,
        e.started_at,
        {version_of_vector("v.")}
    FROM memories_episode e JOIN memories_session s ON s.tenant_id = %(tenant)s AND s.id = e.session_id
    LEFT JOIN memories_episodevector v
        ON v.tenant_id = %(tenant)s AND v.episode_id = e.id AND v.space_id = coalesce(%(space)s::bigint, 0)
        AND v.text_digest = e.content_hash
    WHERE e.tenant_id = %(tenant)s AND e.end_user_id = %(person)s
        AND {condition(Episode, served_episodes(least_importance=parameter("least"), now=parameter("now")), alias="e")}
    ORDER BY e.ended_at DESC, e.id DESC
"""  # noqa: S608  (columns of our own models)


class VisibleEpisode(NamedTuple):
    """An episode with the caller's ids of its session.

    `is_extractive`: its summary is sentences of its turns. `stamp` changes with its vector. `left` is what decay leaves
    of its importance today (rules.md, 7.1).
    """

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
    memory_of: str
    is_extractive: bool
    started_at: datetime
    stamp: int | None
    left: float = 0.0

    def is_in(self, conversations: Conversations) -> bool:
        """Whether a viewer of these conversations sees it. Its time is its end."""
        return conversations.include(self.agent_id, self.memory_of, sent_at=self.ended_at)

    @property
    def written(self) -> Written:
        """What is said in its turns is said again by those who said it."""
        return Written(self.summary, self.started_at)

    def fits(self, filters: SearchFilters) -> bool:
        """Whether it passes the filters of time, agent and session."""
        return not (
            (filters.since and self.ended_at < filters.since)
            or (filters.until and self.ended_at >= filters.until)
            or filters.agent_id not in (None, self.agent_id)
            or filters.session_id not in (None, self.session_id)
        )


def served(person: EndUser, space: EmbeddingSpace | None, *, rules: conf.Rules, now: datetime) -> list[VisibleEpisode]:
    """All episodes that may be served, newest first, with the stamps of their vectors in `space`."""
    parameters = {
        "tenant": person.tenant_id,
        "person": person.pk,
        "space": space.pk if space else None,
        "now": now,
        "least": rules.served_importance,
        "extractive": EXTRACTIVE,
    }
    day = today(now)
    rows = (_decayed(VisibleEpisode(*row), rules, day) for row in binary_rows.fetched(_SERVED, parameters))
    return [episode for episode in rows if episode.left > rules.served_importance]


def _decayed(episode: VisibleEpisode, rules: conf.Rules, day: datetime) -> VisibleEpisode:
    if episode.stays:
        return episode._replace(left=episode.importance)
    return episode._replace(left=decay_score(Remembered(episode.importance, episode.last_reinforced), rules, now=day))


class RankedEpisode(NamedTuple):
    """An episode with its place in a ranking."""

    episode: VisibleEpisode
    place: int
    ranking: MemoryRanking
    level: Level

    @property
    def score(self) -> float:
        return self.ranking.score(self.place)

    @property
    def parts(self) -> dict[str, float]:
        return self.ranking.parts(self.place)

    def hit(self) -> Finding:
        """As a search returns it; its first and last turn stand for the segment."""
        episode = self.episode
        ends = [episode.first_number, episode.last_number]
        return Finding(
            kind=EPISODE,
            id=episode.id,
            text=episode.summary,
            score=self.score,
            score_parts=self.parts,
            created_at=episode.ended_at,
            session_id=episode.session_id,
            agent_id=episode.agent_id or None,
            turn_numbers=ends,
            evidence=[Evidence(episode.session_id, number, "") for number in ends],
            written=episode.written,
            evidence_level=self.level,
        )


def rank(
    person: EndUser, episodes: Sequence[VisibleEpisode], query: PreparedQuery, *, now: datetime
) -> list[RankedEpisode]:
    """Episodes that served() read with the query's space, best first; ties keep their order."""
    if not episodes:
        return []
    stamp = [episode.stamp for episode in episodes]
    units = indexes.open(Memories("episode", person, episodes, query.space, stamp))
    day = today(now)
    # Quality takes the place of confidence, and an episode is as old as its last turn.
    weights = Weights.of(
        (episode.quality, episode.left, float((day - episode.ended_at) // DAY)) for episode in episodes
    )
    ended = np.array([[episode.ended_at.timestamp()] for episode in episodes], np.float64)
    ranking = memory_index.rank(units, weights, ended, query.queries)
    levels = ranking.evidence().levels
    return [RankedEpisode(episodes[place], place, ranking, levels[place]) for place in ranking.best()]
