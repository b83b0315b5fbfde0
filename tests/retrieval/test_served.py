"""What applications are served is counted in the process, and added to the day's row in the background."""

from datetime import timedelta

import pytest
from django.db import OperationalError, connection
from django.test.client import Client

from memories.models import ServedDay, Tenant
from memories.models.conversations.serving import BUCKETS, CONTEXT_MS
from memories.retrieval import recalls, served
from tests import factories
from tests.database import at_once, statements
from tests.factories import NOW

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def nothing_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served, "_counted", {})


def times(row: ServedDay) -> dict[int, int]:
    """The buckets with something in them, by their limit; 0: beyond the last."""
    return {limit: count for limit, count in zip((*CONTEXT_MS, 0), row.context_times, strict=True) if count}


def test_a_count_is_no_statement() -> None:
    tenant = factories.tenant()
    assert statements(lambda: served.note_context(tenant.pk, seconds=0.012, now=NOW)) == []
    assert statements(lambda: served.note_recalls(tenant.pk, 3, now=NOW)) == []
    served.flush()
    row = ServedDay.objects.get()
    assert (row.tenant, row.day, row.recalls, times(row)) == (tenant, NOW.date(), 3, {12: 1})


def test_flushes_add_up_by_tenant_and_day() -> None:
    one, other = factories.tenant(), factories.tenant()
    for seconds in (0.0004, 0.0121, 99.0):
        served.note_context(one.pk, seconds=seconds, now=NOW)
        served.flush()
    served.note_context(one.pk, seconds=0.0121, now=NOW)
    served.note_context(one.pk, seconds=0.0121, now=NOW + timedelta(days=1))
    served.note_recalls(other.pk, 2, now=NOW)
    served.flush()
    first, second = ServedDay.objects.filter(tenant=one).order_by("day")
    assert (times(first), times(second)) == ({1: 1, 15: 2, 0: 1}, {15: 1})
    assert len(first.context_times) == BUCKETS
    assert (ServedDay.objects.get(tenant=other).recalls, served.waits()) == (2, False)


def test_a_tenant_that_is_gone_is_not_counted() -> None:
    gone, there = factories.tenant(), factories.tenant()
    for tenant in (gone, there):
        served.note_recalls(tenant.pk, 1, now=NOW)
    Tenant.objects.filter(pk=gone.pk).delete()
    served.flush()
    assert list(ServedDay.objects.values_list("tenant", flat=True)) == [there.pk]


def test_what_cannot_be_written_is_counted_later(monkeypatch: pytest.MonkeyPatch) -> None:
    tenant, write = factories.tenant(), served._write
    served.note_recalls(tenant.pk, 2, now=NOW)

    def fail(*_given: object) -> None:
        served.note_recalls(tenant.pk, 1, now=NOW)
        raise OperationalError

    monkeypatch.setattr(served, "_write", fail)
    with pytest.raises(OperationalError):
        served.flush()
    monkeypatch.setattr(served, "_write", write)
    served.flush()
    assert ServedDay.objects.get().recalls == 3


@pytest.mark.django_db(transaction=True)
def test_two_processes_add_to_the_same_day() -> None:
    tenant = factories.tenant()
    counts = served.ServedCounts(recalls=1)
    assert at_once(4, lambda _number: served._write(tenant.pk, NOW.date(), counts)) == [None] * 4
    assert ServedDay.objects.get().recalls == 4


def test_the_flusher_writes_the_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    tenant = factories.tenant()
    monkeypatch.setattr(connection, "close", lambda: None)
    served.note_recalls(tenant.pk, 2, now=NOW)
    recalls.RecallWriter().end()
    assert ServedDay.objects.get().recalls == 2


def test_contexts_and_searches_of_applications_are_counted(client: Client) -> None:
    person = factories.end_user()
    factories.fact(person, "Likes green tea")
    _, key = factories.api_key(person.tenant)
    headers = {"Authorization": f"Bearer {key}"}
    for path, body in (
        ("context", {"user_id": person.external_id, "query": "green tea"}),
        ("context", {"user_id": person.external_id}),
        ("search", {"user_id": person.external_id, "query": "green tea"}),
    ):
        answer = client.post(f"/api/v1/{path}", body, content_type="application/json", headers=headers)
        assert answer.status_code == 200, answer.content
    served.flush()
    row = ServedDay.objects.get()
    assert (sum(row.context_times), row.recalls) == (2, 2)
