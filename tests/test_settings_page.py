"""docs/settings.md holds the table of numbers as it is: each in its group, with its default, range and meaning."""

import re
from collections.abc import Iterator
from pathlib import Path

from memories import conf
from memories.conf.kinds import Number, NumberKind, SettingGroup, shown
from tests.each import each

PAGE = (Path(__file__).resolve().parents[1] / "docs/settings.md").read_text(encoding="utf-8")


def row_of(number: Number) -> str:
    mark = " †" if number.name in conf.OF_THE_ENVIRONMENT else ""
    default = getattr(conf.Rules(), number.name)
    text = ", ".join(default) + ": never" if number.kind == NumberKind.HALF_LIVES else shown(default)
    return f"| `{number.name}`{mark} | {text} | {number.range} | {number.label}. {number.says} |"


def section_of(group: SettingGroup) -> Iterator[str]:
    """The lines of a group as the page is to have them."""
    yield f"### {group}"
    yield group.says
    yield ""
    yield "| number | default | range | |"
    yield "| --- | --- | --- | --- |"
    yield from (row_of(number) for number in conf.NUMBERS.values() if number.group == group)


@each("group", SettingGroup)
def test_each_group_is_on_the_page_as_the_table_has_it(group: SettingGroup) -> None:
    assert "\n".join(section_of(group)) + "\n\n" in PAGE


def test_no_number_is_on_the_page_that_does_not_exist() -> None:
    rows = re.findall(r"^\| `([a-z_]+)`(?: †)? \|", PAGE, re.MULTILINE)
    assert rows == list(conf.NUMBERS)


def test_the_guard_sees_another_default() -> None:
    [row] = [line for line in PAGE.splitlines() if line.startswith("| `capacity` ")]
    assert row == row_of(conf.NUMBERS["capacity"])
    assert row.replace("500", "600", 1) not in PAGE
