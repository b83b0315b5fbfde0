"""The integrations are extras: the package needs none of their libraries, and says what to install."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import memoryhub_client

PACKAGE = Path(memoryhub_client.__file__).parent
WITHOUT = """
import sys
for name in {blocked!r}:
    sys.modules[name] = None
import memoryhub_client, memoryhub_client.cli, memoryhub_client.hook, memoryhub_client.testing
try:
    import {module}
except ImportError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("module", "extra"),
    [
        ("memoryhub_client.langchain", "langchain"),
        ("memoryhub_client.openai_agents", "openai-agents"),
        ("memoryhub_client.pydantic_ai", "pydantic-ai"),
        ("memoryhub_client.llamaindex", "llamaindex"),
        ("memoryhub_client.crewai", "crewai"),
        ("memoryhub_client.adk", "adk"),
    ],
)
def test_a_missing_extra_says_what_to_install(module: str, extra: str) -> None:
    blocked = ["langchain", "langchain_core", "langgraph", "deepagents", "agents", "mcp"]
    blocked += ["pydantic_ai", "llama_index", "crewai", "google.adk"]
    code = WITHOUT.format(blocked=blocked, module=module)
    run = [sys.executable, "-c", code]
    said = subprocess.run(run, env={"PYTHONPATH": str(PACKAGE.parent)}, capture_output=True, text=True, check=True)
    assert f"pip install './clients/python[{extra}]'" in said.stdout


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("*.py")), ids=lambda path: path.name)
def test_it_is_python_3_10(path: Path) -> None:
    ast.parse(path.read_text("utf-8"), feature_version=(3, 10))
