"""Typed settings: the hub's numbers, a tenant's own, and which model is in force."""

import math
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from memories import conf
from memories.conf.kinds import Number, NumberKind, SettingGroup, shown
from memories.conf.table import HALF_LIVES
from memories.models import Tenant

ROOT = Path(__file__).resolve().parents[2]
HUB = {
    "MEMORYHUB_DEBOUNCE_SECONDS": 7,
    "MEMORYHUB_MAX_WAIT_SECONDS": 70,
    "MEMORYHUB_LEASE_SECONDS": 61,
    "MEMORYHUB_MAX_ATTEMPTS": 3,
    "MEMORYHUB_IDLE_SECONDS": 900,
    "MEMORYHUB_SEED_FILES": False,
}
NUMERIC = [number for number in conf.NUMBERS.values() if number.kind in (NumberKind.WHOLE, NumberKind.REAL)]
SWITCHES = [number.name for number in conf.NUMBERS.values() if number.kind == NumberKind.SWITCH]


@pytest.fixture(autouse=True)
def _numbers_of_the_hub(settings: Any) -> None:
    for name, value in HUB.items():
        setattr(settings, name, value)


def own(**numbers: Any) -> conf.Rules:
    return conf.rules(Tenant(numbers=numbers))


def test_the_environment_says_some_of_the_hubs_numbers() -> None:
    """The defaults of all are those of docs/settings.md: tests/test_settings_page.py."""
    numbers = asdict(conf.hub_rules())
    assert {f"MEMORYHUB_{name.upper()}": numbers.pop(name) for name in conf.OF_THE_ENVIRONMENT} == HUB
    plain = asdict(conf.Rules())
    assert numbers == {name: plain[name] for name in numbers}


def test_every_number_has_a_range_that_holds_its_default_and_one_plain_line() -> None:
    assert set(asdict(conf.hub_rules())) - set(conf.NUMBERS) == {"trust_assistant"}
    for name, number in conf.NUMBERS.items():
        assert number.usable(getattr(conf.Rules(), name)) is not None, name
        assert number.lowest < number.highest
        assert number.label
        assert number.says.endswith(".")
        assert len(number.says) <= 80
    assert {number.group for number in conf.NUMBERS.values()} == set(SettingGroup)


def test_the_environments_ranges_are_those_of_the_table() -> None:
    text = (ROOT / "memoryhub/settings.py").read_text(encoding="utf-8")
    read = re.findall(r'env\.integer\("MEMORYHUB_(\w+)", ([\d_]+), low=([\d_]+), high=([\d_]+)\)', text)
    ranges = {name.lower(): tuple(int(part) for part in parts) for name, *parts in read}
    # A switch has no range.
    for name in set(conf.OF_THE_ENVIRONMENT) - set(SWITCHES):
        number = conf.NUMBERS[name]
        assert ranges[name] == (getattr(conf.Rules(), name), number.lowest, number.highest)


def test_a_tenant_without_numbers_has_the_hubs() -> None:
    assert conf.rules(Tenant()) is conf.rules(Tenant()) is conf.hub_rules()
    assert conf.rules(Tenant(trust_assistant=True)) == replace(conf.hub_rules(), trust_assistant=True)


def test_a_change_of_the_hubs_numbers_is_seen_at_once(settings: Any) -> None:
    assert own().idle_seconds == 900
    settings.MEMORYHUB_IDLE_SECONDS = 60
    assert own().idle_seconds == own(capacity=50).idle_seconds == 60


@pytest.mark.parametrize("number", NUMERIC, ids=lambda number: number.name)
def test_a_tenants_own_number_replaces_the_hubs_and_no_other(number: Number, settings: Any) -> None:
    settings.MEMORYHUB_LLM_TIMEOUT = 1.0
    values = [number.lowest, number.highest] + ([0] if number.zero else [])
    for value in values:
        assert asdict(own(**{number.name: value})) == {**asdict(conf.hub_rules()), number.name: value}
        assert conf.unusable_numbers({number.name: value}) == []


@pytest.mark.parametrize("number", NUMERIC, ids=lambda number: number.name)
def test_what_is_out_of_range_or_no_number_is_ignored_and_told(number: Number) -> None:
    step = 1 if number.kind == NumberKind.WHOLE else 0.001
    wrong = [number.lowest - step, number.highest + step, "5", None, True, [5], {"a": 1}, math.nan, math.inf, 10**30]
    wrong += [number.lowest + 0.5] if number.kind == NumberKind.WHOLE else []
    for value in wrong:
        stored = {number.name: value, "trash_days": 7}
        if number.name == "trash_days":
            stored = {number.name: value}
        assert getattr(own(**stored), number.name) == getattr(conf.hub_rules(), number.name), value
        assert conf.unusable_numbers(stored) == [number.name], value
        assert own(**{**stored, "grace_days": 5}).grace_days == 5


@pytest.mark.parametrize("name", SWITCHES)
def test_a_switch_is_on_or_off_and_nothing_else(name: str) -> None:
    assert getattr(own(**{name: True}), name) is True
    for value in (1, "on", None, 0):
        assert getattr(own(**{name: value}), name) is False
        assert conf.unusable_numbers({name: value}) == [name]


@pytest.mark.parametrize("stored", [None, [], "x", 5, [{"capacity": 50}], {"nonsense": 1}, {"trust_assistant": True}])
def test_what_no_version_of_ours_wrote_fails_nothing(stored: Any) -> None:
    assert conf.rules(Tenant(numbers=stored)) == conf.hub_rules()
    assert conf.unusable_numbers(stored)


def test_half_lives_join_the_hubs_category_by_category() -> None:
    days = {"identity": 365, "goal": 14, "preference": None}
    assert own(half_lives=days).half_lives == {**HALF_LIVES, **days}
    assert conf.unusable_numbers({"half_lives": days}) == []
    assert conf.hub_rules().half_lives == HALF_LIVES


@pytest.mark.parametrize("wrong", [{"mood": 3}, {"goal": 0}, {"goal": "never"}, {"goal": True}, {"goal": 4000}])
def test_of_half_lives_each_category_is_judged_alone(wrong: dict[str, Any]) -> None:
    stored = {"half_lives": {**wrong, "skill": 30.5}}
    assert own(**stored).half_lives == {**HALF_LIVES, "skill": 30.5}
    assert conf.unusable_numbers(stored) == ["half_lives"]
    assert own(half_lives=[14]).half_lives == HALF_LIVES


def test_a_tenants_lease_never_ends_during_one_call(settings: Any) -> None:
    settings.MEMORYHUB_LLM_TIMEOUT = 60.0
    assert own(lease_seconds=2).lease_seconds == 61
    assert own(lease_seconds=62).lease_seconds == 62


@pytest.mark.parametrize(
    ("numbers", "at_fault"),
    [
        ({}, []),
        ({"debounce_seconds": 70}, []),
        ({"debounce_seconds": 71}, ["max_wait_seconds"]),
        ({"max_wait_seconds": 6}, ["max_wait_seconds"]),
        ({"debounce_seconds": 5, "max_wait_seconds": 6}, []),
        ({"compaction_quiet_seconds": 121}, ["compaction_wait_seconds"]),
        ({"compaction_quiet_seconds": 121, "compaction_wait_seconds": 121}, []),
    ],
)
def test_what_contradicts(numbers: dict[str, Any], at_fault: list[str]) -> None:
    assert [name for name, _ in conf.contradictions(own(**numbers))] == at_fault


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ({}, []),
        ({"lease_seconds": 20}, ["61 s all the same"]),
        ({"served_confidence": 0.75}, ["0.7 to 0.75"]),
        ({"served_confidence": 0.6, "min_confidence": 0.5}, ["0.5 to 0.6"]),
        ({"inferred_confidence": 0.5}, ["0.5 at most"]),
        ({"forget_below": 0.3}, ["below 0.3"]),
        ({"forget_episodes_below": 0.35}, ["before they would stop being told"]),
    ],
)
def test_what_surprises_is_said(numbers: dict[str, Any], words: list[str], settings: Any) -> None:
    settings.MEMORYHUB_LLM_TIMEOUT = 60.0
    said = list(conf.warnings(own(**numbers), numbers))
    assert len(said) == len(words)
    assert all(word in sentence for word, sentence in zip(words, said, strict=True))


@pytest.mark.parametrize(
    ("value", "text"), [(8000, "8,000"), (0.05, "0.05"), (90.0, "90"), (None, "never"), (True, "on"), (False, "off")]
)
def test_values_are_shown_as_people_write_them(value: object, text: str) -> None:
    assert shown(value) == text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("debounce_seconds", "1–300 s"),
        ("min_confidence", "0–1"),
        ("capacity", "10–5,000 facts, 0: no bound"),
        ("half_lives", "1–3,650 days, or never"),
        ("merge_crowded", "on or off"),
    ],
)
def test_ranges_are_shown_with_their_unit(name: str, text: str) -> None:
    assert conf.NUMBERS[name].range == text


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
