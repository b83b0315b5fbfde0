"""The episodes of a context: the newest, or those that answer the question best, told by their dates."""

from dataclasses import dataclass, field
from datetime import datetime

from memories import conf
from memories.models import EndUser
from memories.pipeline import found_episodes, served_episodes
from memories.pipeline.asking import Question
from memories.pipeline.found_episodes import Ranked
from memories.pipeline.lines import Line, episode_line
from memories.pipeline.open_window import Window
from memories.pipeline.served_episodes import Served


@dataclass(frozen=True)
class Told:
    """Lines in the order in which they claim room; ids of those beyond the limit; the texts of the lines."""

    lines: list[Line] = field(default_factory=list)
    beyond: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


def tell(
    person: EndUser, question: Question | None, window: Window, *, limit: int, rules: conf.Rules, now: datetime
) -> Told:
    """`limit` of the episodes that may be served, without those that the window shows as they were said."""
    served = served_episodes.served(person, question.space if question else None, rules=rules, now=now)
    unshown = [one for one in served if not _is_shown(one, window)]
    placed = _ranked(person, unshown, question, now=now) if question else [(one, None) for one in unshown]
    chosen, beyond = placed[:limit], placed[limit:]
    return Told(
        [_line(episode, ranked) for episode, ranked in chosen],
        [str(episode.id) for episode, _ in beyond],
        [episode.summary for episode, _ in chosen],
    )


def _is_shown(episode: Served, window: Window) -> bool:
    return window.covers(session=episode.session, first=episode.first_number, last=episode.last_number)


def _ranked(
    person: EndUser, episodes: list[Served], question: Question, *, now: datetime
) -> list[tuple[Served, Ranked | None]]:
    return [(one.episode, one) for one in found_episodes.rank(person, episodes, question, now=now)]


def _line(episode: Served, ranked: Ranked | None) -> Line:
    """Without a question it has no score: the newest come first."""
    parts = ranked.parts if ranked else {"confidence": episode.quality, "decay": episode.left}
    return episode_line(
        row_id=episode.id,
        summary=episode.summary,
        ended_at=episode.ended_at,
        score=ranked.score if ranked else None,
        score_parts=parts,
    )
