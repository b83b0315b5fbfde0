"""Episodes in the order in which they answer a question: by relevance, gently weighted as facts are."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from memories.models import EndUser
from memories.pipeline import lone_units, served_episodes
from memories.pipeline.asking import Question
from memories.pipeline.findings import EPISODE, Evidence, Finding
from memories.pipeline.lone_units import Ranking
from memories.pipeline.served_episodes import Served


class Ranked(NamedTuple):
    """One episode with where it came."""

    episode: Served
    place: int
    ranking: Ranking

    @property
    def score(self) -> float:
        return self.ranking.score(self.place)

    @property
    def parts(self) -> dict[str, float]:
        """Written out for the few that are shown."""
        return self.ranking.parts(self.place)


def rank(person: EndUser, episodes: list[Served], question: Question, *, now: datetime) -> list[Ranked]:
    """The person's `episodes`, best first; of equals the one that was given first."""
    if not episodes:
        return []
    units = served_episodes.units(person, episodes, question.space)
    ranking = lone_units.rank(units, served_episodes.weights(episodes, now=now), question.queries)
    return [Ranked(episodes[place], place, ranking) for place in ranking.best()]


def shown(ranked: Sequence[Ranked]) -> list[Finding]:
    """As a search tells them, in the given order; the range is told by its first and its last turn."""
    return [_finding(one) for one in ranked]


def _finding(ranked: Ranked) -> Finding:
    episode = ranked.episode
    ends = [episode.first_number, episode.last_number]
    return Finding(
        kind=EPISODE,
        id=episode.id,
        text=episode.summary,
        score=ranked.score,
        score_parts=ranked.parts,
        created_at=episode.ended_at,
        session_id=episode.session_id,
        agent_id=episode.agent_id or None,
        turn_numbers=ends,
        evidence=[Evidence(episode.session_id, number, "") for number in ends],
    )
