"""Every count that a run can have is told in words: the codes are read out of the stages that count."""

import ast
from collections.abc import Iterator

from memories.admin.runs import wording as run_words
from memories.llm.prompts.memory_update import CandidateFact
from tests.catalogue import ROOT
from tests.each import each

# Where runs of extraction count, and what says there what became of a candidate: the one road writes it.
COUNTING_IN = ("extraction/*.py", "reconcile/*.py", "facts/writer.py")
# Modules whose functions return codes, and calls that are given one.
RETURNING = ("profile.py", "writer.py")
COUNTING = ("count", "refuse", "_wait", "_reinforce", "_store", "Refused")


def counted() -> dict[str, str]:
    """Each code → the module that counts it."""
    found: dict[str, str] = {}
    for path in sorted(path for places in COUNTING_IN for path in (ROOT / "memories").glob(places)):
        for code in codes(path.read_text(encoding="utf-8"), returns_codes=path.name in RETURNING):
            found.setdefault(code, path.name)
    return found


def codes(source: str, *, returns_codes: bool = False) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        # What is counted for /metrics, of families in capitals, is no count of a run.
        if isinstance(node, ast.Call) and _name(node.func) in COUNTING and not _name(node.func, of=True).isupper():
            yield from (text for argument in node.args for text in _codes(argument))
        elif isinstance(node, ast.Call) and _name(node.func) == "update" and _name(node.func, of=True) == "refusals":
            yield from (word.arg for word in node.keywords if word.arg)
        elif isinstance(node, ast.Return) and returns_codes and node.value:
            yield from _codes(node.value)
        elif isinstance(node, ast.Assign) and any(_name(target) == "checks" for target in node.targets):
            yield from _codes_of_table(node.value)
        elif isinstance(node, ast.Assign) and any(_name(target) == "done" for target in node.targets):
            yield from _codes(node.value)


def _name(node: ast.AST, *, of: bool = False) -> str:
    if of:
        return _name(node.value) if isinstance(node, ast.Attribute) else ""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _codes(node: ast.expr) -> list[str]:
    if isinstance(node, ast.IfExp):
        return [*_codes(node.body), *_codes(node.orelse)]
    if isinstance(node, ast.Tuple):
        return [text for part in node.elts for text in _codes(part)]
    text = node.value if isinstance(node, ast.Constant) else None
    return [text] if isinstance(text, str) and text.isidentifier() else []


def _codes_of_table(node: ast.expr) -> list[str]:
    keys = node.keys if isinstance(node, ast.Dict) else []
    return [key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]


def test_every_code_that_is_counted_has_words() -> None:
    found = counted()
    assert {"suggested", "reinforced", "stored", "superseded", "profile_held", "unknown_fact"} <= set(found)
    assert {code: place for code, place in found.items() if run_words.label_of(code) == code} == {}


def test_the_walk_sees_a_code_without_words() -> None:
    source = 'desk.count("never_heard_of")\nself._wait(candidate, suggestion, "one", "other")'
    assert list(codes(source)) == ["never_heard_of", "one", "other"]
    assert run_words.label_of("never_heard_of") == "never_heard_of"


@each("field", CandidateFact.model_fields)
def test_a_field_at_fault_is_told_in_words(field: str) -> None:
    assert run_words.label_of(f"bad_{field}") != f"bad_{field}"
