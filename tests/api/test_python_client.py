"""The Python client's operations and models against the OpenAPI document, and what it may import."""

import ast
import sys
import types
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NotRequired, Required, Union, get_args, get_origin, get_type_hints, is_typeddict

import pytest
from memoryhub_client import models
from memoryhub_client._calls import HEADERS, Description, Listing, Operation, Unset
from memoryhub_client.management import ManagementOperations
from memoryhub_client.operations import Operations

from tests.api.client import BASE, schema

SOURCES = Path(__file__).parents[2] / "clients/python/src/memoryhub_client"
DESCRIBED: dict[str, Any] = {
    name: one
    for group in (Operations, ManagementOperations)
    for name, one in vars(group).items()
    if isinstance(one, Operation | Listing)
}
# Schemas whose class has another name.
NAMES = {"ContextAnswer": "Context", "Message": "ChatMessage", "Document": "MemoryDocument",
         "TakenDocument": "StoredDocument", "MessageRequest": "NewMessage"}  # fmt: skip
# Of a problem document `errors` makes these itself.
OTHERS = {"Problem", "Fault"}
# A type as it is compared: of JSON, with what is in it.
Shape = Any


def methods() -> dict[str, tuple[str, str, dict[str, Any]]]:
    """Name as Python has it → method, path, operation."""
    return {
        "".join(f"_{one.lower()}" if one.isupper() else one for one in found["operationId"]): (
            method.upper(),
            path,
            found,
        )
        for path, item in schema()["paths"].items()
        for method, found in item.items()
    }


def resolved(found: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in found or "allOf" in found:
        reference = found["$ref"] if "$ref" in found else found["allOf"][0]["$ref"]
        found = schema()["components"]["schemas"][reference.split("/")[-1]]
    return found


def shape_of_schema(given: dict[str, Any]) -> Shape:
    """Text, number …; with the values of an enumeration, the kind of a list's items, the members of an object."""
    found = resolved(given)
    if "oneOf" in found:
        return _union([shape_of_schema(one) for one in found["oneOf"]])
    if "enum" in found:
        return _literal(found["enum"])
    kinds = found.get("type", "any")
    return _union([_plain(kind, found) for kind in (kinds if isinstance(kinds, list) else [kinds])])


def _plain(kind: str, found: dict[str, Any]) -> Shape:
    if kind == "array":
        return ("list", shape_of_schema(found.get("items") or {}))
    if kind == "object" and "properties" in found:
        members = {name: shape_of_schema(one) for name, one in found["properties"].items()}
        # Parts of a message: what else they have is the caller's.
        return "object" if set(members) == {"type", "text"} else ("members", tuple(sorted(members)))
    return {"string": _text(found)}.get(kind, kind)


def _text(found: dict[str, Any]) -> str:
    return "moment" if found.get("format") == "date-time" else "string"


def _union(shapes: list[Shape]) -> Shape:
    flat = {inner for one in shapes for inner in (one if isinstance(one, frozenset) else {one})}
    return frozenset(flat) if len(flat) > 1 else flat.pop()


def _literal(values: Any) -> Shape:
    return ("one of", tuple(sorted(values)))


PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", datetime: "moment", bytes: "string",
         type(None): "null", Any: "any"}  # fmt: skip


def shape_of_type(kind: Any) -> Shape:
    origin, inner = get_origin(kind), get_args(kind)
    if kind in PLAIN:
        return PLAIN[kind]
    if origin in (Required, NotRequired):
        return shape_of_type(inner[0])
    if origin is Literal:
        return _literal(inner)
    if origin in (Union, types.UnionType):
        return _moments(_union([shape_of_type(one) for one in inner if one is not Unset]))
    if origin is not None and issubclass(origin, dict):
        return "object"
    if origin is not None:
        return ("list", shape_of_type(inner[0]))
    assert is_dataclass(kind) or is_typeddict(kind), kind
    return ("members", tuple(sorted(get_type_hints(kind))))


def _moments(shape: Shape) -> Shape:
    """What is sent as a moment may be given as a text, too."""
    if isinstance(shape, frozenset) and {"moment", "string"} <= shape:
        return _union(list(shape - {"string"}))
    return shape


def without(shape: Shape, *left_out: str) -> Shape:
    return _union(list(shape - set(left_out))) if isinstance(shape, frozenset) else shape


def test_every_operation_of_the_api_is_a_method_and_no_other() -> None:
    assert {name: (method, path.removeprefix(BASE)) for name, (method, path, _) in methods().items()} == {
        name: (one.description.method, one.description.path) for name, one in DESCRIBED.items()
    }
    assert len(DESCRIBED) > 35


def arguments_of_schema(found: dict[str, Any], described: Description) -> dict[tuple[str, str], tuple[Shape, bool]]:
    """Place and name → shape and whether it is required."""
    headers = {header: name for name, header in HEADERS.items()}
    expected = {
        (one["in"], headers.get(one["name"], one["name"])): (shape_of_schema(one["schema"]), bool(one.get("required")))
        for one in found.get("parameters", ())
    }
    body = found.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    if body:
        whole = resolved(body)
        expected |= {
            ("body", name): (shape_of_schema(one), name in whole.get("required", ()))
            for name, one in whole["properties"].items()
            if not (described.document and name in get_type_hints(models.MemoryDocument))
        }
    return expected


@pytest.mark.parametrize("name", sorted(DESCRIBED))
def test_a_method_takes_what_the_operation_takes(name: str) -> None:
    one = DESCRIBED[name]
    described = one.description
    expected = arguments_of_schema(methods()[name][2], described)
    hints = get_type_hints(one.__wrapped__)
    given = {}
    for parameter in list(one.signature.parameters.values())[1:]:
        if parameter.name in (described.document, described.raw):
            continue
        place = described.place_of(parameter.name)
        given[place, described.named.get(parameter.name, parameter.name)] = (
            shape_of_type(hints[parameter.name]), parameter.default is parameter.empty,
        )  # fmt: skip
    # In the document twice: those in the query are sent.
    for twice in ("user_id", "agent_id") if described.document else ():
        expected.pop(("body", twice), None)
    assert given.keys() == expected.keys()
    for argument, (shape, required) in expected.items():
        if argument[1] == "user_id":
            # None leaves it out, which says more than a default would.
            assert without(given[argument][0], "null") == shape
            continue
        assert given[argument][1] == required, argument
        # None leaves out what has a default.
        assert without(given[argument][0], "null") == WRITTEN.get(argument, without(shape, "null")), argument


# What the client writes as the text that the API takes.
WRITTEN: dict[tuple[str, str], Shape] = {("header", "if_match"): "integer", ("query", "roles"): ("list", "string")}


def test_a_method_that_is_wrong_is_found() -> None:
    described = DESCRIBED["get_fact"].description
    assert ("query", "agent_id") in arguments_of_schema(methods()["get_fact"][2], described)
    assert shape_of_type(int) != shape_of_schema({"type": "number"})
    assert shape_of_type(models.Category) != shape_of_type(models.Trust)
    assert shape_of_type(models.Fact) != shape_of_type(models.Episode)


@pytest.mark.parametrize("name", sorted(DESCRIBED))
def test_a_method_answers_what_the_operation_answers(name: str) -> None:
    described = DESCRIBED[name]
    answers = {status: one for status, one in methods()[name][2]["responses"].items() if status < "3"}
    found = [kind["schema"] for one in answers.values() for kind in one.get("content", {}).values()]
    if isinstance(described, Listing):
        page = resolved(found[0])["properties"]
        assert page.keys() - {"total"} == {"next", "previous", "results"}
        assert ("list", shape_of_type(described.answer)) == shape_of_schema(page["results"])
    else:
        assert shape_of_type(described.answer) == _union([shape_of_schema(one) for one in found] or ["null"])


def classes() -> Iterator[tuple[str, str, Any]]:
    """Schema, whether it is sent or answered, and its class."""
    for name, found in schema()["components"]["schemas"].items():
        own = NAMES.get(name, NAMES.get(name.removesuffix("Request"), name.removesuffix("Request")))
        kind = getattr(models, own, None)
        # Of requests the objects inside them; their own members are arguments.
        if "properties" in found and kind and (is_typeddict(kind) or not name.endswith("Request")):
            yield name, own, kind


@pytest.mark.parametrize(("name", "own"), [(name, own) for name, own, _ in classes()])
def test_a_model_has_the_members_of_its_schema(name: str, own: str) -> None:
    kind, found = getattr(models, own), schema()["components"]["schemas"][name]
    hints = get_type_hints(kind)
    assert hints.keys() == found["properties"].keys()
    for member, one in found["properties"].items():
        optional = member not in found.get("required", ())
        shape, expected = shape_of_type(hints[member]), shape_of_schema(one)
        if (own, member) == ("NewMessage", "role"):
            # As its description says, `developer` is taken, too.
            expected = _literal([*expected[1], "developer"])
        assert without(shape, "null" if optional else "") == without(expected, "null" if optional else ""), member
    if is_dataclass(kind):
        defaults = {one.name for one in fields(kind) if not (one.default is one.default_factory is MISSING)}
        assert defaults == {member for member in found["properties"] if member not in found.get("required", ())}


def test_every_schema_has_a_model() -> None:
    own = {name for name, _, _ in classes()}
    left = {
        name for name, found in schema()["components"]["schemas"].items()
        if "properties" in found and name not in own | OTHERS and not name.endswith(("Page", "Request"))
    }  # fmt: skip
    assert left == set()
    assert len(own) > 40


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
    "claude.py": {"anthropic"},
    "deepagents.py": {"deepagents", "langgraph"},
    "deerflow.py": {"deerflow"},
    "langchain.py": {"langchain", "langchain_core", "langgraph"},
    "langgraph.py": {"langgraph"},
    "mcp_proxy.py": {"anyio", "mcp"},
    "openai_agents.py": {"agents"},
}


def test_it_imports_nothing_of_the_hub() -> None:
    allowed = {"memoryhub_client", "httpx", "httpx2", "typing_extensions"}
    files = sorted(SOURCES.rglob("*.py"))
    for path in files:
        foreign = imported(path) - set(sys.stdlib_module_names) - allowed - FRAMEWORKS.get(path.name, set())
        assert not foreign, path.name
    assert "httpx2" in imported(SOURCES / "_retrying.py")
    assert len(files) >= 8
