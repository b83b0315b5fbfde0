"""Five wrong passwords for one name from one address: then a page that says what to do, for a quarter of an hour."""

import ipaddress
from datetime import timedelta
from typing import Any

import pytest
from axes.models import AccessAttempt, AccessLog
from django.core.management import call_command
from django.test import Client, RequestFactory
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from memories.admin.access import lockout
from memories.curation.access.sign_ins import Kind as FailureKind
from memories.curation.access.sign_ins import count_failure, sweep_sign_ins
from memories.models import FailedSignIns, Operator
from tests import factories
from tests.admin.conftest import signed_in
from tests.admin.pages import page_of, text_of
from tests.curation import marks
from tests.database import at_once

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery"


@pytest.fixture
def ana() -> Operator:
    return factories.operator(username="ana", password=PASSWORD)


def sign_in(name: str, password: str, *, address: str = "192.0.2.1") -> Any:
    form = {"username": name, "password": password}
    return Client().post(reverse("admin:login"), form, REMOTE_ADDR=address)


def locked_out(name: str = "ana", **about: Any) -> bool:
    return bool(sign_in(name, PASSWORD, **about).status_code == 429)


def fail(times: int, name: str = "ana", **about: Any) -> list[int]:
    return [sign_in(name, "wrong", **about).status_code for _ in range(times)]


def test_the_fifth_wrong_password_locks_the_name_from_that_address(ana: Operator) -> None:
    assert fail(6) == [200, 200, 200, 200, 429, 429]
    answer = sign_in("ana", PASSWORD)
    assert (answer.status_code, answer["Retry-After"]) == (429, "900")
    assert "Wait 15 minutes" in text_of(answer)
    assert "axes_reset_username" in text_of(answer)
    assert "ana" not in text_of(answer).replace("manage.py", "")
    # Neither the colleague at the same desk, nor ana elsewhere.
    factories.operator(username="lin", password=PASSWORD)
    assert sign_in("lin", PASSWORD).status_code == 302
    assert sign_in("ana", PASSWORD, address="192.0.2.2").status_code == 302


def test_a_name_that_does_not_exist_is_answered_alike(ana: Operator) -> None:
    assert fail(6, "nobody") == fail(6, "ana")


def test_the_right_password_begins_anew(ana: Operator) -> None:
    fail(4)
    assert sign_in("ana", PASSWORD).status_code == 302
    assert fail(4) == [200] * 4
    assert not locked_out()


def test_it_ends_after_the_promised_time_and_not_later(ana: Operator) -> None:
    fail(5)
    # Tries meanwhile prolong nothing.
    moved = timezone.now() - timedelta(minutes=16)
    assert locked_out()
    AccessAttempt.objects.update(attempt_time=moved)
    assert not locked_out()


def test_the_command_unlocks_at_once(ana: Operator) -> None:
    fail(5)
    call_command("axes_reset_username", "ana")
    assert not locked_out()


def test_another_browser_helps_nobody(ana: Operator) -> None:
    for number in range(5):
        form = {"username": "ana", "password": "wrong"}
        Client().post(reverse("admin:login"), form, REMOTE_ADDR="192.0.2.1", headers={"user-agent": f"agent {number}"})
    assert locked_out()


def test_guessing_at_the_fresh_password_is_counted_too_and_nothing_typed_is_kept(ana: Operator) -> None:
    stale = signed_in(ana, fresh=False)
    key, _ = factories.api_key(factories.tenant())
    form = {"fresh_password": "wrong-secret", "reason": "typed-by-somebody"}
    given = [stale.post(page_of(key, "revoke"), form).status_code for _ in range(5)]
    assert given == [403, 403, 403, 403, 429]
    assert AccessAttempt.objects.get().username == "ana"
    assert marks.places_of("wrong-secret") == marks.places_of("typed-by-somebody") == []


def test_no_password_is_kept(ana: Operator) -> None:
    sign_in("ana", "a-wrong-password")
    assert AccessAttempt.objects.get().failures_since_start == 1
    assert marks.places_of("a-wrong-password") == []
    assert not AccessLog.objects.exists()


def test_attempts_and_sessions_that_are_over_are_swept(ana: Operator) -> None:
    fail(1)
    client, now = signed_in(ana), timezone.now()
    sweep_sign_ins(now=now)
    assert AccessAttempt.objects.exists()
    assert client.get(reverse("admin:index")).status_code == 200
    sweep_sign_ins(now=now + timedelta(hours=13))
    assert not AccessAttempt.objects.exists()
    assert client.get(reverse("admin:index")).status_code == 302


ADDRESSES = [
    (0, "", "192.0.2.1", "192.0.2.1"),
    (0, "198.51.100.7", "192.0.2.1", "192.0.2.1"),
    (1, "198.51.100.7", "192.0.2.1", "198.51.100.7"),
    (1, "203.0.113.9, 198.51.100.7", "192.0.2.1", "198.51.100.7"),
    (2, "203.0.113.9, 198.51.100.7, 192.0.2.4", "192.0.2.1", "198.51.100.7"),
    (1, "", "192.0.2.1", "192.0.2.1"),
    (3, "198.51.100.7", "192.0.2.1", "192.0.2.1"),
    (1, "nonsense", "192.0.2.1", "192.0.2.1"),
    (1, "[2001:db8::1]", "192.0.2.1", "2001:db8::1"),
    (0, "198.51.100.7", "", None),
]


@pytest.mark.parametrize(("proxies", "passed", "remote", "address"), ADDRESSES)
def test_the_address_is_what_the_outermost_trusted_proxy_saw(
    proxies: int, passed: str, remote: str, address: str | None, settings: Settings
) -> None:
    settings.MEMORYHUB_TRUSTED_PROXIES = proxies
    request = RequestFactory().get("/", headers={"X-Forwarded-For": passed}, REMOTE_ADDR=remote)
    assert lockout.address_of(request) == address


HALF = 2**64


def from_network(number: int, network: str = "2001:db8:0:1::") -> str:
    return str(ipaddress.ip_address(network) + number)


def test_of_version_6_a_network_is_one_address(ana: Operator) -> None:
    given = [fail(1, address=from_network(number * 7 + 1))[0] for number in range(6)]
    assert given == [200, 200, 200, 200, 429, 429]
    assert locked_out(address=from_network(HALF - 1))
    assert not locked_out(address=from_network(HALF))


@pytest.mark.parametrize(
    ("address", "counted"),
    [("2001:db8:0:1:a:b:c:d", "2001:db8:0:1::"), ("192.0.2.7", "192.0.2.7"), ("::ffff:192.0.2.7", "192.0.2.7"),
     ("::1", "::"), ("fe80::1%eth0", "fe80::"), ("nonsense", None)],
)  # fmt: skip
def test_what_an_address_counts_as(address: str, counted: str | None) -> None:
    assert lockout.counted_address_of(RequestFactory().get("/", REMOTE_ADDR=address)) == counted


def test_a_name_is_tried_from_many_addresses_slowly(ana: Operator, settings: Settings) -> None:
    settings.MEMORYHUB_LOCKOUT_NAME_FAILURES = 12
    given = [fail(1, address=f"198.51.100.{number}")[0] for number in range(14)]
    assert given == [200] * 12 + [429] * 2
    answer = sign_in("ana", PASSWORD, address="203.0.113.1")
    assert answer.status_code == 429
    assert 3_500 <= int(answer["Retry-After"]) <= 3_600
    assert "Wait 60 minutes" in text_of(answer)
    # A colleague is tried from there as ever.
    factories.operator(username="lin", password=PASSWORD)
    assert not locked_out("lin", address="203.0.113.1")


def test_a_name_that_does_not_exist_is_counted_alike(ana: Operator, settings: Settings) -> None:
    settings.MEMORYHUB_LOCKOUT_NAME_FAILURES = 7
    for name in ("ana", "nobody"):
        given = [fail(1, name, address=f"198.51.100.{number}")[0] for number in range(9)]
        assert given == [200] * 7 + [429] * 2


def test_an_address_tries_many_names_slowly(ana: Operator, settings: Settings) -> None:
    settings.MEMORYHUB_LOCKOUT_ADDRESS_FAILURES = 8
    assert [fail(1, f"name-{number}")[0] for number in range(10)] == [200] * 8 + [429] * 2
    assert locked_out("ana")
    assert not locked_out("ana", address="192.0.2.2")


def test_nobody_is_kept_out_for_longer_than_an_hour_by_who_goes_on_trying(ana: Operator, settings: Settings) -> None:
    settings.MEMORYHUB_LOCKOUT_NAME_FAILURES = 6
    for number in range(20):
        fail(1, address=f"198.51.100.{number}")
    assert locked_out(address="203.0.113.1")
    counted = FailedSignIns.objects.get(kind="name")
    assert counted.failures == 6
    FailedSignIns.objects.update(began_at=timezone.now() - timedelta(minutes=61))
    assert not locked_out(address="203.0.113.1")
    # The next window begins with its first failure.
    fail(1, address="198.51.100.99")
    assert FailedSignIns.objects.get(kind="name").failures == 1


def test_a_browser_that_signed_in_before_is_let_in_whatever_others_try(ana: Operator, settings: Settings) -> None:
    settings.MEMORYHUB_LOCKOUT_NAME_FAILURES = 6
    known = Client()
    form = {"username": "ana", "password": PASSWORD}
    assert known.post(reverse("admin:login"), form, REMOTE_ADDR="203.0.113.1").status_code == 302
    known.post(reverse("admin:logout"))
    for number in range(10):
        fail(1, address=f"198.51.100.{number}")
    assert locked_out(address="203.0.113.1")
    assert known.post(reverse("admin:login"), form, REMOTE_ADDR="203.0.113.9").status_code == 302
    # Stolen, it is worth as many guesses as the name, from wherever; forged or another's, nothing.
    known.post(reverse("admin:logout"))
    guess = {**form, "password": "wrong"}
    given = [
        known.post(reverse("admin:login"), guess, REMOTE_ADDR=f"198.51.100.{100 + number}").status_code
        for number in range(8)
    ]
    assert given == [200] * 6 + [429] * 2


def test_a_forged_mark_of_a_browser_is_none(ana: Operator, settings: Settings) -> None:
    settings.MEMORYHUB_LOCKOUT_NAME_FAILURES = 6
    client = Client()
    client.post(reverse("admin:login"), {"username": "ana", "password": PASSWORD})
    name, kept = next((name, kept) for name, kept in client.cookies.items() if name.startswith("memoryhub_known_"))
    assert kept["httponly"]
    assert kept["path"] == reverse("admin:index")
    for number in range(7):
        fail(1, address=f"198.51.100.{number}")
    form = {"username": "ana", "password": PASSWORD}
    for forged in ("x" + kept.value, kept.value[:-1] + "x", ""):
        other = Client()
        other.cookies[name] = forged
        assert other.post(reverse("admin:login"), form, REMOTE_ADDR="203.0.113.9").status_code == 429, forged


def test_who_signs_in_takes_back_what_they_mistyped_and_no_more(ana: Operator, settings: Settings) -> None:
    eve = factories.operator(username="eve", password=PASSWORD)
    fail(3, "ana")
    fail(3, eve.username)
    assert sign_in("eve", PASSWORD).status_code == 302
    counted = {row.kind: row.failures for row in FailedSignIns.objects.exclude(failures=0)}
    # Of the address, and of ana, what was tried for ana is left.
    assert counted == {"address": 3, "name": 3}
    fail(1)
    assert fail(1) == [429]


def test_the_commands_unlock_what_is_slow_too(ana: Operator, settings: Settings) -> None:
    settings.MEMORYHUB_LOCKOUT_NAME_FAILURES = settings.MEMORYHUB_LOCKOUT_ADDRESS_FAILURES = 5
    for command in (("axes_reset_username", "ana"), ("axes_reset",)):
        for number in range(6):
            fail(1, address=f"198.51.100.{number}")
        assert locked_out(address="203.0.113.1")
        call_command(*command)
        assert not locked_out(address="203.0.113.1")
    for number in range(6):
        fail(1, f"name-{number}", address="2001:db8::1")
    assert locked_out(address="2001:db8::2")
    call_command("axes_reset_ip", "2001:db8::3")
    assert not locked_out(address="2001:db8::2")


def test_slow_counts_name_nobody_and_are_swept(ana: Operator) -> None:
    fail(1, "my-secret-password")
    assert FailedSignIns.objects.count() == 2
    rows = FailedSignIns.objects.values_list("digest", flat=True)
    assert all(len(bytes(digest)) == 32 for digest in rows)
    sweep_sign_ins(now=timezone.now())
    assert FailedSignIns.objects.count() == 2
    sweep_sign_ins(now=timezone.now() + timedelta(minutes=61))
    assert not FailedSignIns.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_many_at_once_each_is_counted() -> None:
    of = [(FailureKind.NAME, "ana"), (FailureKind.ADDRESS, "192.0.2.1")]
    now = timezone.now()
    assert at_once(6, lambda _: count_failure(of=of, now=now)) == [None] * 6
    assert set(FailedSignIns.objects.values_list("failures", flat=True)) == {6}
