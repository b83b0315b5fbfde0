"""Real workers on one database: one of two killed in the middle of a model call, one told to end, one cut off."""

import functools
import json
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.db import connection

from memories.jobs.cluster import GRACE_SECONDS
from memories.models import EndUser, ExtractionRun, Fact, FactEvidence, Session, SessionQueue
from tests import factories
from tests.faults.workers import PATIENCE, Worker, running, wait_until
from tests.llm.endpoint import Endpoint, Handler, envelope
from tests.llm.endpoint import running as endpoint_running
from tests.model import candidate

LEASE = 8
HELD = "Please hold"
# Longer than any test waits.
ENDLESS = {"MEMORYHUB_LEASE_SECONDS": "90", "MEMORYHUB_LLM_TIMEOUT": "60"}
SHORT = {
    "MEMORYHUB_DEBOUNCE_SECONDS": "1",
    "MEMORYHUB_LEASE_SECONDS": str(LEASE),
    "MEMORYHUB_LLM_TIMEOUT": "7",
    "MEMORYHUB_LLM_CONCURRENCY": "1",
    "MEMORYHUB_LLM": "openai",
}


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with endpoint_running() as endpoint:
        yield endpoint


@pytest.fixture
def workers(
    transactional_db: None,
    endpoint: Endpoint,
    settings: LazySettings,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> Iterator[list[Worker]]:
    """Two, of one process each; a test may add to their environment."""
    with started(endpoint, settings, tmp_path, count=2, **getattr(request, "param", {})) as workers:
        yield workers


@pytest.fixture
def worker(transactional_db: None, endpoint: Endpoint, settings: LazySettings, tmp_path: Path) -> Iterator[Worker]:
    """One, of one process."""
    with started(endpoint, settings, tmp_path, count=1) as [worker]:
        yield worker


def started(
    endpoint: Endpoint, settings: LazySettings, folder: Path, *, count: int, **environ: str
) -> AbstractContextManager[list[Worker]]:
    settings.MEMORYHUB_LLM, settings.OPENAI_BASE_URL = "openai", endpoint.url
    settings.MEMORYHUB_DEBOUNCE_SECONDS = 1
    # The key tells which of them is asking.
    own = {**SHORT, "OPENAI_BASE_URL": endpoint.url, **environ}
    return running(*({**own, "OPENAI_API_KEY": f"worker-{place}"} for place in range(count)), folder=folder)


class HeldAnswer:
    """The first call for the held session is never answered; it notes when its client is gone."""

    def __init__(self) -> None:
        self.asked, self.gone = threading.Event(), threading.Event()
        self.asked_by = -1

    def __call__(self, handler: Handler) -> None:
        if HELD in said_to(handler) and not self.asked.is_set():
            self.asked_by = int(handler.headers["Authorization"].rpartition("-")[2])
            self.asked.set()
            assert handler.connection.recv(1) == b""
            self.gone.set()
            handler.close_connection = True
        else:
            answer(handler)


def said_to(handler: Handler) -> str:
    text: str = handler.asked["messages"][-1]["content"]
    return text


def answer(handler: Handler) -> None:
    facts = [candidate("Lives in Leiden"), candidate("喜欢喝龙井茶"), candidate("Lives in Leiden")]
    handler.whole(200, json.dumps(envelope(json.dumps({"new_facts": facts}))).encode())


def contents(person: EndUser) -> list[tuple[str, int]]:
    return list(Fact.objects.filter(end_user=person).order_by("content").values_list("content", "mentions"))


def is_extracted(session: Session) -> bool:
    return SessionQueue.objects.filter(pk=session.pk, extracted_number=2, lease_token=None).exists()


def test_killed_during_the_model_call(workers: list[Worker], endpoint: Endpoint) -> None:
    held = HeldAnswer()
    endpoint.responds(held)
    person, other = factories.end_user(), factories.end_user()
    session = factories.session(person, (("user", HELD), ("assistant", "Noted")))
    assert held.asked.wait(PATIENCE)
    workers[held.asked_by].kill()
    assert held.gone.wait(5), "the wrong process was killed"
    killed_at = time.monotonic()

    # The other session goes on meanwhile. Which is first nobody says: the lease of a process that is gone ends at once.
    quick = factories.session(other, (("user", "I live in Leiden"), ("assistant", "Noted")))
    wait_until(lambda: is_extracted(quick))
    wait_until(lambda: is_extracted(session))
    assert time.monotonic() - killed_at < LEASE + 60
    committed = ExtractionRun.objects.filter(status="committed").values_list("session", flat=True)
    assert sorted(committed) == sorted([quick.pk, session.pk])
    each_once = [("Lives in Leiden", 1), ("喜欢喝龙井茶", 1)]
    assert (contents(person), contents(other)) == (each_once, each_once)
    assert FactEvidence.objects.filter(fact__end_user=person).count() == 2
    runs = ExtractionRun.objects.filter(session=session).order_by("started_at")
    assert list(runs.values_list("status", "failure", "attempt")) == [
        ("failed", "worker_lost", 1),
        ("committed", "", 2),
    ]


def test_told_to_end_it_finishes_what_it_is_at(worker: Worker, endpoint: Endpoint) -> None:
    asked, enough = threading.Event(), threading.Event()

    def hold(handler: Handler) -> None:
        asked.set()
        assert enough.wait(PATIENCE)
        answer(handler)

    endpoint.responds(hold)
    session = factories.session(factories.end_user(), (("user", "我住在莱顿"), ("assistant", "Noted")), flush=True)
    assert asked.wait(PATIENCE)
    begun = time.monotonic()
    worker.process.terminate()
    threading.Timer(1.0, enough.set).start()
    assert worker.process.wait(PATIENCE) == 0
    # On a very busy machine its grace is over first: then the work is left to others.
    if time.monotonic() - begun < GRACE_SECONDS:
        assert is_extracted(session)
        assert list(ExtractionRun.objects.values_list("status", "attempt")) == [("committed", 1)]


@pytest.mark.parametrize("workers", [ENDLESS], indirect=True)
def test_busy_worker_keeps_nothing_from_an_idle_one(workers: list[Worker], endpoint: Endpoint) -> None:
    """A cluster fetches wake-ups ahead of its busy workers; those sessions are not to wait for it."""
    held = HeldAnswer()
    endpoint.responds(held)
    slow = factories.session(factories.end_user(), (("user", HELD), ("assistant", "Noted")), flush=True)
    assert held.asked.wait(PATIENCE)
    for _ in range(3):
        session = factories.session(factories.end_user(), (("user", "Hello you"), ("assistant", "Hi")), flush=True)
        wait_until(functools.partial(is_extracted, session))
    assert not is_extracted(slow)
    # Or it would be waited for at the end.
    workers[held.asked_by].kill()


def test_connections_cut(worker: Worker, endpoint: Endpoint) -> None:
    """Every connection of the worker is ended by the server: it makes new ones, and nothing is lost."""
    endpoint.responds(answer)
    person = factories.end_user()
    first = factories.session(person, (("user", "I live in Leiden"), ("assistant", "Noted")), flush=True)
    wait_until(lambda: is_extracted(first))
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        (cut,) = cursor.fetchone()
    assert cut >= 1
    second = factories.session(person, (("user", "I live in Leiden"), ("assistant", "Noted")), flush=True)
    # A process of django-q's that was cut amid a statement ends, and its guard makes another.
    assert wait_until(lambda: is_extracted(second)) < 15
    assert contents(person) == [("Lives in Leiden", 2), ("喜欢喝龙井茶", 2)]


def test_due_work_starts_in_time(worker: Worker, endpoint: Endpoint) -> None:
    """From the moment that a session is due to the model's being asked: at most 2 seconds."""
    arrivals: list[float] = []

    def note(handler: Handler) -> None:
        arrivals.append(time.monotonic())
        answer(handler)

    endpoint.responds(note)
    waits = []
    # The first ones find a worker that has yet to load the model's library.
    for count in range(1, 9):
        due_at = time.monotonic()
        factories.session(factories.end_user(), (("user", "Hello you"), ("assistant", "Hi")), flush=True)
        wait_until(lambda count=count: len(arrivals) == count)  # type: ignore[misc]
        waits.append(arrivals[-1] - due_at)
        # Out of step with the sweep.
        time.sleep(0.07 * count)
    print("seconds from due to asked:", [round(wait, 2) for wait in waits])  # noqa: T201
    assert statistics.median(waits[3:]) < 2
