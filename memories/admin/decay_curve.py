"""How much of a memory was left at a time and will be, drawn as a curve; places are percents of the plot. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from memories.scoring.decay import Numbers, Remembered, decay_score

LEARNED, MENTIONED, RECALLED, FORGOTTEN = "learned", "mentioned", "recalled", "forgotten"
STEPS = 72
MOST_DOTS = 24
# Of a memory that never fades so much is shown of the time to come.
AHEAD = timedelta(days=90)
_ROOM = 1.15


@dataclass(frozen=True)
class Phase:
    """What a memory was from `start` on; `kept`: it does not fade meanwhile. `cause`: what began it, if it is told."""

    start: datetime
    memory: Remembered
    kept: bool
    cause: str = ""


@dataclass(frozen=True)
class Dot:
    """Something that happened to the memory, and how much of it was left then (0..1)."""

    cause: str
    moment: datetime
    score: float
    left: str
    top: str


@dataclass(frozen=True)
class Curve:
    """Two SVG paths in a box of 100 × 100, the dots, and where today, the threshold and the end stand.

    `left`: how much of it there is now (0..1).
    """

    left: float
    past: str
    ahead: str
    dots: Sequence[Dot]
    start: datetime
    today: str
    threshold: str
    end: Dot | None


def draw(
    phases: Sequence[Phase], numbers: Numbers, *, now: datetime, below: float, forget_at: datetime | None, live: bool
) -> Curve:
    """The curve of these phases, oldest first, to `forget_at`, or some time ahead; one that is not live ends now."""
    start = min(phases[0].start, now - timedelta(hours=1))
    scale = _Scale(start, _end_of(start, now, forget_at, live=live), _highest(phases, below))
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
        today=_percent(scale.across(now)),
        threshold=_percent(scale.down(below)),
        end=scale.dot(FORGOTTEN, forget_at, below) if forget_at and falls else None,
    )


def with_recall(phases: Sequence[Phase], moment: datetime) -> list[Phase]:
    """The phases with a recall at this moment, which reinforces what follows it."""
    before = [phase for phase in phases if phase.start <= moment]
    after = [_reinforced(phase, moment) for phase in phases if phase.start > moment]
    again = [replace(_reinforced(before[-1], moment), start=moment, cause=RECALLED)] if before else []
    return [*before, *again, *after]


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


def _end_of(start: datetime, now: datetime, forget_at: datetime | None, *, live: bool) -> datetime:
    if not live:
        return now
    if forget_at is None:
        return now + max(AHEAD, (now - start) / 2)
    return max(forget_at, now) + (max(forget_at, now) - start) / 16


def _highest(phases: Sequence[Phase], below: float) -> float:
    """The score at the top of the plot: some room above the highest of all."""
    return max(0.01, below * 2, *(phase.memory.importance for phase in phases)) * _ROOM


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
    """What is left at this moment; where a phase begins, first what the one before had come to."""
    begun = [phase for phase in phases if phase.start <= at] or [phases[0]]
    meant = begun[-2:] if begun[-1].start == at else begun[-1:]
    return [phase.memory.importance if phase.kept else decay_score(phase.memory, numbers, now=at) for phase in meant]


def _reinforced(phase: Phase, moment: datetime) -> Phase:
    memory = phase.memory
    return replace(phase, memory=memory._replace(last_reinforced=max(memory.last_reinforced, moment)))


def _percent(value: float) -> str:
    # For a style attribute: never a decimal comma.
    return f"{value:.2f}%"
