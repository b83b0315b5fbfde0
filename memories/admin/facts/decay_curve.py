"""The decay curve of a fact or an episode: its strength over time, from its revisions, and how it will fade.

Positions are percents of the plot.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from memories import conf
from memories.models import Episode, EpisodeStatus, Fact, FactRevision, Status
from memories.profiles import is_field_key
from memories.scoring.decay import DecayInput, Numbers, decay_score

LEARNED, MENTIONED, RECALLED, FORGOTTEN = "learned", "mentioned", "recalled", "forgotten"
STEPS = 72
MOST_DOTS = 24
# How much of the future is shown of a memory that never fades.
AHEAD = timedelta(days=90)
# The top of the plot, as a multiple of the highest score.
_MARGIN = 1.15


@dataclass(frozen=True)
class Phase:
    """What a memory was from `start` on; `kept`: it does not fade meanwhile. `cause`: what began it, for its dot."""

    start: datetime
    memory: DecayInput
    kept: bool
    cause: str = ""


@dataclass(frozen=True)
class Dot:
    """An event in the life of the memory, and its strength at that time (0..1)."""

    cause: str
    moment: datetime
    score: float
    left: str
    top: str


@dataclass(frozen=True)
class Curve:
    """Two SVG paths in a box of 100 × 100, the dots, and the positions of today, the threshold and the end.

    `left`: the strength now (0..1). `until`: where the plot ends; None if that is today.
    """

    left: float
    past: str
    ahead: str
    dots: Sequence[Dot]
    start: datetime
    until: datetime | None
    today: str
    threshold: str
    end: Dot | None


@dataclass(frozen=True)
class _Scale:
    start: datetime
    end: datetime
    highest: float

    def across(self, moment: datetime) -> float:
        return (moment - self.start) / (self.end - self.start) * 100

    def down(self, score: float) -> float:
        return 100 - score / self.highest * 100

    def path(self, points: Iterable[tuple[datetime, float]]) -> str:
        places = [f"{self.across(moment):.2f},{self.down(score):.2f}" for moment, score in points]
        return f"M{' L'.join(places)}" if places else ""

    def dot(self, cause: str, moment: datetime, score: float) -> Dot:
        return Dot(cause, moment, score, _percent(self.across(moment)), _percent(self.down(score)))


def _percent(value: float) -> str:
    # For a style attribute: never a decimal comma.
    return f"{value:.2f}%"


def curve_of(fact: Fact, revisions: Sequence[FactRevision], *, now: datetime) -> Curve:
    """The curve of a fact by its latest revisions, newest first. Of its recalls only the last one is stored."""
    rules = conf.rules(fact.tenant)
    phases = _phases(fact, revisions[::-1])
    if fact.last_recalled_at:
        phases = with_recall(phases, fact.last_recalled_at)
    live = fact.status in Status.LIVE
    return draw(phases, rules, now=now, below=rules.forget_below, forget_at=fact.forget_at, live=live)


def curve_of_episode(episode: Episode, *, now: datetime) -> Curve:
    """The curve of an episode, which has no revisions: as if it had always been what it is."""
    rules = conf.rules(episode.tenant)
    memory = DecayInput(episode.importance, episode.created_at)
    phases = [Phase(episode.created_at, memory, episode.protected, LEARNED)]
    if episode.last_recalled_at:
        phases = with_recall(phases, episode.last_recalled_at)
    live = episode.status != EpisodeStatus.TRASHED
    below = rules.forget_episodes_below
    return draw(phases, rules, now=now, below=below, forget_at=episode.forget_at, live=live)


def _phases(fact: Fact, rows: Sequence[FactRevision]) -> list[Phase]:
    """One for each revision, oldest first. Before the first of them the fact was what that revision changed."""
    if not rows:
        memory = DecayInput(fact.importance, fact.last_confirmed_at, fact.mentions, fact.category)
        return [Phase(fact.created_at, memory, fact.protected or fact.is_of_profile, LEARNED)]
    first = rows[0]
    phases = [] if first.version == 1 else [_phase({**first.after, **first.before}, fact.created_at, LEARNED)]
    for row in rows:
        cause = MENTIONED if "last_confirmed_at" in row.before else ""
        phases.append(_phase(row.after, row.created_at, LEARNED if row.version == 1 else cause))
    return phases


def _phase(state: dict[str, Any], start: datetime, cause: str) -> Phase:
    confirmed = datetime.fromisoformat(state["last_confirmed_at"])
    memory = DecayInput(state["importance"], confirmed, state["mentions"], state["category"])
    kept = is_field_key(state["key"]) or any(state[name] for name in ("pinned", "locked", "binding"))
    return Phase(start, memory, kept, cause)


def with_recall(phases: Sequence[Phase], moment: datetime) -> list[Phase]:
    """The phases with a recall at this moment, which reinforces what follows it."""
    before = [phase for phase in phases if phase.start <= moment]
    after = [_reinforced(phase, moment) for phase in phases if phase.start > moment]
    again = [replace(_reinforced(before[-1], moment), start=moment, cause=RECALLED)] if before else []
    return [*before, *again, *after]


def _reinforced(phase: Phase, moment: datetime) -> Phase:
    memory = phase.memory
    return replace(phase, memory=memory._replace(last_reinforced=max(memory.last_reinforced, moment)))


def draw(
    phases: Sequence[Phase], numbers: Numbers, *, now: datetime, below: float, forget_at: datetime | None, live: bool
) -> Curve:
    """The curve of these phases, oldest first. It ends at `forget_at`, else some time ahead; now if it is not live."""
    start = min(phases[0].start, now - timedelta(hours=1))
    highest = max(0.01, below * 2, *(phase.memory.importance for phase in phases))
    scale = _Scale(start, _end_of(start, now, forget_at, live=live), highest * _MARGIN)
    moments = _moments(phases, numbers, scale, now=now, forget_at=forget_at)
    points = [(at, score) for at in moments for score in _scores(phases, numbers, at)]
    falls = forget_at is not None and live and forget_at > now
    last = forget_at if forget_at and falls else scale.end
    return Curve(
        left=_scores(phases, numbers, now)[-1],
        past=scale.path(point for point in points if point[0] <= now),
        ahead=scale.path(point for point in points if now <= point[0] <= last) if live else "",
        dots=[
            scale.dot(phase.cause, phase.start, _scores(phases, numbers, phase.start)[-1])
            for phase in phases
            if phase.cause
        ][-MOST_DOTS:],
        start=start,
        until=scale.end if scale.end > now else None,
        today=_percent(scale.across(now)),
        threshold=_percent(scale.down(below)),
        end=scale.dot(FORGOTTEN, forget_at, below) if forget_at and falls else None,
    )


def _end_of(start: datetime, now: datetime, forget_at: datetime | None, *, live: bool) -> datetime:
    if not live:
        return now
    if forget_at is None:
        return now + max(AHEAD, (now - start) / 2)
    return max(forget_at, now) + (max(forget_at, now) - start) / 16


def _moments(
    phases: Sequence[Phase], numbers: Numbers, scale: _Scale, *, now: datetime, forget_at: datetime | None
) -> list[datetime]:
    """Where the curve is computed: evenly, and wherever it bends."""
    grace = timedelta(days=numbers.grace_days)
    even = [scale.start + (scale.end - scale.start) * step / STEPS for step in range(STEPS + 1)]
    bends = [phase.start for phase in phases] + [phase.memory.last_reinforced + grace for phase in phases]
    wanted = {*even, *bends, now, *([forget_at] if forget_at else [])}
    return sorted(moment for moment in wanted if scale.start <= moment <= scale.end)


def _scores(phases: Sequence[Phase], numbers: Numbers, at: datetime) -> list[float]:
    """The score at this moment; where a phase begins, first the score at the end of the phase before it."""
    begun = [phase for phase in phases if phase.start <= at] or [phases[0]]
    meant = begun[-2:] if begun[-1].start == at else begun[-1:]
    return [phase.memory.importance if phase.kept else decay_score(phase.memory, numbers, now=at) for phase in meant]
