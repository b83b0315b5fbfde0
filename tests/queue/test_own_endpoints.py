"""Tenants with a model of their own: each has its own circuit breaker and its own daily caps."""

import uuid
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from memories import conf
from memories.curation.tenants.language_models import ModelSettings, save_language_model
from memories.episodes import compaction
from memories.exceptions import ModelAnswerInvalid, ModelUnavailable
from memories.extraction import consolidation
from memories.models import (
    DailySpending,
    EndpointState,
    EndUser,
    ExtractionRun,
    LanguageModel,
    Session,
    SessionQueue,
    Tenant,
    WorkingMemory,
)
from memories.queue import backlog, circuit_breaker, own_models, session_queue, spending
from memories.time_zones import zone_or_utc
from tests import factories
from tests.database import Gate
from tests.factories import COMMAND
from tests.model import Model, candidate

LEASE = timedelta(seconds=60)
# Of one answer of the tests' model: 70 tokens read and 7 written.
ONE_CALL = 77


def own(tenant: Tenant, **over: Any) -> LanguageModel:
    return LanguageModel.objects.create(tenant=tenant, updated_at=timezone.now(), **over)


def due(tenant: Tenant) -> Session:
    return factories.session(factories.end_user(tenant), flush=True)


def open_circuit(owner: uuid.UUID | None, *, is_confirmed: bool = False) -> None:
    for _ in range(circuit_breaker.FAILURES_TO_OPEN):
        circuit_breaker.count_failure(uuid.uuid4(), retry_after=None, owner=owner, is_confirmed=is_confirmed)
    EndpointState.objects.filter(tenant=owner).update(until=Now() + LEASE)


def woken(limit: int = 10) -> set[uuid.UUID]:
    with transaction.atomic():
        SessionQueue.objects.update(woken_at=None)
        return set(session_queue.due_sessions(limit))


def extract(session: Session) -> ExtractionRun | None:
    return consolidation.consolidate(session_id=session.pk, now=timezone.now())


@pytest.mark.django_db
class TestWhichModel:
    def test_what_a_tenant_has_of_its_own_comes_first(self, settings: LazySettings) -> None:
        settings.MEMORYHUB_LLM = ""
        settings.OPENAI_API_KEY, settings.MEMORYHUB_LLM_PRICES = "sk-hub", (Decimal(1), Decimal(2))
        tenant = factories.tenant()
        hub = conf.llm()
        assert own_models.config_of(tenant.pk) == hub
        row = own(tenant, daily_tokens=5)
        assert own_models.config_of(tenant.pk) == hub
        row.model = "small"
        row.save()
        config = own_models.config_of(tenant.pk)
        # The hub's prices are those of the hub's model.
        assert (config.model, config.api_key, config.tenant_id, config.prices) == ("small", "sk-hub", tenant.pk, None)
        row.base_url, row.prompt_price, row.completion_price = "https://models.example/v1", Decimal(3), Decimal(4)
        row.save()
        config = own_models.config_of(tenant.pk)
        # The hub's key is for the hub's endpoint.
        assert (config.base_url, config.api_key, config.guarded) == ("https://models.example/v1", "", True)
        assert config.prices == conf.Prices(Decimal(3), Decimal(4))
        row.api_key = conf.encrypt_model_key("sk-tenant")
        row.save()
        assert own_models.config_of(tenant.pk).api_key == "sk-tenant"
        assert own_models.config_of(factories.tenant().pk) == hub

    def test_without_a_model_of_the_hub(self, settings: LazySettings) -> None:
        settings.MEMORYHUB_LLM = ""
        tenant = factories.tenant()
        own(tenant, base_url="https://models.example/v1")
        assert (conf.llm().mode, own_models.config_of(tenant.pk).mode) == ("rules", "openai")
        settings.MEMORYHUB_LLM = "off"
        assert own_models.config_of(tenant.pk).mode == "off"

    def test_runs_ask_it(self, model: Model) -> None:
        session = due(tenant := factories.tenant())
        own(tenant, model="small")
        model.say(candidate())
        run = extract(session)
        assert run
        assert run.status == ExtractionRun.RunStatus.COMMITTED


@pytest.mark.django_db
class TestBreakers:
    def test_a_tenants_broken_endpoint_stops_nobody_else(self, model: Model) -> None:
        broken, other = factories.tenant(), factories.tenant()
        own(broken, model="small")
        theirs, others = due(broken), due(other)
        assert woken() == {theirs.pk, others.pk}
        open_circuit(broken.pk)
        assert woken() == {others.pk}
        assert extract(theirs) is None
        assert extract(others)
        EndpointState.objects.update(until=Now() - LEASE)
        assert woken() == {theirs.pk}

    def test_nor_does_the_hubs_stop_a_tenant_with_its_own(self, model: Model) -> None:
        with_own, other = factories.tenant(), factories.tenant()
        own(with_own, model="small")
        theirs, others = due(with_own), due(other)
        open_circuit(None)
        assert woken() == {theirs.pk}
        assert extract(others) is None
        assert extract(theirs)
        # A tenant that has caps alone asks the hub's endpoint.
        own(other, daily_tokens=1_000_000)
        assert extract(others) is None

    def test_after_a_pause_each_has_one_batch(self, model: Model) -> None:
        with_own, other = factories.tenant(), factories.tenant()
        own(with_own, model="small")
        sessions = [due(tenant) for tenant in (with_own, with_own, other, other)]
        for owner in (with_own.pk, None):
            open_circuit(owner)
        EndpointState.objects.update(until=Now() - LEASE)
        found = woken()
        assert {Session.objects.get(pk=pk).tenant_id for pk in found} == {with_own.pk, other.pk}
        assert len(found) == 2 < len(sessions)

    def test_failures_are_the_endpoints_own(self, model: Model) -> None:
        tenant = factories.tenant()
        own(tenant, model="small")
        model.answers = [ModelUnavailable()]
        extract(due(tenant))
        assert list(EndpointState.objects.values_list("tenant", "failures")) == [(tenant.pk, 1)]
        extract(due(tenant))
        assert not EndpointState.objects.exclude(failures=0).exists()

    def test_what_an_outage_parked_goes_on_with_its_own_endpoint(self, model: Model) -> None:
        with_own, other = factories.tenant(), factories.tenant()
        own(with_own, model="small")
        theirs, others = due(with_own), due(other)
        SessionQueue.objects.update(parked_at=Now(), failure=ModelUnavailable.code, due_at=None)
        for owner in (with_own.pk, None):
            open_circuit(owner, is_confirmed=True)
        EndpointState.objects.filter(tenant=with_own).update(until=Now() - LEASE)
        assert circuit_breaker.to_probe(lease=LEASE) == [with_own.pk]
        assert circuit_breaker.probe(with_own.pk)
        assert set(SessionQueue.objects.filter(parked_at=None).values_list("pk", flat=True)) == {theirs.pk}
        circuit_breaker.close()
        assert set(SessionQueue.objects.filter(parked_at=None).values_list("pk", flat=True)) == {theirs.pk, others.pk}

    def test_a_paused_endpoints_work_is_not_overdue_and_hides_nobodys(self, model: Model) -> None:
        broken, other = factories.tenant(), factories.tenant()
        own(broken, model="small")
        theirs, others = due(broken), due(other)
        SessionQueue.objects.filter(pk=theirs.pk).update(due_at=Now() - timedelta(hours=2))
        SessionQueue.objects.filter(pk=others.pk).update(due_at=Now() - timedelta(hours=1))
        assert 7_000 < backlog.overdue_seconds() < 7_400
        open_circuit(broken.pk)
        assert 3_500 < backlog.overdue_seconds() < 3_700
        first = backlog.look(cluster="none").first
        assert first
        assert first[0] == others.pk


@pytest.mark.django_db
class TestCaps:
    def test_at_the_cap_extraction_waits_for_the_next_day_of_the_tenant(self, model: Model) -> None:
        tenant = factories.tenant(time_zone="Asia/Shanghai")
        own(tenant, daily_tokens=ONE_CALL)
        first, second, elsewhere = due(tenant), due(tenant), due(factories.tenant())
        assert extract(first)
        assert extract(second) is None
        queue = SessionQueue.objects.get(pk=second.pk)
        assert queue.due_at
        midnight = queue.due_at.astimezone(zone_or_utc("Asia/Shanghai"))
        assert (midnight.hour, midnight.minute) == (0, 0)
        assert timedelta() < queue.due_at - timezone.now() <= timedelta(days=1)
        assert (queue.failure, queue.attempts, queue.parked_at) == (spending.CAPPED, 0, None)
        assert ExtractionRun.objects.filter(session=second).count() == 0
        # Other tenants go on, and nothing is overdue.
        assert extract(elsewhere)
        assert backlog.overdue_seconds() == 0
        # The next day it goes on by itself.
        DailySpending.objects.update(day="2020-01-01")
        SessionQueue.objects.filter(pk=second.pk).update(due_at=Now())
        run = extract(second)
        assert run
        assert run.status == ExtractionRun.RunStatus.COMMITTED
        assert SessionQueue.objects.get(pk=second.pk).failure == ""

    def test_a_cap_of_money(self, model: Model) -> None:
        tenant = factories.tenant()
        # 70 tokens at $100 and 7 at $1,000 a million are 1.4 cents.
        own(tenant, prompt_price=100, completion_price=1_000, daily_cost=Decimal("0.02"))
        assert [bool(extract(due(tenant))) for _ in range(3)] == [True, True, False]
        assert DailySpending.objects.get().cost == Decimal("0.028")

    def test_answers_that_cannot_be_used_count(self, model: Model) -> None:
        tenant = factories.tenant()
        failure = ModelAnswerInvalid()
        failure.prompt_tokens = 500
        model.answers = [failure]
        run = extract(due(tenant))
        assert run
        assert (run.status, run.prompt_tokens) == (ExtractionRun.RunStatus.FAILED, 500)
        assert DailySpending.objects.get().tokens == 500

    def test_summaries_count_and_wait(self, model: Model) -> None:
        tenant = factories.tenant(window_rounds=1)
        own(tenant, daily_tokens=1_000_000)
        said = [(role, f"{role} {number}") for number in range(6) for role in ("user", "assistant")]
        session = factories.session(factories.end_user(tenant), said)
        WorkingMemory.objects.update(due_at=Now())
        assert compaction.compact(session_id=session.pk, now=timezone.now())
        assert DailySpending.objects.get().tokens == ONE_CALL * len(model.prompts) > 0
        LanguageModel.objects.update(daily_tokens=1)
        WorkingMemory.objects.update(due_at=Now(), over_since=Now())
        assert not compaction.compact(session_id=session.pk, now=timezone.now())
        assert WorkingMemory.objects.get().failure == spending.CAPPED

    def test_a_raised_cap_lets_it_go_on_at_once(self, model: Model) -> None:
        tenant = factories.tenant()
        own(tenant, daily_tokens=ONE_CALL)
        extract(due(tenant))
        waiting = due(tenant)
        assert extract(waiting) is None
        save_language_model(
            tenant_id=tenant.pk,
            settings=ModelSettings(daily_tokens=10 * ONE_CALL),
            expected_version=1,
            actor=COMMAND,
            now=timezone.now(),
        )
        assert woken() == {waiting.pk}
        assert extract(waiting)

    def test_without_a_model_no_cap_holds_anything(self, person: EndUser, settings: LazySettings) -> None:
        settings.MEMORYHUB_LLM = "rules"
        own(person.tenant, daily_tokens=1)
        DailySpending.objects.create(tenant=person.tenant, day=datetime.now(UTC).date(), tokens=5)
        assert extract(factories.session(person, flush=True))


@pytest.mark.django_db(transaction=True)
def test_a_cap_that_is_raised_while_a_worker_looks_at_it(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    tenant = factories.tenant()
    own(tenant, daily_tokens=1)
    DailySpending.objects.create(tenant=tenant, day=datetime.now(UTC).date(), tokens=5)
    session, gate, look = due(tenant), Gate(), spending.day_of

    def looked(*given: Any, **named: Any) -> Any:
        day = look(*given, **named)
        gate.stop()
        return day

    monkeypatch.setattr(spending, "day_of", looked)

    def raise_cap() -> None:
        monkeypatch.setattr(spending, "day_of", look)
        save_language_model(
            tenant_id=tenant.pk,
            settings=ModelSettings(daily_tokens=1_000),
            expected_version=1,
            actor=COMMAND,
            now=timezone.now(),
        )

    # The worker had read the old cap. It reads it again under the lock, and is not held back.
    assert gate.meanwhile(lambda: extract(session), raise_cap)
