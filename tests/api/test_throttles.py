"""Throttles: generous by default; as set exact under races, per key and scope, and told in every answer."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection
from django.db.models import F

from memories.api import throttles
from memories.conf import Rate
from memories.curation.access.throttles import Allowance, count_request
from memories.models import Scope, ThrottleCounter
from tests import factories
from tests.api.conftest import Hub, hub_of
from tests.database import at_once, statements

HEADERS = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
TURN = {"user_id": "u1", "session_id": "s1", "messages": [{"role": "user", "content": "你好"}]}
DAY = 86_400


@pytest.fixture
def limits(settings: Any) -> dict[str, tuple[int, int] | None]:
    """A day is a window that a test does not leave."""
    settings.MEMORYHUB_THROTTLES = {"ingest": None, "read": (3, DAY), "write": None}
    return dict(settings.MEMORYHUB_THROTTLES)


def test_unset_there_are_no_headers_and_no_statement(hub: Hub) -> None:
    answer = hub.client.get("/users")
    assert not set(HEADERS) & set(answer.headers)
    assert not any("throttle" in sql for sql in statements(lambda: hub.client.get("/users")))


def test_unset_a_generous_limit_holds_per_key_and_scope(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Rate(requests=60_000, seconds=60) == throttles.GENEROUS
    monkeypatch.setattr(throttles, "TALLY", throttles.Tally())
    monkeypatch.setattr(throttles, "GENEROUS", Rate(requests=3, seconds=DAY))
    assert [hub.client.get("/users").status_code for _ in range(3)] == [200] * 3
    found: list[Any] = []
    assert not any("throttle" in sql for sql in statements(lambda: found.append(hub.client.get("/users"))))
    refused = found[0]
    assert (refused.status_code, refused.json()["code"]) == (429, "throttled")
    assert 1 <= int(refused.headers["Retry-After"]) <= DAY
    assert not set(HEADERS) & set(refused.headers)
    assert hub.client.post("/turns", TURN).status_code == 202
    assert hub_of(hub.tenant).client.get("/users").status_code == 200
    assert not ThrottleCounter.objects.exists()


def test_a_tally_begins_anew_with_each_window(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, tally, rate, key = [119.0], throttles.Tally(), Rate(requests=2, seconds=60), uuid.uuid4()
    monkeypatch.setattr("memories.api.throttles.time.time", lambda: clock[0])
    found = [tally.count(key, "read", rate) for _ in range(3)]
    assert [(one.allowed, one.remaining, one.reset) for one in found] == [(True, 1, 1), (True, 0, 1), (False, 0, 1)]
    clock[0] = 120.0
    assert tally.count(key, "read", rate) == Allowance(limit=2, remaining=1, reset=60, allowed=True)


def test_a_tally_loses_nothing_among_threads() -> None:
    tally, rate, key = throttles.Tally(), Rate(requests=10**9, seconds=10**9), uuid.uuid4()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: tally.count(key, "read", rate), range(4_000)))
    assert tally.count(key, "read", rate).remaining == 10**9 - 4_001


def test_every_answer_tells_and_the_one_beyond_is_refused(hub: Hub, limits: Any) -> None:
    answers = [hub.client.get("/users"), hub.client.get("/users", page_size=-1), hub.client.get("/users")]
    assert [answer.status_code for answer in answers] == [200, 400, 200]
    assert [answer.headers["RateLimit-Remaining"] for answer in answers] == ["2", "1", "0"]
    found: list[Any] = []
    counted = [sql for sql in statements(lambda: found.append(hub.client.get("/users"))) if "throttle" in sql]
    [refused] = found
    assert (refused.status_code, refused.json()["code"], len(counted)) == (429, "throttled", 1)
    assert refused.headers["Retry-After"] == refused.headers["RateLimit-Reset"]
    assert 1 <= int(refused.headers["Retry-After"]) <= DAY
    assert (refused.headers["RateLimit-Limit"], refused.headers["RateLimit-Remaining"]) == ("3", "0")
    # Scopes and keys are counted apart.
    assert hub.client.post("/turns", TURN).status_code == 202
    assert hub_of(hub.tenant).client.get("/users").status_code == 200


def test_a_refused_post_changes_nothing(hub: Hub, settings: Any) -> None:
    settings.MEMORYHUB_THROTTLES = {"ingest": (1, DAY)}
    accepted = hub.client.post("/turns", TURN)
    assert (accepted.status_code, accepted.headers["RateLimit-Remaining"]) == (202, "0")
    assert hub.client.post("/turns", TURN).status_code == 429
    assert hub.tenant.sessions.get().turn_count == 1


def test_who_lacks_the_scope_is_not_counted(hub: Hub, limits: Any) -> None:
    client = hub_of(hub.tenant, scopes=[Scope.INGEST]).client
    assert [client.get("/users").status_code for _ in range(5)] == [403] * 5
    assert not ThrottleCounter.objects.exists()


def test_the_next_window_begins_anew(hub: Hub) -> None:
    """The row is put back by a window instead of the test waiting for one."""
    rate = Rate(requests=1, seconds=10**9)

    def count() -> Allowance:
        return count_request(key_id=hub.key.pk, scope="read", rate=rate)

    assert [count().allowed for _ in range(3)] == [True, False, False]
    ThrottleCounter.objects.filter(key=hub.key).update(window=F("window") - 1)
    assert [count().allowed for _ in range(2)] == [True, False]
    assert 1 <= count().reset <= rate.seconds


def test_an_older_window_does_not_come_back(hub: Hub) -> None:
    """A request that waited for the row over the turn of a window counts in the newer one."""
    rate = Rate(requests=5, seconds=DAY)
    count_request(key_id=hub.key.pk, scope="read", rate=rate)
    ThrottleCounter.objects.update(window=10**6, requests=5)
    assert not count_request(key_id=hub.key.pk, scope="read", rate=rate).allowed
    assert ThrottleCounter.objects.get().window == 10**6


@pytest.mark.django_db(transaction=True)
def test_exact_under_a_race() -> None:
    key, _ = factories.api_key(factories.tenant())
    rate = Rate(requests=37, seconds=DAY)

    def work(index: int) -> int:
        found = [count_request(key_id=key.pk, scope="read", rate=rate) for _ in range(10)]
        return sum(allowance.allowed for allowance in found)

    outcomes = at_once(8, work)
    assert not [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    assert sum(outcome for outcome in outcomes if isinstance(outcome, int)) == 37
    assert ThrottleCounter.objects.get().requests == 80


@pytest.mark.django_db
def test_the_table_is_unlogged() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT relpersistence FROM pg_class WHERE relname = 'memories_throttlecounter'")
        assert cursor.fetchone() == ("u",)
