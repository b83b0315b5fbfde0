"""Texts of a value at paths that somebody made up to be expensive."""

from typing import Any

import pytest

from memories.text import value_texts

DEEP: Any = "text"
for _ in range(40):
    DEEP = {"a": DEEP}


@pytest.mark.parametrize("path", ["{a,a}" * 40, "{*,*}" * 40, "{a,{a,a}}" * 22])
def test_braces_that_double_each_other_come_to_an_end(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(value_texts, "MOST_VISITS", 500)
    # Each of the paths once would take as long as two to the power of forty steps.
    assert set(value_texts.of_value(DEEP, [path, path])) <= {"text"}


def test_a_plain_path_is_found_beside_them() -> None:
    value = {"title": "Tea", "list": [{"t": str(number)} for number in range(1_000)]}
    assert value_texts.of_value(value, ["title", "list[*].t"])[:3] == ["Tea", "0", "1"]
