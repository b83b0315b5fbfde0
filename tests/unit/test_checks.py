"""System checks: each contradiction has its id and a remedy, and sound settings have none."""

from typing import Any

import pytest
from django.core.checks import Error, Warning, run_checks

OURS = "memories."
SOUND = {
    "MEMORYHUB_LEASE_SECONDS": 120,
    "MEMORYHUB_LLM_TIMEOUT": 60.0,
    "MEMORYHUB_LLM": "",
    "MEMORYHUB_LLM_SCRIPT": "",
    "OPENAI_API_KEY": "",
    "OPENAI_BASE_URL": "",
}


@pytest.fixture(autouse=True)
def _sound(settings: Any) -> None:
    for name, value in SOUND.items():
        setattr(settings, name, value)


def found() -> list[tuple[type, str]]:
    """Ours among all registered checks, as `manage.py check` runs them."""
    messages = [message for message in run_checks() if (message.id or "").startswith(OURS)]
    assert all(message.hint for message in messages)
    return [(type(message), message.id or "") for message in messages]


def test_sound_settings_pass() -> None:
    assert found() == []


@pytest.mark.parametrize(("lease", "refused"), [(59, True), (60, True), (61, False)])
def test_a_lease_outlasts_a_call(lease: int, refused: bool, settings: Any) -> None:
    settings.MEMORYHUB_LEASE_SECONDS = lease
    assert found() == ([(Error, "memories.E001")] if refused else [])


@pytest.mark.parametrize(("script", "refused"), [("", True), ("answers.json", False)])
def test_scripted_answers_need_a_file(script: str, refused: bool, settings: Any) -> None:
    settings.MEMORYHUB_LLM, settings.MEMORYHUB_LLM_SCRIPT = "scripted", script
    assert found() == ([(Error, "memories.E002")] if refused else [])


@pytest.mark.parametrize(
    ("key", "address", "refused"), [("", "", True), ("sk", "", False), ("", "http://127.0.0.1:9", False)]
)
def test_openai_needs_a_key_or_an_address(key: str, address: str, refused: bool, settings: Any) -> None:
    settings.MEMORYHUB_LLM, settings.OPENAI_API_KEY, settings.OPENAI_BASE_URL = "openai", key, address
    assert found() == ([(Error, "memories.E003")] if refused else [])


@pytest.mark.parametrize(("wanted", "warned"), [("rules", True), ("off", False), ("", False)])
def test_rules_are_announced_as_not_there_yet(wanted: str, warned: bool, settings: Any) -> None:
    settings.MEMORYHUB_LLM = wanted
    assert found() == ([(Warning, "memories.W001")] if warned else [])
