"""GET /healthz and /readyz."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.models.functions import Now
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from memories.api import health
from memories.db import tenancy
from memories.management import grants, policies
from memories.models import EmbeddingSpace, SessionQueue, WorkerHeartbeat, WorkerKind
from tests import factories
from tests.api.client import HubClient
from tests.database import runtime_role, unwalled, walled


@pytest.fixture(autouse=True)
def forgetful() -> Iterator[None]:
    health._require_migrations.cache_clear()
    yield
    health._require_migrations.cache_clear()


@pytest.fixture
def worker(db: None) -> None:
    beat(seconds_ago=1)


def beat(*, seconds_ago: float) -> None:
    WorkerHeartbeat.objects.all().delete()
    at = Now() - timedelta(seconds=seconds_ago)
    for kind in WorkerKind.values:
        WorkerHeartbeat.objects.create(name=f"host:1:{kind}", kind=kind, started_at=at, beat_at=at)


def ready() -> tuple[int, Any]:
    answer = Client().get("/readyz")
    return answer.status_code, answer.json()


def test_healthz_needs_no_database() -> None:
    answer = Client().get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_only_reading(db: None, path: str) -> None:
    assert Client().post(path).status_code == 405


@pytest.mark.usefixtures("worker")
def test_ready_when_all_is_there() -> None:
    names = ["database", "vector", "migrations", "worker", "queue", "embedding"]
    document = {"status": "ready", "checks": dict.fromkeys(names, "ok"), "reasons": [], "llm": "off"}
    assert ready() == (200, {**document, "embedding": {"configured": "hashed", "serving": None}})


@pytest.mark.usefixtures("worker", "with_model")
def test_names_the_way_of_extraction() -> None:
    assert ready()[1]["llm"] == "openai"


@pytest.mark.parametrize("seconds", [None, 16])
def test_not_ready_without_a_living_worker(db: None, seconds: float | None) -> None:
    if seconds:
        beat(seconds_ago=seconds)
    status, document = ready()
    assert (status, document["status"]) == (503, "not ready")
    silent = "has given a sign of life for 15 s."
    assert document["reasons"] == [f"No worker {silent}", f"No embedder {silent}"]


@pytest.mark.usefixtures("worker")
def test_not_ready_without_an_embedder() -> None:
    WorkerHeartbeat.objects.filter(kind=WorkerKind.EMBEDDER).delete()
    assert ready()[1]["reasons"] == ["No embedder has given a sign of life for 15 s."]


@pytest.mark.usefixtures("worker")
def test_says_that_another_embedding_serves_than_is_configured() -> None:
    EmbeddingSpace.objects.create(model="use-multilingual-3", dimensions=512, state="serving", created_at=Now())
    status, document = ready()
    assert status == 200
    assert document["embedding"] == {
        "configured": "hashed",
        "serving": "use-multilingual-3",
        "failure": "",
        "refused": 0,
        "note": "Another model is configured than serves: run manage.py reembed.",
    }


@pytest.mark.usefixtures("worker", "with_model")
def test_not_ready_when_work_is_long_overdue() -> None:
    factories.session(factories.end_user())
    SessionQueue.objects.update(due_at=Now() - timedelta(seconds=50))
    assert ready()[0] == 200
    SessionQueue.objects.update(due_at=Now() - timedelta(seconds=70))
    assert ready()[0] == 503
    # Somebody is at it.
    SessionQueue.objects.update(lease_until=Now() + timedelta(seconds=10))
    assert ready()[0] == 200


@pytest.mark.usefixtures("worker")
def test_not_ready_with_migrations_missing_and_ready_once_they_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(MigrationExecutor, "migration_plan", lambda *_: [("memories", "0009_later")])
        status, document = ready()
        assert status == 503
        assert document["checks"]["migrations"] == "The database lacks migrations: run manage.py migrate."
        assert "worker" not in document["checks"]
    assert ready()[0] == 200


def test_a_database_that_is_gone_is_503(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> str:
        raise OperationalError("no route to 10.0.0.7")

    monkeypatch.setattr(health, "_row_security", fail)
    status, document = ready()
    assert (status, document["checks"]) == (503, {"database": "The database cannot be reached."})
    assert "10.0.0.7" not in str(document)


@pytest.mark.usefixtures("worker")
def test_costs_eight_queries_once_the_migrations_are_known(
    with_model: None, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    ready()
    with django_assert_num_queries(8):
        ready()


@pytest.mark.usefixtures("worker", "alone")
class TestRoles:
    """Whose role the web server has; the tests' own owns the tables."""

    @pytest.fixture
    def alone(self, settings: Any) -> None:
        """As with DATABASE_URL alone."""
        settings.RUNTIME_ROLE = None

    def test_an_owner_is_noted_and_ready(self) -> None:
        status, told = ready()
        assert (status, told["status"]) == (200, "ready")
        assert "MEMORYHUB_OWNER_URL" in told["note"]

    def test_the_least_role_is_not(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL SESSION AUTHORIZATION memoryhub_runtime")
        status, told = ready()
        assert (status, told["reasons"], told.get("note")) == (200, [], None)


@pytest.mark.usefixtures("worker")
class TestRowSecurity:
    """What the web server says of policies that would show it nothing."""

    def test_roles_that_are_missing_are_named_and_nothing_else_fails_worse(self) -> None:
        policies.give(runtime_role()[0], enforced=True)
        _, key = factories.api_key(factories.tenant())
        with walled():
            assert ready()[0] == 200
        with walled("nobody_there"):
            status, told = ready()
            assert (status, told["reasons"]) == (503, [tenancy.ROLES_LACKING])
            assert told["checks"] == {"database": "ok", "row security": tenancy.ROLES_LACKING}
            answer = HubClient(key).get("/facts?user_id=anna")
        assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")

    def test_a_server_that_says_nothing_is_shown_nothing(self) -> None:
        policies.give(runtime_role()[0], enforced=True)
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL SESSION AUTHORIZATION memoryhub_runtime")
        with unwalled():
            assert ready()[1]["reasons"] == [health.UNSAID]
        with walled():
            assert ready()[0] == 200


@pytest.mark.django_db(transaction=True)
def test_a_role_without_rights_says_what_to_do(worker: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("REVOKE ALL ON django_migrations FROM memoryhub_runtime")
        cursor.execute("SET ROLE memoryhub_runtime")
        try:
            status, told = ready()
        finally:
            cursor.execute("RESET ROLE")
            grants.give(*runtime_role())
    assert status == 503
    assert "has no rights on the tables: run manage.py migrate" in told["reasons"][0]
