"""Charts as numbers for a template: stacked columns of days, drawn by inline SVG; pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

# Of the drawing: each day is so wide, its column a little less, and the whole is so high.
DAY, COLUMN, HEIGHT = 10.0, 7.0, 100.0
TICKS = 5
# Every how many days one is named below the chart.
NAMED = 5


@dataclass(frozen=True)
class Series:
    """One colour of the columns; `style` is the last part of its CSS class, `label` what people read."""

    style: str
    label: Any


@dataclass(frozen=True)
class Bar:
    """One colour of one day. Texts, so that no locale writes them with a comma."""

    style: str
    x: str
    y: str
    width: str
    height: str


@dataclass(frozen=True)
class Column:
    """One day: its bars from below, what they are worth in the order of the series, and whether its name is shown."""

    day: date
    x: str
    values: tuple[int, ...]
    bars: tuple[Bar, ...]
    is_named: bool


@dataclass(frozen=True)
class Tick:
    """A line across; `y` from the top, in parts of a hundred."""

    y: str
    label: str


@dataclass(frozen=True)
class Chart:
    """Columns of days; `totals` are those of the series over all days, `width` that of the drawing."""

    series: tuple[Series, ...]
    columns: tuple[Column, ...]
    ticks: tuple[Tick, ...]
    totals: tuple[int, ...]
    width: str

    @property
    def is_empty(self) -> bool:
        return not any(self.totals)

    @property
    def legend(self) -> list[tuple[Series, int]]:
        return list(zip(self.series, self.totals, strict=True))


def stacked(days: Sequence[date], series: Sequence[Series], values: Mapping[date, Sequence[int]]) -> Chart:
    """Columns for the days, in which the series stand on one another; a day without values has an empty one."""
    nothing = (0,) * len(series)
    told = {day: tuple(values.get(day, nothing)) for day in days}
    step = _step(max(map(sum, told.values()), default=0))
    top = step * max(1, math.ceil(max(map(sum, told.values()), default=0) / step))
    columns = tuple(
        # Named are those at equal distances from today.
        Column(
            day, _text(DAY * at), told[day], _bars(DAY * at, told[day], series, top), (len(days) - 1 - at) % NAMED == 0
        )
        for at, day in enumerate(days)
    )
    ticks = [Tick(_text(HEIGHT - HEIGHT * value / top), short(value)) for value in range(0, top + 1, step)]
    totals = tuple(map(sum, zip(*told.values(), strict=True))) or nothing
    return Chart(tuple(series), columns, tuple(reversed(ticks)), totals, _text(DAY * len(days)))


def short(value: int) -> str:
    """Like 950, 1.2k, 40k, 3M."""
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if value >= size:
            return f"{value / size:.3g}{letter}"
    return str(value)


def _bars(x: float, values: tuple[int, ...], series: Sequence[Series], top: int) -> tuple[Bar, ...]:
    at, below, bars = _text(x + (DAY - COLUMN) / 2), 0.0, []
    for one, value in zip(series, values, strict=True):
        height = HEIGHT * value / top
        below += height
        if value:
            bars.append(Bar(one.style, at, _text(HEIGHT - below), _text(COLUMN), _text(height)))
    return tuple(bars)


def _step(most: int) -> int:
    """The distance of the lines: 1, 2 or 5 times a power of ten, at most TICKS of them up to `most`."""
    power = 1
    while True:
        for step in (power, 2 * power, 5 * power):
            if step * TICKS >= most:
                return step
        power *= 10


def _text(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")
