"""The page docs/forgetting.md: a table of what faded and what stayed, and the curves of five facts as an SVG."""

from collections.abc import Sequence
from itertools import pairwise

from evals.fading.year import GONE, LAST, STORIES, Year
from memories import conf

BEGIN_MARK, END_MARK = "<!-- measured -->\n", "<!-- end of what was measured -->\n"
SHOWN = (90, LAST)
# Story → colour (readable on white and on black), and the dashes that tell it apart without colour.
CURVES = {
    "plain": ("#d9480f", ""),
    "reinforced": ("#2f7fd6", "10 4"),
    "recalled": ("#2b9348", "3 4"),
    "pinned": ("#9c5fd0", "14 4 3 4"),
    "identity": ("#b8860b", "6 3"),
}
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 760, 380, 56, 20, 130, 46
STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#4a5158}.grid{stroke:#8a929a;stroke-opacity:.3}"
    ".limit{stroke:#8a929a;stroke-dasharray:2 3}.curve{fill:none;stroke-width:2.5}"
    "@media(prefers-color-scheme:dark){text{fill:#c3cad1}}"
)


def table(year: Year) -> str:
    """One row a memory, as Markdown."""
    rows = ["| memory | after 90 days | after 365 days | left contexts | why |", "| --- | --- | --- | --- | --- |"]
    for story in STORIES:
        ends = [_row(year, story.name, day) for day in SHOWN]
        left = _gone_on(year, story.name)
        rows.append(f"| {story.name} | {ends[0]} | {ends[1]} | {left} | {story.why} |")
    return "\n".join(rows) + "\n"


def chart(year: Year) -> str:
    """The decay curves; a dot is the night on which a fact went to the trash."""
    named = 'role="img" aria-label="Decay curves of five facts over a year"'
    frame = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" {named}>'
    parts = [frame, f"<style>{STYLE}</style>", *_grid()]
    labels = _apart([_y(_last(year, name)[1]) for name in CURVES])
    for (name, (colour, dashes)), at in zip(CURVES.items(), labels, strict=True):
        parts += _curve(year, name, colour, dashes, at)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _row(year: Year, name: str, day: int) -> str:
    score = year.scores[name][day]
    if score is not None:
        return f"active, {score:.2f}"
    state = year.states[name][day]
    return state if state == GONE else "in the trash"


def _gone_on(year: Year, name: str) -> str:
    """The days on which it went, each time."""
    gone = [
        day for (_, before), (day, now) in pairwise(year.scores[name].items()) if before is not None and now is None
    ]
    return ", ".join(f"day {day}" for day in gone) or "never"


def _grid() -> list[str]:
    parts = []
    for score in (0.0, 0.2, 0.4, 0.6, 0.8):
        kind = "limit" if score == conf.hub_rules().forget_below else "grid"
        y = _y(score)
        parts.append(f'<line class="{kind}" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{score:.1f}</text>')
    below = HEIGHT - BOTTOM + 20
    parts += [f'<text x="{_x(day):.1f}" y="{below}" text-anchor="middle">{day}</text>' for day in range(0, LAST, 60)]
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle:.1f}" y="{HEIGHT - 6}" text-anchor="middle">days</text>')
    return parts


def _curve(year: Year, name: str, colour: str, dashes: str, label: float) -> list[str]:
    points = [(day, score) for day, score in year.scores[name].items() if score is not None]
    path = " ".join(f"{_x(day):.1f},{_y(score):.1f}" for day, score in points)
    dash = f' stroke-dasharray="{dashes}"' if dashes else ""
    day, score = _last(year, name)
    parts = [f'<polyline class="curve" stroke="{colour}"{dash} points="{path}"/>']
    if day < LAST:
        parts.append(f'<circle cx="{_x(day):.1f}" cy="{_y(score):.1f}" r="5" fill="{colour}"/>')
    x = _x(day) + 10
    return [*parts, f'<text x="{x:.1f}" y="{label + 4:.1f}" style="fill:{colour};font-weight:600">{name}</text>']


def _last(year: Year, name: str) -> tuple[int, float]:
    return [(day, score) for day, score in year.scores[name].items() if score is not None][-1]


def _apart(places: Sequence[float]) -> list[float]:
    """The heights of labels: those of curves that end at one height stand below each other."""
    return [place + 16 * places[:at].count(place) for at, place in enumerate(places)]


def _x(day: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * day / LAST


def _y(score: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * score / 0.85
