"""What must stay while modules move. `python -m tests.frozen` writes tests/frozen.json anew, after a deliberate change.

A section is a set of lines. The running project or the syntax trees of the sources give them, wherever a thing stands.
Only `BYTES` and `NAMED` name modules: if you move one of these, edit its line here.
"""

import ast
import gc
import hashlib
import inspect
import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace as Given
from typing import Any
from unittest.mock import patch
from uuid import UUID

import django
from django.utils.module_loading import import_string

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests/frozen.json"
PACKAGES = ("memories", "memoryhub")
ENVIRONMENT = re.compile(r"_?(MEMORYHUB|OPENAI)_[A-Z_]+|DATABASE_URL|DJANGO_SETTINGS_MODULE")
TASK = re.compile(r"memories\.(\w+\.)*(tasks|schedules)\.[a-z_]+")
VERB = re.compile(r"[a-z]+(_[a-z]+)*")
# Folders that outlive a process.
KEPT = re.compile(r"home|HOME|(?<!_)folder|self\.base\b")
PROSE = {"description", "summary", "title", "example", "examples", "externalDocs"}
ROUTES = {"/admin/": "urls of the admin", "/api/": "urls of the API"}
# What cookies, sessions, accounts and deployments hold.
SETTINGS = (
    "AUTHENTICATION_BACKENDS", "AUTH_USER_MODEL", "CSRF_COOKIE_NAME", "INSTALLED_APPS", "LANGUAGE_COOKIE_NAME",
    "MESSAGE_STORAGE", "MIDDLEWARE", "PASSWORD_HASHERS", "ROOT_URLCONF", "SESSION_COOKIE_NAME", "SESSION_ENGINE",
    "SESSION_SERIALIZER", "SIGNING_BACKEND", "WSGI_APPLICATION",
)  # fmt: skip
# What operators name in MEMORYHUB_RERANKER, and import in rerankers of their own.
RERANKING = ("memories.llm.backends.rerank_endpoint.rerank", "memories.llm.reranking.Candidate")
# What rows and other versions at work hold, where the sources do not show it by themselves.
NAMED = (
    "memories.audit.REVISED_FIELDS", "memories.audit.REVISED_MOMENTS", "memories.conf.NUMBERS",
    "memories.episodes.quality.FLAWS", "memories.episodes.extractive.EXTRACTOR",
    "memories.facts.review_items.REASON_OF_FLAG", "memories.extraction.rules_mode.EXTRACTOR",
    "memories.embedding.spaces.EMBEDDING", "memories.embedding.spaces.REEMBEDDING",
    "memories.embedding.spaces.SWITCHING", "memories.embedding.spaces._CLASS", "memories.jobs.pulse.SCHEDULES",
)  # fmt: skip

KEYS = {"MEMORYHUB_PEPPER": "pepper", "MEMORYHUB_MFA_KEY": "mfa", "SECRET_KEY": "key", "SECRET_KEY_FALLBACKS": []}
ID, TEXT, MEMBERS = UUID(int=7), "Straße  Ａ", {"b": 1, "a": "ä"}
SPAN = {"number": 1, "kind": "seal", "first_id": 1, "last_id": 2, "count": 2, "newest_at": None, "sealed_at": None}
SEAL = Given(tenant_uuid=ID, previous=b"p", leaves=b"l", **SPAN)
REQUEST = Given(_request=Given(path="/p", META={"QUERY_STRING": "q=1"}, body=b"{}"))


def _locked(lock: Callable[[Any], None]) -> str:
    with patch(f"{lock.__module__}.connection") as connection:
        lock(Given(api_key_id=ID, endpoint="e", key_digest=b"k"))
    return str(connection.cursor().__enter__().execute.call_args.args[1]["lock"])


# What is stored, signed or locked, from fixed input under fixed keys.
BYTES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "answer kept for a key": ("memories.api.idempotency._keyed", lambda f: f("key", b"x")),
    "answer kept for a request": ("memories.api.idempotency._request_digest", lambda f: f(REQUEST)),
    "API key": ("memories.curation.access.keys._digest", lambda f: f("mh_abc_def")),
    "audit event as sealed": ("memories.privacy.trail.chain.FIELDS", ",".join),
    "audit seal": ("memories.privacy.trail.chain.digest_of", lambda f: f(SEAL)),
    "audit seal, canonical": ("memories.privacy.trail.chain.canonical", lambda f: f(MEMBERS)),
    "cookie of a known browser": ("memories.admin.access.lockout._cookie", lambda f: f("ann")),
    "end of a backup": ("memories.management.backups.SEAL", bytes),
    "failed sign-in": ("memories.curation.access.sign_ins._digest", lambda f: f(Given(value="name"), "ann")),
    "ledger, id": ("memories.privacy.ledger.digest_of_row", lambda f: f(ID)),
    "ledger, line": ("memories.privacy.ledger._signature", lambda f: f(MEMBERS)),
    "ledger, spelling": ("memories.privacy.ledger._digest_of_spelling", lambda f: f(ID, "Anna")),
    "link of an export": ("memories.privacy.exports.downloads._digest", lambda f: f("token")),
    "lock of an idempotency key": ("memories.api.idempotency._lock", _locked),
    "mark of a record": ("memories.curation.marks.mark", lambda f: f(MEMBERS)),
    "needles of a case": ("memories.privacy.searching.search_terms._cipher", lambda f: f(ID)._signing_key),
    "operator in a known browser": ("memories.admin.access.lockout._mark", lambda f: f("ann")),
    "person": ("memories.conf.digest_of_person", lambda f: f(ID, " Anna ")),
    "receipt, canonical": ("memories.privacy.receipts.canonical", lambda f: f(MEMBERS)),
    "receipt, public key": ("memories.privacy.receipts.public_key", lambda f: f()),
    "refusal, older": ("memories.models.folding.older_refusals", lambda f: f("text", TEXT)[0]),
    "refusal of a key": ("memories.models.folding.refusal_of_key", lambda f: f("goal", "k")),
    "refusal of a text": ("memories.models.folding.refusal_of_text", lambda f: f(TEXT)),
    "request id": ("memories.audit.kept_request_id", lambda f: f("anna-7:1")),
    "second factor": ("memories.conf.second_factor_keys._fernet", lambda f: f("k")._signing_key),
    "model key": ("memories.conf.second_factor_keys._fernet", lambda f: f("k", b"model key")._signing_key),
    "text": ("memories.models.folding.text_digest", lambda f: f(TEXT)),
}  # fmt: skip


class Source:
    """A file of the project: its syntax tree, and what is assigned to names in it."""

    def __init__(self, path: Path) -> None:
        self.path, self.place = path, path.relative_to(ROOT).as_posix()
        self.tree = ast.parse(path.read_text(encoding="utf-8"))
        self.nodes = list(ast.walk(self.tree))
        self.calls = [node for node in self.nodes if isinstance(node, ast.Call)]
        self.assigned: dict[str, list[ast.expr]] = {}
        for node in (node for node in self.nodes if isinstance(node, ast.Assign)):
            target, value = node.targets[0], node.value
            together = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
            for name, one in zip(target.elts, value.elts, strict=True) if together else [(target, value)]:  # type: ignore[attr-defined]
                self.assigned.setdefault(_name(name), []).append(one)

    def says(self, node: ast.AST | None, depth: int = 3) -> set[str]:
        """The texts that an expression may be: constants, by name, too, here or elsewhere; {} is what is filled in."""
        if isinstance(node, ast.Constant):
            return {node.value} if isinstance(node.value, str) else set()
        if isinstance(node, ast.JoinedStr):
            return {"".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)}
        if isinstance(node, ast.IfExp):
            return self.says(node.body, depth) | self.says(node.orelse, depth)
        name = _name(node)
        own = isinstance(node, ast.Name) and name in self.assigned
        places = [self] if own else sources() if name.isupper() else []
        found = [(one, value) for one in places for value in one.assigned.get(name, ())] if depth else []
        return {text for one, value in found for text in one.says(value, depth - 1)}


def _name(node: ast.AST | None) -> str:
    return node.attr if isinstance(node, ast.Attribute) else str(getattr(node, "id", ""))


@cache
def sources() -> list[Source]:
    """Of the program, migrations aside: read once, and kept."""
    found = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py") if "migrations" not in path.parts]
    # The garbage collector would go through the growing trees again and again: three quarters of the time.
    gc.disable()
    read = [Source(path) for path in sorted([ROOT / "manage.py", *found])]
    gc.freeze()
    gc.enable()
    return read


def texts(pattern: re.Pattern[str]) -> Iterator[str]:
    for node in (node for one in sources() for node in one.nodes if isinstance(node, ast.Constant)):
        if isinstance(node.value, str) and pattern.fullmatch(node.value):
            yield node.value


def models() -> list[Any]:
    from django.apps import apps

    return [model for app in apps.get_app_configs() if _is_own(app.name) for model in app.get_models(True)]


def _is_own(module: str) -> bool:
    return module.split(".", maxsplit=1)[0] in PACKAGES


def tables() -> Iterator[str]:
    from django.db import connection

    for meta in (model._meta for model in models()):
        yield f"{meta.db_table} is {meta.label}"
        for field in meta.local_concrete_fields:
            yield f"{meta.db_table}.{field.column} {field.db_type(connection)}{' null' if field.null else ''}"


def permissions() -> Iterator[str]:
    for meta in (model._meta for model in models() if not model._meta.auto_created):
        codenames = [f"{action}_{meta.model_name}" for action in meta.default_permissions]
        yield from (f"{meta.app_label}.{code}" for code in [*codenames, *(code for code, _ in meta.permissions)])


def urls(start: str = "") -> Iterator[str]:
    """Addresses with their names: those that begin so, or those of no section."""
    from django.urls import get_resolver

    def walk(resolver: Any, prefix: str, spaces: tuple[str, ...]) -> Iterator[str]:
        for one in resolver.url_patterns:
            if hasattr(one, "url_patterns"):
                yield from walk(one, f"{prefix}{one.pattern}", (*spaces, one.namespace) if one.namespace else spaces)
            else:
                yield f"{prefix}{one.pattern} {':'.join((*spaces, one.name or '-'))}"

    for line in walk(get_resolver(), "/", ()):
        if line.startswith(start or "/") and (start or not line.startswith(tuple(ROUTES))):
            yield line


def commands() -> Iterator[str]:
    from django.core.management import BaseCommand, get_commands, load_command_class

    usual = {action.dest for action in BaseCommand().create_parser("", "")._actions}
    for name, app in get_commands().items():
        if isinstance(app, str) and _is_own(app):
            actions = load_command_class(app, name).create_parser("", name)._actions
            own = ["/".join(one.option_strings) or one.dest for one in actions if one.dest not in usual]
            yield from [name, *(f"{name} {option}" for option in own)]


def tasks() -> Iterator[str]:
    """Whatever a row of django-q2 can name, with what it is given."""
    module = import_module("memories.tasks")
    framed = {f"memories.tasks.{name}" for name, one in vars(module).items() if hasattr(one, "__wrapped__")}
    for path in framed.union(texts(TASK)):
        given = inspect.signature(import_string(path)).parameters.values()
        yield f"{path}({', '.join(str(one.replace(annotation=inspect.Parameter.empty)) for one in given)})"


def configured() -> Iterator[str]:
    """Settings that others hold, in their order; of our own modules, which may move, the last name."""
    from django.conf import Settings

    given = Settings("memoryhub.settings")
    for name in SETTINGS:
        value = getattr(given, name)
        for place, one in enumerate([value] if isinstance(value, str) else value):
            yield f"{name} {place:02} {re.sub(r'^memories[.].*[.]', 'memories…', one) if name == 'MIDDLEWARE' else one}"
    for path in RERANKING:
        yield f"{path}({', '.join(inspect.signature(import_string(path)).parameters)})"


def purposes() -> Iterator[str]:
    for one in sources():
        # Functions that fill a part of the purpose in: what they are given.
        filling = {f.name for f in one.nodes if isinstance(f, ast.FunctionDef) and any(map(_fills_in, ast.walk(f)))}
        for call in one.calls:
            name = _name(call.func)
            if call.args and (name == "digest" or name in filling):
                said = "digest" if name == "digest" else "digest, filled in:"
                yield from (f"{said} {text}" for text in one.says(call.args[0], depth=0))
            salts = [keyword.value for keyword in call.keywords if keyword.arg == "salt"]
            yield from (f"salt {text}" for salt in salts for text in one.says(salt))
        numbers = [value for name, values in one.assigned.items() if name.endswith("LOCK") for value in values]
        yield from (f"lock {n.value}" for n in numbers if isinstance(n, ast.Constant) and isinstance(n.value, int))


def _fills_in(node: ast.AST) -> bool:
    said = node.args[:1] if isinstance(node, ast.Call) and _name(node.func) == "digest" else []
    return any(isinstance(one, ast.JoinedStr) for one in said)


def stored_bytes() -> Iterator[str]:
    from django.test import override_settings

    with override_settings(**KEYS):
        for name, (path, call) in BYTES.items():
            made = call(import_string(path))
            yield f"{name}: {made.hex() if isinstance(made, bytes) else made}"


def named() -> Iterator[str]:
    for path in NAMED:
        value, name = import_string(path), path.rpartition(".")[2]
        keyed = [f"{key} = {one}" if isinstance(one, str) else key for key, one in getattr(value, "items", dict)()]
        yield from (f"{name} {one}" for one in keyed or ([value] if isinstance(value, str | int) else value))


def verbs() -> Iterator[str]:
    """What is given as `verb`, by name or by its place, to whatever takes one; and the `event` of a revert."""
    places: dict[str, set[int]] = {}
    for node in (node for one in sources() for node in one.nodes):
        names = [arg.arg for arg in node.args.args if arg.arg != "self"] if isinstance(node, ast.FunctionDef) else []
        if isinstance(node, ast.ClassDef):
            names = [_name(one.target) for one in node.body if isinstance(one, ast.AnnAssign)]
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and "verb" in names:
            places.setdefault(node.name, set()).add(names.index("verb"))
    for source, call in ((one, call) for one in sources() for call in one.calls):
        given = [arg for place, arg in enumerate(call.args) if place in places.get(_name(call.func), ())]
        given += [keyword.value for keyword in call.keywords if keyword.arg in ("verb", "event")]
        yield from (text for value in given for text in source.says(value) if VERB.fullmatch(text))


def choices() -> Iterator[str]:
    """Of the columns, and of enums besides, which stand in JSON and arrays."""
    for meta in (model._meta for model in models()):
        for field in meta.local_concrete_fields:
            of = getattr(field, "base_field", field).choices or ()
            yield from (f"{meta.db_table}.{field.column} {value}" for value, _ in of)
    for node in (node for one in sources() for node in one.nodes if isinstance(node, ast.ClassDef)):
        if {_name(base) for base in node.bases} & {"StrEnum", "TextChoices"}:
            values = [one.value for one in node.body if isinstance(one, ast.Assign)]
            values = [one for one in values if not isinstance(one, ast.Call)]
            words = [getattr(one.elts[0] if isinstance(one, ast.Tuple) else one, "value", "") for one in values]
            yield from [line for line in ["|".join(map(str, words))] if " " not in line]


def keys_and_files() -> Iterator[str]:
    """Keys of sessions, and names in folders that outlive a process."""
    for one in sources():
        for node in one.nodes:
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and KEPT.search(ast.unparse(node.left)):
                yield from (f"file {text}" for text in one.says(node.right) if re.search("[a-z]", text))
            elif isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("session"):
                yield from (f"session {text}" for text in one.says(node.slice))
        for call in (call for call in one.calls if _name(call.func) == "with_name"):
            yield from (f"file {text}" for text in one.says(call.args[0]) if re.search("[a-z]", text))


def errors() -> Iterator[str]:
    def below(kind: Any) -> Iterator[Any]:
        for one in kind.__subclasses__():
            yield from [one, *below(one)]

    for one in below(import_string("memories.exceptions.MemoryHubError")):
        if _is_own(one.__module__):
            yield f"{one.code} {one.status}{' retryable' if one.retryable else ''}"


def api() -> Iterator[str]:
    from drf_spectacular.generators import SchemaGenerator

    document = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield from _leaves(f"{method.upper()} {path}", operation)
    yield from _leaves("components", document["components"])


def _leaves(at: str, value: Any) -> Iterator[str]:
    """A line for each value that is no prose; parameters by their names, not by their places."""
    if isinstance(value, dict) and value:
        kept = value if at.endswith(".properties") else value.keys() - PROSE
        yield from (line for key in kept for line in _leaves(f"{at}.{key}", value[key]))
    elif isinstance(value, list) and value:
        named = [
            (one.get("name", place), one) if isinstance(one, dict) else ("*", one) for place, one in enumerate(value)
        ]
        yield from (line for name, one in named for line in _leaves(f"{at}.{name}", one))
    else:
        yield f"{at} = {value}"


def prompts() -> Iterator[str]:
    """Of each file of prompts: its version, each text, the schema of the answer, and all words in it."""
    for one in (one for one in sources() if one.path.parent.name == "prompts"):
        module = import_module(".".join(one.path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"))
        for name in one.assigned:
            value: Any = getattr(module, name, None)
            if isinstance(value, str) and (name in {"NAME", "VERSION"} or len(value) > 80):
                yield f"{one.path.name} {name} {value if len(value) <= 80 else _hash(value)}"
            elif hasattr(value, "schema"):
                yield f"{one.path.name} {name} {_hash(json.dumps([value.schema, value.empty], sort_keys=True))}"
        said = {id(node.value) for node in one.nodes if isinstance(node, ast.Expr)}
        words = [node.value for node in one.nodes if isinstance(node, ast.Constant) and id(node) not in said]
        yield f"{one.path.name} words {_hash(repr(sorted(word for word in words if isinstance(word, str))))}"


def patterns() -> Iterator[str]:
    for path in (path for package in PACKAGES for path in (ROOT / package).rglob("data/**/*") if path.is_file()):
        # Comments may change: they name modules.
        is_toml = path.suffix == ".toml"
        held = json.dumps(tomllib.loads(path.read_text("utf-8"))) if is_toml else path.read_bytes()
        yield f"{path.name} {_hash(held)}"


def _hash(text: str | bytes) -> str:
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()[:32]


SECTIONS: dict[str, Callable[[], Iterator[str]]] = {
    "OpenAPI": api, "bytes": stored_bytes, "choices": choices, "commands": commands, "configured": configured,
    "environment": lambda: texts(ENVIRONMENT), "errors": errors, "keys and files": keys_and_files, "named": named,
    "patterns": patterns, "permissions": permissions, "prompts": prompts, "purposes, salts, locks": purposes,
    "tables": tables, "tasks": tasks, "urls besides": urls, "verbs": verbs,
    **{section: partial(urls, start) for start, section in ROUTES.items()},
}  # fmt: skip


def present() -> dict[str, list[str]]:
    """The sections as the project has them now."""
    return {section: sorted(set(read())) for section, read in sorted(SECTIONS.items())}


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    DATA.write_text(json.dumps(present(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
