"""`make client-python`: write the client's models and operations from the hub's OpenAPI document, given on stdin.

A schema becomes a dataclass (of an answer), a TypedDict (of what is sent) or a `Literal`, an operation a method. What
the document does not say stands in `generate.toml`. It needs ruff, which lays the modules out.
"""

import json
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import tomllib

HERE = Path(__file__).parent
PACKAGE = HERE / "src/memoryhub_client"
BASE = "/api/v1"
MANAGEMENT = "management"
JSON = "application/json"
# What comes while it is made has methods of its own, written by hand.
EVENTS = "text/event-stream"
HEADERS = {"If-Match": "if_match", "If-None-Match": "if_none_match", "Idempotency-Key": "idempotency_key"}
# Where they stand among the arguments of a method.
FIRST, LAST = ("user_id",), ("page_size", "cursor", "if_match", "if_none_match", "idempotency_key")
PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
EMPTY = {"list": "field(default_factory=list)", "str": '""', "int": "0", "float": "0.0", "bool": "False"}
WIDTH = 112


class Document:
    """The OpenAPI document with our choices."""

    def __init__(self, found: Mapping[str, Any], choices: Mapping[str, Any]) -> None:
        self.schemas: Mapping[str, Any] = found["components"]["schemas"]
        self.paths: Mapping[str, Any] = found["paths"]
        self.choices = choices

    def class_of(self, schema: str) -> str:
        """How the class of a schema is called."""
        name = schema.removesuffix("Request").removesuffix("Enum")
        return str(self.choices["classes"].get(schema, name))

    def members(self, name: str) -> set[str]:
        """The names of the members of a class."""
        return {
            member
            for schema, one in self.schemas.items()
            if self.class_of(schema) == name
            for member in one["properties"]
        }

    @cached_property
    def referenced(self) -> set[str]:
        """The schemas that others name."""
        return {inner for one in self.schemas.values() for inner in _references(one)}

    @cached_property
    def literals(self) -> dict[str, list[str]]:
        """Name → the values that it stands for."""
        found = {self.class_of(name): one["enum"] for name, one in self.schemas.items() if "enum" in one}
        for name, (operation, argument) in self.choices["literals"].items():
            found[name] = self._argument(operation, argument)["enum"]
        return {name: values for name, values in found.items() if None not in values}

    @cached_property
    def literal_of(self) -> dict[frozenset[str], str]:
        return {frozenset(values): name for name, values in self.literals.items()}

    def _argument(self, operation: str, argument: str) -> Any:
        found = next(one for _, _, name, one in self.operations() if name == operation)
        return next(one["schema"] for one in found["parameters"] if one["name"] == argument)

    def operations(self) -> Iterator[tuple[str, str, str, Any]]:
        """Method, path, name as Python has it, and what the document says."""
        for path, methods in self.paths.items():
            for method, found in methods.items():
                name = "".join(f"_{one.lower()}" if one.isupper() else one for one in found["operationId"])
                yield method.upper(), path, name, found

    def annotation(self, schema: Mapping[str, Any], *, of_argument: bool = False) -> str:
        """The type of a value; an argument takes any sequence, and a moment as text, too."""
        if "$ref" in schema or "allOf" in schema:
            name = (schema.get("$ref") or schema["allOf"][0]["$ref"]).rsplit("/", 1)[-1]
            return "None" if name == "NullEnum" else self.class_of(name)
        if "oneOf" in schema:
            return union(self.annotation(one, of_argument=of_argument) for one in schema["oneOf"])
        kinds = schema.get("type", ())
        kinds = kinds if isinstance(kinds, list) else [kinds] if kinds else []
        if "enum" in schema:
            values = [one for one in schema["enum"] if one is not None]
            named = self.literal_of.get(frozenset(values)) or f"Literal[{', '.join(map(json.dumps, values))}]"
            return union([named, *(["None"] if "null" in kinds else [])])
        return union(self._plain(kind, schema, of_argument) for kind in kinds) if kinds else "Any"

    def _plain(self, kind: str, schema: Mapping[str, Any], of_argument: bool) -> str:
        if kind == "array":
            inner = self.annotation(schema.get("items") or {}, of_argument=of_argument)
            return f"{'Sequence' if of_argument else 'list'}[{inner}]"
        if kind == "object":
            values = schema.get("additionalProperties")
            return f"dict[str, {self.annotation(values) if isinstance(values, dict) and values else 'Any'}]"
        if kind == "string" and schema.get("format") == "date-time":
            return "datetime | str" if of_argument else "datetime"
        return "bytes" if schema.get("format") == "binary" else PLAIN[kind]


def union(kinds: Iterable[str]) -> str:
    """Each alternative once, None last."""
    flat = dict.fromkeys(one for kind in kinds for one in _alternatives(kind))
    return " | ".join(sorted(flat, key=lambda one: one == "None"))


def _alternatives(kind: str) -> list[str]:
    return kind.split(" | ") if "[" not in kind else re.split(r" \| (?![^\[]*\])", kind)


# Models


def models(document: Document) -> str:
    """The module of the classes."""
    first = "What the hub answers, and what it is told: the schemas of its OpenAPI document by their names."
    about = """
        Answers are dataclasses. A member that a newer hub adds is passed over, and a value that it adds to a list of
        values is given as it is. What is sent is a dict, as in the API's documentation:
        `{"role": "user", "content": "…"}`."""
    lines = [header(first, about)]
    lines += [
        "from dataclasses import dataclass, field",
        "from datetime import datetime",
        "from typing import Any, Literal, TypedDict",
        "from typing_extensions import Required",
    ]
    lines += [
        f"{name} = Literal[{', '.join(map(json.dumps, values))}]" for name, values in sorted(document.literals.items())
    ]
    written: set[str] = set()
    for schema in document.schemas:
        lines += _class(document, schema, written)
    return "\n\n".join(lines)


def _class(document: Document, schema: str, written: set[str]) -> Iterator[str]:
    """The class of a schema, after those that it needs."""
    name, found = document.class_of(schema), document.schemas[schema]
    is_sent = schema.endswith("Request") or name in document.choices["sent"]
    if name in written or "properties" not in found or not _is_model(document, schema):
        return
    written.add(name)
    base = document.choices["bases"].get(name, "")
    for inner in [*_references(found), *(one for one in document.schemas if base and document.class_of(one) == base)]:
        yield from _class(document, inner, written)
    inherited: Mapping[str, Any] = next(
        (one["properties"] for key, one in document.schemas.items() if document.class_of(key) == base), {}
    )
    members = {key: one for key, one in found["properties"].items() if key not in inherited}
    body = [f'    """{docstring(found["description"], indent=4)}"""', ""]
    if is_sent:
        yield "\n".join(
            [f"class {name}({base or 'TypedDict'}, total=False):", *body, *_sent(document, name, found, members)]
        )
    else:
        head = f"@dataclass(frozen=True, kw_only=True)\nclass {name}{f'({base})' if base else ''}:"
        yield "\n".join([head, *body, *_answered(document, name, found, members)])


def _is_model(document: Document, schema: str) -> bool:
    """Pages are one class, members of a request are arguments, and of a problem `errors` makes its own."""
    if schema in document.choices["no_class"]:
        return False
    return not schema.endswith("Page") and (not schema.endswith("Request") or schema in document.referenced)


def _references(found: Any) -> Iterator[str]:
    """The schemas that this one names."""
    for inner in found.values() if isinstance(found, dict) else found if isinstance(found, list) else ():
        yield from _references(inner)
    if isinstance(found, dict) and isinstance(found.get("$ref"), str):
        yield found["$ref"].rsplit("/", 1)[-1]


def _sent(document: Document, name: str, found: Any, members: Mapping[str, Any]) -> Iterator[str]:
    for member, schema in members.items():
        kind = document.choices["members"].get(f"{name}.{member}") or document.annotation(schema)
        kind = kind.replace("datetime", "str | datetime")
        yield f"    {member}: {f'Required[{kind}]' if member in found.get('required', ()) else kind}"


def _answered(document: Document, name: str, found: Any, members: Mapping[str, Any]) -> Iterator[str]:
    for member, schema in members.items():
        kind = document.choices["members"].get(f"{name}.{member}") or document.annotation(schema)
        if f"{name}.{member}" in document.choices["secret"]:
            yield f"    {member}: {kind} = field(repr=False)"
        elif member in found.get("required", ()):
            yield f"    {member}: {kind}"
        else:
            empty = document.choices["defaults"].get(f"{name}.{member}") or EMPTY.get(kind.split("[", 1)[0], "None")
            yield f"    {member}: {kind if empty != 'None' else union([kind, 'None'])} = {empty}"


# Operations


def operations(document: Document, *, management: bool) -> str:
    """The module of the operations for the keys of tenants, or for management keys."""
    name, first, about = (
        ("ManagementOperations", "Every operation for management keys: tenants, and operators.", """
        `slug` is the tenant's. No memories are in it.""")
        if management
        else ("Operations", "Every operation of the API, as `_calls` describes it.", """
        `user_id=None` leaves the person out: with a key for one person it is that one. On the lists and objects of
        facts `agent_id` and `roles` say who asks, and your key vouches for both.""")
    )  # fmt: skip
    methods = [
        _method(document, method, path.removeprefix(BASE), name, found)
        for method, path, name, found in document.operations()
        if (MANAGEMENT in found["tags"]) == management
    ]
    whole = "\n\n".join([f"class {name}:", '    """What a hub can be asked."""', *methods])
    used = sorted(
        {
            one
            for one in re.findall(r"\b[A-Z]\w+\b", _code(whole))
            if one in document.literals or _is_class(document, one)
        }
    )
    return "\n\n".join([
        header(first, about, '# mypy: disable-error-code="empty-body"'),
        "from collections.abc import Sequence\nfrom datetime import datetime\nfrom typing import Any, Literal",
        "from memoryhub_client._calls import UNSET, Unset, listing, operation",
        f"from memoryhub_client.models import ({', '.join(used)})",
        whole,
    ])  # fmt: skip


def _code(text: str) -> str:
    return re.sub(r'""".*?"""', "", text, flags=re.DOTALL)


def _is_class(document: Document, name: str) -> bool:
    return any(document.class_of(one) == name and _is_model(document, one) for one in document.schemas)


def _method(document: Document, method: str, path: str, name: str, found: Any) -> str:
    chosen = document.choices["operations"].get(name, {})
    arguments = {one.name: one for one in _arguments(document, method, found, chosen)}
    ordered = sorted(arguments.values(), key=lambda one: one.order)
    positional = [
        one for one in ordered if one.place == "path" or one.name in (*chosen.get("positional", ()), chosen.get("raw"))
    ]
    # Those of the path in its order, then as they are chosen.
    places = [*re.findall(r"{(\w+)}", path), *chosen.get("positional", ()), chosen.get("raw")]
    positional.sort(key=lambda one: places.index(one.name))
    if document_argument := chosen.get("document"):
        positional.append(Argument(name=document_argument, place="body", kind=chosen["of"]))
    named = [one for one in ordered if one not in positional]
    signature = ["self", *map(str, positional), *(["*", *map(str, named)] if named else [])]
    answer, is_list = _answer(document, found)
    abouts = [one.line for one in [*positional, *named] if one.line]
    words = docstring(f"{found['summary']}. {found.get('description', '')}", abouts, indent=8)
    return textwrap.indent(
        f"@{_decorator(method, path, is_list, arguments.values(), chosen)}\n"
        f"def {name}({', '.join(signature)}) -> {answer}:\n"
        f'    """{words}"""\n    ...',
        "    ",
    )


def _decorator(
    method: str, path: str, is_list: bool, arguments: Iterable["Argument"], chosen: Mapping[str, Any]
) -> str:
    if is_list:
        return f'listing("{path}")'
    in_query = () if method in {"GET", "DELETE"} else [one.name for one in arguments if one.place == "query"]
    more = {
        "query": "" if "raw" in chosen or not in_query else tuple(in_query),
        "named": chosen.get("named"),
        "document": chosen.get("document"),
        "repeatable": chosen.get("repeatable"),
        "nulls": tuple(chosen.get("nulls", ())),
        "raw": chosen.get("raw"),
    }
    given = [f"{key}={value!r}" for key, value in more.items() if value not in (None, "", ())]
    return f"operation({', '.join([json.dumps(method), json.dumps(path), *given])})"


@dataclass(frozen=True, kw_only=True)
class Argument:
    """An argument of a method: its place in a request, its type, and what it is without a value ("": it has one)."""

    name: str
    place: str
    kind: str
    default: str = ""
    about: str = ""

    @property
    def order(self) -> tuple[bool, int, bool]:
        """The person first, what pages and headers are for last, what must be given before the rest."""
        last = LAST.index(self.name) + 1 if self.name in LAST else 0
        return (self.name not in FIRST, last, bool(self.default))

    @property
    def line(self) -> str:
        """What is said of it: names of values are in its type, and headers and pages are the same everywhere."""
        about = "" if self.name in LAST else " ".join(self.about.split("* `", 1)[0].split())
        return f"`{self.name}`: {about}" if about else ""

    def __str__(self) -> str:
        return f"{self.name}: {self.kind}{f' = {self.default}' if self.default else ''}"


def _arguments(document: Document, method: str, found: Any, chosen: Mapping[str, Any]) -> Iterator[Argument]:
    in_header_or_query = list(_parameters(document, found))
    body = _body(found)
    if "raw" in chosen:
        in_body = [Argument(name=chosen["raw"], place="body", kind="bytes")]
    else:
        whole = document.schemas[body["$ref"].rsplit("/", 1)[-1]] if body else {"properties": {}}
        apart = document.members(chosen["of"]) if "of" in chosen else set()
        given = {one.name for one in in_header_or_query} - set(chosen.get("named", {}).values())
        given |= set(chosen.get("without", ()))
        in_body = [one for one in _members(document, method, whole, chosen) if one.name not in apart | given]
    for one in [*in_header_or_query, *in_body]:
        if one.name == "user_id" and not chosen.get("any_person"):
            # None leaves it out, which says more than a default would.
            yield replace(one, kind=union([one.kind, "None"]), default="")
        else:
            yield one


def _parameters(document: Document, found: Any) -> Iterator[Argument]:
    """Those of the path, the query and the headers."""
    for one in found.get("parameters", ()):
        name = HEADERS.get(one["name"], one["name"])
        # A version is a number, and roles are a list: the client writes the text that the API takes.
        written = {"if_match": "int", **({"roles": "Sequence[str]"} if one["in"] == "query" else {})}
        kind = written.get(name) or document.annotation(one["schema"], of_argument=True)
        if not one.get("required"):
            kind = union([kind, "None"])
        default = "" if one.get("required") else "None"
        yield Argument(name=name, place=one["in"], kind=kind, default=default, about=one.get("description", ""))


def _members(document: Document, method: str, whole: Any, chosen: Mapping[str, Any]) -> Iterator[Argument]:
    """The members of a body. Of a change None empties a field, so that it is left out by `UNSET`."""
    names = {given: name for name, given in chosen.get("named", {}).items()}
    for member, schema in whole["properties"].items():
        name, kind = names.get(member, member), document.annotation(schema, of_argument=True)
        default = "" if member in whole.get("required", ()) else "None"
        if method == "PATCH" or (default and name in chosen.get("nulls", ())):
            kind, default = union([kind, "Unset"]), "UNSET"
        elif default:
            kind = union([kind, "None"])
        yield Argument(name=name, place="body", kind=kind, default=default, about=schema.get("description", ""))


def _body(found: Any) -> Any:
    content = found.get("requestBody", {}).get("content", {})
    return content[JSON]["schema"] if JSON in content else content[next(iter(content))]["schema"] if content else None


def _answer(document: Document, found: Any) -> tuple[str, bool]:
    """The type of what comes back, and whether it is a list of these, by pages."""
    kinds = []
    for status, one in found["responses"].items():
        if status >= "3":
            continue
        for media, content in one.get("content", {}).items():
            if media == EVENTS:
                continue
            schema = content["schema"]
            page = document.schemas.get(schema.get("$ref", "").rsplit("/", 1)[-1], {}).get("properties", {})
            if {"results", "next", "previous"} <= page.keys():
                return document.annotation(page["results"]["items"]), True
            kinds.append(document.annotation(schema) if media == JSON else "bytes")
    return union(sorted(kinds)) if kinds else "None", False


# Layout


def header(first: str, about: str, more: str = "") -> str:
    """The beginning of a module."""
    words = textwrap.fill(" ".join(about.split()), 120)
    note = "Written by `clients/python/generate.py` from the hub's OpenAPI document: change it there."
    return f'"""{first}\n\n{words}\n\n{note}\n"""' + (f"\n{more}" if more else "")


def docstring(text: str, abouts: Iterable[str] = (), *, indent: int) -> str:
    """The first sentence, what else is said, and a line for each argument."""
    text = " ".join(text.split())
    first, rest = re.split(r"(?<=\.) ", f"{text} ", maxsplit=1)
    paragraphs = [[text]] if len(text) <= WIDTH - indent else [[first], [rest]]
    lines: list[str] = []
    for paragraph in [*paragraphs, list(abouts)]:
        wrapped = [line for one in paragraph for line in textwrap.wrap(one, WIDTH - indent)]
        lines += ["", *wrapped] if lines and wrapped else wrapped
    whole = "\n".join(f"{' ' * indent}{line}" if line and at else line for at, line in enumerate(lines))
    return whole.replace("\\", "\\\\") + (f"\n{' ' * indent}" if len(lines) > 1 else "")


def formatted(text: str) -> str:
    """As ruff lays it out, with the imports that it uses."""
    for command in (["check", "--fix-only", "--quiet", "--select", "I,F401"], ["format", "--quiet"]):
        given = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(PACKAGE / "models_.py"), "-"]
        text = subprocess.run(given, input=text, text=True, capture_output=True, check=True).stdout
    return text


def generated(found: Mapping[str, Any]) -> dict[str, str]:
    """File → its text."""
    document = Document(found, tomllib.loads((HERE / "generate.toml").read_text(encoding="utf-8")))
    return {
        "models.py": formatted(models(document)),
        "operations.py": formatted(operations(document, management=False)),
        "management.py": formatted(operations(document, management=True)),
    }


if __name__ == "__main__":
    for name, text in generated(json.load(sys.stdin)).items():
        (PACKAGE / name).write_text(text, encoding="utf-8")
