"""Two versions of a text side by side: rows, words, and bounds for texts that somebody made to be slow."""

import difflib

import pytest

from memories.admin.files import comparing
from memories.admin.files.comparing import ComparedLine, Side, compare
from memories.admin.site.segments import Segment, diff
from tests.each import each

LINES = "".join(f"line {number}\n" for number in range(40))


def told(side: Side | None) -> str:
    """A side as a text: `-removed-`, `+added+`."""
    marks = {"removed": "-", "added": "+"}
    return (
        "".join(f"{marks.get(one.mark, '')}{one.text}{marks.get(one.mark, '')}" for one in side.segments)
        if side
        else ""
    )


def rows_of(old: str, new: str) -> list[tuple[int, str, int, str] | int]:
    def one(row: ComparedLine) -> tuple[int, str, int, str] | int:
        if row.same or row.left is None or row.right is None:
            return row.same
        return row.left.number, told(row.left), row.right.number, told(row.right)

    return [one(row) for row in compare(old, new).rows]


def test_a_changed_line_stands_between_its_neighbours() -> None:
    found = rows_of(LINES, LINES.replace("line 20\n", "the line 20\n"))
    assert found[0] == 17
    assert found[1:4] == [(n + 1, f"line {n}", n + 1, f"line {n}") for n in (17, 18, 19)]
    assert found[4] == (21, "line 20", 21, "+the +line 20")
    assert found[5:8] == [(n + 1, f"line {n}", n + 1, f"line {n}") for n in (21, 22, 23)]
    assert found[8:] == [16]


def test_added_and_removed_lines_shift_the_numbers() -> None:
    assert rows_of("a\nb\nc\nd\n", "a\nx1\nx2\nb\nc\n") == [
        (1, "a", 1, "a"),
        (0, "", 2, "+x1+"),
        (0, "", 3, "+x2+"),
        (2, "b", 4, "b"),
        (3, "c", 5, "c"),
        (4, "-d-", 0, ""),
    ]


def test_changes_near_each_other_share_their_neighbours() -> None:
    found = rows_of(LINES, LINES.replace("line 10\n", "ten\n").replace("line 13\n", "thirteen\n"))
    numbers = [row if isinstance(row, int) else row[0] for row in found]
    assert numbers == [7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 23]


@each(("old", "new"), [("", ""), ("a\n", "a\n"), ("a", "a\n"), ("a\r\n", "a\n")])
def test_the_ends_of_lines_alone_are_no_row(old: str, new: str) -> None:
    assert compare(old, new).rows == []


def test_from_nothing_and_to_nothing() -> None:
    assert rows_of("", "a\n") == [(0, "", 1, "+a+")]
    assert rows_of("a\n", "") == [(1, "-a-", 0, "")]


def test_every_row_of_both_is_told_once() -> None:
    new = LINES.replace("line 5\n", "").replace("line 30\n", "line thirty\nand more\n")
    left: list[int] = []
    right: list[int] = []
    for row in compare(LINES, new).rows:
        if row.same:
            left.extend([0] * row.same)
            right.extend([0] * row.same)
        else:
            left.extend([1] if row.left and row.left.number else [])
            right.extend([1] if row.right and row.right.number else [])
    assert (len(left), len(right)) == (len(LINES.splitlines()), len(new.splitlines()))


def test_what_is_long_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "ROWS_SHOWN", 5)
    found = compare("", LINES)
    assert (len(found.rows), found.is_cut) == (5, True)
    assert not compare("", "a\n").is_cut


def test_a_long_line_is_shown_where_it_changes() -> None:
    long = "x" * 50_000
    (row,) = compare(f"{long} tea", f"{long} coffee").rows
    assert "tea" in told(row.left)
    assert "coffee" in told(row.right)
    assert len(told(row.left)) < 200


def test_no_text_makes_it_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines beyond the limit are not matched, and words only as long as the rest of the budget reaches."""
    seen: list[int] = []
    matcher = difflib.SequenceMatcher

    def counted(junk: None, old: list[str], new: list[str], autojunk: bool = True) -> object:
        # Words are compared without it.
        seen.extend([max(len(old), len(new))] if autojunk else [])
        return matcher(junk, old, new, autojunk)

    monkeypatch.setattr(difflib, "SequenceMatcher", counted)
    costs: list[int] = []

    def compared(old: str, new: str) -> list[Segment]:
        costs.append(len(old) * len(new))
        return diff(old, new)

    monkeypatch.setattr(comparing, "diff", compared)
    monkeypatch.setattr(comparing, "MOST_COMPARED", 2_000)
    compare("a\n" * 30_000, "b\n" * 30_000)
    assert seen == []
    compare("\n".join(f"ab {n}" for n in range(900)), "\n".join(f"ba {n}" for n in range(900)))
    assert seen == [900]
    assert 0 < sum(costs) <= 2_000 + 2_000
