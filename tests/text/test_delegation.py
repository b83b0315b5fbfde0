"""Texts that give a model power to sign, pay, approve or order, or let it hand out keys and leave no trace."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from memories.text.injection import detection
from tests.each import each

TABLE = Path(__file__).parents[1] / "tables" / "delegated.txt"
FAMILIES = {"germanic": {"en", "de"}, "romance": {"es", "fr", "pt"}, "east asian": {"zh", "ja"}, "slavic": {"ru"}}


class Row(NamedTuple):
    kind: str
    language: str
    text: str
    # Lines take turns: those at odd places were held out while the phrases were written.
    is_held_out: bool


def rows() -> Iterator[Row]:
    seen: Counter[tuple[str, str]] = Counter()
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        kind, language, text = line.split("\t")
        yield Row(kind, language, text, seen[kind, language] % 2 == 1)
        seen[kind, language] += 1


ROWS = list(rows())
ATTACKS = [row for row in ROWS if row.kind != "work"]
WORK = [row for row in ROWS if row.kind == "work"]


@each(("kind", "least"), [("power", 6), ("handing", 6), ("work", 16)])
@each("family", FAMILIES)
def test_the_table_is_large(family: str, kind: str, least: int) -> None:
    assert len([row for row in ROWS if row.kind == kind and row.language in FAMILIES[family]]) >= least


@each("is_held_out", [False, True])
def test_attacks_are_flagged_by_their_phrases(is_held_out: bool) -> None:
    missed = [row for row in ATTACKS if row.is_held_out == is_held_out and not detection.speaks_to_model(row.text)]
    assert missed == []


@each("is_held_out", [False, True])
def test_what_resembles_them_is_not(is_held_out: bool) -> None:
    held = [row for row in WORK if row.is_held_out == is_held_out and detection.speaks_to_model(row.text)]
    assert held == []
