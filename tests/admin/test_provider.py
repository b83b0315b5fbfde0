"""Signing in through an identity provider: one on the loopback, that says who comes."""

from collections.abc import Iterator
from typing import Any

import pytest
from allauth.socialaccount.models import SocialAccount, SocialToken
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from memories.admin import identity
from memories.admin.fresh import GIVEN_AT
from memories.models import Operator
from tests import factories
from tests.admin import provider
from tests.admin.pages import text_of
from tests.admin.provider import Provider, query_of

pytestmark = pytest.mark.django_db
INDEX = "admin:index"
ANA = {"sub": "person-7", "email": "ana@example.com", "email_verified": True, "preferred_username": "ana"}


@pytest.fixture
def acme(settings: Settings) -> Iterator[Provider]:
    with provider.running() as server:
        settings.SOCIALACCOUNT_PROVIDERS = server.settings()
        yield server


@pytest.fixture
def ana(db: None) -> Operator:
    operator = factories.operator(username="ana", email="Ana@example.com")
    operator.set_unusable_password()
    operator.save()
    return operator


def come(client: Client, server: Provider, *, to: str = "", **claims: Any) -> Any:
    """Follow the link of the sign-in page, be known at the provider as who the claims say, and come back."""
    server.claims = {**ANA, **claims}
    away = client.get(identity.provider_link(to=to or reverse(INDEX)))
    assert away["Location"].startswith(f"{server.url}/authorize?")
    asked = query_of(away["Location"])
    server.challenge = asked["code_challenge"]
    callback = reverse("openid_connect_callback", args=["sso"])
    return client.get(callback, {"code": "c", "state": asked["state"]})


def test_the_link_is_there_only_where_a_provider_is_set(client: Client, acme: Provider, settings: Settings) -> None:
    page = text_of(client.get(reverse("admin:login")))
    assert "Sign in with Acme" in page
    settings.SOCIALACCOUNT_PROVIDERS = {"openid_connect": {"APPS": []}}
    assert "Sign in with" not in text_of(client.get(reverse("admin:login")))
    assert client.get(identity.provider_link(to="/admin/")).status_code == 404


def test_whom_the_provider_vouches_for_is_signed_in(client: Client, acme: Provider, ana: Operator) -> None:
    back = come(client, acme, to=reverse("admin:memories_fact_changelist"))
    assert back["Location"] == reverse("admin:memories_fact_changelist")
    assert client.get(reverse(INDEX)).context["user"] == ana
    assert GIVEN_AT in client.session
    assert SocialAccount.objects.get().user == ana
    assert not SocialToken.objects.exists()
    assert acme.token_requests[0]["client_secret"] == provider.SECRET


def test_the_providers_id_counts_from_then_on(client: Client, acme: Provider, ana: Operator) -> None:
    come(client, acme)
    other = factories.operator(username="lin", email="ana@new.example.com")
    elsewhere = Client()
    come(elsewhere, acme, email="ana@new.example.com")
    assert elsewhere.get(reverse(INDEX)).context["user"] == ana
    come(elsewhere, acme, sub="person-8", email=other.email)
    assert elsewhere.get(reverse(INDEX)).context["user"] == other


@pytest.mark.parametrize(
    "claims",
    [{"email": "nobody@example.com"}, {"email_verified": False}, {"email_verified": "false"}, {"email": ""},
     {"email": "twice@example.com"}, {"email": "gone@example.com"}, {"email": "none-of-staff@example.com"}],
)  # fmt: skip
def test_nobody_else_comes_in_and_nobody_is_made(
    client: Client, acme: Provider, ana: Operator, claims: dict[str, Any]
) -> None:
    for _ in range(2):
        factories.operator(email="twice@example.com")
    factories.operator(email="gone@example.com", is_active=False)
    factories.operator(email="none-of-staff@example.com", is_staff=False)
    before = Operator.objects.count()
    back = come(client, acme, **claims)
    assert back["Location"] == reverse("admin:login")
    assert "ask an administrator" in text_of(client.get(reverse("admin:login")))
    assert client.get(reverse(INDEX)).status_code == 302
    assert Operator.objects.count() == before
    assert not SocialAccount.objects.exists()


def test_who_was_dismissed_comes_in_no_more(client: Client, acme: Provider, ana: Operator) -> None:
    come(client, acme)
    Operator.objects.filter(pk=ana.pk).update(is_active=False)
    elsewhere = Client()
    assert come(elsewhere, acme)["Location"] == reverse("admin:login")
    assert elsewhere.get(reverse(INDEX)).status_code == 302


def test_a_forged_answer_and_an_error_of_the_provider_lead_back(client: Client, acme: Provider, ana: Operator) -> None:
    callback = reverse("openid_connect_callback", args=["sso"])
    for query in ({"code": "c", "state": "forged"}, {"error": "access_denied"}, {}):
        assert client.get(callback, query)["Location"] == reverse("admin:login")
    come_with_wrong_proof = Client()
    acme.claims = ANA
    asked = query_of(come_with_wrong_proof.get(identity.provider_link(to="/admin/"))["Location"])
    acme.challenge = "another"
    answer = come_with_wrong_proof.get(callback, {"code": "c", "state": asked["state"]})
    assert answer["Location"] == reverse("admin:login")
    assert client.get(reverse(INDEX)).status_code == 302


def test_a_fresh_sign_in_takes_the_place_of_a_password(client: Client, acme: Provider, ana: Operator) -> None:
    come(client, acme)
    session = client.session
    session[GIVEN_AT] = 0
    session.save()
    page = client.get(reverse("admin:memories_operator_add"), follow=True)
    assert "Sign in again with Acme" in text_of(page)
    assert 'name="fresh_password"' not in text_of(page)
    again = identity.provider_link(to=reverse("admin:memories_operator_add"), again=True)
    assert again.replace("&", "&amp;") in text_of(page)
    assert query_of(client.get(again)["Location"])["prompt"] == "login"
    come(client, acme)
    assert client.get(reverse("admin:memories_operator_add")).status_code == 200
