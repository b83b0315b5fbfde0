"""Stacked columns per day, as numbers for a template that draws inline SVG. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

# Widths of a day and of its column, and the height of the drawing.
DAY, COLUMN, HEIGHT = 10.0, 7.0, 100.0
TICKS = 5
# So many days have a label.
NAMED = 6


@dataclass(frozen=True)
class Series:
    """One colour of the columns. `style` is the suffix of its CSS class."""

    style: str
    label: Any


@dataclass(frozen=True)
class Bar:
    """One series of one day. Texts, since a locale may write numbers with a comma."""

    style: str
    x: str
    y: str
    width: str
    height: str


@dataclass(frozen=True)
class ChartColumn:
    """One day: the values in the order of the series, the bars from the bottom up, and whether it has a label.

    `is_minor`: the label is left out where there is little room.
    """

    day: date
    x: str
    values: tuple[int, ...]
    bars: tuple[Bar, ...]
    is_named: bool
    is_minor: bool


@dataclass(frozen=True)
class Tick:
    """A horizontal line; `y` is the distance from the top in percent."""

    y: str
    label: str


@dataclass(frozen=True)
class Chart:
    """`totals` are the sums of the series over all days, `width` is that of the drawing."""

    series: tuple[Series, ...]
    columns: tuple[ChartColumn, ...]
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
    """One stacked column per day. A day without values has an empty column."""
    zeros = (0,) * len(series)
    by_day = {day: tuple(values.get(day, zeros)) for day in days}
    highest = max(map(sum, by_day.values()), default=0)
    step = _step(highest)
    top = step * max(1, math.ceil(highest / step))
    apart = max(1, len(days) // NAMED)
    columns = tuple(
        ChartColumn(
            day,
            _text(DAY * at),
            by_day[day],
            _bars(DAY * at, by_day[day], series, top),
            # Counted from today, which always has its label.
            is_named=(len(days) - 1 - at) % apart == 0,
            is_minor=(len(days) - 1 - at) % (2 * apart) != 0,
        )
        for at, day in enumerate(days)
    )
    ticks = [Tick(_text(HEIGHT - HEIGHT * value / top), short(value)) for value in range(0, top + 1, step)]
    totals = tuple(map(sum, zip(*by_day.values(), strict=True))) or zeros
    return Chart(tuple(series), columns, tuple(reversed(ticks)), totals, _text(DAY * len(days)))


def _step(highest: int) -> int:
    """The distance of the ticks: 1, 2 or 5 times a power of ten, such that at most TICKS steps reach `highest`."""
    power = 1
    while True:
        for step in (power, 2 * power, 5 * power):
            if step * TICKS >= highest:
                return step
        power *= 10


def _bars(x: float, values: tuple[int, ...], series: Sequence[Series], top: int) -> tuple[Bar, ...]:
    left, stacked_height, bars = _text(x + (DAY - COLUMN) / 2), 0.0, []
    for one, value in zip(series, values, strict=True):
        height = HEIGHT * value / top
        stacked_height += height
        if value:
            bars.append(Bar(one.style, left, _text(HEIGHT - stacked_height), _text(COLUMN), _text(height)))
    return tuple(bars)


def short(value: int) -> str:
    """Like 950, 1.2k, 40k, 3M."""
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if value >= size:
            return f"{value / size:.3g}{letter}"
    return str(value)


def _text(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")
