"""What a dry run shows of a file: whose it is, from when, and a few samples; and whom its authors become."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from memories.curation.imports.verbs import ImportOptions
from memories.imports.own_exports.reading import PEOPLE
from memories.imports.records import ExportedRows, KeptFile, LeftOut, Record, Said, StoredItem, StoredMemory
from memories.text.secrets.redaction import redact_text

# Names that are listed; of more only the number.
MOST_PEOPLE = 200
SAMPLES, LONGEST = 3, 300
# No id is longer: such a name becomes nobody.
LONGEST_NAME = 255
NOT_CHOSEN = "not_chosen"
# What of a hub's own export is counted for its person, by its list.
_COUNTED = {
    "sessions": "conversations", "turns": "messages", "facts": "memories", "profile_sections": "memories",
    "files": "files",
}  # fmt: skip


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
        # Of the export of a hub that is being read: the person's ids there, and whom they became.
        self._names: frozenset[str] = frozenset()
        self._became: str | None = None
        self._shown: _Person | None = None

    def see(self, record: Record) -> Iterable[Record]:
        if isinstance(record, ExportedRows):
            self._look_at_rows(record)
        elif not isinstance(record, LeftOut | StoredItem | Exception):
            self._look(record)
        return self.mapped(record)

    def mapped(self, record: Record) -> Iterable[Record]:
        """The record of whom the operator named for its author; left out where that is nobody. A conversation of
        several is one of each who is named for one of them."""
        authors = self._options.authors
        match record:
            case ExportedRows():
                return [self._mapped_rows(record)]
            case StoredItem():
                return [self._mapped_item(record)]
            case Said() if not _speakers(record).keys().isdisjoint(authors):
                return self._shared_out(record)
            case Said() | StoredMemory() | KeptFile() if _author(record) in authors:
                return [self._mapped_to(record, authors[_author(record)])]
        return [record]

    def _shared_out(self, record: Said) -> Iterator[Record]:
        """The conversation as each of its speakers has it: their words are theirs, those of others somebody else's."""
        became = {name: self._options.authors[name] for name in _speakers(record) if name in self._options.authors}
        messages = [one for one in record.messages if became.get(_speaker(one)) != ""]
        people = dict.fromkeys(user_id for user_id in became.values() if user_id)
        left_out = len(record.messages) - len(messages) if people else len(record.messages)
        yield from [LeftOut(NOT_CHOSEN, left_out)] if left_out else []
        for user_id in people:
            own = [_said_to(one, is_own=became.get(_speaker(one)) == user_id) for one in messages]
            yield replace(record, body={**record.body, "user_id": user_id}, messages=own)

    def _mapped_to(self, record: Said | StoredMemory | KeptFile, user_id: str) -> Record:
        if not user_id:
            return LeftOut(NOT_CHOSEN, len(_listed(record.messages)) if isinstance(record, Said) else 1)
        if isinstance(record, Said):
            return replace(record, body={**record.body, "user_id": user_id})
        return replace(record, whose=record.whose._replace(user_id=user_id))

    def _mapped_rows(self, record: ExportedRows) -> Record:
        if record.name == PEOPLE and (person := _person_of(record)):
            name = _plain(str(person.get("external_id") or ""))
            self._names = frozenset(str(row.get("external_id")) for row in record.rows)
            self._became = self._options.authors.get(name)
            if self._became:
                rows = [{**row, "external_id": self._became} if row is person else row for row in record.rows]
                return replace(record, rows=rows)
        if self._became == "":
            return LeftOut(NOT_CHOSEN, 0 if record.links else len(record.rows))
        return record

    def _mapped_item(self, record: StoredItem) -> Record:
        if self._became is None:
            return record
        if not self._became:
            return LeftOut(NOT_CHOSEN)
        return replace(
            record, namespace=[self._became if label in self._names else label for label in record.namespace]
        )

    def as_json(self) -> dict[str, Any]:
        people = [
            {"name": name, **one.counts, "first": one.first, "last": one.last}
            for name, one in sorted(self._people.items())
        ]
        return {"people": people, "more": len(self._more), "samples": self._samples}

    def _look_at_rows(self, record: ExportedRows) -> None:
        """Of an export of a hub, which is of one person, whose record comes first."""
        if record.name == PEOPLE and (person := _person_of(record)):
            name = _plain(str(person.get("external_id") or ""))
            self._shown = self._listed_person(name) if name else None
        if self._shown is None or record.links:
            return
        for name, counted in _COUNTED.items():
            if record.name == name:
                self._shown.counts[counted] += len(record.rows)
        for row in record.rows:
            if record.name == "turns":
                self._shown.date(row.get("timestamp") or row.get("created_at"))
                self._sample("message", row.get("content") if row.get("role") == "user" else None)
            elif record.name == "facts":
                self._shown.date(row.get("first_observed_at"))
                self._sample("memory", row.get("content"))

    def _listed_person(self, name: str) -> _Person | None:
        """None for one too many, or for a name that is no id."""
        if len(name) > LONGEST_NAME or (name not in self._people and len(self._people) >= MOST_PEOPLE):
            self._more.add(hash(name))
            return None
        return self._people.setdefault(name, _Person())

    def _look(self, record: Said | StoredMemory | KeptFile) -> None:
        if isinstance(record, Said):
            self._look_at_talk(record)
            return
        person = self._listed_person(_author(record))
        if person is None:
            return
        if isinstance(record, StoredMemory):
            person.counts.update(memories=1)
            person.date(record.fact.get("createdAt"))
            self._sample("memory", record.fact.get("content"))
        else:
            person.counts.update(files=1)
            person.date(record.modified_at and record.modified_at.isoformat())
            self._sample("file", f"{record.path}\n{record.data[:4096].decode('utf-8', 'replace')}")

    def _look_at_talk(self, record: Said) -> None:
        """Of a conversation of several each of them is listed, else whose it is."""
        messages = [one for one in _listed(record.messages) if isinstance(one, dict)]
        speakers = _speakers(record)
        for name in speakers or [_author(record)]:
            if person := self._listed_person(name):
                own = [one for one in messages if not speakers or _speaker(one) == name]
                person.counts.update(conversations=1, messages=len(own))
                person.date(*(one.get("timestamp") for one in own))
        self._sample("message", next((one for one in messages if one.get("role") == "user"), {}).get("content"))

    def _sample(self, kind: str, text: Any) -> None:
        if len(self._samples) < SAMPLES and isinstance(text, str) and text.strip():
            clean = redact_text(_plain(text[: 10 * LONGEST]))[0]
            cut = f"{clean[:LONGEST]}…" if len(clean) > LONGEST else clean
            self._samples.append({"kind": kind, "text": cut})


def _speaker(message: Any) -> str:
    """Who speaks in the person's role, by name; "" for everybody else."""
    if not isinstance(message, dict) or message.get("role") != "user":
        return ""
    name = message.get("name")
    return _plain(name) if isinstance(name, str) else ""


def _speakers(record: Said) -> Counter[str]:
    """Names of those who speak in the person's role, and how often, where they are several."""
    found = Counter(name for one in _listed(record.messages) if (name := _speaker(one)))
    return found if len(found) > 1 else Counter()


def _said_to(message: Any, *, is_own: bool) -> Any:
    """The message as this speaker's own, or as what somebody else said to them."""
    if not _speaker(message):
        return message
    if is_own:
        own = {name: value for name, value in message.items() if name != "name"}
        return {"author": "person", **own}
    return {**message, "author": "other"}


def _person_of(record: ExportedRows) -> Mapping[str, Any]:
    """The row of the person; the others are names that lead to them."""
    return next((row for row in record.rows if not row.get("merged_into")), {})


def _author(record: Said | StoredMemory | KeptFile) -> str:
    named: Mapping[str, Any] = record.body if isinstance(record, Said) else {"user_id": record.whose.user_id}
    name = named.get("user_id")
    return _plain(name) if isinstance(name, str) else ""


def _plain(text: str) -> str:
    """What the database can hold of it."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def _listed(messages: Any) -> list[Any]:
    return messages if isinstance(messages, list) else []
