"""A hub that was started once: making the tables anew for each test would take most of the time."""

import shutil
import signal
from collections.abc import Iterator

import pytest

from memoryhub import embedded_postgres
from tests.commands.hub import RUNNING, Hub, wait_until
from tests.scratch import scratch_folder


@pytest.fixture(scope="session")
def seeded() -> Iterator[Hub]:
    folder = scratch_folder()
    hub = Hub(folder / "home")
    first = hub.run("up")
    hub.wait_for(RUNNING)
    first.send_signal(signal.SIGTERM)
    assert first.wait(timeout=20) == 0, hub.text
    yield hub
    embedded_postgres.stop(hub.home)
    shutil.rmtree(folder)


@pytest.fixture
def hub(seeded: Hub) -> Iterator[Hub]:
    """Stopped; whatever the test starts in it is ended after it."""
    yield seeded
    seeded.end()
    wait_until(seeded.is_gone)
