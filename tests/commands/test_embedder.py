"""The embedder beside the cluster: it starts, embeds what comes, survives outages, stands by for another."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import DatabaseError

from memories.embedding import spaces, vectors
from memories.jobs import embedder
from memories.jobs.embedder import Embedder, EmbedderPulse
from memories.management.commands import embedder as command
from memories.models import TurnVector, WorkerHeartbeat, WorkerKind
from memoryhub import embedded_postgres
from tests import factories
from tests.commands.hub import PATIENCE_SECONDS, Hub, wait_until
from tests.database import held
from tests.scratch import connect

races = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def unlocked(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if request.node.get_closest_marker("django_db"):
        spaces.unlock(spaces.EMBEDDING)


@races
def test_it_embeds_at_once_and_then_looks_once_a_second() -> None:
    factories.session(factories.end_user())
    one = Embedder()
    assert [one.step() for _ in range(3)] == [0.0, 0.0, embedder.LOOK_SECONDS]
    assert TurnVector.objects.count() == 1


@races
def test_it_stands_by_while_another_is_in_charge() -> None:
    factories.session(factories.end_user())
    one = Embedder()
    with held(lambda: spaces.try_lock(spaces.EMBEDDING)):
        assert one.step() == embedder.LOOK_SECONDS
        assert not TurnVector.objects.exists()
    wait_until(lambda: one.step() == 0.0)


@races
def test_after_an_outage_it_asks_for_the_charge_again(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Embedder()
    one.step()

    def fail(**_: object) -> None:
        raise DatabaseError

    with monkeypatch.context() as patch:
        patch.setattr(vectors, "embed_some", fail)
        assert one.step() == embedder.OUTAGE_PAUSE_SECONDS
    factories.session(factories.end_user())
    assert one.step() == 0.0


@races
def test_its_sign_of_life_is_not_that_of_a_cluster() -> None:
    pulse = EmbedderPulse(Embedder())
    pulse.beat()
    pulse.beat()
    assert WorkerHeartbeat.objects.get().kind == WorkerKind.EMBEDDER


@pytest.mark.parametrize("is_its_own", [True, False])
def test_it_yields_to_requests_and_changes_no_session_that_others_share(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, is_its_own: bool
) -> None:
    autogroup, own = tmp_path / "autogroup", list[int]()
    monkeypatch.setattr(command, "AUTOGROUP", autogroup)
    monkeypatch.setattr(os, "nice", own.append)
    monkeypatch.setattr(os, "getsid", lambda _pid: os.getpid() if is_its_own else os.getppid())
    command.yield_to_requests()
    assert own == [command.NICENESS]
    assert autogroup.exists() is is_its_own
    assert not is_its_own or autogroup.read_text() == f"{command.NICENESS}\n"


def test_killed_it_is_started_again_and_ends_with_the_worker(stopped: Hub) -> None:
    with embedded_postgres.attached(stopped.home), connect(stopped.home) as connection:
        connection.execute("DELETE FROM memories_workerheartbeat")
    worker = stopped.run("worker")
    first = _embedder(stopped, besides=0)
    os.kill(first, signal.SIGKILL)
    assert _embedder(stopped, besides=first) != first
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(timeout=PATIENCE_SECONDS) == 0
    assert stopped.is_gone()


def _embedder(hub: Hub, *, besides: int) -> int:
    """The process number of an embedder that showed it lives; another one than `besides`."""
    found: list[int] = []

    def look() -> bool:
        if not embedded_postgres.is_running(hub.home):
            return False
        with connect(hub.home) as connection:
            rows = connection.execute("SELECT name FROM memories_workerheartbeat WHERE kind = 'embedder'")
            found[:] = [int(name.split(":")[-2]) for (name,) in rows]
        return any(pid != besides for pid in found)

    wait_until(look, lambda: f"no sign of life:\n{hub.text}")
    return next(pid for pid in found if pid != besides)
