"""The page about a replay without kills and one with them."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import date

from benchmarks import report
from evals.lives import Lived

INTRODUCTION = """\
This page shows whether the hub loses or doubles anything when its processes are killed. The tool posts three LoCoMo
conversations and all people of MemoryBank to a hub over REST, four people at a time, one or two rounds a post. The
client ends most sessions; every fourth one becomes idle by itself. The model is scripted (`tests/faults/parrot.py`):
it states each turn of the user as a fact, word for word, and each answer takes 0.1 s. Then the tool posts everything
again to a new hub, and kills processes of it with `kill -9` at moments that a seed determines. `python -m evals.lives
--data FOLDER --write docs/replay-lives.md` writes this page and fails if something is wrong.

Some times are shorter here than by default: extraction waits for 1 s of quiet, a session is idle after 5 s, a window
over its limits is compacted after 1 s of quiet or 3 s, and a lease lasts 8 s. So the hub makes more calls than in a
real chat; [the benchmarks](benchmarks.md) have the figure for that.
"""
COMPARED = """\
In both runs the tool waits until no work is left, and then looks for:
- turns that are lost, doubled or changed;
- turns for extraction that are not in exactly one committed extraction;
- such turns that are not in exactly one episode, in sessions with at least 4 of them;
- episodes of a session with fewer than 4 such turns;
- parked work, windows beyond their limits, and facts that nobody stated;
- whatever `manage.py check_memory` reports.

For each person, a digest must be the same in both runs. It covers:
- all turns in their order;
- which of them are extracted, and which are in an episode;
- the text and the status of every fact;
- the turn that a fact rests on, if its text was said once.

The digest leaves out what depends on the moment at which a worker looked: where extractions and episodes begin and
end, and therefore the wording of summaries; and which mentions are evidence of a text that was said several times.
"""
ROWS = (
    ("turns", "turns"),
    ("of these for extraction", "fed"),
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
    yield "# Whole conversations replayed while processes are killed"
    yield INTRODUCTION
    yield f"{date.today().isoformat()}, {report.machine(plain.server)}; load average {os.getloadavg()[1]:.0f}.\n"
    yield _table(("", "undisturbed", f"{len(killed.kills)} kills"), list(_figures(plain, killed)))
    yield "## What is checked\n"
    yield COMPARED
    yield from _verdict(plain, killed)
    yield f"## Kills (seed {seed})\n"
    yield _table(("second", "victim"), [(f"{kill.at:.1f}", kill.victim) for kill in killed.kills])


def _figures(plain: Lived, killed: Lived) -> Iterator[tuple[str, ...]]:
    both = (plain, killed)
    for what, name in ROWS:
        yield what, *(f"{asdict(one.state.counts)[name]:,}" for one in both)
    for name in sorted({*plain.calls, *killed.calls}):
        yield f"calls of `{name}`", *(f"{one.calls[name]:,}" for one in both)
    yield "calls per 100 turns", *(f"{100 * one.calls.total() / one.state.counts.turns:.1f}" for one in both)
    yield "seconds of posting", *(f"{one.took.posting:.0f}" for one in both)
    yield "seconds from then until no work was left", *(f"{one.took.draining:.0f}" for one in both)


def _verdict(plain: Lived, killed: Lived) -> Iterator[str]:
    for how, one in (("undisturbed", plain), ("under kills", killed)):
        yield f"Wrong {how}: {len(one.state.wrong)}.\n"
        yield from (f"- {found}" for found in one.state.wrong[:20])
    before, after = plain.state.digests, killed.state.digests
    differing = [person for person in before if before[person] != after.get(person)]
    yield f"People whose data differs between the runs: {len(differing)} of {len(before)}.\n"
    yield from (f"- {person}" for person in differing)


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
