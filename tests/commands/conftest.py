"""A hub's home for the tests that start processes: making one for each would take most of the time."""

import shutil
from collections.abc import Iterator

import pytest

from memoryhub import embedded_postgres
from tests import homes
from tests.commands.hub import Hub, wait_until
from tests.scratch import scratch_folder


@pytest.fixture(scope="session")
def own_hub() -> Iterator[Hub]:
    folder = scratch_folder()
    hub = Hub(homes.make(folder / "home"))
    yield hub
    hub.end()
    embedded_postgres.stop(hub.home)
    shutil.rmtree(folder)


@pytest.fixture
def stopped(own_hub: Hub) -> Iterator[Hub]:
    """Nothing of it runs; whatever the test starts is ended after it."""
    own_hub.end()
    yield own_hub
    own_hub.end()
    wait_until(own_hub.is_gone)
