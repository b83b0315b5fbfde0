"""/metrics: what the tables say, for whoever may read it; nothing personal, and all families from the start."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from memories.api import metrics
from memories.models import DailySpending, EndUser, LanguageModel, ModelUse, SessionQueue
from tests import factories

pytestmark = pytest.mark.django_db
TOKEN = "t0ken-of-the-collector"


def told() -> dict[tuple[str, ...], float]:
    """Each sample's name and values of labels, these sorted → its value."""
    response = Client().get("/metrics")
    assert response.status_code == 200
    families = text_string_to_metric_families(response.content.decode())
    return {(one.name, *sorted(one.labels.values())): one.value for family in families for one in family.samples}


def test_families_with_fixed_labels_are_there_from_the_start() -> None:
    samples = told()
    assert samples["memoryhub_database_up",] == 1
    for name in (
        ("memoryhub_workers", "cluster"),
        ("memoryhub_queue_sessions", "due", "extraction"),
        ("memoryhub_queue_sessions", "parked", "working_memory"),
        ("memoryhub_queue_overdue_seconds",),
        ("memoryhub_endpoints_paused",),
        ("memoryhub_embedding_waiting", "turns"),
        ("memoryhub_review_items", "conflict"),
        ("memoryhub_privacy_cases", "completed", "erasure"),
        ("memoryhub_decay_passes", "held"),
    ):
        assert samples[name] == 0, name


def test_they_say_what_the_tables_say_and_nothing_personal() -> None:
    tenant = factories.tenant(slug="acme-prod")
    person = factories.end_user(tenant, external_id="somebody-in-person", display_name="Ada")
    session = factories.session(person, [("user", "I moved to Leiden.")], session_id="of-somebody")
    factories.fact(person, "Lives in Leiden.")
    before = told()
    now = timezone.now()
    SessionQueue.objects.update_or_create(
        tenant_id=session.tenant_id,
        session=session,
        defaults={"due_at": now, "parked_at": now, "attempts": 5, "failure": "worker_lost"},
    )
    ModelUse.objects.create(
        tenant=tenant,
        day=now.date(),
        purpose="extraction",
        calls=3,
        prompt_tokens=900,
        completion_tokens=70,
        cost="0.5",
    )
    restricted = factories.end_user(tenant, external_id="restricted")
    for one in (person, restricted):
        waits = factories.session(one, [("user", "Hello.")], session_id=f"due-{one.pk}")
        SessionQueue.objects.update_or_create(
            tenant_id=waits.tenant_id, session=waits, defaults={"due_at": now - timedelta(hours=1)}
        )
    EndUser.objects.filter(pk=restricted.pk).update(restricted_at=now)
    factories.privacy_case(person, state="received", due_at=now - timedelta(days=1))
    hours_ago = now - timedelta(hours=2)
    factories.privacy_case(restricted, state="running", type="erasure", approved_at=hours_ago, due_at=now)
    LanguageModel.objects.create(tenant=tenant, daily_tokens=1_000, updated_at=now)
    DailySpending.objects.create(tenant=tenant, day=now.date(), tokens=1_000)
    after = told()
    changed = {name: value for name, value in after.items() if before.get(name) != value}
    assert changed["memoryhub_queue_sessions", "extraction", "parked"] == 1
    assert changed["memoryhub_queue_parked", "extraction", "worker_lost"] == 1
    # A restricted person's work waits, though it is due.
    assert changed["memoryhub_queue_sessions", "due", "extraction"] == 1
    assert changed["memoryhub_queue_sessions", "extraction", "waiting"] == 1
    assert changed["memoryhub_queue_attempts", "extraction"] == 5
    assert changed["memoryhub_model_calls_total", "acme-prod", "extraction"] == 3
    assert changed["memoryhub_model_tokens_total", "acme-prod", "extraction", "prompt"] == 900
    assert changed["memoryhub_model_cost_dollars_total", "acme-prod", "extraction"] == 0.5
    assert changed["memoryhub_privacy_case_due_seconds",] == pytest.approx(-86_400, abs=600)
    assert changed["memoryhub_budgets_reached",] == 1
    assert changed["memoryhub_erasure_running_seconds",] == pytest.approx(7_200, abs=600)
    assert after["memoryhub_embedding_waiting", "facts"] == 1
    shown = Client().get("/metrics").content.decode()
    assert not [word for word in ("somebody", "Ada", "Leiden", str(person.pk), str(session.pk)) if word in shown]


def test_the_number_of_statements_does_not_grow_with_what_there_is() -> None:
    with CaptureQueriesContext(connection) as empty:
        told()
    for number in range(3):
        person = factories.end_user(factories.tenant(slug=f"tenant-{number}"), external_id="one")
        factories.fact(person, "Likes tea.")
        factories.session(person, [("user", "I like tea.")])
    with CaptureQueriesContext(connection) as full:
        told()
    assert len(full) == len(empty) <= 30


def test_who_may_read(settings: Any) -> None:
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    cases: list[tuple[str, str, dict[str, str], int]] = [
        ("127.0.0.1", "", {}, 200),
        ("::1", "", {}, 200),
        ("10.0.0.7", "", {}, 403),
        ("", "", {}, 403),
        ("127.0.0.1", "", {"X-Forwarded-For": "10.0.0.7"}, 403),
        ("127.0.0.1", "", {"Forwarded": "for=10.0.0.7"}, 403),
        ("127.0.0.1", "", {"Authorization": "Bearer "}, 403),
        ("10.0.0.7", TOKEN, {**bearer, "X-Forwarded-For": "10.0.0.7"}, 200),
        ("127.0.0.1", TOKEN, {"Authorization": f"Bearer {TOKEN}x"}, 403),
        ("10.0.0.7", TOKEN, {"Authorization": f"Basic {TOKEN}"}, 403),
        ("10.0.0.7", TOKEN, {}, 403),
    ]
    for address, configured, headers, status in cases:
        settings.MEMORYHUB_METRICS_TOKEN = configured
        response = Client(REMOTE_ADDR=address).get("/metrics", headers=headers)
        assert response.status_code == status, (address, headers)
        assert (b"memoryhub_" in response.content) == (status == 200), (address, headers)


def test_without_its_tables_it_says_so_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> Any:
        raise OperationalError

    assert ("memoryhub_queue_overdue_seconds",) in told()
    monkeypatch.setattr(metrics, "FIGURES", (*metrics.FIGURES, away))
    samples = told()
    assert samples["memoryhub_database_up",] == 0
    assert ("memoryhub_queue_overdue_seconds",) not in samples
    # What processes count needs no tables.
    assert samples["memoryhub_turns_total", "stored"] >= 0
