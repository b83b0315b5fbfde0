"""A tenant's own model is saved: its key is encrypted and belongs to one address, and the trail holds no secret."""

from dataclasses import replace
from decimal import Decimal

import pytest
from django.conf import LazySettings
from django.core.management import call_command

from memories import conf
from memories.curation.tenants.language_models import ModelSettings, reencrypt_model_keys, save_language_model
from memories.exceptions import InvalidInput, ModelUnavailable, NotFound, PreconditionFailed
from memories.llm import addresses
from memories.models import AuditEvent, EndpointState, LanguageModel, SessionQueue, Tenant
from memories.queue import circuit_breaker
from tests import factories
from tests.database import at_once
from tests.factories import COMMAND, NOW

pytestmark = pytest.mark.django_db
HERE, THERE, KEY = "https://models.example/v1", "https://elsewhere.example/v1", "sk-of-the-tenant-1234567890"
FULL = ModelSettings(model="small", base_url=HERE, api_key=KEY)


@pytest.fixture(autouse=True)
def _public(monkeypatch: pytest.MonkeyPatch, settings: LazySettings) -> None:
    """Every name is one of the public internet, and the hub has an endpoint without prices."""
    settings.MEMORYHUB_LLM, settings.OPENAI_API_KEY = "", "sk-hub"
    monkeypatch.setattr(addresses, "public_addresses", lambda host, port: ["93.184.215.14"])


def save(tenant: Tenant, settings: ModelSettings, *, version: int = 0) -> LanguageModel:
    return save_language_model(tenant_id=tenant.pk, settings=settings, expected_version=version, actor=COMMAND, now=NOW)


def refused(tenant: Tenant, settings: ModelSettings, *, version: int = 0) -> list[str]:
    with pytest.raises(InvalidInput) as error:
        save(tenant, settings, version=version)
    return [fault.pointer for fault in error.value.faults]


def test_the_key_is_encrypted_and_the_trail_names_what_changed(tenant: Tenant) -> None:
    save(tenant, replace(FULL, daily_tokens=1_000))
    row = LanguageModel.objects.get()
    assert (row.tenant, row.model, row.base_url, row.version) == (tenant, "small", HERE, 1)
    assert KEY not in row.api_key
    assert conf.decrypted_model_key(row.api_key) == KEY
    event = AuditEvent.objects.get()
    assert (event.verb, event.tenant_uuid) == ("change_model", tenant.pk)
    assert event.counts == {"model": 1, "base_url": 1, "api_key": 1, "daily_tokens": 1}


def test_a_changed_address_asks_for_the_key_again(tenant: Tenant) -> None:
    save(tenant, FULL)
    kept = replace(FULL, api_key=None)
    assert conf.decrypted_model_key(save(tenant, replace(kept, model="large"), version=1).api_key) == KEY
    assert refused(tenant, replace(kept, base_url=THERE), version=2) == ["api_key"]
    assert refused(tenant, replace(kept, base_url=HERE + "/other"), version=2) == ["api_key"]
    assert LanguageModel.objects.get().base_url == HERE
    moved = save(tenant, replace(FULL, base_url=THERE, api_key="sk-other"), version=2)
    assert conf.decrypted_model_key(moved.api_key) == "sk-other"
    assert save(tenant, replace(FULL, base_url=HERE, api_key=""), version=3).api_key == ""


def test_a_way_around_by_taking_the_address_out_loses_the_key(tenant: Tenant) -> None:
    save(tenant, FULL)
    assert save(tenant, ModelSettings(model="small"), version=1).api_key == ""
    assert save(tenant, ModelSettings(base_url=THERE), version=2).api_key == ""


@pytest.mark.parametrize(
    ("given", "pointer"),
    [
        (ModelSettings(api_key=KEY), "api_key"),
        (ModelSettings(base_url="http://models.example/v1"), "base_url"),
        (ModelSettings(prompt_price=Decimal(1)), "completion_price"),
        (ModelSettings(daily_cost=Decimal(1)), "daily_cost"),
    ],
)
def test_what_does_not_fit(given: ModelSettings, pointer: str, tenant: Tenant) -> None:
    assert refused(tenant, given) == [pointer]
    assert not LanguageModel.objects.exists()


def test_a_cap_in_dollars_counts_with_prices(tenant: Tenant, settings: LazySettings) -> None:
    priced = ModelSettings(prompt_price=Decimal(1), completion_price=Decimal(2), daily_cost=Decimal(1))
    assert save(tenant, priced).daily_cost == 1
    settings.MEMORYHUB_LLM_PRICES = (Decimal(1), Decimal(2))
    assert save(factories.tenant(), ModelSettings(daily_cost=Decimal(1))).daily_cost == 1


def test_an_address_inside_is_refused(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert refused(tenant, ModelSettings(base_url="https://127.0.0.1/v1")) == ["base_url"]


def test_who_looked_at_an_older_one_looks_again(tenant: Tenant) -> None:
    save(tenant, FULL)
    with pytest.raises(PreconditionFailed):
        save(tenant, ModelSettings())
    # The same again changes nothing and is no event.
    assert save(tenant, replace(FULL, api_key=None), version=1).version == 1
    assert AuditEvent.objects.count() == 1


def test_a_tenant_that_is_gone() -> None:
    with pytest.raises(NotFound):
        save(Tenant(pk=factories.end_user().pk), ModelSettings())


def test_what_the_old_endpoint_parked_goes_on_with_the_new_one(tenant: Tenant) -> None:
    save(tenant, FULL)
    mine, other = (factories.session(factories.end_user(owner)) for owner in (tenant, None))
    SessionQueue.objects.update(parked_at=NOW, failure=ModelUnavailable.code, due_at=None)
    circuit_breaker.count_failure(None, retry_after=200, is_confirmed=True, owner=tenant.pk)
    save(tenant, replace(FULL, model="large", api_key=None), version=1)
    assert set(SessionQueue.objects.filter(parked_at=None).values_list("pk", flat=True)) == {mine.pk}
    assert other
    assert EndpointState.objects.get().failures == 0
    assert circuit_breaker.free_calls(tenant.pk) is None


def test_keys_go_on_after_the_hub_got_another_key(tenant: Tenant, settings: LazySettings) -> None:
    save(tenant, FULL)
    settings.MEMORYHUB_MFA_KEY_FALLBACKS = [settings.MEMORYHUB_MFA_KEY]
    settings.MEMORYHUB_MFA_KEY = "another key of at least thirty-two characters"
    assert conf.decrypted_model_key(LanguageModel.objects.get().api_key) == KEY
    assert reencrypt_model_keys() == (1, 0)
    assert reencrypt_model_keys() == (0, 0)
    settings.MEMORYHUB_MFA_KEY_FALLBACKS = []
    assert conf.decrypted_model_key(LanguageModel.objects.get().api_key) == KEY
    call_command("reencrypt_second_factors")
    settings.MEMORYHUB_MFA_KEY = "a third key of at least thirty-two characters"
    assert reencrypt_model_keys() == (0, 1)
    # Nothing is sent under a key that cannot be read, and the hub's own is not taken instead.
    assert conf.llm(LanguageModel.objects.get()).api_key == ""


@pytest.mark.django_db(transaction=True)
def test_of_two_who_save_at_once_one_looks_again(tenant: Tenant) -> None:
    outcomes = at_once(2, lambda number: save(tenant, ModelSettings(model=f"model {number}")))
    assert sorted(type(one).__name__ for one in outcomes) == ["LanguageModel", "PreconditionFailed"]
    assert LanguageModel.objects.get().version == 1
