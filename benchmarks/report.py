"""The table, for the terminal and for docs/benchmarks.md."""

import os
import platform
import sys
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path

from benchmarks.figures import Figure

HEADINGS = ("figure", "measured", "floor", "ratio", "reach", "beyond", "verdict")
DAY = "day"
PAGE = """# Benchmarks
`make bench` measures the hub, prints this table and writes this page. `make bench ROWS="ingest context"` measures
some rows again; the others keep their figures and their day. A row that nobody has measured yet is not in the table.
`make compare` measures it [beside other memory systems](compare.md).

## How to read the table
- **The hub** starts as with `manage.py up`, without a model. **The floor** runs on the same gunicorn settings and the
  same PostgreSQL. It is a bare Django REST framework view with one serializer, which does one INSERT or reads 20 rows
  by an index.
- **Clients** are processes on the same machine, with one open connection each.
- **Each figure** is the median of several turns. Where a row has a floor, hub and floor alternate, and the ratio is
  judged. Otherwise the figure is judged.
- **`reach`** is the target, **`beyond`** a better one. A row without them is not judged.
- **Rows "for comparison"** measure the bare view. They show how fast the machine was on that day, which was not
  always the same.

## What the rows measure
- **Contexts of 8 clients.** Measured twice: while the embedder, on one of the two cores, works on what eight clients
  have just posted in batches, and after it has finished.
- **Searches and contexts with a query.** People with thousands of turns have real terms, and random vectors with the
  spectrum of sentences. The local model embeds the questions.
- **From post to fact in context.** Measured on a second hub, whose model is on loopback and takes 50 ms.
- **Top 20 of a search.** Compared with a ranking of all that a person has, with and without prepared statements,
  beside another tenant's facts. The table shows the worst of these comparisons.
- **Calls of a lively chat.** Counted on a hub of its own, whose model makes a fact of each turn of the user. The chat
  is one session of 100 turns, until it has ended and no work is left.
- **Filled contexts.** `python -m benchmarks filled` shows what it costs to fill contexts with recalled turns. It
  alternates with the same questions with `limits.turns` of 10 (about as many turns as before contexts were filled)
  and of 0.
- **A million facts.** They come from `manage.py seed_facts`, 50 a person. A pass of forgetting is `manage.py decay`
  in its own process. It runs once while one client asks for contexts without a pause, and once while eight do.
  "Before" are contexts just before the pass.
- **The long session.** One client on the second hub, which extracts and compacts meanwhile. It posts one turn at a
  time, and after every fifth it asks for a context with its messages and a new question.
- **Pages.** Those of the admin for an administrator, with 5,000 people, 100,000 facts and 33,000 turns (`manage.py
  seed_facts --talk`). The busy person has 500 facts and 2,000 turns.
- **The gateway.** The endpoint behind it is a process on loopback that answers at once. A client asks both for
  streams, in turns: 40 people with 50 facts each, in conversations of five exchanges; each request has all of its
  conversation. They speak in turn because words that come within a second of an answer, or again and again with
  another ending, are a program's. An open stream sends a word a second. Other requests are measured with and without
  these streams in turns, each time in the other order. The hub shares its two cores with the clients and the
  endpoint. Streams past the hub, and calls by the API in place of MCP's, show what these cost alone.
- **Row level security.** Measured in turns on two hubs with the same 1,000 facts of 20 people. Each post is of a new
  person.
- **Heavy people** (`ROWS=heavy`). 600, 20,000 and 120,000 turns of one person beside 2,000 others. Turns and questions
  are sentences of these docs, as in [the comparison](compare.md): a question has turns that are near, as real ones
  have. Until 2026-11-29 vectors were random, and nothing was near: a search of a million turns took 178 ms then.
  Light and heavy are asked in turns. "The first after a start" is asked of a web server that has just been started
  and finds the file; the first of all makes it. Memory counts all processes (Pss). `ROWS=million` measures a million
  turns. It runs only when it is named, because it takes half an hour.
- **Memory files.** 10,000 files of one person in 100 folders, with eight lines each; this is above the limit that a
  tenant has by default. One client asks for each list without a pause. Every answer is complete, with up to 10,000
  hits.

## Figures
{machine}.

{table}
"""


def say(text: str) -> None:
    """Print it at once: what is measured next may take minutes."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


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
    return PAGE.format(machine=on, table=aligned([[*HEADINGS, DAY], *lines.values()]))


def table(figures: Iterable[Figure]) -> str:
    """The table in Markdown, columns aligned so that it reads in a terminal too."""
    return aligned([HEADINGS, *(_cells(figure) for figure in figures)])


def _lines_of(page: str) -> list[list[str]]:
    """The cells of a page's table, without its head."""
    lines = [line for line in page.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in lines[2:]]


def aligned(cells: Sequence[Sequence[str]]) -> str:
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    ruled = [cells[0], ["-" * width for width in widths], *cells[1:]]
    return "\n".join(_line(line, widths) for line in ruled)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return f"| {' | '.join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))} |"


def _cells(figure: Figure) -> tuple[str, ...]:
    target, unit = figure.target, figure.unit
    return (
        figure.what,
        f"{number(figure.measured)} {unit}".strip(),
        "" if figure.floor is None else f"{number(figure.floor)} {unit}",
        "" if figure.ratio is None else f"{figure.ratio:.2f}",
        target.shown(target.reach) if target else "",
        target.shown(target.beyond) if target else "",
        figure.verdict,
    )


def number(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value > 1 else f"{value:.2f}"


def _processor() -> str:
    """The model as Linux names it, elsewhere the architecture."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()
