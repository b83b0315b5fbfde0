"""Episodes in the order in which they answer a question: by relevance, gently weighted as facts are.

In the place of confidence stands quality; an episode is as old as its last turn.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from memories.models import EndUser
from memories.pipeline import served_episodes
from memories.pipeline.asking import Question
from memories.pipeline.findings import EPISODE, Evidence, Finding
from memories.pipeline.lone_units import DAY, Place, best_first, today
from memories.pipeline.served_episodes import Served


class Ranked(NamedTuple):
    """One episode with its score, and what that consists of."""

    episode: Served
    place: Place


def rank(person: EndUser, episodes: list[Served], question: Question, *, now: datetime) -> list[Ranked]:
    """The person's `episodes`, best first; of equals the one that was given first."""
    if not episodes:
        return []
    day = today(now)
    places = best_first(
        served_episodes.units(person, episodes, question.space),
        question.queries,
        confidence=[one.quality for one in episodes],
        decay=[one.left for one in episodes],
        age_days=[(day - one.ended_at) // DAY for one in episodes],
    )
    return [Ranked(episodes[place.at], place) for place in places]


def shown(ranked: Sequence[Ranked]) -> list[Finding]:
    """As a search tells them, in the given order; the range is told by its first and its last turn."""
    return [_finding(one.episode, one.place) for one in ranked]


def _finding(episode: Served, place: Place) -> Finding:
    ends = [episode.first_number, episode.last_number]
    return Finding(
        kind=EPISODE,
        id=episode.id,
        text=episode.summary,
        score=place.score,
        score_parts=place.parts,
        created_at=episode.ended_at,
        session_id=episode.session_id,
        agent_id=episode.agent_id or None,
        turn_numbers=ends,
        evidence=[Evidence(episode.session_id, number, "") for number in ends],
    )
