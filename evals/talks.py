"""Conversations of the evaluation sets as an agent tells them to a hub: sessions of messages, turn by turn."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from evals.corpora import Corpus, Unit, locomo

SPOKEN = re.compile(r'(?P<who>.+?) said, "(?P<text>.*)"', re.DOTALL)
# One session in so many is never ended by its client, who just says nothing more.
LEFT_EVERY = 4


@dataclass(frozen=True)
class Session:
    """One session of a person; `ends`: its client says so, else it falls idle."""

    name: str
    messages: list[dict[str, str]]
    ends: bool = True


@dataclass(frozen=True)
class Talk:
    """All sessions of one person, in order."""

    person: str
    sessions: list[Session]

    @property
    def turns(self) -> int:
        return sum(len(session.messages) for session in self.sessions)


def of_locomo(data: Path, people: int) -> Iterator[Talk]:
    """The first conversations of LoCoMo; who speaks first in one is the person."""
    for corpus in islice(locomo(data, "turn"), people):
        first = speaker(corpus)
        held = groupby(corpus.units, key=lambda unit: unit.session)
        days = [(name, [message(unit, first) for unit in units]) for name, units in held]
        yield Talk(corpus.id, _sessions(days))


def of_memorybank(data: Path) -> Iterator[Talk]:
    """All people of MemoryBank, a session for each day on which something was said."""
    for path in sorted((data / "memorybank").glob("memory_bank_*.json")):
        people: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        for place, person in enumerate(people.values()):
            days = [(day, _exchanged(day, turns)) for day, turns in person["history"].items() if turns]
            yield Talk(f"{path.stem}-{place}", _sessions(days))


def speaker(corpus: Corpus) -> str:
    """Who speaks first."""
    first = SPOKEN.match(corpus.units[0].text)
    return first["who"] if first else ""


def message(unit: Unit, person: str) -> dict[str, str]:
    """The turn as it is posted: `person` is the user, the other one the assistant."""
    turns = SPOKEN.match(unit.text)
    role = "user" if turns and turns["who"] == person else "assistant"
    return {"role": role, "content": turns["text"] if turns else unit.text, "timestamp": unit.at.isoformat()}


def _exchanged(day: str, turns: list[dict[str, str]]) -> list[dict[str, str]]:
    at = f"{day}T12:00:00Z"
    pairs = ((("user", one["query"]), ("assistant", one["response"])) for one in turns)
    return [{"role": role, "content": text, "timestamp": at} for pair in pairs for role, text in pair]


def _sessions(days: list[tuple[str, list[dict[str, str]]]]) -> list[Session]:
    return [Session(name, turns, ends=place % LEFT_EVERY != 0) for place, (name, turns) in enumerate(days, start=1)]
