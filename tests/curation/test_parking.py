"""What was given up is tried anew all at once: what failed so, of whose tenants, once, no more than a go takes."""

from datetime import datetime

import pytest

from memories.curation import retries
from memories.curation.retries import retry_parked
from memories.models import AuditEvent, Session, SessionQueue, Tenant, WorkingMemory
from tests import factories
from tests.database import at_once
from tests.factories import NOW, STAFF

pytestmark = pytest.mark.django_db


def parked(tenant: Tenant | None = None, *, failure: str = "model_timeout", at: datetime = NOW) -> Session:
    session = factories.session(factories.end_user(tenant))
    fields = {"parked_at": at, "failure": failure, "attempts": 5, "due_at": None}
    SessionQueue.objects.filter(pk=session.pk).update(**fields)
    WorkingMemory.objects.filter(pk=session.pk).update(**fields)
    return session


def retry(*tenants: Tenant, work: str = "extraction", failure: str = "model_timeout") -> int:
    among = Tenant.objects.filter(pk__in=[tenant.pk for tenant in tenants])
    return retry_parked(work=work, failure=failure, tenants=among, actor=STAFF, now=NOW)


@pytest.mark.parametrize(("work", "model"), [("extraction", SessionQueue), ("window", WorkingMemory)])
def test_what_failed_so_is_due_again(work: str, model: type[SessionQueue | WorkingMemory]) -> None:
    session, other = parked(), parked(failure="model_refused")
    assert retry(session.tenant, other.tenant, work=work) == 1
    row = model._default_manager.get(pk=session.pk)
    assert (row.parked_at, row.failure, row.attempts) == (None, "", 0)
    assert row.due_at
    assert model._default_manager.get(pk=other.pk).parked_at
    event = AuditEvent.objects.get(verb="retry_parked")
    assert (event.tenant_uuid, event.counts) == (session.tenant_id, {work: 1})


def test_other_tenants_are_left_alone() -> None:
    own, other = parked(), parked()
    assert retry(own.tenant) == 1
    assert SessionQueue.objects.get(pk=other.pk).parked_at


def test_a_go_has_an_end_and_takes_the_longest_parked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "MOST", 1)
    tenant = factories.tenant()
    late, early = parked(tenant), parked(tenant, at=NOW.replace(year=2025))
    assert retry(tenant) == 1
    assert SessionQueue.objects.get(pk=early.pk).parked_at is None
    assert SessionQueue.objects.get(pk=late.pk).parked_at


def test_nothing_parked_leaves_no_line() -> None:
    assert retry(factories.tenant()) == 0
    assert not AuditEvent.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_two_at_once_retry_each_session_once() -> None:
    tenant = factories.tenant()
    for _ in range(6):
        parked(tenant)
    assert sum(count for count in at_once(3, lambda _: retry(tenant)) if isinstance(count, int)) == 6
