"""The client picks its backend by the settings in force."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from pytest_django import Settings

from memories.exceptions import ModelMisconfigured
from memories.llm import client
from tests.llm import endpoint as at
from tests.llm.conftest import ANSWER, CONFIG, MESSAGES
from tests.llm.endpoint import Endpoint


@pytest.mark.parametrize(
    ("mode", "base_url", "configured"),
    [
        ("", "", False),
        ("", "http://127.0.0.1:1/v1", True),
        ("off", "http://127.0.0.1:1/v1", False),
        ("rules", "http://127.0.0.1:1/v1", False),
        ("scripted", "", True),
        ("openai", "", True),
    ],
)
def test_is_configured(mode: str, base_url: str, configured: bool, settings: Settings) -> None:
    settings.MEMORYHUB_LLM, settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY = mode, base_url, ""
    assert client.is_configured() is configured


def test_without_a_model_there_is_no_answer() -> None:
    with pytest.raises(ModelMisconfigured, match="No language model"):
        client.complete(messages=MESSAGES, answer=ANSWER, config=replace(CONFIG, mode="off"))


def test_the_settings_name_the_endpoint(endpoint: Endpoint, settings: Settings) -> None:
    settings.MEMORYHUB_LLM, settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY = "", endpoint.url, "k"
    settings.MEMORYHUB_LLM_MODEL = "of-the-settings"
    endpoint.responds(at.says(json.dumps({"new_facts": []})))
    assert client.complete(messages=MESSAGES, answer=ANSWER).extractor == "llm:of-the-settings"
    assert endpoint.requests[0]["model"] == "of-the-settings"


def test_the_settings_name_the_script(tmp_path: Path, settings: Settings) -> None:
    path = tmp_path / "script.json"
    path.write_text("[]")
    settings.MEMORYHUB_LLM, settings.MEMORYHUB_LLM_SCRIPT = "scripted", str(path)
    assert client.complete(messages=MESSAGES, answer=ANSWER).extractor == "llm:scripted"


def test_who_never_asks_never_imports_the_library() -> None:
    code = "import sys, memories.llm.client; print('openai' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
