"""When a cluster counts as wedged, and when it does not."""

import uuid
from dataclasses import replace
from typing import Any

from memories.jobs.watchdog import LOOKS, is_wedged
from memories.queue.backlog import Backlog
from tests.each import each

FIRST = (uuid.UUID(int=1), 0)
STUCK = Backlog(first=FIRST, waited=20.0, claimed=0, beat_age=1.0)
IDLE = Backlog(first=None, waited=0.0, claimed=0, beat_age=1.0)


def looks(look: Backlog, **last: Any) -> list[Backlog]:
    return [look] * (LOOKS - 1) + [replace(look, **last)]


@each(
    "seen",
    [
        looks(STUCK),
        # One of four processes is busy: the other three are not.
        looks(replace(STUCK, claimed=3)),
        looks(replace(IDLE, beat_age=16.0)),
        looks(replace(IDLE, beat_age=None)),
    ],
)
def test_wedged(seen: list[Backlog]) -> None:
    assert is_wedged(seen, pool=4)


@each(
    "seen",
    [
        [],
        looks(STUCK)[1:],
        looks(IDLE),
        # Work is done, one way or another.
        looks(STUCK, first=(uuid.UUID(int=2), 0)),
        looks(STUCK, first=(FIRST[0], 1)),
        looks(STUCK, first=None, waited=0.0),
        # All of ours may be busy.
        looks(STUCK, claimed=4),
        looks(replace(STUCK, waited=11.0)),
        looks(replace(IDLE, beat_age=14.0)),
        looks(replace(IDLE, beat_age=None), beat_age=1.0),
    ],
)
def test_not_wedged(seen: list[Backlog]) -> None:
    assert not is_wedged(seen, pool=4)
