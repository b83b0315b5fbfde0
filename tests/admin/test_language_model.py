"""A tenant's own model in the admin: who may change it, what the page tells, and what it never shows."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memories import conf
from memories.llm import addresses
from memories.models import AuditEvent, DailySpending, LanguageModel, SessionQueue, Tenant
from tests import factories
from tests.admin.conftest import signed_in
from tests.admin.pages import page_of, text_of
from tests.admin.test_tenant_scope import limited
from tests.llm.endpoint import running

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


def tried(client: Client, tenant: Tenant, **given: Any) -> Any:
    headers = {"X-Fragment": "tested"} if given.pop("in_place", False) else {}
    return client.post(page_of(tenant, "model_test"), {"version": "0", **given}, headers=headers)


def test_what_is_entered_is_tried_and_nothing_is_stored(admin: Client, tenant: Tenant, settings: LazySettings) -> None:
    settings.MEMORYHUB_PRIVATE_ENDPOINTS = ["127.0.0.1"]
    with running() as endpoint:
        for in_place in (False, True):
            page = tried(admin, tenant, in_place=in_place, model="small", base_url=endpoint.url, api_key=KEY)
            shown = text_of(page)
            assert (page.status_code, page.context["tested"].answered) == (200, True)
            assert "small answered in" in shown
            assert KEY not in shown
            # Without a script the page comes again: with what was entered, but for the key, and it says so.
            assert (endpoint.url in shown, "keeps no key" in shown, "<html" in shown) == (not in_place,) * 3
        assert [request["model"] for request in endpoint.requests] == ["small", "small"]
        assert {sent["authorization"] for sent in endpoint.headers} == {f"Bearer {KEY}"}
        # The stored key goes to the stored address alone.
        save(admin, tenant)
        moved = tried(admin, tenant, model="small", base_url=endpoint.url)
        assert (moved.status_code, "enter its key" in text_of(moved)) == (400, True)
        assert len(endpoint.requests) == 2
    assert LanguageModel.objects.get().base_url == HERE
    assert AuditEvent.objects.filter(verb="change_model").count() == 1


def test_a_local_address_is_explained(admin: Client, tenant: Tenant, settings: LazySettings) -> None:
    settings.MEMORYHUB_PRIVATE_ENDPOINTS = ["llm.internal"]
    operator = limited(tenant)
    operator.is_superuser = False
    operator.save()
    operator.user_permissions.set(Permission.objects.filter(codename__in=["view_tenant", "change_languagemodel"]))
    for page in (save, tried):
        mine, others = (
            text_of(page(client, tenant, base_url="http://192.168.1.7:11434/v1", model="small", api_key=""))
            for client in (admin, signed_in(operator))
        )
        for shown in (mine, others):
            assert "192.168.1.7:11434" in shown
            assert "MEMORYHUB_PRIVATE_ENDPOINTS" in shown
        # Whoever may run the hub gets the whole setting; the others are not told which hosts it has.
        assert "MEMORYHUB_PRIVATE_ENDPOINTS=llm.internal,192.168.1.7:11434" in mine
        assert "llm.internal" not in others
    assert "own network" not in text_of(save(admin, tenant, base_url="https://[::1"))
