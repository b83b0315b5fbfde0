"""The sign-in page, and the frame that every page has."""

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from memories.models import EndUser, Fact, LanguageModel, Operator
from tests import factories
from tests.admin import walk
from tests.admin.conftest import signed_in
from tests.admin.pages import list_of, page_of, text_of

BANNER = "No language model configured: messages are kept as written."
ENDPOINT = "https://models.example/v1"


def test_signing_in_leads_to_the_dashboard(client: Client, administrator: Operator) -> None:
    administrator.set_password("correct horse")
    administrator.save()
    page = client.get(reverse("admin:login"))
    assert "Memory Hub" in text_of(page)
    response = client.post(reverse("admin:login"), {"username": administrator.username, "password": "correct horse"})
    assert response.status_code == 302
    assert response["Location"] == reverse("admin:index")


def test_a_wrong_password_stays_outside(client: Client, administrator: Operator) -> None:
    response = client.post(reverse("admin:login"), {"username": administrator.username, "password": "wrong"})
    assert response.status_code == 200
    assert client.get(reverse("admin:index")).status_code == 302


@pytest.mark.parametrize("address", ["admin:index", "admin:password_change"])
def test_the_banner_says_that_no_model_is_configured(admin: Client, address: str) -> None:
    page = text_of(admin.get(reverse(address)))
    assert BANNER in page
    assert "OPENAI_API_KEY" in page


@pytest.mark.parametrize(("mode", "promised"), [("rules", True), ("off", False)])
def test_the_banner_tells_of_suggestions_where_there_are_any(
    mode: str, promised: bool, admin: Client, settings: Settings
) -> None:
    settings.MEMORYHUB_LLM = mode
    page = text_of(admin.get(reverse("admin:index")))
    assert BANNER in page
    assert ("Simple rules make facts of requests to remember, wishes and plain statements." in page) is promised


def test_the_banner_is_on_lists_records_and_forms(admin: Client) -> None:
    fact = factories.fact(factories.end_user())
    for address in (list_of(Fact), page_of(fact), page_of(fact.tenant), f"{list_of(type(fact.tenant))}add/"):
        assert BANNER in text_of(admin.get(address))


@pytest.mark.parametrize("own_endpoint", [False, True])
def test_the_banner_asks_for_an_endpoint_only_who_can_enter_one(
    own_endpoint: bool, admin: Client, settings: Settings
) -> None:
    settings.MEMORYHUB_LLM = "rules"
    if own_endpoint:
        LanguageModel.objects.create(tenant=factories.tenant(), base_url=ENDPOINT, updated_at=factories.NOW)
        factories.tenant()
    asked = "Enter an endpoint on the page of the tenant." if own_endpoint else "OPENAI_API_KEY"
    dpo = text_of(signed_in(walk.role("dpo")).get(reverse("admin:index")))
    assert "no language model" in dpo.casefold()
    assert asked not in dpo
    assert "An administrator can enter an endpoint." in dpo
    page = text_of(admin.get(reverse("admin:index")))
    assert asked in page
    assert "An administrator can" not in page


def test_the_banner_leads_to_where_a_model_is_chosen(admin: Client, settings: Settings) -> None:
    settings.MEMORYHUB_LLM = "rules"
    where = reverse("admin:model_banner")
    assert where in text_of(admin.get(reverse("admin:index")))
    first = factories.tenant()
    model = reverse("admin:memories_tenant_model", args=[first.pk])
    assert admin.get(where).headers["Location"] == model
    factories.tenant()
    assert admin.get(where).headers["Location"] == list_of(type(first))
    assert signed_in(walk.role("auditor")).get(where).headers["Location"] == list_of(type(first))


def test_the_banner_is_hidden_until_the_next_sign_in(admin: Client, administrator: Operator) -> None:
    hide = reverse("admin:model_banner")
    facts = list_of(Fact)
    assert f'name="to" value="{facts}"' in text_of(admin.get(facts))
    assert admin.post(hide, {"to": "https://elsewhere.example/"}).headers["Location"] == reverse("admin:index")
    assert admin.post(hide, {"to": facts}).headers["Location"] == facts
    assert BANNER not in text_of(admin.get(facts))
    assert BANNER in text_of(signed_in(administrator).get(facts))


def test_the_banner_is_gone_with_an_endpoint(admin: Client, settings: Settings) -> None:
    settings.MEMORYHUB_LLM = "openai"
    settings.OPENAI_BASE_URL = "http://127.0.0.1:9/v1"
    assert BANNER not in text_of(admin.get(reverse("admin:index")))


def test_the_banner_is_not_on_the_sign_in_page(client: Client, db: None) -> None:
    page = text_of(client.get(reverse("admin:login")))
    assert BANNER not in page
    assert "Log in" not in page
    assert page.count("Sign in") > 1


def test_whoever_signed_in_signs_out(admin: Client) -> None:
    page = text_of(admin.get(reverse("admin:index")))
    assert "Sign out" in page
    assert "Log out" not in page


def test_times_are_told_in_the_operators_zone(admin: Client) -> None:
    person = factories.end_user()
    assert "3 Nov 2026, 09:12:00 UTC" in text_of(admin.get(page_of(person)))
    elsewhere = signed_in(factories.operator(time_zone="Asia/Shanghai"))
    assert "3 Nov 2026, 17:12:00 CST" in text_of(elsewhere.get(page_of(person)))


def test_an_unknown_zone_counts_as_utc(db: None) -> None:
    lost = signed_in(factories.operator(time_zone="Mars/Olympus"))
    assert "09:12:00 UTC" in text_of(lost.get(page_of(factories.end_user())))


def test_a_search_does_not_travel_into_addresses(admin: Client) -> None:
    factories.end_user(external_id="someone", display_name="Katherine")
    page = text_of(admin.get(list_of(EndUser), {"q": "Katherine"}))
    assert "Katherine" in page
    assert "_changelist_filters" not in page


def test_the_banner_is_for_tenants_without_an_endpoint_of_their_own(admin: Client, settings: Settings) -> None:
    def says() -> tuple[bool, bool]:
        page = text_of(admin.get(reverse("admin:index")))
        return BANNER in page, "Some tenants have no language model" in page

    settings.MEMORYHUB_LLM = "rules"
    own, other = factories.tenant(), factories.tenant()
    assert says() == (True, False)
    LanguageModel.objects.create(tenant=own, base_url=ENDPOINT, updated_at=factories.NOW)
    assert says() == (False, True)
    # Another model at the hub's endpoint, which there is not.
    LanguageModel.objects.create(tenant=other, model="m", updated_at=factories.NOW)
    assert says() == (False, True)
    LanguageModel.objects.update(base_url=ENDPOINT)
    assert says() == (False, False)
    settings.MEMORYHUB_LLM = "off"
    assert says() == (True, False)


def test_the_banner_counts_the_operators_tenants(db: None, settings: Settings) -> None:
    settings.MEMORYHUB_LLM = "rules"
    limited = factories.operator(all_tenants=False)
    limited.tenants.add(factories.tenant())
    LanguageModel.objects.create(tenant=limited.tenants.get(), base_url=ENDPOINT, updated_at=factories.NOW)
    factories.tenant()
    page = text_of(signed_in(limited).get(reverse("admin:index")))
    assert "no language model" not in page.casefold()
