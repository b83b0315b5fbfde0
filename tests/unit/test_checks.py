"""System checks: each contradiction has its id and a remedy, and sound settings have none."""

import importlib
import os
import re
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.checks import Error, Tags, run_checks
from django.core.management import get_commands, load_command_class

from memories.admin.facts.pages import FactPage
from memories.checks import RERANK_ENDPOINT, SETTINGS
from memories.management import HubCommand

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
    """Ours, as each command runs them before it starts."""
    messages = run_checks(tags=[SETTINGS])
    assert all((message.id or "").startswith(OURS) for message in messages)
    assert all(message.hint for message in messages)
    return [(type(message), message.id or "") for message in messages]


def test_sound_settings_pass() -> None:
    assert found() == []


def test_every_command_checks_the_settings_before_it_starts() -> None:
    """But those that look at what is wrong, migrate, which adds its own, and those that need no hub."""
    own = [name for name, app in get_commands().items() if app == "memories"]
    others = {name for name in own if not isinstance(load_command_class("memories", name), HubCommand)}
    assert others == {"doctor", "migrate", "systemd_units", "verify_receipt"}
    assert HubCommand.requires_system_checks == [SETTINGS]


def test_a_command_loads_neither_the_admin_nor_the_api() -> None:
    """Half of the time that most commands take to start."""
    script = """
import sys, django
from django.core.checks import run_checks
django.setup()
import memories.management.commands.check_memory
run_checks(tags=["settings"])
print(*sys.modules)
"""
    environ = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings", "PYTEST_XDIST_WORKER": "none"}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=settings.BASE_DIR, env=environ, capture_output=True, text=True, check=True
    )
    loaded, names = set(done.stdout.split()), {"memories.admin.site.site", "memories.api.v1.urls", "memoryhub.urls"}
    assert "memories.management.commands.check_memory" in loaded
    assert not names & loaded
    # The control: that is what they are called.
    assert all(map(importlib.import_module, names))


def test_pages_of_the_admin_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_checks(tags=[Tags.admin]) == []
    monkeypatch.setattr(FactPage, "list_display", ["nonsense"])
    assert [message.id for message in run_checks(tags=[Tags.admin])] == ["admin.E108"]


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


@pytest.mark.parametrize(("length", "refused"), [(31, True), (32, False)])
def test_a_secret_key_is_long(length: int, refused: bool, settings: Any) -> None:
    settings.SECRET_KEY = "k" * length
    assert found() == ([(Error, "memories.E004")] if refused else [])
    assert not any("kkk" in str(message) for message in run_checks())


@pytest.mark.parametrize(("length", "refused"), [(31, True), (32, False)])
def test_a_key_of_second_factors_is_long(length: int, refused: bool, settings: Any) -> None:
    settings.MEMORYHUB_MFA_KEY = "k" * length
    assert found() == ([(Error, "memories.E013")] if refused else [])


@pytest.mark.parametrize(
    ("archive", "days", "url", "refused"),
    [
        ("", 0, "", False),
        ("/var/archive", 14, "", False),
        ("/var/archive", 0, "", True),
        ("archive", 14, "", True),
        ("/var/archive", 14, "postgresql://nobody@127.0.0.1:9/none", True),
    ],
)
def test_an_archive_has_a_place_and_an_end(
    archive: str, days: int, url: str, refused: bool, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", url)
    settings.MEMORYHUB_ARCHIVE, settings.MEMORYHUB_BACKUP_DAYS = archive, days
    assert found() == ([(Error, "memories.E014")] if refused else [])


SECURE = """
import os, sys
from django.core.management import execute_from_command_line
execute_from_command_line(["manage.py", "check", "--deploy", "--fail-level", "WARNING"])
print("https is sound", flush=True)
# The same program under other settings: nothing of the first ones is kept.
os.environ |= {"MEMORYHUB_PUBLIC_URL": "http://hub.example", "MEMORYHUB_SECRET_KEY": "short"}
from django.conf import settings
from django.utils.functional import empty
del sys.modules["memoryhub.settings"]
settings._wrapped = empty
for name in [name for name in vars(settings) if name.isupper()]:
    del vars(settings)[name]
execute_from_command_line(["manage.py", "check", "--deploy", "--fail-level", "WARNING"])
"""


def test_deployed_under_https_nothing_is_to_be_said_and_under_http_with_a_short_key_much() -> None:
    """`manage.py check --deploy` with the real settings of this environment; no check asks the database."""
    given = {name: value for name, value in os.environ.items() if not name.startswith(("MEMORYHUB_", "OPENAI_"))}
    given |= {"DJANGO_SETTINGS_MODULE": "memoryhub.settings", "DATABASE_URL": "postgresql://nobody@127.0.0.1:9/none"}
    given |= {"MEMORYHUB_HOME": os.environ["MEMORYHUB_HOME"], "MEMORYHUB_PUBLIC_URL": "https://hub.example"}
    given |= {"MEMORYHUB_SECRET_KEY": secrets.token_urlsafe(50)}
    command = [sys.executable, "-c", SECURE]
    done = subprocess.run(command, cwd=settings.BASE_DIR, env=given, capture_output=True, text=True, check=False)
    sound, _, rest = done.stdout.partition("https is sound\n")
    assert (sound, rest) == ("System check identified no issues (0 silenced).\n", ""), done.stderr
    assert done.returncode == 1
    assert {"memories.E004", "security.W010", "security.W008"} <= set(re.findall(r"\(([\w.]+)\)", done.stderr))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, []),
        ({"MEMORYHUB_EMBEDDING_MODEL": "use-multilingual-3+e5-small"}, []),
        ({"MEMORYHUB_EMBEDDING_MODEL": "text-embedding-3-small"}, ["memories.E006"]),
        ({"MEMORYHUB_EMBEDDING_DIMENSIONS": 256}, ["memories.E008"]),
        ({"MEMORYHUB_EMBEDDINGS": "openai"}, ["memories.E007"]),
        ({"MEMORYHUB_EMBEDDINGS": "openai", "MEMORYHUB_EMBEDDING_BASE_URL": "http://127.0.0.1:1/v1"}, []),
        ({"MEMORYHUB_EMBEDDINGS": "openai", "OPENAI_API_KEY": "k", "MEMORYHUB_EMBEDDING_DIMENSIONS": 256}, []),
    ],
)
def test_embeddings_that_cannot_be_made(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], expected: list[str]
) -> None:
    for name, value in {"MEMORYHUB_EMBEDDINGS": "local", **given}.items():
        monkeypatch.setattr(settings, name, value)
    assert [message.id for message in run_checks(tags=[SETTINGS]) if (message.id or "") > "memories.E004"] == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, []),
        ({"MEMORYHUB_RERANKER": "memories.llm.reranking.Candidate"}, []),
        ({"MEMORYHUB_RERANKER": "nothing.of.this.name"}, ["memories.E009"]),
        ({"MEMORYHUB_RERANKER": "memories.llm.reranking.nothing"}, ["memories.E009"]),
        ({"MEMORYHUB_RERANKER": "no path"}, ["memories.E009"]),
        ({"MEMORYHUB_RERANKER": "memories.checks.SECRET_KEY_LENGTH"}, ["memories.E009"]),
        ({"MEMORYHUB_RERANKER": RERANK_ENDPOINT}, ["memories.E010"]),
        ({"MEMORYHUB_RERANKER": RERANK_ENDPOINT, "MEMORYHUB_RERANK_URL": "http://127.0.0.1:1/rerank"}, []),
    ],
)
def test_a_reranker_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], expected: list[str]
) -> None:
    for name, value in given.items():
        monkeypatch.setattr(settings, name, value)
    assert [message.id for message in run_checks(tags=[SETTINGS]) if (message.id or "") > "memories.E004"] == expected


PROVIDER = {
    "MEMORYHUB_OIDC_URL": "https://id.example.com",
    "MEMORYHUB_OIDC_CLIENT_ID": "hub",
    "MEMORYHUB_OIDC_CLIENT_SECRET": "s",
}


@pytest.mark.parametrize(
    ("given", "is_fit"),
    [
        ({}, True),
        (PROVIDER, True),
        ({**PROVIDER, "MEMORYHUB_OIDC_URL": "http://127.0.0.1:9/"}, True),
        ({**PROVIDER, "MEMORYHUB_OIDC_URL": "http://id.example.com"}, False),
        *[({**PROVIDER, name: ""}, False) for name in PROVIDER],
    ],
)
def test_an_identity_provider_that_cannot_be_asked(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], is_fit: bool
) -> None:
    for name, value in given.items():
        monkeypatch.setattr(settings, name, value)
    assert found() == ([] if is_fit else [(Error, "memories.E011")])


@pytest.mark.parametrize(("path", "refused"), [("erasures.jsonl", False), (".", True), ("away/erasures.jsonl", True)])
def test_the_ledger_is_writable(path: str, refused: bool, settings: Any, tmp_path: Path) -> None:
    settings.MEMORYHUB_ERASURE_LEDGER = str(tmp_path / path)
    assert found() == ([(Error, "memories.E012")] if refused else [])
    assert list(tmp_path.iterdir()) == []
