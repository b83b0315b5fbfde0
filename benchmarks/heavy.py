"""Rows about heavy people: one with up to 120,000 turns beside others, and on demand one with a million."""

import os
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks import load, processes, talk
from benchmarks.figures import Figure, at_most
from benchmarks.gateway import meanwhile
from benchmarks.load import Measured, Server
from benchmarks.rows import CLIENTS, body, row
from benchmarks.searching import CONTEXT, SEARCH, make_neighbours, make_person
from benchmarks.searching import asked as asked_about
from benchmarks.stage import Stage, another_web

LIGHT, MIDDLE, HEAVY, MILLION = 600, 20_000, 120_000, 1_000_000
COUNT = 40
MILLISECONDS = 1_000


@row("heavy")
def heavy(stage: Stage) -> Iterator[Figure]:
    """600, 20,000 and 120,000 turns of one person beside 2,000 others with facts; light and heavy asked by turns."""
    make_neighbours(stage)
    light, middle, name = (_person(stage, turns) for turns in (LIGHT, MIDDLE, HEAVY))
    before = _memory()
    yield from _first(stage, light, name)
    yield from _ratios(stage, light, name, at_most(3, 1.5))
    yield Figure(f"memory of all processes, {_said(name)} beside idle", _memory() - before, "MB", at_most(200, 120))
    yield from _ratios(stage, light, middle, None)
    one, many = _by_turns(stage, lambda at: _search(stage, middle, at), lambda at: _search(stage, middle, at, CLIENTS))
    what = f"search, {_said(middle)}, {CLIENTS} clients ÷ 1 client, p50"
    yield Figure(what, many, "ms", at_most(2.5, 1.5), one)
    yield _beside(stage, light, name)
    empty, full = _by_turns(stage, lambda at: _posted(stage, f"new-{at}"), lambda at: _posted(stage, name, at))
    yield Figure(f"ingest of one turn, {_said(name)} ÷ an empty person, p50", full, "ms", at_most(1.2, 1.05), empty)


@row("million")
def million(stage: Stage) -> Iterator[Figure]:
    """A million turns of one person. It takes some 20 minutes and 4 GB to make them."""
    light, name = _person(stage, LIGHT), _person(stage, MILLION)
    before = _memory()
    yield from _first(stage, light, name)
    yield from _ratios(stage, light, name, at_most(6, 3))
    yield Figure(f"memory of all processes, {_said(name)} beside idle", _memory() - before, "MB", at_most(1_000, 500))


def _person(stage: Stage, turns: int) -> str:
    scaled = max(1, turns // stage.size.shrink)
    make_person(stage, f"heavy-{scaled}", turns=scaled, draw=talk.of_the_docs().drawn())
    return f"heavy-{scaled}"


def _said(name: str) -> str:
    return f"{int(name.removeprefix('heavy-')):,} turns"


def _first(stage: Stage, light: str, name: str) -> Iterator[Figure]:
    """The first search of all, until it is one of all turns, and the first of a web server that was started then."""
    began = time.monotonic()
    while "degraded" in load.call(stage.hub, _question(stage.hub, name, f"Before {time.monotonic()}")):
        time.sleep(1)
    made = (time.monotonic() - began) * MILLISECONDS
    warm = statistics.median(_search(stage, name, at).p50 for at in range(2))
    with another_web(stage.hub) as started:
        # The model that embeds the question is loaded by another search.
        _ask(started, light, "Loads the model")
        first = _ask(started, name, "The first question")
    what = f"search, {_said(name)}, p50: the first "
    yield Figure(f"{what}after a start ÷ a warm one", first.p50, "ms", at_most(20, 5), warm)
    yield Figure(f"search, {_said(name)}: from the first of all to the first that read all turns", made, "ms")


def _ratios(stage: Stage, light: str, name: str, target: Any) -> Iterator[Figure]:
    for what, path in (("search", SEARCH), ("context with a query", CONTEXT)):
        few, many = _by_turns(
            stage,
            lambda at, path=path: _asked(stage, path, light, turn=at),  # type: ignore[misc]
            lambda at, path=path: _asked(stage, path, name, turn=at),  # type: ignore[misc]
        )
        yield Figure(f"{what}, {_said(name)} ÷ {_said(light)}, 1 client, p50", many, "ms", target, few)


def _by_turns(stage: Stage, one: Callable[[int], Measured], other: Callable[[int], Measured]) -> tuple[float, float]:
    """The medians of both, by turns; the first turn is warm-up."""
    pairs = [(one(turn).p50, other(turn).p50) for turn in range(stage.size.rounds + 1)][1:]
    return statistics.median(pair[0] for pair in pairs), statistics.median(pair[1] for pair in pairs)


def _search(stage: Stage, name: str, turn: int, clients: int = 1) -> Measured:
    return _asked(stage, SEARCH, name, clients=clients, turn=turn, count=COUNT if clients == 1 else COUNT // 4)


def _asked(stage: Stage, path: str, name: str, *, clients: int = 1, turn: int = -1, count: int = COUNT) -> Measured:
    questions = talk.of_the_docs().questions
    return asked_about(stage, path, name, clients=clients, turn=turn, count=count, questions=questions)


def _beside(stage: Stage, light: str, name: str) -> Figure:
    """One client asks about the light person, alone and while another asks about the heavy one."""
    pairs = []
    for turn in range(stage.size.rounds + 1):
        alone = _asked(stage, SEARCH, light, turn=turn)
        with meanwhile(_keep_asking, stage.hub, name):
            pairs.append((alone.p95, _asked(stage, SEARCH, light, turn=turn).p95))
    alone_p95, beside_p95 = (statistics.median(pair[at] for pair in pairs[1:]) for at in range(2))
    return Figure("search of another person meanwhile ÷ alone, p95", beside_p95, "ms", at_most(2, 1.3), alone_p95)


def _keep_asking(server: Server, name: str, parent: Any) -> None:
    """Questions about the heavy person until the parent says that it is enough."""
    parent.send("open")
    place = 0
    while not parent.poll():
        load.call(server, _question(server, name, f"Meanwhile {place}"))
        place += 1
    parent.send("whole")


def _ask(server: Server, name: str, query: str) -> Measured:
    return load.run(server, [[_question(server, name, query)]])


def _question(server: Server, name: str, query: str) -> bytes:
    return server.request("POST", SEARCH, {"user_id": name, "query": f"{talk.of_the_docs().questions[0]} {query}"})


def _posted(stage: Stage, name: str, turn: int = 0) -> Measured:
    bodies = (body(f"now-{name}-{turn}", place) | {"user_id": name} for place in range(COUNT))
    return load.run(stage.hub, [[stage.hub.request("POST", "/api/v1/turns", given) for given in bodies]])


def _memory() -> float:
    """Megabytes (Pss) of all processes of the hub that is measured."""
    return processes.megabytes(f"MEMORYHUB_HOME={os.environ['MEMORYHUB_HOME']}")
