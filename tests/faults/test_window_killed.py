"""A window that is too full, compacted by real workers; one of them killed in the middle of the model's call."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings

from memories import invariants
from memories.models import EndUser, Episode, Fact, Session, WorkingMemory
from tests import factories
from tests.faults.parrot import format_of, repeat
from tests.faults.workers import Worker, running, wait_until
from tests.llm.endpoint import Endpoint, Handler
from tests.llm.endpoint import running as endpoint_running

ROUNDS = 12
SAID = [
    (role, f"{role} tells of the garden, the {number}th time")
    for number in range(ROUNDS)
    for role in ("user", "assistant")
]
OWN = {
    "MEMORYHUB_DEBOUNCE_SECONDS": "1",
    "MEMORYHUB_LEASE_SECONDS": "8",
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
    transactional_db: None, endpoint: Endpoint, settings: LazySettings, tmp_path: Path
) -> Iterator[list[Worker]]:
    settings.MEMORYHUB_LLM, settings.OPENAI_BASE_URL = "openai", endpoint.url
    own = {**OWN, "OPENAI_BASE_URL": endpoint.url}
    # The key tells which of the two is asking.
    with running(*({**own, "OPENAI_API_KEY": f"worker-{place}"} for place in (0, 1)), folder=tmp_path) as workers:
        yield workers


def is_compacted(session: Session) -> bool:
    return WorkingMemory.objects.filter(pk=session.pk, left_number=8, episode_number=8, lease_token=None).exists()


def state_of(person: EndUser) -> tuple[Any, ...]:
    """What has come of the person's session, but for ids and times."""
    row = WorkingMemory.objects.get(session__end_user=person)
    episodes = Episode.objects.filter(end_user=person).order_by("first_number")
    facts = Fact.objects.filter(end_user=person).order_by("content").values_list("content", "mentions")
    return (
        (row.summary, row.left_number, row.left_tokens, row.left_rounds, row.episodes_made, row.failure),
        list(episodes.values_list("first_number", "last_number", "summary", "quality")),
        list(facts),
    )


class HeldSummary:
    """The first request for a running summary is never answered; it notes when its client is gone."""

    def __init__(self) -> None:
        self.asked, self.gone = threading.Event(), threading.Event()
        self.asked_by = -1

    def __call__(self, handler: Handler) -> None:
        if format_of(handler) != "session_summary" or self.asked.is_set():
            repeat(handler)
            return
        self.asked_by = int(handler.headers["Authorization"].rpartition("-")[2])
        self.asked.set()
        assert handler.connection.recv(1) == b""
        self.gone.set()
        handler.close_connection = True


def test_killed_while_the_summary_is_made_it_ends_as_untouched(workers: list[Worker], endpoint: Endpoint) -> None:
    endpoint.responds(repeat)
    untouched, person = factories.end_user(), factories.end_user()
    session = factories.session(untouched, SAID)
    wait_until(lambda: is_compacted(session))
    wait_until(lambda: Fact.objects.filter(end_user=untouched).count() == ROUNDS)
    whole, episodes, facts = state_of(untouched)
    assert (whole[0].startswith("Told: user tells of"), whole[1], whole[3]) == (True, 8, 4)
    assert [(first, last) for first, last, _, _ in episodes] == [(1, 8)]

    held = HeldSummary()
    endpoint.responds(held)
    session = factories.session(person, SAID)
    assert held.asked.wait(20)
    workers[held.asked_by].kill()
    assert held.gone.wait(5), "the wrong process was killed"
    wait_until(lambda: is_compacted(session), within=60)
    wait_until(lambda: Fact.objects.filter(end_user=person).count() == ROUNDS)
    assert state_of(person) == (whole, episodes, facts)
    assert invariants.check() == []
