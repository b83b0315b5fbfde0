"""The page about a replay without kills and one with them."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import date

from benchmarks import report
from evals.lives import Lived

INTRODUCTION = """\
Three LoCoMo conversations and all people of MemoryBank told to a hub over REST, four people at a time, a round or two
a post. Most sessions are ended by their client; every fourth is left to fall idle. The model is scripted
(`tests/faults/parrot.py`): each turn of the user is a fact, in its own words, and each answer takes 0.1 s. Then all of
it again on a new hub, while processes of it are killed with `kill -9` at moments chosen by a seed. Made by
`python -m evals.lives --data FOLDER --write docs/replay-lives.md`, which fails when something is wrong.

The quiet time of extraction is 1 s here, a session is idle after 5 s, a window over its limits is compacted after 1 s
of quiet or 3 s, and a lease lasts 8 s; all else is as it is by default. So there are more calls than a chat costs: that
is in [the benchmarks](benchmarks.md).
"""
COMPARED = """\
Looked for, both times, once nothing was left to do: turns lost, doubled or changed; fed turns that not exactly one
committed extraction covers; fed turns of a session with at least 4 of them that not exactly one episode covers, and
episodes of a shorter one; parked work; windows beyond their limits; facts that nobody said; and
`manage.py check_memory`.

The same both times, person by person (a digest): all turns in their order; which of them are extracted and in an
episode; the text and the status of every fact; the turn on which it rests, where its text was said once. Not compared,
as it depends on when a worker looked: where extractions and episodes begin and end, and with that the wording of
summaries; of a text said several times, which mentions are evidence.
"""
ROWS = (
    ("turns", "turns"),
    ("of these fed", "fed"),
    ("sessions", "sessions"),
    ("of these with an episode", "qualifying"),
    ("committed extractions", "extractions"),
    ("episodes", "episodes"),
    ("facts", "facts"),
)


def page(plain: Lived, killed: Lived, *, seed: int) -> str:
    """In Markdown."""
    return "\n".join(_parts(plain, killed, seed))


def _parts(plain: Lived, killed: Lived, seed: int) -> Iterator[str]:
    yield "# Whole lives told twice, once under kills"
    yield INTRODUCTION
    yield f"{date.today().isoformat()}, {report.machine(plain.server)}; load average {os.getloadavg()[1]:.0f}.\n"
    yield _table(("", "undisturbed", f"{len(killed.kills)} kills"), list(_figures(plain, killed)))
    yield "## What is held against it\n"
    yield COMPARED
    yield from _verdict(plain, killed)
    yield f"## What was killed (seed {seed})\n"
    yield _table(("second", "victim"), [(f"{kill.at:.1f}", kill.victim) for kill in killed.kills])


def _figures(plain: Lived, killed: Lived) -> Iterator[tuple[str, ...]]:
    both = (plain, killed)
    for what, name in ROWS:
        yield what, *(f"{asdict(one.state.counts)[name]:,}" for one in both)
    for name in sorted({*plain.calls, *killed.calls}):
        yield f"calls of `{name}`", *(f"{one.calls[name]:,}" for one in both)
    yield "calls per 100 turns", *(f"{100 * one.calls.total() / one.state.counts.turns:.1f}" for one in both)
    yield "seconds to tell", *(f"{one.took.posting:.0f}" for one in both)
    yield "seconds from then until nothing was left to do", *(f"{one.took.draining:.0f}" for one in both)


def _verdict(plain: Lived, killed: Lived) -> Iterator[str]:
    for how, one in (("undisturbed", plain), ("under kills", killed)):
        yield f"Wrong {how}: {len(one.state.wrong)}.\n"
        yield from (f"- {found}" for found in one.state.wrong[:20])
    before, after = plain.state.digests, killed.state.digests
    differing = [person for person in before if before[person] != after.get(person)]
    yield f"People of whom not the same is kept: {len(differing)} of {len(before)}.\n"
    yield from (f"- {person}" for person in differing)


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
