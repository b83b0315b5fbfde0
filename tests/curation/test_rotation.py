"""Rotating keys: a successor beside the old one, which ends when it was said, once, whoever else is at it."""

from datetime import timedelta
from typing import Any

import pytest

from memories.curation.access.keys import put_off_end, revoke_api_key, rotate_api_key
from memories.curation.tenants.off_boarding import off_board_tenant
from memories.exceptions import Conflict, PreconditionFailed
from memories.models import APIKey, AuditEvent, Scope
from tests import factories
from tests.curation.test_keys import STAFF, authenticate, make
from tests.database import blocked, held
from tests.factories import NOW

pytestmark = pytest.mark.django_db
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def rotate(key: APIKey, *, after: timedelta = timedelta(), ends: timedelta = DAY) -> tuple[APIKey, str]:
    return rotate_api_key(key=key, ends_at=NOW + ends, actor=STAFF, now=NOW + after)


def test_both_work_until_the_old_one_ends() -> None:
    key, old = make(factories.tenant())
    successor, new = rotate(key)
    assert (successor.name, successor.scopes, successor.expires_at) == ("bot", [Scope.READ, Scope.INGEST], None)
    assert authenticate(old, after=DAY - HOUR) == key
    assert authenticate(new, after=DAY - HOUR) == successor
    assert authenticate(old, after=DAY) is None
    assert authenticate(new, after=DAY) == successor
    assert [event.verb for event in AuditEvent.objects.filter(object_id=key.pk)] == ["rotate", "create"]


def test_at_once_means_at_once() -> None:
    key, old = make(factories.tenant())
    rotate(key, ends=timedelta())
    assert authenticate(old) is None


def test_the_successor_is_good_for_as_long_as_the_old_one_was() -> None:
    key, _ = make(factories.tenant(), expires_at=NOW + 30 * DAY)
    successor, _ = rotate(key, after=29 * DAY, ends=40 * DAY)
    assert successor.expires_at == NOW + 59 * DAY
    key.refresh_from_db()
    assert key.expires_at == NOW + 30 * DAY


@pytest.mark.parametrize("state", ["revoked", "expired", "rotated", "off-boarded"])
def test_what_cannot_be_rotated(state: str) -> None:
    key, _ = make(factories.tenant(), expires_at=NOW + HOUR if state == "expired" else None)
    if state == "revoked":
        revoke_api_key(key=key, actor=STAFF, now=NOW)
    if state == "rotated":
        rotate(key)
    if state == "off-boarded":
        off_board_tenant(tenant_id=key.tenant_id, expected_keys=1, actor=STAFF, now=NOW)
    keys = APIKey.objects.count()
    with pytest.raises(Conflict):
        rotate(key, after=2 * HOUR)
    assert APIKey.objects.count() == keys


def test_the_end_is_put_off() -> None:
    key, old = make(factories.tenant())
    rotate(key)
    given: dict[str, Any] = {"key": key, "ends_at": NOW + 3 * DAY, "actor": STAFF, "now": NOW + HOUR}
    with pytest.raises(PreconditionFailed):
        put_off_end(**given, expected=NOW + 2 * DAY)
    put_off_end(**given, expected=NOW + DAY)
    assert authenticate(old, after=2 * DAY) == key
    assert authenticate(old, after=3 * DAY) is None


def test_a_key_that_is_over_is_not_brought_back() -> None:
    key, _ = make(factories.tenant())
    given: dict[str, Any] = {"key": key, "ends_at": NOW + 3 * DAY, "actor": STAFF}
    with pytest.raises(Conflict):
        put_off_end(**given, expected=None, now=NOW)
    rotate(key)
    with pytest.raises(Conflict):
        put_off_end(**given, expected=NOW + DAY, now=NOW + DAY)


@pytest.mark.django_db(transaction=True)
def test_two_who_rotate_one_key_make_one_successor() -> None:
    key, _ = make(factories.tenant())
    with held(lambda: rotate(key)):
        second = blocked(lambda: rotate(key))
    with pytest.raises(Conflict):
        second.result()
    assert APIKey.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_no_key_is_made_past_an_off_boarding() -> None:
    key, _ = make(factories.tenant())
    tenant = key.tenant
    with held(lambda: off_board_tenant(tenant_id=tenant.pk, expected_keys=1, actor=STAFF, now=NOW)):
        second = blocked(lambda: make(tenant))
    with pytest.raises(Conflict):
        second.result()
    assert not APIKey.objects.filter(revoked_at=None).exists()
