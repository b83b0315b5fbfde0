"""The episodes of a context: the newest, or those that answer the question best, told by their dates."""

import uuid
from dataclasses import dataclass, field
from datetime import datetime

from memories import conf
from memories.models import EndUser
from memories.pipeline import found_episodes, served_episodes
from memories.pipeline.asking import Question
from memories.pipeline.lines import Line, episode_line
from memories.pipeline.lone_units import today
from memories.pipeline.open_window import Window
from memories.pipeline.served_episodes import Served


@dataclass(frozen=True)
class Told:
    """Lines in the order in which they claim room, and the ids of those beyond the limit."""

    lines: list[Line] = field(default_factory=list)
    beyond: list[uuid.UUID] = field(default_factory=list)


def tell(
    person: EndUser, question: Question | None, window: Window, *, limit: int, rules: conf.Rules, now: datetime
) -> Told:
    """`limit` of the episodes that may be served, without those that the window shows as they were said."""
    served = served_episodes.served(person, question.space if question else None, rules=rules, now=now)
    unshown = [one for one in served if not _is_shown(one, window)]
    lines = _ranked(person, unshown, question, now=now) if question else _newest(unshown, now=now)
    return Told(lines[:limit], [line.id for line in lines[limit:]])


def _is_shown(episode: Served, window: Window) -> bool:
    return window.covers(session=episode.session, first=episode.first_number, last=episode.last_number)


def _ranked(person: EndUser, episodes: list[Served], question: Question, *, now: datetime) -> list[Line]:
    found = found_episodes.rank(person, episodes, question, now=now)
    return [_line(one.episode, one.place.score, one.place.parts) for one in found]


def _newest(episodes: list[Served], *, now: datetime) -> list[Line]:
    day = today(now)
    return [
        _line(one, None, {"confidence": one.quality, "decay": served_episodes.decayed(one, day)}) for one in episodes
    ]


def _line(episode: Served, score: float | None, parts: dict[str, float]) -> Line:
    return episode_line(
        row_id=episode.id, summary=episode.summary, ended_at=episode.ended_at, score=score, score_parts=parts
    )
