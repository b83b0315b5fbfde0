"""How facts and episodes fade: what they were over time, from their revisions, and the curve of it."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from memories import conf
from memories.admin.decay_curve import LEARNED, MENTIONED, Curve, Phase, draw, with_recall
from memories.models import Episode, EpisodeStatus, Fact, FactRevision, Status
from memories.scoring.decay import Remembered

LIVE = (Status.ACTIVE, Status.PENDING)
_KEPT = ("pinned", "locked", "binding")


def curve_of(fact: Fact, revisions: Sequence[FactRevision], *, now: datetime) -> Curve:
    """The curve of a fact by its latest revisions, newest first. Of its recalls only the last is known."""
    rules = conf.rules(fact.tenant)
    phases = _phases(fact, list(reversed(revisions)))
    if fact.last_recalled_at:
        phases = with_recall(phases, fact.last_recalled_at)
    live = fact.status in LIVE
    return draw(phases, rules, now=now, below=rules.forget_below, forget_at=fact.forget_at, live=live)


def curve_of_episode(episode: Episode, *, now: datetime) -> Curve:
    """The curve of an episode, which has no revisions: as if it had always been what it is."""
    rules = conf.rules(episode.tenant)
    memory = Remembered(episode.importance, episode.created_at)
    phases = [Phase(episode.created_at, memory, episode.protected, LEARNED)]
    if episode.last_recalled_at:
        phases = with_recall(phases, episode.last_recalled_at)
    live = episode.status != EpisodeStatus.TRASHED
    below = rules.forget_episodes_below
    return draw(phases, rules, now=now, below=below, forget_at=episode.forget_at, live=live)


def _phases(fact: Fact, rows: Sequence[FactRevision]) -> list[Phase]:
    """Oldest first; before the first revision that is told it was what that one began from."""
    if not rows:
        memory = Remembered(fact.importance, fact.last_confirmed_at, fact.mentions, fact.category)
        return [Phase(fact.created_at, memory, fact.protected, LEARNED)]
    first = rows[0]
    made = [] if first.version == 1 else [_phase({**first.after, **first.before}, fact.created_at, LEARNED)]
    return made + [_phase(row.after, row.created_at, _cause(row)) for row in rows]


def _phase(state: dict[str, Any], start: datetime, cause: str) -> Phase:
    confirmed = datetime.fromisoformat(state["last_confirmed_at"])
    memory = Remembered(state["importance"], confirmed, state["mentions"], state["category"])
    return Phase(start, memory, any(state[name] for name in _KEPT), cause)


def _cause(row: FactRevision) -> str:
    if row.version == 1:
        return LEARNED
    return MENTIONED if "last_confirmed_at" in row.before else ""
