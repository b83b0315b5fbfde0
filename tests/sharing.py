"""How `make test` shares the tests among processes: file by file, and first those that start processes and wait."""

import os

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

# Each of these groups is run by one process, so that not all of them wait, or start hubs, at once.
WAITING = (("faults",), ("bench", "browser", "commands", "e2e"))
# The server has a hundred connections for all of them.
MOST = 5


def processes() -> int:
    """One more than there are cores: at least one of them waits most of the time."""
    return min((os.cpu_count() or 1) + 1, MOST)


def group(nodeid: str) -> int:
    """The place of the test's group in WAITING, or its length."""
    room = nodeid.split("/")[1]
    return next((place for place, rooms in enumerate(WAITING) if room in rooms), len(WAITING))


class Sharing(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """In the order of the collection."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        place = group(nodeid)
        return str(place) if place < len(WAITING) else nodeid.partition("::")[0]
