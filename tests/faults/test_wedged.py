"""Parts of a cluster killed while nothing is to be done: what is posted afterwards is extracted once."""

import os
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from django.conf import LazySettings

from memories.models import ExtractionRun, Session
from tests import factories
from tests.faults.test_worker_killed import SHORT, answer, is_extracted
from tests.faults.workers import Worker, children, running, wait_until
from tests.llm.endpoint import running as endpoint_running

# The promise; a machine at rest needs about 15.
HEALED_SECONDS = 60.0
# The processes of a cluster: two of the pool, its monitor and its pusher.
WHOLE = 4


@pytest.fixture
def worker(transactional_db: None, settings: LazySettings, tmp_path: Path) -> Iterator[Worker]:
    """One cluster of two pool processes, which has done some work."""
    with endpoint_running() as endpoint:
        endpoint.responds(answer)
        settings.MEMORYHUB_LLM, settings.OPENAI_BASE_URL = "openai", endpoint.url
        own = {**SHORT, "MEMORYHUB_LLM_CONCURRENCY": "2", "OPENAI_BASE_URL": endpoint.url}
        with running(own, folder=tmp_path) as workers:
            extracted_within(HEALED_SECONDS)
            yield workers[0]


def extracted_within(seconds: float) -> None:
    """Post something and wait until it is extracted, exactly once."""
    begun = time.monotonic()
    session = post()
    wait_until(lambda: is_extracted(session), within=seconds)
    assert ExtractionRun.objects.filter(session=session, status="committed").count() == 1
    print(f"extracted after {time.monotonic() - begun:.1f} s")  # noqa: T201


def post() -> Session:
    return factories.session(factories.end_user(), (("user", "我住在莱顿"), ("assistant", "Noted")), flush=True)


def test_parts_of_an_idle_cluster_are_lost(worker: Worker) -> None:
    """Its pusher, its monitor, all of it: the next cluster does the work, or what is left before it is replaced."""
    for place in (3, 2, None):
        first = worker.sentinel
        os.kill(first if place is None else children(first)[place], signal.SIGKILL)
        extracted_within(HEALED_SECONDS)
        wait_until(partial(is_replaced, worker, first), within=HEALED_SECONDS)


def is_replaced(worker: Worker, first: int) -> bool:
    """Whether there is another cluster alone, and it is whole."""
    found = children(worker.keeper)
    return len(found) == 1 and found != [first] and len(children(found[0])) == WHOLE


def test_a_wedged_one_is_replaced_though_there_is_no_work_and_a_healthy_one_beside_it(
    worker: Worker, settings: LazySettings, tmp_path: Path
) -> None:
    """Its own sign of life tells: nothing waits, and its neighbour would do what did."""
    (tmp_path / "other").mkdir()
    own = {**SHORT, "OPENAI_BASE_URL": settings.OPENAI_BASE_URL}
    with running(own, folder=tmp_path / "other", beside=1) as [healthy]:
        first, other = worker.sentinel, healthy.sentinel
        wedge(worker)
        wait_until(lambda: children(worker.keeper) not in ([], [first]), within=HEALED_SECONDS)
        extracted_within(HEALED_SECONDS)
        assert "The cluster took no work; starting another one" in worker.log.read_text(encoding="utf-8")
        assert healthy.sentinel == other


def wedge(worker: Worker) -> None:
    """Kill all that could take work: one has the lock of the queue, and django-q alone would take nothing more."""
    for process in children(worker.sentinel)[:2]:
        os.kill(process, signal.SIGKILL)


def test_told_to_end_it_ends_though_wedged(worker: Worker) -> None:
    wedge(worker)
    worker.process.send_signal(signal.SIGTERM)
    # A machine at rest needs about 10.
    worker.process.wait(HEALED_SECONDS)
