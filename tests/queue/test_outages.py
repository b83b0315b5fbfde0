"""Outages as operators see them: since when, what waits, and when the endpoint is asked again."""

import uuid
from datetime import timedelta

import pytest
from django.db.models.functions import Now
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from memories.models import EndpointState, SessionQueue, Tenant, WorkingMemory
from memories.queue import circuit_breaker
from memories.queue.outages import outage_of, outages
from tests import factories
from tests.queue.test_own_endpoints import LEASE, due, open_circuit, own

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def model(settings: Settings) -> None:
    settings.MEMORYHUB_LLM = "openai"
    settings.OPENAI_BASE_URL = "http://127.0.0.1:9/v1"


def everything() -> list[uuid.UUID | None]:
    return [outage.tenant.pk if outage.tenant else None for outage in outages(Tenant.objects.all())]


def test_nothing_is_out_while_the_circuit_is_closed(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    circuit_breaker.count_failure(uuid.uuid4(), retry_after=None)
    with django_assert_num_queries(1):
        assert everything() == []


def test_it_lasts_from_the_first_failure_until_an_answer() -> None:
    open_circuit(None)
    early = timezone.now() - timedelta(hours=2)
    EndpointState.objects.update(failing_since=early)
    circuit_breaker.count_failure(uuid.uuid4(), retry_after=None)
    (outage,) = outages(Tenant.objects.all())
    assert outage.since == early
    circuit_breaker.close()
    assert everything() == []
    open_circuit(None)
    (again,) = outages(Tenant.objects.all())
    assert again.since
    assert again.since > early


def test_the_next_try_is_the_end_of_the_longer_pause() -> None:
    open_circuit(None)
    EndpointState.objects.update(until=Now() + LEASE, stated_until=Now() + 2 * LEASE)
    (outage,) = outages(Tenant.objects.all())
    assert outage.next_try == EndpointState.objects.get().stated_until
    EndpointState.objects.update(until=Now() - LEASE, stated_until=None)
    (over,) = outages(Tenant.objects.all())
    assert over.next_try is None


def test_what_is_due_or_parked_by_the_outage_waits() -> None:
    tenant = factories.tenant()
    for failure in ("model_timeout", "model_refused"):
        SessionQueue.objects.filter(pk=due(tenant).pk).update(parked_at=Now(), due_at=None, failure=failure)
    WorkingMemory.objects.filter(pk=due(tenant).pk).update(due_at=Now() - LEASE)  # and its extraction: one session
    later = due(tenant)
    SessionQueue.objects.filter(pk=later.pk).update(due_at=Now() + LEASE)
    WorkingMemory.objects.filter(pk=later.pk).update(due_at=None)
    due(factories.tenant())
    open_circuit(None)
    (mine,) = outages(Tenant.objects.filter(pk=tenant.pk))
    (all_of_them,) = outages(Tenant.objects.all())
    assert (mine.waiting, all_of_them.waiting) == (2, 3)


def test_each_endpoint_is_out_for_those_who_ask_it() -> None:
    with_own, other = factories.tenant(), factories.tenant()
    own(with_own, model="m", base_url="https://own.example/v1")
    due(with_own)
    open_circuit(with_own.pk)
    assert everything() == [with_own.pk]
    assert outages(Tenant.objects.filter(pk=other.pk)) == []
    assert outage_of(other.pk) is None
    mine = outage_of(with_own.pk)
    assert mine
    assert (mine.tenant, mine.waiting) == (with_own, 1)
    open_circuit(None)
    assert everything() == [None, with_own.pk]
    assert [outage.waiting for outage in outages(Tenant.objects.all())] == [0, 1]
    hubs = outage_of(other.pk)
    assert hubs
    assert hubs.tenant is None
