"""The episodes of a context: the newest, or those that answer the question best, told by their dates."""

import uuid
from dataclasses import dataclass, field
from datetime import datetime

from memories import conf
from memories.models import EndUser
from memories.pipeline import found_episodes, served_episodes
from memories.pipeline.asking import Question
from memories.pipeline.lines import Line, episode_line
from memories.pipeline.open_window import Window
from memories.pipeline.served_episodes import Served


@dataclass(frozen=True)
class Told:
    """Lines in the order in which they claim room; ids of those beyond the limit; the texts of the lines."""

    lines: list[Line] = field(default_factory=list)
    beyond: list[uuid.UUID] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


def tell(
    person: EndUser, question: Question | None, window: Window, *, limit: int, rules: conf.Rules, now: datetime
) -> Told:
    """`limit` of the episodes that may be served, without those that the window shows as they were said."""
    served = served_episodes.served(person, question.space if question else None, rules=rules, now=now)
    unshown = [one for one in served if not _is_shown(one, window)]
    told = _ranked(person, unshown, question, now=now) if question else [(one, _newest(one)) for one in unshown]
    lines = [line for _, line in told]
    return Told(lines[:limit], [line.id for line in lines[limit:]], [one.summary for one, _ in told[:limit]])


def _is_shown(episode: Served, window: Window) -> bool:
    return window.covers(session=episode.session, first=episode.first_number, last=episode.last_number)


def _ranked(person: EndUser, episodes: list[Served], question: Question, *, now: datetime) -> list[tuple[Served, Line]]:
    found = found_episodes.rank(person, episodes, question, now=now)
    return [(one.episode, _line(one.episode, one.place.score, one.place.parts)) for one in found]


def _newest(episode: Served) -> Line:
    return _line(episode, None, {"confidence": episode.quality, "decay": episode.left})


def _line(episode: Served, score: float | None, parts: dict[str, float]) -> Line:
    return episode_line(
        row_id=episode.id, summary=episode.summary, ended_at=episode.ended_at, score=score, score_parts=parts
    )
