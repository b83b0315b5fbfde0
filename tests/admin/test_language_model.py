"""A tenant's own model in the admin: who may change it, what the page tells, and what it never shows."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.conf import LazySettings
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memories import conf
from memories.llm import addresses
from memories.models import AuditEvent, DailySpending, LanguageModel, SessionQueue, Tenant
from tests import factories
from tests.admin.pages import page_of, text_of

pytestmark = pytest.mark.django_db
HERE, KEY = "https://models.example/v1", "sk-never-shown-1234567890"


@pytest.fixture(autouse=True)
def _public(monkeypatch: pytest.MonkeyPatch, settings: LazySettings) -> None:
    settings.MEMORYHUB_LLM, settings.OPENAI_API_KEY = "", "sk-hub"
    monkeypatch.setattr(addresses, "public_addresses", lambda host, port: ["93.184.215.14"])


@pytest.fixture
def tenant() -> Tenant:
    return factories.tenant(slug="acme")


def save(client: Client, tenant: Tenant, **over: Any) -> Any:
    given = {"model": "small", "base_url": HERE, "api_key": KEY, "version": "0", **over}
    return client.post(page_of(tenant, "model"), given)


def test_it_is_saved_and_its_key_never_shown(admin: Client, tenant: Tenant) -> None:
    assert save(admin, tenant, daily_tokens="1000").status_code == 302
    row = LanguageModel.objects.get()
    assert (row.model, row.base_url, row.daily_tokens) == ("small", HERE, 1_000)
    assert conf.decrypted_model_key(row.api_key) == KEY
    form, page = text_of(admin.get(page_of(tenant, "model"))), text_of(admin.get(page_of(tenant)))
    for shown in (form, page):
        assert "models.example" in shown
        assert KEY not in shown
        assert row.api_key not in shown
    assert "stored, never shown" in page
    # A form that is refused does not give it back either.
    again = save(admin, tenant, version="1", base_url="http://models.example", api_key="sk-typed-again")
    assert again.status_code == 400
    assert "sk-typed-again" not in text_of(again)
    assert KEY not in str(AuditEvent.objects.values())


def test_a_new_address_asks_for_the_key(admin: Client, tenant: Tenant) -> None:
    save(admin, tenant)
    moved = save(admin, tenant, version="1", base_url="https://elsewhere.example/v1", api_key="")
    assert moved.status_code == 400
    assert "enter its key" in text_of(moved)
    assert save(admin, tenant, version="1", model="large", api_key="").status_code == 302
    assert conf.decrypted_model_key(LanguageModel.objects.get().api_key) == KEY
    gone = save(admin, tenant, version="2", base_url="https://elsewhere.example/v1", api_key="", remove_key="on")
    assert gone.status_code == 302
    assert LanguageModel.objects.get().api_key == ""


def test_bad_input_is_told(admin: Client, tenant: Tenant) -> None:
    for over in (
        {"base_url": "https://[::1"}, {"base_url": "x" * 501}, {"prompt_price": "1"}, {"prompt_price": "nan"},
        {"daily_tokens": "0"}, {"daily_tokens": "9" * 30}, {"daily_cost": "-1"}, {"daily_cost": "1"}, {"version": "x"},
        {"model": "x" * 101}, {"api_key": "x" * 501}, {"base_url": "https://a\x00b/"},
    ):  # fmt: skip
        assert save(admin, tenant, **over).status_code == 400, over
    assert not LanguageModel.objects.exists()


def test_who_saw_an_older_one_looks_again(admin: Client, tenant: Tenant) -> None:
    save(admin, tenant)
    late = save(admin, tenant)
    assert late.status_code == 412
    assert 'name="version" value="1"' in text_of(late)


def test_a_reached_cap_is_told_everywhere(admin: Client, tenant: Tenant) -> None:
    LanguageModel.objects.create(tenant=tenant, daily_tokens=10, updated_at=timezone.now())
    session = factories.session(factories.end_user(tenant))
    factories.run(session)
    places = (reverse("admin:index"), reverse("admin:memories_extractionrun_changelist"))
    assert not any("has reached its daily cap" in text_of(admin.get(place)) for place in places)
    DailySpending.objects.create(tenant=tenant, day=datetime.now(UTC).date(), tokens=10)
    for place in places:
        assert "acme has reached its daily cap" in text_of(admin.get(place))
    assert "The daily cap is reached" in text_of(admin.get(page_of(tenant)))
    SessionQueue.objects.update(failure="daily_cap")
    assert "daily cap is reached" in text_of(admin.get(page_of(session)))
