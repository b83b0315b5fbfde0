"""The Python client is what the OpenAPI document says, and imports nothing of the hub."""

import ast
import copy
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from memoryhub_client._calls import Listing, Operation
from memoryhub_client.management import ManagementOperations
from memoryhub_client.operations import Operations

from tests.api.client import BASE, schema

CLIENT = Path(__file__).parents[2] / "clients/python"
SOURCES = CLIENT / "src/memoryhub_client"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    """`clients/python/generate.py`, which belongs to no package."""
    found = importlib.util.spec_from_file_location("generate", CLIENT / "generate.py")
    assert found
    assert found.loader
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_the_client_has_what_the_document_says(generator: ModuleType) -> None:
    for name, text in generator.generated(schema()).items():
        assert text == (SOURCES / name).read_text(encoding="utf-8"), f"{name} is old: make client-python"


def test_a_change_of_the_document_changes_the_client(generator: ModuleType) -> None:
    changed = copy.deepcopy(schema())
    parameter = {"in": "query", "name": "mood", "schema": {"type": "array", "items": {"type": "integer"}}}
    changed["paths"][f"{BASE}/profiles"]["get"]["parameters"].append(parameter)
    text = generator.generated(changed)["operations.py"]
    assert "def list_profiles(self, *, agent_id: str | None = None, mood: Sequence[int] | None = None)" in text


def test_arguments_of_the_path_come_first_in_its_order() -> None:
    described = {**vars(Operations), **vars(ManagementOperations)}
    several = 0
    for one in described.values():
        if isinstance(one, Operation | Listing):
            named = re.findall(r"{(\w+)}", one.description.path)
            assert list(one.signature.parameters)[1 : 1 + len(named)] == named
            several += len(named) > 1
    assert several > 5


TYPES = [
    ({"type": "string"}, "str", "str"),
    ({"type": ["string", "null"], "format": "date-time"}, "datetime | None", "datetime | str | None"),
    ({"type": "array", "items": {"type": "number"}}, "list[float]", "Sequence[float]"),
    ({"type": "object", "additionalProperties": {"type": "integer"}}, "dict[str, int]", "dict[str, int]"),
    ({"type": "object", "additionalProperties": {}}, "dict[str, Any]", "dict[str, Any]"),
    ({"enum": ["assistant", "user", "tool", "operator"], "type": "string"}, "Trust", "Trust"),
    ({"enum": ["a", "b", None], "type": ["string", "null"]}, 'Literal["a", "b"] | None', 'Literal["a", "b"] | None'),
    ({"oneOf": [{"$ref": "#/components/schemas/CategoryEnum"}, {"$ref": "#/components/schemas/NullEnum"}]},
     "Category | None", "Category | None"),
    ({"allOf": [{"$ref": "#/components/schemas/MessageRequest"}]}, "NewMessage", "NewMessage"),
    ({}, "Any", "Any"),
]  # fmt: skip


def test_a_schema_becomes_a_type(generator: ModuleType) -> None:
    choices = generator.tomllib.loads((CLIENT / "generate.toml").read_text(encoding="utf-8"))
    document = generator.Document(schema(), choices)
    for given, answered, sent in TYPES:
        assert document.annotation(given) == answered
        assert document.annotation(given, of_argument=True) == sent


def imported(path: Path) -> set[str]:
    """The packages that a file imports, wherever it does."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {one.name.split(".")[0] for one in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            found.add(str(node.module).split(".", maxsplit=1)[0])
    return found


# What each integration may import besides: the framework that it is for.
FRAMEWORKS: dict[str, set[str]] = {
    "adk.py": {"google"},
    "claude.py": {"anthropic"},
    "crewai.py": {"crewai"},
    "deepagents.py": {"deepagents", "langgraph"},
    "deerflow.py": {"deerflow"},
    "langchain.py": {"langchain", "langchain_core", "langgraph"},
    "langgraph.py": {"langgraph"},
    "llamaindex.py": {"llama_index"},
    "mcp_proxy.py": {"anyio", "mcp"},
    "openai_agents.py": {"agents"},
    "pydantic_ai.py": {"pydantic_ai"},
}


def test_it_imports_nothing_of_the_hub() -> None:
    allowed = {"memoryhub_client", "httpx", "httpx2", "typing_extensions"}
    files = sorted(SOURCES.rglob("*.py"))
    for path in files:
        foreign = imported(path) - set(sys.stdlib_module_names) - allowed - FRAMEWORKS.get(path.name, set())
        assert not foreign, path.name
    assert "httpx2" in imported(SOURCES / "_retrying.py")
    assert len(files) >= 8
