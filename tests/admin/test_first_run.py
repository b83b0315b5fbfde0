"""First steps on a new hub: a checklist until it is done, a line to try a key with, and a test of the endpoint."""

from collections.abc import Callable
from typing import Any

import pytest
from django.conf import LazySettings
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memories.curation.access.invitations import invite
from memories.curation.tenants import language_models
from memories.llm import addresses
from memories.llm.backends import transport
from memories.models import LanguageModel, Tenant
from tests import factories
from tests.admin.conftest import signed_in
from tests.admin.pages import page_of, text_of
from tests.admin.test_tenant_scope import limited
from tests.llm.endpoint import running

pytestmark = pytest.mark.django_db
STEPS = "admin:first_run"


def done(client: Client) -> dict[str, bool]:
    context: Any = client.get(reverse(STEPS)).context
    return {str(step.title): step.done for step in context["steps"]}


def test_each_step_is_ticked_off_by_what_it_asks_for(admin: Client, settings: LazySettings) -> None:
    settings.MEMORYHUB_LLM = "rules"
    steps = [
        "Create a tenant",
        "Create an API key",
        "Store the first turn",
        "Choose a model",
        "Invite a second operator",
    ]
    assert done(admin) == dict.fromkeys(steps, False)
    tenant = factories.tenant()
    key, _plaintext = factories.api_key(tenant)
    assert list(done(admin).values()) == [True, True, False, False, False]
    factories.end_user(tenant)
    assert not done(admin)["Store the first turn"]
    factories.session(factories.end_user(tenant), [("user", "Hello")])
    assert done(admin)["Store the first turn"]
    key.revoked_at = timezone.now()
    key.save()
    assert not done(admin)["Create an API key"]
    factories.api_key(tenant)
    factories.operator(is_active=False)
    invite(operator_id=factories.operator().pk, actor=factories.COMMAND, now=timezone.now())
    assert not done(admin)["Invite a second operator"]
    factories.operator()
    settings.MEMORYHUB_LLM = "openai"
    # Nothing is left.
    assert done(admin) == {}
    assert "First steps" not in text_of(admin.get(reverse("admin:index")))


def test_a_tenants_own_endpoint_is_a_model(admin: Client, settings: LazySettings) -> None:
    settings.MEMORYHUB_LLM = "rules"
    tenant = factories.tenant()
    assert page_of(tenant, "model") in text_of(admin.get(reverse(STEPS)))
    LanguageModel.objects.create(tenant=tenant, base_url="https://m.example/v1", model="m", updated_at=timezone.now())
    assert done(admin)["Choose a model"]


def test_the_first_page_shows_them_to_who_can_take_them(admin: Client, staff_who_may: Callable[..., Client]) -> None:
    page = text_of(admin.get(reverse("admin:index")))
    assert "First steps" in page
    assert 'class="hub-card hub-first-run" open' in page
    assert "/api/v1/turns -H" in page
    assert "First steps" not in text_of(staff_who_may("add_apikey").get(reverse("admin:index")))


def test_what_other_tenants_have_ticks_off_nothing() -> None:
    theirs = factories.end_user()
    factories.session(theirs, [("user", "Hello")])
    factories.api_key(theirs.tenant)
    operator = limited(factories.tenant())
    operator.is_superuser = True
    operator.save()
    seen = done(signed_in(operator))
    assert (seen["Create a tenant"], seen["Create an API key"], seen["Store the first turn"]) == (True, False, False)


@pytest.mark.parametrize(("scope", "is_shown"), [("ingest", True), ("read", False)])
def test_a_new_key_is_shown_in_a_line_that_stores_a_turn(admin: Client, scope: str, is_shown: bool) -> None:
    given = {"tenant": factories.tenant().pk, "name": "bot", "scopes": [scope]}
    page: Any = admin.post(reverse("admin:memories_apikey_add"), given)
    assert page.context["plaintext"].startswith("mh_")
    assert (f"Authorization: Bearer {page.context['plaintext']}" in page.context["line"]) is is_shown
    assert ("Try it: store a turn" in text_of(page)) is is_shown


class TestOfTheEndpoint:
    @pytest.fixture
    def tenant(self, settings: LazySettings) -> Tenant:
        settings.MEMORYHUB_LLM, settings.OPENAI_API_KEY = "openai", "sk-of-a-test"
        return factories.tenant()

    def tried(self, client: Client, tenant: Tenant, **entered: str) -> Any:
        page: Any = client.post(page_of(tenant, "model_test"), entered)
        assert page.status_code == 200
        return page.context["tested"]

    def test_it_asks_and_says_how_long_it_took(self, admin: Client, tenant: Tenant, settings: LazySettings) -> None:
        with running() as endpoint:
            settings.OPENAI_BASE_URL = endpoint.url
            tried = self.tried(admin, tenant)
            assert tried.answered, tried.text
            assert "answered in" in tried.text
            assert len(endpoint.requests) == 1

    def test_nobody_there(self, admin: Client, tenant: Tenant, settings: LazySettings) -> None:
        settings.OPENAI_BASE_URL = "http://127.0.0.1:9/v1"
        tried = self.tried(admin, tenant)
        assert (tried.answered, tried.text) == (
            False,
            "The model endpoint could not be reached or returned a server error.",
        )

    def test_a_private_address_is_not_asked(
        self, admin: Client, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: list[str] = []

        def refuse(host: str, port: int) -> list[str]:
            asked.append(host)
            raise addresses.AddressRefused("private")

        monkeypatch.setattr(transport, "public_addresses", refuse)
        # It looked public when it was entered.
        monkeypatch.setattr(language_models, "check_address", lambda url: None)
        assert not self.tried(admin, tenant, base_url="https://inside.example/v1", model="m").answered
        assert asked == ["inside.example"]

    def test_without_a_model_there_is_nothing_to_ask(
        self, admin: Client, tenant: Tenant, settings: LazySettings
    ) -> None:
        settings.MEMORYHUB_LLM = "rules"
        assert self.tried(admin, tenant).text == "No model is configured, so there is nothing to ask."

    def test_one_test_at_a_time(self, admin: Client, tenant: Tenant) -> None:
        with language_models._testing:
            assert "Another test is running" in self.tried(admin, tenant).text
