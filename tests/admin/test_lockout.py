"""Five wrong passwords for one name from one address: then a page that says what to do, for a quarter of an hour."""

from datetime import timedelta
from typing import Any

import pytest
from axes.models import AccessAttempt, AccessLog
from django.core.management import call_command
from django.test import Client, RequestFactory
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from memories import curation
from memories.admin import lockout
from memories.models import Operator
from tests import factories
from tests.admin.conftest import signed_in
from tests.admin.pages import page_of, text_of
from tests.curation import marks

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
    curation.sweep_sign_ins(now=now)
    assert AccessAttempt.objects.exists()
    assert client.get(reverse("admin:index")).status_code == 200
    curation.sweep_sign_ins(now=now + timedelta(hours=13))
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
