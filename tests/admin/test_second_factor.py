"""The second factor: set up behind a fresh password, asked for at sign-in, required of all or of none."""

import re
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal import auth as totp
from django.contrib.sessions.models import Session
from django.core.exceptions import PermissionDenied
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from memories.admin.access.second_factor import Adapter
from memories.audit import Actor
from memories.conf import second_factor_keys
from memories.curation.access.second_factors import remove_second_factor
from memories.exceptions import Conflict, NotFound
from memories.models import AuditEvent, Operator
from tests import factories
from tests.admin import walk
from tests.admin.conftest import signed_in
from tests.admin.pages import page_of, text_of
from tests.curation import marks
from tests.factories import NOW

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery"
INDEX = "admin:index"


@pytest.fixture(autouse=True)
def optional(settings: Settings) -> None:
    settings.MEMORYHUB_SECOND_FACTOR = "optional"


@pytest.fixture
def ana() -> Operator:
    return factories.operator(username="ana", password=PASSWORD)


def code_of(secret: str) -> str:
    return str(totp.format_hotp_value(totp.hotp_value(secret, next(totp.yield_hotp_counters_from_time()) + 1)))


def set_up(client: Client) -> tuple[str, list[str]]:
    """Set an app up; its secret, and the recovery codes."""
    address = reverse("mfa_activate_totp")
    secret = re.findall(r'id="totp-key">(\w+)<', text_of(client.get(address)))[0]
    answer = client.post(address, {"code": code_of(secret)})
    assert answer["Location"] == reverse("mfa_view_recovery_codes")
    codes = re.findall(r"<li><code>([\w-]+)</code>", text_of(client.get(answer["Location"])))
    return secret, codes


def password(client: Client, **over: str) -> Any:
    return client.post(reverse("admin:login"), {"username": "ana", "password": PASSWORD, **over})


def is_in(client: Client) -> bool:
    return client.get(reverse(INDEX)).status_code == 200


def test_without_one_the_password_is_enough(client: Client, ana: Operator) -> None:
    assert password(client)["Location"] == reverse(INDEX)
    assert is_in(client)


def test_the_code_is_asked_for_after_the_password(client: Client, ana: Operator) -> None:
    secret, _ = set_up(signed_in(ana))
    asked = password(client)["Location"]
    assert asked == reverse("mfa_authenticate")
    assert "Enter your code" in text_of(client.get(asked))
    assert not is_in(client)
    assert client.post(asked, {"code": "000000"}).status_code == 200
    assert not is_in(client)
    assert client.post(asked, {"code": code_of(secret)}).status_code == 302
    assert is_in(client)


def test_a_recovery_code_opens_once(ana: Operator) -> None:
    _, codes = set_up(signed_in(ana))
    assert len(codes) == 10
    for opens in (True, False):
        client = Client()
        client.post(password(client)["Location"], {"code": codes[0]})
        assert is_in(client) is opens


def test_recovery_codes_are_shown_once(ana: Operator) -> None:
    client = signed_in(ana)
    _, codes = set_up(client)
    again = text_of(client.get(reverse("mfa_view_recovery_codes")))
    assert codes[0] not in again
    assert "cannot be shown again" in again
    client.post(reverse("mfa_generate_recovery_codes"))
    fresh = text_of(client.get(reverse("mfa_view_recovery_codes")))
    assert "They are shown only now." in fresh
    assert codes[0] not in fresh


def test_guessing_codes_locks_the_name_out(client: Client, ana: Operator) -> None:
    secret, _ = set_up(signed_in(ana))
    asked = password(client)["Location"]
    assert [client.post(asked, {"code": "000000"}).status_code for _ in range(5)][-1] == 429
    assert client.post(asked, {"code": code_of(secret)}).status_code == 429
    assert password(Client()).status_code == 429


def test_the_pages_want_a_fresh_password(ana: Operator) -> None:
    stale = signed_in(ana, fresh=False)
    for name in ("mfa_index", "mfa_activate_totp"):
        assert "fresh-password" in stale.get(reverse(name))["Location"]
    assert Client().get(reverse("mfa_index"))["Location"].startswith(reverse("admin:login"))


def test_secrets_are_encrypted_and_nobody_reads_them_with_another_key(ana: Operator, settings: Settings) -> None:
    secret, _ = set_up(signed_in(ana))
    Session.objects.all().delete()
    assert marks.places_of(secret) == []
    adapter = Adapter()
    kept = adapter.encrypt(secret)
    assert adapter.decrypt(kept) == secret
    settings.MEMORYHUB_MFA_KEY = settings.SECRET_KEY = "x" * 50
    with pytest.raises(second_factor_keys.Unreadable):
        adapter.decrypt(kept)


def test_off_means_off(client: Client, ana: Operator, settings: Settings) -> None:
    set_up(signed_in(ana))
    settings.MEMORYHUB_SECOND_FACTOR = "off"
    assert password(client)["Location"] == reverse(INDEX)
    for name in ("mfa_index", "mfa_activate_totp", "mfa_authenticate"):
        assert client.get(reverse(name)).status_code == 404


def test_where_it_is_required_nothing_opens_without_one(client: Client, ana: Operator, settings: Settings) -> None:
    settings.MEMORYHUB_SECOND_FACTOR = "required"
    password(client)
    for name in (INDEX, "admin:memories_fact_changelist", "admin:password_change", "admin:rollback"):
        assert client.get(reverse(name))["Location"] == reverse("mfa_activate_totp")
    assert client.post(reverse("admin:rollback"), {})["Location"] == reverse("mfa_activate_totp")
    set_up(client)
    assert is_in(client)
    page = text_of(client.get(reverse("mfa_deactivate_totp")))
    assert "requires a second factor for everybody" in page
    client.post(reverse("mfa_deactivate_totp"))
    assert Authenticator.objects.filter(user=ana, type="totp").exists()


def test_an_app_is_removed(ana: Operator) -> None:
    client = signed_in(ana)
    set_up(client)
    assert "Remove" in text_of(client.get(reverse("mfa_deactivate_totp")))
    client.post(reverse("mfa_deactivate_totp"))
    assert not Authenticator.objects.exists()
    assert "Not set up" in text_of(client.get(reverse("mfa_index")))


def test_an_administrator_removes_a_lost_one(client: Client, admin: Client, ana: Operator) -> None:
    set_up(signed_in(ana))
    assert "Remove the second factor" in text_of(admin.get(page_of(ana)))
    assert admin.post(page_of(ana, "second_factor")).status_code == 302
    assert not Authenticator.objects.exists()
    assert AuditEvent.objects.get(object_id=ana.pk).verb == "remove_second_factor"
    assert password(client)["Location"] == reverse(INDEX)
    assert admin.post(page_of(ana, "second_factor")).status_code == 409


def test_nobody_removes_that_of_somebody_who_may_more(ana: Operator) -> None:
    set_up(signed_in(ana))
    clerk = factories.operator(is_superuser=False)
    for by, error in ((clerk, PermissionDenied), (walk.role("administrator"), Conflict)):
        with pytest.raises(error):
            remove_second_factor(operator_id=ana.pk, actor=Actor.operator(by), now=NOW)
    with pytest.raises(NotFound):
        remove_second_factor(operator_id=factories.tenant().pk, actor=factories.COMMAND, now=NOW)
    assert Authenticator.objects.exists()
