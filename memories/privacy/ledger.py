"""The erasure ledger: a file beside the database that says who is to be erased again from an older copy of it.

A line of JSON for each erasure, written before its first row goes. It holds keyed hashes, ids of the case and the
tenant, and times, nothing of the person. Each line is signed under the pepper and names the signature of the line
before, so one that was changed, or taken out from between others, shows. Lines cut off at the end do not, but then the
database knows of erasures that the file lacks.
"""

import fcntl
import hmac
import json
import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

from django.conf import settings

from memories import conf
from memories.exceptions import MemoryHubError
from memories.models import EndUser, PrivacyCase

VERSION = 1


class LedgerUnwritable(MemoryHubError):
    """The erasure ledger cannot be written, so no erasure begins: see MEMORYHUB_ERASURE_LEDGER."""

    code = "ledger_unwritable"


@dataclass(frozen=True)
class Entry:
    """One erasure: `digests` of the ids that led to the person, `rows`: those of our ids of what had them.

    `spelled`: of the ids letter by letter, for somebody else's may differ in case alone; None in lines of before.
    """

    tenant: uuid.UUID
    case: uuid.UUID
    rows: frozenset[bytes]
    digests: frozenset[bytes]
    policy: str
    moment: datetime
    spelled: frozenset[bytes] | None = None

    def means(self, tenant: uuid.UUID, external_id: str) -> bool:
        """Whether it erased this id itself, of those that come to the same digest."""
        return self.spelled is None or _digest_of_spelling(tenant, external_id) in self.spelled


@dataclass(frozen=True)
class Ledger:
    """What the file holds: intact entries, oldest first, and what is wrong with it, as (number of the line, code).

    Codes: `changed` (no line of ours), `gap` (what stood before it is gone), `torn` (the last one is not whole).
    """

    entries: tuple[Entry, ...]
    damage: tuple[tuple[int, str], ...]


def append(case: PrivacyCase, digests: Sequence[bytes], *, now: datetime) -> None:
    """Note the case's erasure, on the disk when this returns; once, however often it is called, and not again when
    these very rows are noted already, as those of an older copy of the database are. A torn last line, whose erasure
    has not begun, is taken away first.

    Errors: LedgerUnwritable.
    """
    people = _people_of(case)
    rows = frozenset(digest_of_row(row) for row, _name in people)
    spelled = frozenset(_digest_of_spelling(case.tenant_id, name) for _row, name in people)
    entry = Entry(case.tenant_id, case.pk, rows, frozenset(digests), case.policy, now, spelled)
    try:
        with _locked(Path(settings.MEMORYHUB_ERASURE_LEDGER)) as file:
            _append(file, entry)
    except OSError as error:
        raise LedgerUnwritable from error


def read(path: Path | None = None) -> Ledger:
    """The ledger in this file, by default the hub's own, checked line by line. Errors: OSError."""
    return _parsed((path or Path(settings.MEMORYHUB_ERASURE_LEDGER)).read_bytes())


@contextmanager
def _locked(path: Path) -> Iterator[BinaryIO]:
    """The file for this process alone; made where missing, but not its folder, which may be a disk that is away."""
    made = not path.exists()
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file
    if made:
        _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _append(file: BinaryIO, entry: Entry) -> None:
    content = file.read()
    if any(_covers(known, entry) for known in _parsed(content).entries):
        # Whoever wrote it may have died before it was on the disk.
        os.fsync(file.fileno())
        return
    whole = _repaired(file, content)
    file.write(_line(entry, after=_last_signature(whole)))
    file.flush()
    os.fsync(file.fileno())


def digest_of_row(row: uuid.UUID) -> bytes:
    """What stands for an id of ours: by it a person is found who was called otherwise in an older copy."""
    return conf.digest("row", row.bytes)


def _digest_of_spelling(tenant: uuid.UUID, external_id: str) -> bytes:
    return conf.digest("spelling", tenant.bytes, external_id.encode())


def _people_of(case: PrivacyCase) -> list[tuple[uuid.UUID, str]]:
    """The person and the names that lead to them: our id and the caller's."""
    if case.end_user is None:
        return []
    person = case.end_user.merged_into or case.end_user
    return list(EndUser.objects.behind(person).values_list("pk", "external_id"))


def _covers(known: Entry, entry: Entry) -> bool:
    # A later moment would make who came back since one to be erased again.
    same = known.case == entry.case or (bool(entry.rows) and known.policy == entry.policy)
    return same and known.digests >= entry.digests and known.rows >= entry.rows


def _repaired(file: BinaryIO, content: bytes) -> bytes:
    """The content with whole lines only, and the file as well."""
    kept, newline, tail = content.rpartition(b"\n")
    if not tail:
        return content
    if _values(tail) is not None:
        # Only its end is missing, as some editors leave it.
        file.write(b"\n")
        return content + b"\n"
    os.ftruncate(file.fileno(), len(kept + newline))
    return kept + newline


def _line(entry: Entry, *, after: str) -> bytes:
    values = {
        "v": VERSION,
        "tenant": str(entry.tenant),
        "case": str(entry.case),
        "rows": sorted(one.hex() for one in entry.rows),
        "digests": sorted(one.hex() for one in entry.digests),
        "spelled": sorted(one.hex() for one in entry.spelled or ()),
        "policy": entry.policy,
        "at": entry.moment.isoformat(),
        "after": after,
    }
    return json.dumps({**values, "signature": _signature(values)}).encode() + b"\n"


def _signature(values: dict[str, Any]) -> str:
    said = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return conf.digest("ledger", said.encode()).hex()


def _last_signature(content: bytes) -> str:
    """Of the last line that is one of ours."""
    lines = (_values(line) for line in reversed(content.splitlines()))
    return next((str(values["signature"]) for values in lines if values is not None), "")


def _parsed(content: bytes) -> Ledger:
    entries: list[Entry] = []
    damage: list[tuple[int, str]] = []
    before = ""
    lines = content.split(b"\n")
    for number, line in enumerate(lines, start=1):
        values = _values(line)
        if values is not None:
            if values["after"] != before:
                damage.append((number, "gap"))
            before = str(values["signature"])
            entries.append(_entry(values))
        elif line:
            damage.append((number, "torn" if number == len(lines) else "changed"))
    return Ledger(tuple(entries), tuple(damage))


def _values(line: bytes) -> dict[str, Any] | None:
    """What the line says; None when it is not signed by us."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    if not isinstance(found, dict) or found.get("v") != VERSION:
        return None
    told = {name: value for name, value in found.items() if name != "signature"}
    signed = str(found.get("signature", ""))
    return found if hmac.compare_digest(signed.encode(), _signature(told).encode()) else None


def _entry(values: dict[str, Any]) -> Entry:
    return Entry(
        tenant=uuid.UUID(values["tenant"]),
        case=uuid.UUID(values["case"]),
        rows=_digests(values["rows"]),
        digests=_digests(values["digests"]),
        policy=values["policy"],
        moment=datetime.fromisoformat(values["at"]),
        spelled=_digests(values["spelled"]) if "spelled" in values else None,
    )


def _digests(told: list[str]) -> frozenset[bytes]:
    return frozenset(bytes.fromhex(one) for one in told)
