"""The erasure ledger: a file beside the database that says who must be erased again from a restored backup.

It has a line of JSON for each erasure, written before the first row goes. A line holds keyed hashes, ids of the case
and the tenant, and times, and nothing about the person. It is signed under the pepper and names the signature of the
line before, so a changed or removed line shows. Lines cut off at the end do not show, but then the database has
erasures that the file lacks.
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
    """The erasure ledger cannot be written, so no erasure can start. Check MEMORYHUB_ERASURE_LEDGER."""

    code = "ledger_unwritable"


@dataclass(frozen=True)
class LedgerEntry:
    """One erasure: `digests` of the external ids that led to the person, `rows`: digests of the rows with these ids.

    `spelled`: digests of the exact spelling, for another person's id may differ in case alone; None in older lines.
    """

    tenant: uuid.UUID
    case: uuid.UUID
    rows: frozenset[bytes]
    digests: frozenset[bytes]
    policy: str
    moment: datetime
    spelled: frozenset[bytes] | None = None

    def means(self, tenant: uuid.UUID, external_id: str) -> bool:
        """Whether it erased this spelling of the id, and not only one with the same digest."""
        return self.spelled is None or _digest_of_spelling(tenant, external_id) in self.spelled


@dataclass(frozen=True)
class Ledger:
    """The intact entries of the file, oldest first, and its damage as (number of the line, code).

    Codes: `changed` (not signed by us), `gap` (the line before is gone), `torn` (the last line is incomplete).
    """

    entries: tuple[LedgerEntry, ...]
    damage: tuple[tuple[int, str], ...]


def append(case: PrivacyCase, digests: Sequence[bytes], *, now: datetime) -> None:
    """Note the erasure of the case; it is on the disk when this returns.

    A second call adds nothing, and neither does the erasure of the same rows in a restored backup. A torn last line,
    whose erasure has not begun, is removed first. Errors: LedgerUnwritable.
    """
    people: list[tuple[uuid.UUID, str]] = []
    if case.end_user:
        person = case.end_user.merged_into or case.end_user
        people = list(EndUser.objects.with_aliases(person).values_list("pk", "external_id"))
    rows = frozenset(digest_of_row(row) for row, _name in people)
    spelled = frozenset(_digest_of_spelling(case.tenant_id, name) for _row, name in people)
    entry = LedgerEntry(case.tenant_id, case.pk, rows, frozenset(digests), case.policy, now, spelled)
    try:
        with _locked(Path(settings.MEMORYHUB_ERASURE_LEDGER)) as file:
            _append(file, entry)
    except OSError as error:
        raise LedgerUnwritable from error


def read(path: Path | None = None) -> Ledger:
    """The ledger in this file, by default the hub's own, each line checked. Errors: OSError."""
    return _parsed((path or Path(settings.MEMORYHUB_ERASURE_LEDGER)).read_bytes())


@contextmanager
def _locked(path: Path) -> Iterator[BinaryIO]:
    """Lock the file, and make it when it is missing; not its folder, which may be an unmounted disk."""
    made = not path.exists()
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file
    if made:
        descriptor = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _append(file: BinaryIO, entry: LedgerEntry) -> None:
    content = file.read()
    if any(_covers(noted, entry) for noted in _parsed(content).entries):
        # The process that wrote it may have died before it was on the disk.
        os.fsync(file.fileno())
        return
    signed = (_values(line) for line in reversed(_repaired(file, content).splitlines()))
    last = next((str(values["signature"]) for values in signed if values is not None), "")
    file.write(_line(entry, after=last))
    file.flush()
    os.fsync(file.fileno())


def digest_of_row(row: uuid.UUID) -> bytes:
    """The digest of a row's id: it finds a person who had another external id in an older backup."""
    return conf.digest("row", row.bytes)


def _digest_of_spelling(tenant: uuid.UUID, external_id: str) -> bytes:
    return conf.digest("spelling", tenant.bytes, external_id.encode())


def _covers(noted: LedgerEntry, entry: LedgerEntry) -> bool:
    # A second line with a later moment would have people erased again who returned in between.
    same = noted.case == entry.case or (bool(entry.rows) and noted.policy == entry.policy)
    return same and noted.digests >= entry.digests and noted.rows >= entry.rows


def _repaired(file: BinaryIO, content: bytes) -> bytes:
    """Remove an incomplete last line from the file; the content that is left."""
    kept, newline, tail = content.rpartition(b"\n")
    if not tail:
        return content
    if _values(tail) is not None:
        # Only the line end is missing, as some editors leave it.
        file.write(b"\n")
        return content + b"\n"
    os.ftruncate(file.fileno(), len(kept + newline))
    return kept + newline


def _line(entry: LedgerEntry, *, after: str) -> bytes:
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
    canonical = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return conf.digest("ledger", canonical.encode()).hex()


def _parsed(content: bytes) -> Ledger:
    entries: list[LedgerEntry] = []
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
    """The content of the line; None when it is not signed by us."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    if not isinstance(found, dict) or found.get("v") != VERSION:
        return None
    unsigned = {name: value for name, value in found.items() if name != "signature"}
    signed = str(found.get("signature", ""))
    return found if hmac.compare_digest(signed.encode(), _signature(unsigned).encode()) else None


def _entry(values: dict[str, Any]) -> LedgerEntry:
    return LedgerEntry(
        tenant=uuid.UUID(values["tenant"]),
        case=uuid.UUID(values["case"]),
        rows=_digests(values["rows"]),
        digests=_digests(values["digests"]),
        policy=values["policy"],
        moment=datetime.fromisoformat(values["at"]),
        spelled=_digests(values["spelled"]) if "spelled" in values else None,
    )


def _digests(values: list[str]) -> frozenset[bytes]:
    return frozenset(bytes.fromhex(one) for one in values)
