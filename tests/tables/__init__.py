"""Tables of examples, one a line: `\\n` stands for a line break, a tab parts the columns."""

from pathlib import Path


def rows(name: str) -> list[list[str]]:
    """The columns of each line of a table."""
    text = (Path(__file__).parent / f"{name}.txt").read_text(encoding="utf-8")
    return [[cell.replace("\\n", "\n") for cell in line.split("\t")] for line in text.split("\n") if line]


def texts(name: str) -> list[str]:
    """The lines of a table with one column."""
    return [row[0] for row in rows(name)]
