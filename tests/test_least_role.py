"""The real stages, from a posted turn to the proof of its erasure, as the role that web and worker have: with row level
security and without it."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone

from memories import audit, invariants, tasks
from memories.embedding import vectors
from memories.jobs.broker import SweepingBroker
from memories.jobs.pulse import ClusterPulse, ensure_schedules
from memories.management import backups
from memories.models import (
    AuditEvent,
    CaseState,
    DecayPass,
    EndUser,
    Episode,
    Fact,
    PrivacyCase,
    PrivacyExport,
    Session,
    SessionQueue,
    TableRewrite,
    Turn,
    WorkingMemory,
)
from memories.privacy import retention, rewriting
from memories.privacy.trail import sealing
from memories.retrieval import recalls
from tests import factories
from tests.admin.conftest import signed_in
from tests.api.client import HubClient
from tests.database import enforced
from tests.factories import COMMAND
from tests.faults.workers import wait_until
from tests.model import Model, candidate
from tests.settings import ROW_SECURITY

pytestmark = pytest.mark.usefixtures("wall", "least_role")


@pytest.fixture(params=["on"] if ROW_SECURITY == "on" else ["off", "on"])
def wall(request: pytest.FixtureRequest, transactional_db: None) -> Iterator[str]:
    """Whether policies show the test's statements nothing but what they are said to be for."""
    mode: str = request.param
    if mode == "off":
        yield mode
        return
    with enforced():
        yield mode


@pytest.fixture(autouse=True)
def _ample_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """No slice ends on a busy machine before its work."""
    monkeypatch.setattr(tasks, "SLICE_SECONDS", 600.0)


@pytest.fixture(autouse=True)
def home(settings: Any, tmp_path: Path) -> Path:
    settings.HOME = tmp_path
    settings.MEMORYHUB_ERASURE_LEDGER = str(tmp_path / "erasures.jsonl")
    return tmp_path


def extracted(model: Model, hub: HubClient) -> Session:
    """A conversation that was posted, extracted, summed up and embedded."""
    said = [(role, f"{role} says {number}") for number in range(1, 5) for role in ("user", "assistant")]
    said[0] = ("user", "I live in Leiden")
    messages = [{"role": role, "content": text} for role, text in said]
    body = {"user_id": "anna-1", "session_id": "s1", "messages": messages}
    assert hub.post("/turns", body, **{"Idempotency-Key": "once"}).status_code == 202
    assert hub.post("/turns", body, **{"Idempotency-Key": "once"}).status_code == 202
    session = Session.objects.get()
    model.say(candidate("Lives in Leiden", evidence=[1], quote="live in Leiden"))
    SessionQueue.objects.update(due_at=Now() - timedelta(seconds=1))
    assert tasks.consolidate_session(str(session.pk)) == 1
    Session.objects.update(last_turn_at=Now() - timedelta(minutes=31))
    WorkingMemory.objects.update(due_at=Now() - timedelta(seconds=1))
    assert tasks.compact_session(str(session.pk)) == 1
    for _ in range(3):
        vectors.embed_some()
    return session


@pytest.fixture
def hub() -> HubClient:
    return HubClient(factories.api_key(factories.tenant(keep_audit_days=90, keep_turns_days=30))[1])


def test_it_is_the_least_role_that_is_tested(wall: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT session_user, current_user, current_setting('is_superuser'), row_security_active('memories_turn')"
        )
        role = "memoryhub_runtime"
        assert cursor.fetchone() == (role, role if wall == "off" else f"{role}_all", "off", wall == "on")


def test_a_conversation_is_remembered_recalled_and_told(model: Model, hub: HubClient) -> None:
    extracted(model, hub)
    assert [fact.content for fact in Fact.objects.all()] == ["Lives in Leiden"]
    assert Episode.objects.exists()
    found = hub.post("/search", {"user_id": "anna-1", "query": "Where does she live?"}).json()["results"]
    assert found
    recalls.flush(now=timezone.now())
    told = hub.post("/context", {"user_id": "anna-1", "query": "Where?"}).json()
    assert "Lives in Leiden" in told["memory"]
    assert invariants.check() == []


def test_nights_pass(model: Model, hub: HubClient) -> None:
    session = extracted(model, hub)
    factories.fact(session.end_user, "Was tired", now=timezone.now() - timedelta(days=1_000))
    long_ago = timezone.now() - timedelta(days=100)
    Turn.objects.update(created_at=long_ago)
    Session.objects.update(created_at=long_ago, last_turn_at=long_ago)
    Episode.objects.update(started_at=long_ago, ended_at=long_ago)
    assert retention.retain(tenant=session.tenant, now=timezone.now()).counts["turns"] == 8
    # It has had its night.
    quiet = factories.tenant(keep_audit_days=90, decayed_on=timezone.now().date())
    audit.record(actor=COMMAND, verb="edit", target=quiet, object_id=quiet.pk, tenant=quiet, now=long_ago)
    assert sealing.seal(now=timezone.now(), seconds=60.0, wait_seconds=0.0) > 0
    assert retention.retain(tenant=quiet, now=timezone.now()).counts["audit"] == 1
    assert [event.verb for event in AuditEvent.objects.filter(tenant_uuid=quiet.pk)] == ["retain"]
    session.tenant.decayed_on = timezone.now().date() - timedelta(days=2)
    session.tenant.numbers = {"nightly_hour": 0}
    session.tenant.save(update_fields=["decayed_on", "numbers"])
    ensure_schedules()
    SweepingBroker().sweep()
    ClusterPulse().once()
    tasks.forget()
    assert DecayPass.objects.get().state == "done"


def test_an_export_and_an_erasure_with_its_proof(model: Model, hub: HubClient) -> None:
    session = extracted(model, hub)
    person = session.end_user
    access = factories.privacy_case(person, type="access", state=CaseState.RUNNING)
    assert tasks.run_case(str(access.pk)) == 1
    assert PrivacyExport.objects.filter(case=access).exists()
    case = factories.privacy_case(person, state=CaseState.APPROVED)
    assert tasks.run_case(str(case.pk)) == 1
    case.refresh_from_db()
    assert (case.state, case.failure) == (CaseState.COMPLETED, "")
    assert not EndUser.objects.filter(pk=person.pk).exists()
    assert case.findings["hits"] == {}
    assert not [place for place in case.findings["skipped"] if place.startswith("public.")]
    # Tables that were emptied are also clean on the disk: VACUUM FULL is a right of its own.
    # Transactions of other tests on this server hold it back until they end.
    wait_until(
        lambda: "memories_turn" in rewriting.rewrite(until=timezone.now() + timedelta(hours=1)).done, within=120.0
    )
    assert TableRewrite.objects.filter(table="memories_turn").exists()
    assert PrivacyCase.objects.get(pk=case.pk).state == CaseState.COMPLETED


def test_a_backup_can_be_taken_beside_it(tmp_path: Path) -> None:
    """As `docker compose exec web python manage.py backup` does: where web runs, nobody knows the owner."""
    factories.end_user()
    assert backups.write(tmp_path / "hub.backup") > 10_000


def test_an_operator_signs_in_and_looks_around(client: Any) -> None:
    factories.operator(username="olga")
    answer = client.post("/admin/login/", {"username": "olga", "password": "correct horse battery staple"})
    assert answer.status_code == 302
    for path in ("/admin/", "/admin/memories/fact/", "/admin/memories/auditevent/", "/admin/memories/privacycase/"):
        assert client.get(path).status_code == 200, path


def test_an_operator_of_a_tenant_does_not_see_who_has_more_tenants() -> None:
    own, other = factories.tenant(), factories.tenant()
    limited, beside, beyond = (
        factories.operator(username=name, is_superuser=False, all_tenants=False)
        for name in ("limited", "beside", "beyond")
    )
    limited.user_permissions.set(Permission.objects.filter(codename="view_operator"))
    for operator, tenants in ((limited, [own]), (beside, [own]), (beyond, [own, other])):
        operator.tenants.set(tenants)
    page = signed_in(limited).get("/admin/memories/operator/").content.decode()
    assert ("beside" in page, "beyond" in page) == (True, False)
