"""Signing in through an identity provider: one on the loopback, that says who comes."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from allauth.socialaccount.models import SocialAccount, SocialToken
from django.core.exceptions import PermissionDenied
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from memories.admin.access import identity
from memories.admin.access.fresh import GIVEN_AT
from memories.audit import Actor
from memories.curation.access.provider_links import link_provider, unlink_provider
from memories.exceptions import Conflict, NotFound
from memories.models import AuditEvent, Operator
from tests import factories
from tests.admin import provider, walk
from tests.admin.conftest import signed_in
from tests.admin.pages import page_of, text_of
from tests.admin.provider import Provider, query_of
from tests.database import at_once
from tests.factories import NOW

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
    server.token_claims = {} if "auth_time" in claims else {"auth_time": int(time.time())}
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


def test_nobody_else_comes_in_and_nobody_is_made(acme: Provider, ana: Operator) -> None:
    for _ in range(2):
        factories.operator(email="twice@example.com")
    factories.operator(email="gone@example.com", is_active=False)
    factories.operator(email="none-of-staff@example.com", is_staff=False)
    before = Operator.objects.count()
    claims: list[dict[str, Any]] = [
        {"email": "nobody@example.com"}, {"email_verified": False}, {"email_verified": "false"}, {"email": ""},
        {"email": "twice@example.com"}, {"email": "gone@example.com"}, {"email": "none-of-staff@example.com"},
    ]  # fmt: skip
    for claimed in claims:
        client = Client()
        assert come(client, acme, **claimed)["Location"] == reverse("admin:login"), claimed
        assert "Ask an administrator" in text_of(client.get(reverse("admin:login"))), claimed
        assert client.get(reverse(INDEX)).status_code == 302, claimed
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
    asked = query_of(client.get(again)["Location"])
    assert (asked["prompt"], asked["max_age"]) == ("login", "0")
    come(client, acme)
    assert client.get(reverse("admin:memories_operator_add")).status_code == 200


def stale(client: Client) -> Client:
    """The browser ten minutes after signing in."""
    session = client.session
    session[GIVEN_AT] = 0
    session.save()
    return client


HARD = "admin:memories_operator_add"


@pytest.mark.parametrize(
    ("auth_time", "words"),
    [(None, "does not say when"), (lambda: int(time.time()) - 700, "did not check who you are"),
     (lambda: int(time.time()) + 120, "does not say when"), (lambda: str(int(time.time())), "does not say when"),
     (lambda: True, "does not say when"), (lambda: -5, "does not say when")],
)  # fmt: skip
def test_a_sign_in_of_long_ago_stands_for_no_password(
    client: Client, acme: Provider, ana: Operator, auth_time: Callable[[], Any] | None, words: str
) -> None:
    come(client, acme)
    stale(client)
    said = {"auth_time": auth_time()} if auth_time else {"auth_time": None}
    back = come(client, acme, to=reverse(HARD), **said)
    assert "fresh-password" in back["Location"]
    assert words in text_of(client.get(back["Location"]))
    assert "fresh-password" in client.get(reverse(HARD))["Location"]
    # They are signed in as before, and the way is open to who proves it.
    assert client.get(reverse(INDEX)).status_code == 200
    assert come(client, acme, to=reverse(HARD))["Location"] == reverse(HARD)
    assert client.get(reverse(HARD)).status_code == 200


def test_the_ten_minutes_count_from_the_proof(client: Client, acme: Provider, ana: Operator) -> None:
    proved = int(time.time()) - 500
    come(client, acme)
    stale(client)
    assert come(client, acme, to=reverse(HARD), auth_time=proved)["Location"] == reverse(HARD)
    assert client.session[GIVEN_AT] == proved


def test_who_is_let_through_unasked_is_signed_in_and_not_fresh(client: Client, acme: Provider, ana: Operator) -> None:
    for auth_time in (None, int(time.time()) - 5_000):
        browser = Client()
        come(browser, acme, auth_time=auth_time)
        assert browser.get(reverse(INDEX)).status_code == 200
        assert "fresh-password" in browser.get(reverse(HARD))["Location"]


def test_only_the_id_token_says_when(client: Client, acme: Provider, ana: Operator) -> None:
    come(client, acme)
    stale(client)
    acme.claims = {**ANA, "auth_time": int(time.time())}
    acme.token_claims = {"auth_time": None}
    asked = query_of(client.get(identity.provider_link(to=reverse(HARD), again=True))["Location"])
    acme.challenge = asked["code_challenge"]
    callback = reverse("openid_connect_callback", args=["sso"])
    back = client.get(callback, {"code": "c", "state": asked["state"]})
    assert "fresh-password" in back["Location"]


def test_an_id_token_of_somebody_else_opens_nothing(client: Client, acme: Provider, ana: Operator) -> None:
    acme.claims, acme.token_claims = ANA, {"sub": "person-8"}
    asked = query_of(client.get(identity.provider_link(to=reverse(INDEX)))["Location"])
    acme.challenge = asked["code_challenge"]
    callback = reverse("openid_connect_callback", args=["sso"])
    assert client.get(callback, {"code": "c", "state": asked["state"]})["Location"] == reverse("admin:login")
    assert client.get(reverse(INDEX)).status_code == 302


def test_a_second_account_with_the_same_address_is_refused(client: Client, acme: Provider, ana: Operator) -> None:
    come(client, acme)
    other = Client()
    assert come(other, acme, sub="person-9")["Location"] == reverse("admin:login")
    assert "Ask an administrator to unlink it" in text_of(other.get(reverse("admin:login")))
    assert other.get(reverse(INDEX)).status_code == 302
    assert SocialAccount.objects.get().uid == "person-7"
    assert AuditEvent.objects.filter(verb="link_provider", object_id=ana.pk).count() == 1
    # The first one comes in as ever.
    assert come(Client(), acme)["Location"] == reverse(INDEX)


def test_an_administrator_unlinks_and_the_next_account_is_linked(
    client: Client, admin: Client, acme: Provider, ana: Operator
) -> None:
    assert admin.post(page_of(ana, "unlink")).status_code == 409
    assert "Unlink the account" not in text_of(admin.get(page_of(ana)))
    come(client, acme)
    assert "Unlink the account" in text_of(admin.get(page_of(ana)))
    assert admin.post(page_of(ana, "unlink")).status_code == 302
    assert AuditEvent.objects.get(verb="unlink_provider").object_id == ana.pk
    # Who came through it is out, the administrator is not.
    assert client.get(reverse(INDEX)).status_code == 302
    assert admin.get(reverse(INDEX)).status_code == 200
    other = Client()
    assert come(other, acme, sub="person-9")["Location"] == reverse(INDEX)
    assert SocialAccount.objects.get().uid == "person-9"
    assert come(Client(), acme)["Location"] == reverse("admin:login")


def test_unlinking_wants_a_fresh_password_and_enough_power(acme: Provider, ana: Operator, client: Client) -> None:
    come(client, acme)
    assert signed_in(factories.operator(), fresh=False).post(page_of(ana, "unlink")).status_code == 403
    clerk = factories.operator(is_superuser=False)
    for by, error in ((clerk, PermissionDenied), (walk.role("administrator"), Conflict)):
        with pytest.raises(error):
            unlink_provider(operator_id=ana.pk, actor=Actor.operator(by), now=NOW)
    with pytest.raises(NotFound):
        unlink_provider(operator_id=factories.tenant().pk, actor=factories.COMMAND, now=NOW)
    assert SocialAccount.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_two_accounts_at_once_one_is_linked() -> None:
    ana = factories.operator(username="ana")

    def link(number: int) -> Any:
        account = SocialAccount(provider="sso", uid=f"person-{number}")
        return link_provider(operator_id=ana.pk, account=account, now=NOW)

    done = at_once(3, link)
    assert sum(isinstance(one, Conflict) for one in done) == 2
    assert SocialAccount.objects.filter(user=ana).count() == 1
