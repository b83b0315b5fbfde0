"""The model's endpoint away while 200 sessions are due: all go on by themselves, without a stampede."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from pytest_django import Settings

from memories.models import ExtractionRun, SessionQueue
from tests.faults.conftest import Note
from tests.faults.crowd import SHORT, Crowd
from tests.faults.parrot import Parrot
from tests.faults.workers import running, wait_until
from tests.llm import endpoint as at
from tests.llm.endpoint import Response
from tests.llm.endpoint import running as endpoint_running
from tests.ports import free_port

pytestmark = pytest.mark.soak

CLUSTERS, POOL = 2, 2
AWAY_SECONDS = 20.0
HEALED_SECONDS = 60.0
# In 20 s pauses of 1, 2, 4, 8 and 16 s fit, and each is asked at the end; before, each of the pool may have asked.
MOST_CALLS_AWAY = 2 * CLUSTERS * POOL + 6

Outage = Callable[[ExitStack, int], None]


def refused(stack: ExitStack, port: int) -> None:
    """Nobody listens."""


def answered_with(response: Response) -> Outage:
    def begin(stack: ExitStack, port: int) -> None:
        stack.enter_context(endpoint_running(port)).responds(response)

    return begin


OUTAGES = {
    "connection refused": refused,
    "503, Retry-After: 5": answered_with(at.fails(503, Retry_After="5")),
    "500": answered_with(at.fails(500)),
    "401": answered_with(at.fails(401)),
}


@pytest.fixture
def port(transactional_db: None, settings: Settings, tmp_path: Path) -> Iterator[int]:
    """Where the workers look for the model; nobody listens yet."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/v1"
    settings.MEMORYHUB_LLM, settings.OPENAI_BASE_URL = "openai", url
    own = {**SHORT, "OPENAI_BASE_URL": url, "MEMORYHUB_LLM_CONCURRENCY": str(POOL)}
    with running(*[own] * CLUSTERS, folder=tmp_path):
        yield port


@pytest.mark.parametrize("size", [200, 1])
@pytest.mark.parametrize(("name", "outage"), OUTAGES.items(), ids=OUTAGES.keys())
def test_an_outage(port: int, settings: Settings, note: Note, name: str, outage: Outage, size: int) -> None:
    crowd = Crowd(settings, size, "cat")
    with ExitStack() as stack:
        outage(stack, port)
        crowd.become_due()
        # The length of the fault.
        time.sleep(AWAY_SECONDS)
    crowd.look()
    # A wrong key parks the batch that found out; it goes on with the others.
    parked = SessionQueue.objects.filter(parked_at__isnull=False)
    assert parked.count() == len(crowd.done) == (name == "401")
    crowd.done.clear()
    away = sum(ExtractionRun.objects.values_list("calls", flat=True))
    assert 2 <= away <= MOST_CALLS_AWAY
    parrot = Parrot(seconds=0.05)
    back_at = time.monotonic()
    with endpoint_running(port) as endpoint:
        endpoint.responds(parrot)
        wait_until(lambda: not parked.exists())
        crowd.work_off(within=AWAY_SECONDS + HEALED_SECONDS)
    seconds = crowd.begun + crowd.done[-1] - back_at
    rates = Counter(int(arrival - back_at) for arrival in parrot.arrivals)
    shown = ", ".join(f"{rates[second]}" for second in range(int(seconds) + 1))
    note(f"{size} due, endpoint away: {name}", seconds, f"to drain; {away} calls while away, then per second: {shown}")
    assert crowd.wrong() == {}
    assert seconds < HEALED_SECONDS
    assert parrot.most_at_once <= CLUSTERS * POOL
    # One finds out, the others wait for its answer.
    assert all(later - parrot.arrivals[0] >= parrot.seconds for later in parrot.arrivals[1:])
    if size > 1:
        assert set(ExtractionRun.objects.filter(status="committed").values_list("attempt", flat=True)) <= {1, 2}
