"""Typed settings: the hub's numbers, a tenant's own, and which model is in force."""

from dataclasses import asdict
from typing import Any

import pytest

from memories import conf
from memories.models import Tenant

HUB = {
    "MEMORYHUB_DEBOUNCE_SECONDS": 7,
    "MEMORYHUB_MAX_WAIT_SECONDS": 70,
    "MEMORYHUB_LEASE_SECONDS": 61,
    "MEMORYHUB_MAX_ATTEMPTS": 3,
}


@pytest.fixture(autouse=True)
def _numbers_of_the_hub(settings: Any) -> None:
    for name, value in HUB.items():
        setattr(settings, name, value)


def test_the_numbers_of_the_rules() -> None:
    assert asdict(conf.hub_rules()) == {
        "debounce_seconds": 7,
        "max_wait_seconds": 70,
        "lease_seconds": 61,
        "max_attempts": 3,
        "rounds_due_at_once": 20,
        "tokens_due_at_once": 6_000,
        "batch_tokens": 8_000,
        "max_model_calls": 4,
        "known_facts": 60,
        "min_confidence": 0.7,
        "min_importance": 0.2,
        "served_confidence": 0.6,
        "context_corrections": 10,
        "context_standing": 10,
        "context_facts": 20,
        "capacity": 500,
        "trust_assistant": False,
    }


def test_a_tenant_without_numbers_has_the_hubs() -> None:
    assert conf.rules(Tenant()) == conf.hub_rules()


@pytest.mark.parametrize("name", ["debounce_seconds", "max_wait_seconds", "lease_seconds", "max_attempts"])
def test_a_tenants_own_number_replaces_the_hubs_and_no_other(name: str) -> None:
    own = asdict(conf.rules(Tenant(**{name: 299})))
    assert own == {**asdict(conf.hub_rules()), name: 299}


def test_a_tenants_lease_never_ends_during_one_call(settings: Any) -> None:
    settings.MEMORYHUB_LLM_TIMEOUT = 60.0
    assert conf.rules(Tenant(lease_seconds=2)).lease_seconds == 61


@pytest.mark.parametrize(
    ("wanted", "key", "address", "mode"),
    [
        ("", "", "", "rules"),
        ("", "sk", "", "openai"),
        ("", "", "http://127.0.0.1:9", "openai"),
        ("openai", "sk", "", "openai"),
        ("openai", "", "", "openai"),
        ("scripted", "", "", "scripted"),
        ("scripted", "sk", "", "scripted"),
        ("off", "sk", "", "off"),
        ("rules", "", "", "rules"),
        ("rules", "sk", "", "rules"),
    ],
)
def test_which_model_is_in_force(wanted: str, key: str, address: str, mode: str, settings: Any) -> None:
    settings.MEMORYHUB_LLM, settings.OPENAI_API_KEY, settings.OPENAI_BASE_URL = wanted, key, address
    assert conf.llm().mode == mode


def test_the_endpoint_as_it_is_set(settings: Any) -> None:
    settings.MEMORYHUB_LLM, settings.OPENAI_API_KEY, settings.OPENAI_BASE_URL = "openai", "sk", "http://127.0.0.1:9"
    settings.MEMORYHUB_LLM_MODEL, settings.MEMORYHUB_LLM_TIMEOUT = "small", 12.5
    settings.MEMORYHUB_LLM_CONCURRENCY, settings.MEMORYHUB_LLM_SCRIPT = 2, "answers.json"
    assert conf.llm() == conf.LLMConfig(
        mode="openai",
        model="small",
        timeout=12.5,
        concurrency=2,
        api_key="sk",
        base_url="http://127.0.0.1:9",
        script="answers.json",
    )
