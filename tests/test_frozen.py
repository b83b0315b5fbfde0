"""What outsiders, rows and files rely on is as tests/frozen.json holds it; tests/frozen.py says how it is read.

After a deliberate change `python -m tests.frozen` writes the file anew, and its diff belongs to the review.
"""

import json

from django.utils.module_loading import import_string

from tests.each import each
from tests.frozen import DATA, SECTIONS

FROZEN: dict[str, list[str]] = json.loads(DATA.read_text(encoding="utf-8"))


@each("section", sorted(SECTIONS))
def test_it_is_as_it_was(section: str) -> None:
    held, found = set(FROZEN[section]), set(SECTIONS[section]())
    lines = [f"- {line}" for line in sorted(held - found)] + [f"+ {line}" for line in sorted(found - held)]
    assert not lines, "\n".join([f"{section}: not as tests/frozen.json has it", *lines])


def test_every_section_is_held_and_none_is_empty() -> None:
    assert SECTIONS.keys() == {section for section, lines in FROZEN.items() if lines}


@each("task", FROZEN["tasks"])
def test_what_a_waiting_row_names_can_be_called(task: str) -> None:
    assert callable(import_string(task.partition("(")[0]))
