"""API keys: shown once, found by their prefix, checked by their digest, refused once they are over; and rotated: a
successor beside the old one, which ends when it was said, once, whoever else is at it."""

import hashlib
import re
from datetime import timedelta
from typing import Any

import pytest

from memories.curation.access.keys import (
    authenticate_key,
    create_api_key,
    put_off_end,
    revoke_api_key,
    rotate_api_key,
)
from memories.curation.tenants.off_boarding import off_board_tenant
from memories.exceptions import Conflict, PreconditionFailed
from memories.models import APIKey, AuditEvent, Scope, Tenant
from tests import factories
from tests.curation.marks import places_of
from tests.database import blocked, held, statements
from tests.factories import NOW, STAFF

pytestmark = pytest.mark.django_db
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def make(tenant: Tenant, **over: Any) -> tuple[APIKey, str]:
    given = {"name": "bot", "scopes": [Scope.READ, Scope.INGEST], "actor": STAFF, "now": NOW, **over}
    return create_api_key(tenant=tenant, **given)


def authenticate(plaintext: str, *, after: timedelta = timedelta()) -> APIKey | None:
    return authenticate_key(plaintext=plaintext, now=NOW + after)


def test_the_secret_is_shown_once_and_kept_nowhere(tenant: Tenant) -> None:
    key, plaintext = make(tenant)
    found = re.fullmatch(r"mh_([a-z0-9]{10})_([A-Za-z0-9_-]{43})", plaintext)
    assert found
    assert found[1] == key.prefix
    assert bytes(APIKey.objects.get().digest) == hashlib.sha256(plaintext.encode()).digest()
    assert places_of(found[2]) == []
    assert places_of(found[1]) == ["memories_apikey.prefix"]


def test_no_two_are_alike(tenant: Tenant) -> None:
    made = [make(tenant)[1] for _ in range(20)]
    assert len(set(made)) == 20


def test_making_and_revoking_leave_events(tenant: Tenant) -> None:
    key, _ = make(tenant)
    revoke_api_key(key=key, actor=STAFF, now=NOW)
    revoke_api_key(key=key, actor=STAFF, now=NOW)
    told = AuditEvent.objects.order_by("id").values_list("verb", "object_type", "object_id", "tenant_uuid", "actor_id")
    assert list(told) == [(verb, "APIKey", key.pk, tenant.pk, "7") for verb in ("create", "revoke")]


def test_a_key_opens_its_tenant_with_its_scopes(tenant: Tenant) -> None:
    _, plaintext = make(tenant)
    other, _ = make(factories.tenant())
    found = authenticate(plaintext)
    assert found
    assert (found.tenant, found.scopes) == (tenant, ["read", "ingest"])
    assert found != other


def test_what_a_tenant_keeps_as_json_comes_as_it_was_set() -> None:
    phrases = {"goal": ["our target is"]}
    _, plaintext = make(factories.tenant(signal_phrases=phrases))
    _, plain = make(factories.tenant())
    for one, expected in ((plaintext, phrases), (plain, {})):
        found = authenticate(one)
        assert found
        assert found.tenant.signal_phrases == expected


@pytest.mark.parametrize(
    "spoil",
    [
        lambda good: "",
        lambda good: "mh",
        lambda good: "mh__",
        lambda good: good[:-1],
        lambda good: good + "x",
        lambda good: good[:-1] + ("a" if good[-1] != "a" else "b"),
        lambda good: good.upper(),
        lambda good: good.replace("mh_", "xx_", 1),
        lambda good: good[:14],
        lambda good: good[:13] + "_",
        lambda good: "mh_" + "%" * 10 + good[13:],
        lambda good: "mh_aaaaaaaaaa" + good[13:],
        lambda good: "mh_" + "\x00" * 10 + good[13:],
        lambda good: " " + good,
        lambda good: "mh_" + "x" * 100_000,
        lambda good: "mh_" + good[3:13] + "_" + "密" * 43,
    ],
)
def test_nothing_else_opens_it(tenant: Tenant, spoil: Any) -> None:
    _, plaintext = make(tenant)
    assert authenticate(plaintext)
    assert authenticate(spoil(plaintext)) is None


def test_a_digest_of_another_key_does_not_pass(tenant: Tenant) -> None:
    (one, plaintext), (other, _) = make(tenant), make(tenant)
    assert authenticate(f"mh_{other.prefix}_{plaintext.split('_', 2)[2]}") is None
    assert authenticate(plaintext) == one


def test_an_expired_key_is_refused(tenant: Tenant) -> None:
    _, plaintext = make(tenant, expires_at=NOW + MINUTE)
    assert authenticate(plaintext)
    assert authenticate(plaintext, after=MINUTE) is None


def test_a_revoked_key_is_refused_at_once_and_keeps_its_first_date(tenant: Tenant) -> None:
    key, plaintext = make(tenant)
    spare = make(tenant)[1]
    assert authenticate(plaintext)
    revoke_api_key(key=key, actor=STAFF, now=NOW)
    assert authenticate(plaintext) is None
    revoke_api_key(key=key, actor=STAFF, now=NOW + MINUTE)
    assert APIKey.objects.get(pk=key.pk).revoked_at == NOW
    assert authenticate(spare)


def test_last_use_is_kept_to_five_minutes(tenant: Tenant) -> None:
    key, plaintext = make(tenant)
    seen = []
    for minutes in (0, 4, 5, 9, 11):
        authenticate(plaintext, after=minutes * MINUTE)
        seen.append(APIKey.objects.get(pk=key.pk).last_used_at)
    assert seen == [NOW, NOW, NOW + 5 * MINUTE, NOW + 5 * MINUTE, NOW + 11 * MINUTE]


def test_a_wrong_secret_is_no_use(tenant: Tenant) -> None:
    key, plaintext = make(tenant)
    authenticate(plaintext[:-1])
    assert APIKey.objects.get(pk=key.pk).last_used_at is None


def test_a_request_costs_one_statement(tenant: Tenant) -> None:
    _, plaintext = make(tenant)
    assert len(statements(lambda: authenticate(plaintext))) == 2
    found: list[APIKey | None] = []
    assert len(statements(lambda: found.append(authenticate(plaintext)))) == 1
    # The tenant came with it.
    assert found[0]
    assert statements(lambda: found[0] and found[0].tenant.slug) == []
    assert statements(lambda: authenticate("mh_short_x")) == []


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
