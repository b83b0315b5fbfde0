"""What the rooms below the admin say to operators is marked for translation: in errors, whatever raises them."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from memories import exceptions
from memories.exceptions import EmbeddingError, LeaseLost, ModelError, ReembedUnfinished, RerankFailed
from tests import catalogue
from tests.catalogue import CALLS, ROOT
from tests.each import each

ROOMS = (
    *("capture", "context", "curation", "embedding", "episodes", "extraction", "forgetting", "privacy"),
    *("queue", "reconcile", "retrieval", "text"),
)
MODULES = [
    path.relative_to(ROOT).as_posix() for room in ROOMS for path in sorted(ROOT.glob(f"memories/{room}/**/*.py"))
]
# Of the endpoints and of leases: they end at the next stage, in logs and on terminals; pages show their code in words.
SHOWN_BY_CODE = (ModelError, EmbeddingError, RerankFailed, ReembedUnfinished, LeaseLost)
_WORD = re.compile(r"[^\W\d_]{2,}")


@cache
def shown() -> set[str]:
    """The names of the errors whose sentence a page of the admin can show."""
    by_code = {
        name for name, error in vars(exceptions).items() if isinstance(error, type) and issubclass(error, SHOWN_BY_CODE)
    }
    return {*catalogue.errors(), "Fault"} - by_code


def unmarked(source: str) -> list[str]:
    """The texts that an error of the source is made with and that no call of gettext has."""
    tree = ast.parse(source)
    named: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    named.setdefault(target.id, []).append(node.value)
    return [text for call in _calls(tree) for place in _said(call) for text in _texts(place, named)]


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    names = shown()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            func = node.func.value if isinstance(node.func, ast.Attribute) and node.func.attr == "at" else node.func
            if isinstance(func, ast.Name) and func.id in names:
                yield node


def _said(call: ast.Call) -> list[ast.expr]:
    """Where in the call its sentence is."""
    is_at = isinstance(call.func, ast.Attribute)
    is_fault = isinstance(call.func, ast.Name) and call.func.id == "Fault"
    place = 2 if is_fault else 1 if is_at else 0
    return [*call.args[place : place + 1], *(word.value for word in call.keywords if word.arg == "detail")]


def _texts(place: ast.expr, named: dict[str, list[ast.expr]]) -> Iterator[str]:
    """The words in the expression that no call of gettext has; keys, and values to fill in, are none."""
    if isinstance(place, ast.Subscript | ast.Dict) or (isinstance(place, ast.Call) and _function(place) in CALLS):
        return
    if isinstance(place, ast.Constant | ast.JoinedStr):
        text = "".join(str(part.value) for part in ast.walk(place) if isinstance(part, ast.Constant))
        yield from [text] if _WORD.search(text) else []
        return
    parts = [part for part in ast.iter_child_nodes(place) if isinstance(part, ast.expr)]
    for part in named.get(place.id, []) if isinstance(place, ast.Name) else parts:
        yield from _texts(part, {} if isinstance(place, ast.Name) else named)


def _function(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def test_every_sentence_of_an_error_is_marked() -> None:
    found = {module: unmarked((ROOT / module).read_text(encoding="utf-8")) for module in MODULES}
    assert {module: texts for module, texts in found.items() if texts} == {}


@each(
    ("source", "found"),
    [
        ('raise Conflict("Too late.")', ["Too late."]),
        ('raise Conflict(f"It is {state}.")', ["It is ."]),
        ('said = "Too late: %s"\nraise Conflict(said % state)', ["Too late: %s"]),
        ('raise InvalidInput.at("content", "Say something.")', ["Say something."]),
        ('raise InvalidInput(faults=[Fault("/x", "bad", "Say something.")])', ["Say something."]),
        ('raise CaseHeld("Not now.")', ["Not now."]),
        ('raise Conflict(_("Too late."))', []),
        ('said = _("It is %(state)s.")\nraise Conflict(said % {"state": "late"})', []),
        ('raise InvalidInput.at("content", _("Say something."))', []),
        ('raise ModelRefused("HTTP error 400")', []),
        ('raise ValueError("no such place")', []),
    ],
)
def test_the_walk_sees_what_is_not_marked(source: str, found: list[str]) -> None:
    assert unmarked(source) == found


def test_every_error_of_the_tree_is_translated_wherever_it_is_declared() -> None:
    wanted = {message.text for message in catalogue.wanted()}
    leaves = {name: said for name, (said, place) in catalogue.errors().items() if "exceptions" not in place}
    assert len(leaves) > 10
    assert {name for name, said in leaves.items() if said not in wanted} == set()
    in_tree = {name for name, error in vars(exceptions).items() if isinstance(error, type) and name != "Fault"}
    assert in_tree <= set(catalogue.errors())
    assert Path(ROOT, "locale").is_dir()
