"""Off-boarding a tenant: nothing in, nothing out, no key works; taken back, all is as it was."""

from datetime import timedelta
from typing import Any

import pytest

from memories.curation.access.keys import revoke_api_key
from memories.curation.tenants.off_boarding import OffBoarding, off_board_tenant, preview_off_boarding, take_back_tenant
from memories.curation.tenants.settings import save_tenant
from memories.exceptions import Conflict, NotFound, PreconditionFailed
from memories.models import APIKey, AuditEvent, Fact, SessionQueue, Tenant
from tests import factories
from tests.curation.test_keys import authenticate
from tests.database import at_once
from tests.factories import NOW, STAFF

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


def off_board(tenant: Tenant, keys: int, *, after: timedelta = timedelta()) -> Tenant:
    return off_board_tenant(tenant_id=tenant.pk, expected_keys=keys, actor=STAFF, now=NOW + after)


def take_back(tenant: Tenant, *, after: timedelta = DAY) -> Tenant:
    return take_back_tenant(tenant_id=tenant.pk, actor=STAFF, now=NOW + after)


def test_the_preview_counts_what_it_is_about() -> None:
    tenant = factories.tenant()
    factories.api_key(tenant)
    factories.api_key(tenant, expires_at=NOW - DAY)
    session = factories.session(factories.end_user(tenant))
    SessionQueue.objects.filter(pk=session.pk).update(due_at=NOW)
    factories.fact(session.end_user)
    factories.end_user()
    factories.api_key(factories.tenant())
    seen = preview_off_boarding(tenant, now=NOW)
    assert seen == OffBoarding(keys=1, people=1, facts=1, waiting=1, operators=0)


def test_it_ends_all_access_and_deletes_nothing() -> None:
    tenant = factories.tenant(serve=False)
    _, plaintext = factories.api_key(tenant)
    _, others = factories.api_key(factories.tenant())
    factories.fact(factories.end_user(tenant))
    off_board(tenant, 1)
    tenant.refresh_from_db()
    assert (tenant.capture, tenant.serve, tenant.offboarded_at) == (False, False, NOW)
    assert authenticate(plaintext) is None
    assert authenticate(others)
    assert Fact.objects.filter(tenant=tenant).exists()
    event = AuditEvent.objects.get(verb="off_board")
    assert (event.object_id, event.counts) == (tenant.pk, {"keys": 1})


def test_taken_back_all_is_as_it_was() -> None:
    tenant = factories.tenant(serve=False)
    _, plaintext = factories.api_key(tenant)
    revoked, gone = factories.api_key(tenant)
    revoke_api_key(key=revoked, actor=STAFF, now=NOW - DAY)
    off_board(tenant, 1)
    take_back(tenant)
    tenant.refresh_from_db()
    assert (tenant.capture, tenant.serve, tenant.offboarded_at, tenant.before_offboarding) == (True, False, None, {})
    assert authenticate(plaintext)
    assert authenticate(gone) is None


def test_each_is_done_once() -> None:
    tenant = factories.tenant()
    with pytest.raises(Conflict):
        take_back(tenant)
    off_board(tenant, 0)
    with pytest.raises(Conflict):
        off_board(tenant, 0)
    tenant.delete()
    with pytest.raises(NotFound):
        take_back(tenant)


def test_a_key_that_the_preview_did_not_count_is_seen_first() -> None:
    tenant = factories.tenant()
    _, plaintext = factories.api_key(tenant)
    with pytest.raises(PreconditionFailed):
        off_board(tenant, 0)
    tenant.refresh_from_db()
    assert tenant.offboarded_at is None
    assert authenticate(plaintext)


def test_a_form_that_was_open_before_switches_nothing_on() -> None:
    tenant = factories.tenant()
    stale = Tenant.objects.get(pk=tenant.pk)
    off_board(tenant, 0)
    stale.name = "New name"
    save_tenant(tenant=stale, actor=STAFF, now=NOW + DAY)
    tenant.refresh_from_db()
    assert (tenant.name, tenant.capture, tenant.serve, tenant.offboarded_at) == ("New name", False, False, NOW)
    with pytest.raises(Conflict):
        factories.api_key(tenant)


@pytest.mark.django_db(transaction=True)
def test_of_many_at_once_one_does_it() -> None:
    tenant = factories.tenant()
    factories.api_key(tenant)
    outcomes: list[Any] = at_once(4, lambda _: off_board(tenant, 1))
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Conflict"] * 3 + ["Tenant"]
    assert APIKey.objects.filter(revoked_at=NOW).count() == 1


def test_who_revokes_a_key_meanwhile_has_revoked_it() -> None:
    tenant = factories.tenant()
    meanwhile, plaintext = factories.api_key(tenant)
    _, other = factories.api_key(tenant)
    off_board(tenant, 2)
    revoke_api_key(key=meanwhile, actor=STAFF, now=NOW + DAY / 2)
    assert AuditEvent.objects.filter(verb="revoke", object_id=meanwhile.pk).count() == 1
    take_back(tenant)
    assert authenticate(plaintext) is None
    assert authenticate(other)
    # Twice: neither brings it back.
    off_board(tenant, 1, after=2 * DAY)
    take_back(tenant, after=3 * DAY)
    assert authenticate(plaintext) is None


def test_a_key_that_was_revoked_at_the_very_moment_stays_revoked() -> None:
    tenant = factories.tenant()
    key, plaintext = factories.api_key(tenant)
    revoke_api_key(key=key, actor=STAFF, now=NOW)
    off_board(tenant, 0)
    take_back(tenant)
    assert authenticate(plaintext) is None


def test_a_key_that_was_given_back_can_be_revoked() -> None:
    tenant = factories.tenant()
    key, plaintext = factories.api_key(tenant)
    off_board(tenant, 1)
    take_back(tenant)
    assert authenticate(plaintext)
    revoke_api_key(key=key, actor=STAFF, now=NOW + 2 * DAY)
    assert authenticate(plaintext) is None


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("round_", range(5))
def test_revoked_while_the_tenant_is_taken_back_it_is_revoked(round_: int) -> None:
    tenant = factories.tenant(slug=f"tenant-{round_}")
    key, plaintext = factories.api_key(tenant)
    off_board(tenant, 1)

    def act(index: int) -> None:
        if index:
            revoke_api_key(key=key, actor=STAFF, now=NOW + DAY)
        else:
            take_back(tenant)

    outcomes = at_once(2, act)
    assert not [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    assert authenticate(plaintext) is None
    assert Tenant.objects.get(pk=tenant.pk).offboarded_at is None
