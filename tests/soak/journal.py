"""Logs of JSON lines, one file for each client: what it asked, and what it was told, in its own order."""

import json
import re
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

Line = dict[str, Any]

# In every text that a client writes: whose it is, what it is (n: said, r: replied, f: a fact, d: a document,
# t: a trajectory), and which one.
MARK = re.compile(r"\b(([a-z]{2}\d{3})[nrfdt]\d{5})\b")


def mark(person: str, kind: str, number: int) -> str:
    return f"{person}{kind}{number:05}"


def marks(text: str) -> list[str]:
    """The marks in it, each once, in order."""
    return list(dict.fromkeys(found for found, _ in MARK.findall(text)))


def people_in(text: str) -> list[str]:
    """Whose marks are in it."""
    return sorted({person for _, person in MARK.findall(text)})


class Journal:
    """One client's; `at` is the second since the soak began."""

    def __init__(self, folder: Path, name: str, begun: float) -> None:
        self._begun, self._lock = begun, threading.Lock()
        self._file = (folder / f"{name}.jsonl").open("a", encoding="utf-8", buffering=1)

    @property
    def now(self) -> float:
        return time.monotonic() - self._begun

    def note(self, **line: Any) -> None:
        with self._lock:
            self._file.write(json.dumps({"at": round(self.now, 3), **line}, ensure_ascii=False) + "\n")


def read(folder: Path) -> dict[str, list[Line]]:
    """All journals of a soak, by the names of their clients."""
    return {path.stem: list(_lines(path)) for path in sorted(folder.glob("*.jsonl"))}


def _lines(path: Path) -> Iterator[Line]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def of_kind(journals: dict[str, list[Line]], *kinds: str) -> Iterable[Line]:
    return (line for lines in journals.values() for line in lines if line.get("do") in kinds)
