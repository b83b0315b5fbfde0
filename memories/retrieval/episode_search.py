"""Episodes that may be served (rules.md, 8.2), and their order for a query: by relevance, quality and decay.

An index has what orders them and where each was said. Summaries are read of those that are shown.
"""

import uuid
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memories import conf
from memories.db import binary_rows
from memories.db.row_versions import version_of_row, version_of_vector
from memories.models import EmbeddingSpace, EndUser, Episode
from memories.models.hand_written import condition, parameter
from memories.models.memories.episodes import EXTRACTIVE
from memories.models.memories.visibility import Conversations, served_episodes
from memories.retrieval import memory_index
from memories.retrieval.cache import Source, indexes
from memories.retrieval.evidence import Level
from memories.retrieval.hits import EPISODE, Evidence, Finding, SearchFilters
from memories.retrieval.memory_index import DAY, Memories, MemoryRanking, today
from memories.retrieval.outdated import Written
from memories.retrieval.prepared_query import PreparedQuery
from memories.retrieval.turn_index import Stretches
from memories.scoring.decay import DecayInput, decay_score
from memories.scoring.ranking import Units
from memories.scoring.weighting import Weights

Mask = NDArray[np.bool_]
# Up to so many episodes are read for each request, with their summaries. Of more an index is kept.
FEW, _EVERY = 100, 2**31 - 1
# Of each episode beside its arrays: its features, as objects of Python.
_WEIGHT = 1_400
_SHOWN = condition(Episode, served_episodes(least_importance=parameter("least"), now=parameter("now")), alias="e")
_COLUMNS = (
    "id", "session_id", "first_number", "last_number", "importance", "quality", "pinned", "binding", "ended_at",
    "created_at", "last_recalled_at", "content_hash", "terms", "extractor", "started_at",
)  # fmt: skip
# By hand, because an agent waits for it before every reply. Up to so many come with what changes with any of them.
_READ = f"""
    WITH served AS MATERIALIZED (
        SELECT e.id, e.session_id, e.first_number, e.last_number, e.importance, e.quality, e.pinned OR e.binding,
            e.ended_at, greatest(e.created_at, e.last_recalled_at), e.content_hash, s.external_id, s.agent_id,
            s.memory_of, e.extractor = %(extractive)s, e.started_at, {version_of_vector("v.")} AS vector,
            {version_of_row(_COLUMNS, "e.")} AS version
        FROM memories_episode e
        JOIN memories_session s ON s.tenant_id = %(tenant)s AND s.end_user_id = %(person)s AND s.id = e.session_id
        LEFT JOIN memories_episodevector v
            ON v.tenant_id = %(tenant)s AND v.episode_id = e.id AND v.space_id = coalesce(%(space)s::bigint, 0)
            AND v.text_digest = e.content_hash
        WHERE e.tenant_id = %(tenant)s AND e.end_user_id = %(person)s AND {_SHOWN}
    ), digest AS (
        SELECT count(*) AS count, bit_xor(
            hash_record_extended(ROW(id, version, external_id, agent_id, memory_of, vector), 0)
        ) AS hash FROM served
    )
    SELECT digest.*, SUMMARY, said.terms, served.* FROM digest
    LEFT JOIN served ON digest.count <= %(most)s
    LEFT JOIN LATERAL (
        SELECT summary, terms FROM memories_episode t WHERE t.tenant_id = %(tenant)s AND t.id = served.id EACH
    ) said ON TRUE
    ORDER BY served.ended_at DESC, served.id DESC
"""  # noqa: S608  (columns of our own models)
# OFFSET lets PostgreSQL look up each of the few, instead of reading all for them.
_FEW = _READ.replace("SUMMARY", "said.summary").replace("EACH", "OFFSET 0")
_ALL = _READ.replace("SUMMARY", "NULL").replace("EACH", "")
_SUMMARIES = """
    SELECT id, summary FROM memories_episode
    WHERE tenant_id = %s AND end_user_id = %s AND status = 'active' AND id = ANY(%s)
"""


class EpisodeFeatures(NamedTuple):
    """An episode without its summary, with the caller's ids of its session.

    `is_extractive`: its summary is sentences of its turns. `vector` and `version` change with its vector, and with
    itself. `left` is what decay leaves of its importance today (rules.md, 7.1).
    """

    id: uuid.UUID
    session: uuid.UUID
    first_number: int
    last_number: int
    importance: float
    quality: float
    stays: bool
    ended_at: datetime
    last_reinforced: datetime
    content_hash: bytes
    session_id: str
    agent_id: str
    memory_of: str
    is_extractive: bool
    started_at: datetime
    vector: int | None
    version: int
    terms: bytes | None
    left: float = 0.0


@dataclass(frozen=True, eq=False)
class EpisodeIndex:
    """Episodes, newest first; a place in `episodes` is a row of the arrays. `ended`: seconds since 1970.

    `summaries`: of few, which are kept for one request."""

    episodes: list[EpisodeFeatures]
    units: Units
    weights: Weights
    ended: NDArray[np.float64]
    summaries: dict[uuid.UUID, str] | None = None

    @cached_property
    def agents(self) -> list[tuple[str, str]]:
        return list(dict.fromkeys((one.agent_id, one.memory_of) for one in self.episodes))

    @cached_property
    def agent_of(self) -> NDArray[np.int32]:
        places = {agent: place for place, agent in enumerate(self.agents)}
        return np.array([places[one.agent_id, one.memory_of] for one in self.episodes], np.int32)

    @cached_property
    def extractive(self) -> NDArray[np.int64]:
        """Places of those whose summaries are sentences of their turns."""
        return np.flatnonzero([one.is_extractive for one in self.episodes])

    @cached_property
    def stretches(self) -> Stretches:
        """The turns of these."""
        some = [self.episodes[place] for place in self.extractive]
        ends = np.array([(one.first_number, one.last_number) for one in some], np.int32).reshape(-1, 2)
        return Stretches([one.session for one in some], ends[:, 0], ends[:, 1])

    @cached_property
    def of_sessions(self) -> dict[uuid.UUID, list[int]]:
        found: dict[uuid.UUID, list[int]] = {}
        for place, one in enumerate(self.episodes):
            found.setdefault(one.session, []).append(place)
        return found

    def seen(self, conversations: Conversations) -> Mask:
        """Which of them a viewer of these conversations sees. The time of an episode is its end."""
        return conversations.mask(self.agents, self.agent_of, self.ended)

    def fitting(self, filters: SearchFilters) -> Mask:
        """Which of them pass the filters of time, agent and session."""
        fits = np.ones(len(self), np.bool_)
        if filters.since:
            fits &= self.ended >= filters.since.timestamp()
        if filters.until:
            fits &= self.ended < filters.until.timestamp()
        for name, wanted in (("agent_id", filters.agent_id), ("session_id", filters.session_id)):
            if wanted is not None:
                fits &= np.array([getattr(one, name) == wanted for one in self.episodes], np.bool_)
        return fits

    def __len__(self) -> int:
        return len(self.episodes)


@dataclass(frozen=True, eq=False)
class _Episodes(Source[Any, EpisodeIndex]):
    """The episodes that may be served by a tenant's rules at a moment. `first`: a stamp that was read already."""

    person: EndUser
    space: EmbeddingSpace | None
    rules: conf.Rules
    now: datetime
    first: list[Any] = field(default_factory=list)
    kind = "memories"

    @property
    def key(self) -> tuple[Hashable, ...]:
        return ("episodes", self.person.pk, self.space.pk if self.space else None)

    def stamp(self, _known: Any) -> Any:
        return self.first.pop() if self.first else self.stamp_of(self.read(_FEW, FEW))

    def stamp_of(self, rows: list[tuple[Any, ...]]) -> Any:
        return rows[0][:2], self.rules, today(self.now)

    def make(self, _stamp: Any, _kept: EpisodeIndex | None, _seconds: float | None) -> EpisodeIndex:
        return self.index(self.read(_ALL, _EVERY))

    def weight(self, index: EpisodeIndex) -> int:
        return _WEIGHT * (1 + len(index))

    def index(self, rows: list[tuple[Any, ...]]) -> EpisodeIndex:
        """Of rows of _READ."""
        day, there = today(self.now), [row for row in rows if row[4]]
        decayed = [_decayed(EpisodeFeatures._make((*row[4:], row[3], 0.0)), self.rules, day) for row in there]
        episodes = [one for one in decayed if one.left > self.rules.served_importance]
        # Quality takes the place of confidence, and an episode is as old as its last turn.
        weights = Weights.of((one.quality, one.left, float((day - one.ended_at) // DAY)) for one in episodes)
        vectors = [one.vector for one in episodes]
        return EpisodeIndex(
            episodes,
            indexes.open(Memories("episode", self.person, episodes, self.space, vectors)),
            weights,
            np.array([one.ended_at.timestamp() for one in episodes], np.float64),
            {row[4]: row[2] for row in there} if len(there) <= FEW else None,
        )

    def read(self, statement: str, most: int) -> list[tuple[Any, ...]]:
        given = {
            "tenant": self.person.tenant_id,
            "person": self.person.pk,
            "space": self.space.pk if self.space else None,
            "now": self.now,
            "least": self.rules.served_importance,
            "extractive": EXTRACTIVE,
            "most": most,
        }
        return binary_rows.fetched(statement, given)


def open_index(person: EndUser, space: EmbeddingSpace | None, *, rules: conf.Rules, now: datetime) -> EpisodeIndex:
    """All episodes that may be served. Of many the index is kept while none of them, no vector and no session of theirs
    changes."""
    found = _Episodes(person, space, rules, now)
    rows = found.read(_FEW, FEW)
    if rows[0][0] <= FEW:
        return found.index(rows)
    found.first.append(found.stamp_of(rows))
    return indexes.open(found)


def _decayed(episode: EpisodeFeatures, rules: conf.Rules, day: datetime) -> EpisodeFeatures:
    if episode.stays:
        return episode._replace(left=episode.importance)
    return episode._replace(left=decay_score(DecayInput(episode.importance, episode.last_reinforced), rules, now=day))


class VisibleEpisode(NamedTuple):
    """An episode that is shown."""

    of: EpisodeFeatures
    summary: str

    @property
    def written(self) -> Written:
        """What is said in its turns is said again by those who said it."""
        return Written(self.summary, self.of.started_at)


@dataclass(frozen=True, eq=False)
class RankedEpisodes:
    """All episodes of an index with their scores for a query; a place is a position in the index."""

    index: EpisodeIndex
    ranking: MemoryRanking
    allowed: Mask

    def best(self, limit: int) -> list[int]:
        """Places of the best that are allowed, best first; ties keep their order."""
        return self.ranking.best(limit, allowed=self.allowed)

    @cached_property
    def levels(self) -> Sequence[Level]:
        """How strong each is as evidence."""
        return self.ranking.evidence(allowed=self.allowed).levels

    def hits(self, person: EndUser, limit: int) -> list[Finding]:
        """The best as a search returns them."""
        return [self._hit(place, episode) for place, episode in read(person, self.index, self.best(limit)).items()]

    def _hit(self, place: int, episode: VisibleEpisode) -> Finding:
        """Its first and last turn stand for the segment."""
        one = episode.of
        ends = [one.first_number, one.last_number]
        return Finding(
            kind=EPISODE,
            id=one.id,
            text=episode.summary,
            score=self.ranking.score(place),
            score_parts=self.ranking.parts(place),
            created_at=one.ended_at,
            session_id=one.session_id,
            agent_id=one.agent_id or None,
            turn_numbers=ends,
            evidence=[Evidence(one.session_id, number, "") for number in ends],
            written=episode.written,
            evidence_level=self.levels[place],
        )


def rank(index: EpisodeIndex, query: PreparedQuery, allowed: Mask) -> RankedEpisodes:
    """The order of those that are `allowed`."""
    ranking = memory_index.rank(index.units, index.weights, index.ended[:, None], query.queries)
    return RankedEpisodes(index, ranking, allowed)


def read(person: EndUser, index: EpisodeIndex, places: Sequence[int]) -> dict[int, VisibleEpisode]:
    """These with their summaries as they are stored, in this order, without those that were deleted meanwhile."""
    if not places:
        return {}
    ids = [index.episodes[place].id for place in places]
    stored = index.summaries
    if stored is None:
        stored = dict(binary_rows.fetched(_SUMMARIES, [person.tenant_id, person.pk, ids]))
    return {
        place: VisibleEpisode(index.episodes[place], stored[pk])
        for place, pk in zip(places, ids, strict=True)
        if pk in stored
    }
