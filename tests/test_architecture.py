"""The house rules that a machine can see: breadth of excepts, names, and what the repository may not hold."""

import ast
import re
import shutil
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from functools import cache

import pytest
from django.apps import apps
from django.db import models

from tests.conftest import LONG
from tests.each import each
from tests.frozen import ROOT, sources

BANNED_NAMES = ("utils", "helpers", "common", "manager", "service", "handler")
Named = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef

# In parts, so that this file does not hold what it looks for.
REGISTRY_HOSTS = tuple(
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("pypi", "python", "org"),
        ("registry", "npmjs", "org"),
        ("npmjs", "com"),
        ("deb", "debian", "org"),
        ("archive", "ubuntu", "com"),
        ("proxy", "golang", "org"),
        ("crates", "io"),
        ("rubygems", "org"),
        ("conda", "anaconda", "org"),
        ("registry", "yarnpkg", "com"),
        ("repo", "maven", "apache", "org"),
    )
)
INDEX_OPTIONS = tuple("--" + option for option in ("index-url", "extra-index-url", "trusted-host", "find-links"))
HOME_FOLDERS = ("work", "root", "home", "Users")
ABSOLUTE_PATH = re.compile(r"(?<![\w.~})$/:-])/(?:" + "|".join(HOME_FOLDERS) + r")/\w")


def is_broad(handler: ast.ExceptHandler) -> bool:
    """Whether it takes any Exception, alone or among others."""
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(one is None or ast.unparse(one) in {"Exception", "BaseException"} for one in caught)


def broad_excepts(nodes: Iterable[ast.AST]) -> list[int]:
    """Lines of the handlers that take everything."""
    return sorted(node.lineno for node in nodes if isinstance(node, ast.ExceptHandler) and is_broad(node))


@cache
def tracked() -> dict[str, str]:
    """Text files that git tracks, or would: what is not ignored, and what stands in it."""
    if not (shutil.which("git") and (ROOT / ".git").exists()):
        pytest.skip("what git tracks cannot be told without git")
    # The clone may belong to somebody else than whoever runs the tests.
    listed = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True, text=True).stdout.split("\0")
    texts: dict[str, str] = {}
    for name in names:
        if name and (ROOT / name).is_file():
            with suppress(UnicodeDecodeError):
                texts[name] = (ROOT / name).read_text(encoding="utf-8")
    return texts


def found_in_tracked(sought: re.Pattern[str]) -> list[str]:
    """`file:line` of every hit; files that are no text are passed over."""
    hits = (
        (name, text.count("\n", 0, hit.start())) for name, text in tracked().items() for hit in sought.finditer(text)
    )
    return [f"{name}:{before + 1}" for name, before in hits]


def test_one_function_makes_facts() -> None:
    """Every statement becomes a fact by the one road (rules.md, 5.13)."""
    made = [
        source.place
        for source in sources()
        for call in source.calls
        if isinstance(call.func, ast.Name) and call.func.id == "Fact"
    ]
    assert made == ["memories/facts/candidate.py"]


def test_one_except_takes_everything() -> None:
    found = [f"{one.place}:{line}" for one in sources() for line in broad_excepts(one.nodes)]
    # The second is where a thread hands over what was raised to the loop that waits for it, the third where a stream
    # tells its reader of an error: its status is sent by then. The program that reads files has one for a file and one
    # for a page: libraries raise anything at all.
    assert len(found) <= 5, found
    allowed = (
        *("memories/tasks.py:", "memories/web/threads.py:", "memories/api/event_streams.py:"),
        "memories/attachments/program.py:",
    )
    assert all(place.startswith(allowed) for place in found)


@each(
    ("clause", "broad"),
    [
        ("except:", True),
        ("except Exception:", True),
        ("except BaseException as e:", True),
        ("except (ValueError, Exception):", True),
        ("except ValueError:", False),
        ("except (ValueError, KeyError) as e:", False),
    ],
)
def test_the_guard_knows_a_broad_except(clause: str, broad: bool) -> None:
    assert bool(broad_excepts(ast.walk(ast.parse(f"try:\n    pass\n{clause}\n    pass\n")))) is broad


def test_no_name_says_nothing() -> None:
    # As a word of a file's, class's or function's name: "manager" is Django's own word only as an import.
    def words(name: str) -> set[str]:
        return set(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().split("_"))

    named = [(one.place, one.path.stem) for one in sources()]
    named += [
        (f"{one.place}:{node.lineno}", node.name) for one in sources() for node in one.nodes if isinstance(node, Named)
    ]
    assert [place for place, name in named if words(name) & set(BANNED_NAMES)] == []
    assert words("FactManager") & set(BANNED_NAMES)


def test_every_module_says_what_it_is() -> None:
    undocumented = [one.place for one in sources() if one.path.stat().st_size and not ast.get_docstring(one.tree)]
    assert undocumented == []


def test_no_signals_and_no_save_overrides() -> None:
    for model in apps.get_app_config("memories").get_models():
        assert not {"save", "delete"} & set(vars(model)), model
    imports = [(one.place, node) for one in sources() for node in one.nodes if isinstance(node, ast.ImportFrom)]
    imported = [place for place, node in imports if node.module in ("django.db.models.signals", "django.dispatch")]
    assert len(imports) > 1_000
    assert imported == []


def test_no_package_registry_is_named() -> None:
    sought = re.compile("|".join(re.escape(name) for name in (*REGISTRY_HOSTS, *INDEX_OPTIONS)))
    assert sought.search("see " + REGISTRY_HOSTS[0])
    # The Makefile tells the compiler of the lock to leave these out.
    hits = [hit for hit in found_in_tracked(sought) if not hit.startswith("Makefile:")]
    assert hits == []


def test_no_absolute_path_of_a_machine() -> None:
    for folder in HOME_FOLDERS:
        assert ABSOLUTE_PATH.search(f"open('/{folder}/x')")
        assert not ABSOLUTE_PATH.search(f"open('{folder}/x'), http://h/{folder}/x, $X/{folder}/x")
    assert found_in_tracked(ABSOLUTE_PATH) == []


def _auto_named(model: type[models.Model], name: str) -> bool:
    """Whether Django made the name up: table, columns, eight hex digits, and what it is."""
    return bool(re.fullmatch(rf"{model._meta.db_table[:11]}\w*_[0-9a-f]{{6,8}}(_\w+)?", name))


def test_every_constraint_and_index_is_named_by_hand() -> None:
    named: list[str] = []
    for model in apps.get_app_config("memories").get_models():
        assert not model._meta.unique_together
        for one in (*model._meta.constraints, *model._meta.indexes):
            assert one.name
            assert not _auto_named(model, one.name), one.name
            named.append(one.name)
    assert len(named) > 25
    assert len(set(named)) == len(named)


def test_the_guard_knows_a_name_that_django_made_up() -> None:
    fact = apps.get_model("memories", "Fact")
    made_up = models.Index(fields=["content"])
    made_up.set_name_with_model(fact)
    assert _auto_named(fact, made_up.name)


def test_each_file_that_is_begun_first_is_there() -> None:
    assert [file for file in LONG if not (ROOT / file).is_file()] == []
