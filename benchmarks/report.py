"""The table, for the terminal and for docs/benchmarks.md."""

import os
import platform
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path

from benchmarks.figures import Figure

HEADINGS = ("figure", "measured", "floor", "ratio", "reach", "beyond", "verdict")
DAY = "day"
PAGE = """# Benchmarks
`make bench` measures, prints this table and writes this page. It starts a hub of its own as `manage.py up` does
(without a model) and, on the same gunicorn settings and the same PostgreSQL, the floor: a bare Django REST framework
view with one serializer and one INSERT, or 20 rows by an index. Clients are processes on the same machine, one open
connection each. Where a floor is named, the ratio is judged, else the figure; each is the median of several turns, hub
and floor by turns. `make bench ROWS="ingest context"` measures some rows anew and leaves the others with their day.

Contexts of eight clients are measured twice: while the embedder, on one of the two cores, works on what eight clients
have just posted in batches, and when it has ended that.

People with thousands of turns have random unit vectors and real terms; questions are embedded by the local model. How
soon a fact is told is measured on a second hub, whose model is on loopback and takes 50 ms. The first 20 of searches
are held against a ranking of all that a person has, with and without prepared statements, beside another tenant's
facts; told is the worst of them. The calls of a lively chat are counted on a hub of its own, whose model makes a fact
of each turn of the user: one session of 100 turns, until it has ended and nothing is left to do.

What it costs that contexts are filled with recalled turns is measured beside the same questions with `limits.turns` of
10, about as many as were told before contexts were filled, and of 0, by turns (`python -m benchmarks filled`).

The million facts are those of `manage.py seed_facts`, 50 a person; a pass of forgetting is `manage.py decay` in its own
process, once while one client asks for contexts without a pause and once while eight do. Before are contexts of just
before. The long session is one client's on the second hub, which extracts and compacts meanwhile: one turn a POST, and
after every fifth a context with its messages and a new question.

The pages are those of the admin for an administrator, with 5,000 people, 100,000 facts and 33,000 turns
(`manage.py seed_facts --talk`); the busy person has 500 facts and 2,000 turns.

The endpoint behind the gateway is a process on loopback that answers at once. Both are asked for streams by turns: a
person with 50 facts, conversations of five exchanges, each request with all of them. An open stream is a word a second.
What goes on beside them is measured with and without by turns, each time in the other order. Streams past the hub, and
calls by the API in place of MCP's, tell what their clients and the endpoint cost alone on the same two cores.

What row level security costs is measured on two hubs with the same 1,000 facts of 20 people, by turns; each post is of
somebody new.

The memory files are 10,000 of one person in 100 folders, with eight lines each, above the limit that a tenant has by
default. One client asks for each list without a pause; every answer is whole, with up to 10,000 hits.

The figures told beside others, of the bare view, say how fast the machine was on that day: it was not always the same.

{machine}.

{table}
"""


def machine(server_version: str) -> str:
    """Kind of machine and versions; nothing that names it."""
    return (
        f"{os.cpu_count()} cores, {_processor()}, {platform.system()}, Python {platform.python_version()}, "
        f"PostgreSQL {server_version}"
    )


def page(figures: Iterable[Figure], *, day: date, on: str, before: str = "") -> str:
    """The page; figures of the page `before` that were not measured now stay in their place, with their day."""
    lines = {what: [what, *rest] for what, *rest in _lines_of(before)}
    lines |= {figure.what: [*_cells(figure), day.isoformat()] for figure in figures}
    return PAGE.format(machine=on, table=_aligned([[*HEADINGS, DAY], *lines.values()]))


def table(figures: Iterable[Figure]) -> str:
    """The table in Markdown, columns aligned so that it reads in a terminal too."""
    return _aligned([HEADINGS, *(_cells(figure) for figure in figures)])


def _lines_of(page: str) -> list[list[str]]:
    """The cells of a page's table, without its head."""
    lines = [line for line in page.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in lines[2:]]


def _aligned(cells: Sequence[Sequence[str]]) -> str:
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    ruled = [cells[0], ["-" * width for width in widths], *cells[1:]]
    return "\n".join(_line(line, widths) for line in ruled)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return f"| {' | '.join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))} |"


def _cells(figure: Figure) -> tuple[str, ...]:
    target, unit = figure.target, figure.unit
    return (
        figure.what,
        f"{_number(figure.measured)} {unit}".strip(),
        "" if figure.floor is None else f"{_number(figure.floor)} {unit}",
        "" if figure.ratio is None else f"{figure.ratio:.2f}",
        target.shown(target.reach) if target else "",
        target.shown(target.beyond) if target else "",
        figure.verdict,
    )


def _number(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value > 1 else f"{value:.2f}"


def _processor() -> str:
    """The model as Linux names it, elsewhere the architecture."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()
