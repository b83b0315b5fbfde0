"""The key of second factors: lost, it opens nothing; changed, its fallbacks open as before; and codes are used once."""

import base64
import hashlib
import hmac
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal import auth as totp
from cryptography.fernet import Fernet
from django.core.cache import cache
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from memories.conf import second_factor_keys as keys
from memories.curation.access.second_factors import use_second_factor
from memories.models import Operator
from tests import factories
from tests.admin.conftest import signed_in
from tests.admin.pages import page_of, text_of
from tests.admin.test_second_factor import PASSWORD, code_of, is_in, password, set_up
from tests.database import at_once

pytestmark = pytest.mark.django_db
# What allauth makes of an empty secret, whoever it is of: with a changed key it opened the dashboard.
CONSTANT = "11084268"
OTHER = "another-key-" + "y" * 40


@pytest.fixture(autouse=True)
def optional(settings: Settings) -> None:
    settings.MEMORYHUB_SECOND_FACTOR = "optional"


@pytest.fixture
def ana() -> Operator:
    return factories.operator(username="ana", password=PASSWORD)


def send(code: str) -> Client:
    """A browser after the password and this code."""
    client = Client()
    asked = password(client)["Location"]
    client.post(asked, {"code": code})
    return client


def as_before(text: str, secret_key: str) -> str:
    """As the hub encrypted it before second factors had a key of their own."""
    digest = hashlib.sha256(b"second factor" + secret_key.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(digest)).encrypt(text.encode()).decode()


def factor_of(operator: Operator, kind: str = "totp") -> Any:
    return Authenticator.objects.get(user=operator, type=kind)


def lose_the_key(settings: Settings) -> None:
    settings.MEMORYHUB_MFA_KEY = settings.SECRET_KEY = OTHER


def test_with_a_lost_key_no_code_opens(ana: Operator, settings: Settings) -> None:
    secret, codes = set_up(signed_in(ana))
    lose_the_key(settings)
    assert CONSTANT in _codes_of_nothing()
    for code in (code_of(""), CONSTANT, code_of(secret), codes[0]):
        assert not is_in(send(code))
        call_command("axes_reset_username", "ana", stdout=StringIO())
        cache.clear()


def test_the_page_says_what_to_do(ana: Operator, settings: Settings) -> None:
    set_up(signed_in(ana))
    lose_the_key(settings)
    client = Client()
    page = text_of(client.post(password(client)["Location"], {"code": "000000"}))
    assert "MEMORYHUB_MFA_KEY_FALLBACKS" in page
    inside = signed_in(ana)
    for name in ("mfa_index", "mfa_view_recovery_codes", "mfa_generate_recovery_codes"):
        answer = inside.get(reverse(name))
        assert answer.status_code == 409
        assert "MEMORYHUB_MFA_KEY_FALLBACKS" in text_of(answer)
    # The way out that needs no key.
    assert inside.post(reverse("mfa_deactivate_totp")).status_code == 302
    assert password(Client())["Location"] == reverse("admin:index")


def test_codes_of_nothing_open_nothing_even_when_nothing_was_encrypted(ana: Operator) -> None:
    set_up(signed_in(ana))
    for kind, name in (("totp", "secret"), ("recovery_codes", "seed")):
        factor = factor_of(ana, kind)
        factor.data[name] = keys.encrypt("")
        factor.save()
    for code in (code_of(""), CONSTANT):
        assert not is_in(send(code))


def test_a_changed_secret_key_changes_nothing(ana: Operator, settings: Settings) -> None:
    secret, codes = set_up(signed_in(ana))
    settings.SECRET_KEY = OTHER
    assert is_in(send(code_of(secret)))
    assert is_in(send(codes[0]))


@pytest.mark.parametrize("kind", ["totp", "recovery_codes"])
def test_what_the_secret_key_encrypted_opens_and_is_encrypted_anew(
    ana: Operator, settings: Settings, kind: str
) -> None:
    secret, codes = set_up(signed_in(ana))
    name = "secret" if kind == "totp" else "seed"
    factor = factor_of(ana, kind)
    factor.data[name] = as_before(keys.decrypt(factor.data[name]), settings.SECRET_KEY)
    factor.save()
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = OTHER, [settings.SECRET_KEY]
    assert is_in(send(code_of(secret) if kind == "totp" else codes[0]))
    settings.SECRET_KEY_FALLBACKS = []
    assert keys.is_present(factor_of(ana, kind).data[name])
    if kind == "recovery_codes":
        assert not is_in(send(codes[0]))
        assert is_in(send(codes[1]))


def test_a_changed_key_opens_with_its_fallback_alone(ana: Operator, settings: Settings) -> None:
    secret, _ = set_up(signed_in(ana))
    settings.MEMORYHUB_MFA_KEY, before = OTHER, settings.MEMORYHUB_MFA_KEY
    assert not is_in(send(code_of(secret)))
    settings.MEMORYHUB_MFA_KEY_FALLBACKS = [before]
    assert is_in(send(code_of(secret)))


def test_the_command_encrypts_all_anew(ana: Operator, settings: Settings) -> None:
    secret, codes = set_up(signed_in(ana))
    settings.MEMORYHUB_MFA_KEY, settings.MEMORYHUB_MFA_KEY_FALLBACKS = OTHER, [settings.MEMORYHUB_MFA_KEY]
    for said in ("2 encrypted", "0 encrypted"):
        out = StringIO()
        call_command("reencrypt_second_factors", stdout=out)
        assert said in out.getvalue()
    settings.MEMORYHUB_MFA_KEY_FALLBACKS = []
    assert is_in(send(code_of(secret)))
    assert is_in(send(codes[0]))
    lose_the_key(settings)
    settings.MEMORYHUB_MFA_KEY = "a third one " + "z" * 40
    settings.SECRET_KEY = "and a fourth " + "z" * 40
    with pytest.raises(CommandError, match="2 cannot be decrypted"):
        call_command("reencrypt_second_factors", stdout=StringIO())


def test_a_used_code_opens_no_more_in_another_process(ana: Operator) -> None:
    secret, _ = set_up(signed_in(ana))
    code = code_of(secret)
    assert is_in(send(code))
    # The memory of the process that took it, where allauth keeps used codes.
    cache.clear()
    assert not is_in(send(code))


def test_a_code_is_used_up_for_as_long_as_it_is_valid(ana: Operator) -> None:
    secret, _ = set_up(signed_in(ana))
    code, now = code_of(secret), timezone.now()
    given: dict[str, Any] = {"operator_id": ana.pk, "code": code}
    assert use_second_factor(**given, now=now)
    for seconds in (0, 29, 31, 45, 60):
        assert use_second_factor(**given, now=now + timedelta(seconds=seconds)) is None
    # One that comes after it opens.
    later = now + timedelta(seconds=60)
    following = totp.format_hotp_value(totp.hotp_value(secret, int(later.timestamp()) // 30))
    assert use_second_factor(operator_id=ana.pk, code=following, now=later)


def test_nobody_takes_the_code_of_another(ana: Operator) -> None:
    secret, codes = set_up(signed_in(ana))
    lin = factories.operator(username="lin")
    for code in (code_of(secret), codes[0]):
        assert use_second_factor(operator_id=lin.pk, code=code, now=timezone.now()) is None
        assert use_second_factor(operator_id=ana.pk, code=code, now=timezone.now())


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", ["totp", "recovery_codes"])
def test_of_two_at_once_one_takes_the_code(kind: str) -> None:
    ana = factories.operator(username="ana", password=PASSWORD)
    secret, codes = set_up(signed_in(ana))
    code, now = code_of(secret) if kind == "totp" else codes[3], timezone.now()
    for times in (1, 0):
        taken = at_once(4, lambda _: use_second_factor(operator_id=ana.pk, code=code, now=now))
        assert not [error for error in taken if isinstance(error, Exception)]
        assert sum(factor is not None for factor in taken) == times


def test_what_an_administrator_removes_can_be_set_up_again(admin: Client, ana: Operator, settings: Settings) -> None:
    set_up(signed_in(ana))
    settings.MEMORYHUB_MFA_KEY = OTHER
    assert admin.post(page_of(ana, "second_factor")).status_code == 302
    secret, _ = set_up(signed_in(ana))

    assert is_in(send(code_of(secret)))


def _codes_of_nothing() -> list[str]:
    """allauth's recovery codes of an empty seed."""
    made, value = hmac.new(b"", None, hashlib.sha1), []
    for number in range(10):
        made.update(f"{number:3},".encode())
        value.append(str(int.from_bytes(made.digest()[:4], "big") % 10**8).zfill(8))
    return value
