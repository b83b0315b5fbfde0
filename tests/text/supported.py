"""The cases of tables/supported.txt, and what is said in them as the gate hears it."""

from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import NamedTuple

from memories.llm import embeddings
from memories.llm.embeddings import USE, Vectors
from memories.text.support import SourceTexts

TODAY = date(2026, 11, 23)
_TABLE = Path(__file__).parents[1] / "tables" / "supported.txt"


class Case(NamedTuple):
    """A statement about what was said; `own` when it is the person's."""

    said: str
    statement: str
    own: bool


def cases() -> Iterator[Case]:
    said = ""
    for line in _TABLE.read_text(encoding="utf-8").splitlines():
        if line[:2] in ("= ", "! "):
            yield Case(said, line[2:], line[0] == "=")
        elif line and not line.startswith("# "):
            said = line


def users(said: str) -> list[str]:
    return said.partition("#")[0].split("|")[::2]


def heard_in(said: str, existing: tuple[str, ...] = (), *, by_meaning: bool = True) -> SourceTexts:
    """Of turns "user|assistant|user …#tool"."""
    talk, _, tool = said.partition("#")
    return SourceTexts(
        users=[(text, TODAY) for text in users(said)],
        existing=existing,
        assistants=talk.split("|")[1::2],
        tools=[tool] if tool else [],
        embed=embed if by_meaning else None,
    )


def embed(texts: Sequence[str]) -> Vectors:
    return embeddings.embed(texts, model=USE)
