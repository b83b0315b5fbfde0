"""What a dry run shows of a file: whose it is, from when, and a few samples; and whom its authors become."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from memories.curation.imports.verbs import ImportOptions
from memories.imports.records import ExportedRows, KeptFile, LeftOut, Record, Said, StoredItem, StoredMemory
from memories.text.secrets.redaction import redact_text

# Names that are listed; of more only the number.
MOST_PEOPLE = 200
SAMPLES, LONGEST = 3, 300
# No id is longer: such a name becomes nobody.
LONGEST_NAME = 255
NOT_CHOSEN = "not_chosen"


@dataclass
class _Person:
    """What is there of one who is named; of "" nobody is."""

    counts: Counter[str] = field(default_factory=Counter)
    first: str = ""
    last: str = ""

    def date(self, *times: Any) -> None:
        found = [_plain(one)[:40] for one in times if isinstance(one, str) and one]
        self.first = min([*found, *([self.first] if self.first else [])], default="")
        self.last = max([*found, self.last])


class Preview:
    """Looks at the records of a dry run as they pass, and gives each to the person whom its author became."""

    def __init__(self, options: ImportOptions) -> None:
        self._options = options
        self._people: dict[str, _Person] = {}
        self._more: set[int] = set()
        self._samples: list[dict[str, str]] = []

    def see(self, record: Record) -> Record:
        if not isinstance(record, LeftOut | StoredItem | ExportedRows | Exception):
            self._look(record)
        return self.mapped(record)

    def mapped(self, record: Record) -> Record:
        """The record of whom the operator named for its author; left out where that is nobody."""
        authors = self._options.authors
        if not authors or isinstance(record, LeftOut | StoredItem | ExportedRows | Exception):
            return record
        name = _author(record)
        if name not in authors:
            return record
        user_id = authors[name]
        if not user_id:
            return LeftOut(NOT_CHOSEN, len(_listed(record.messages)) if isinstance(record, Said) else 1)
        if isinstance(record, Said):
            return replace(record, body={**record.body, "user_id": user_id})
        return replace(record, whose=record.whose._replace(user_id=user_id))

    def as_json(self) -> dict[str, Any]:
        people = [
            {"name": name, **one.counts, "first": one.first, "last": one.last}
            for name, one in sorted(self._people.items())
        ]
        return {"people": people, "more": len(self._more), "samples": self._samples}

    def _look(self, record: Said | StoredMemory | KeptFile) -> None:
        name = _author(record)
        if len(name) > LONGEST_NAME or (name not in self._people and len(self._people) >= MOST_PEOPLE):
            self._more.add(hash(name))
            return
        person = self._people.setdefault(name, _Person())
        if isinstance(record, Said):
            messages = [one for one in _listed(record.messages) if isinstance(one, dict)]
            person.counts.update(conversations=1, messages=len(messages))
            person.date(*(one.get("timestamp") for one in messages))
            self._sample("message", next((one for one in messages if one.get("role") == "user"), {}).get("content"))
        elif isinstance(record, StoredMemory):
            person.counts.update(memories=1)
            person.date(record.fact.get("createdAt"))
            self._sample("memory", record.fact.get("content"))
        else:
            person.counts.update(files=1)
            person.date(record.modified_at and record.modified_at.isoformat())
            self._sample("file", f"{record.path}\n{record.data[:4096].decode('utf-8', 'replace')}")

    def _sample(self, kind: str, text: Any) -> None:
        if len(self._samples) < SAMPLES and isinstance(text, str) and text.strip():
            clean = redact_text(_plain(text[: 10 * LONGEST]))[0]
            cut = f"{clean[:LONGEST]}…" if len(clean) > LONGEST else clean
            self._samples.append({"kind": kind, "text": cut})


def _author(record: Said | StoredMemory | KeptFile) -> str:
    named: Mapping[str, Any] = record.body if isinstance(record, Said) else {"user_id": record.whose.user_id}
    name = named.get("user_id")
    return _plain(name) if isinstance(name, str) else ""


def _plain(text: str) -> str:
    """What the database can hold of it."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def _listed(messages: Any) -> list[Any]:
    return messages if isinstance(messages, list) else []
