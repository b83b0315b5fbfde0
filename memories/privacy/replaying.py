"""After a restore: who was erased since the backup was made is there again, and is erased again by the ledger."""

import logging
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from django.db import DatabaseError

from memories import conf
from memories.audit import Actor
from memories.exceptions import MemoryHubError
from memories.models import (
    Asker,
    CaseState,
    CaseType,
    EndUser,
    ExportState,
    PrivacyCase,
    PrivacyExport,
    Tenant,
    Tombstone,
)
from memories.privacy import break_glass, cases, ledger
from memories.privacy.ledger import Entry

CHANNEL = "replay"
# People read at a time.
CHUNK = 2_000

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Found:
    """Somebody to be erased again, and the last entry that says so."""

    person: EndUser
    entry: Entry


@dataclass
class Replayed:
    """What came of it, in counts; `failed` and `unclear` are our ids of people to be looked at.

    Unclear: the erased id leads to somebody whom the ledger does not mean: they were parted before the erasure.
    """

    entries: int
    erased: int = 0
    tombstones: int = 0
    failed: list[uuid.UUID] = field(default_factory=list)
    unclear: list[uuid.UUID] = field(default_factory=list)


def find(entries: Iterable[Entry]) -> tuple[list[Found], list[uuid.UUID]]:
    """Whom the entries mean among those who are there, and ids of those of whom it is unclear.

    By the row's id or by what the caller's id comes to; not who came back under the id since the erasure.
    """
    meant = dict(_meant(entries))
    rows = EndUser.objects.select_related("tenant", "merged_into__tenant").in_bulk(list(meant))
    found: dict[uuid.UUID, Found] = {}
    unclear: list[uuid.UUID] = []
    for pk, row in rows.items():
        person, entry = row.merged_into or row, meant[pk]
        if person.pk in meant or ledger.digest_of_row(person.pk) in entry.rows:
            found[person.pk] = Found(person, meant.get(person.pk, entry))
        else:
            unclear.append(pk)
    return list(found.values()), unclear


def replay(*, entries: Iterable[Entry], actor: Actor, now: datetime) -> Replayed:
    """Erase again whom the entries mean, and bury again whoever is not buried; twice does no more than once."""
    entries = list(entries)
    found, unclear = find(entries)
    result = Replayed(len(entries), unclear=unclear)
    for one in found:
        if _is_erased(one, actor, now):
            result.erased += 1
        else:
            result.failed.append(one.person.pk)
    result.tombstones = bury(entries)
    return result


def bury(entries: Iterable[Entry]) -> int:
    """Write the tombstones that are missing, of tenants that are there; how many."""
    there = set(Tenant.objects.values_list("pk", flat=True))
    known = set(_buried())
    rows = {
        (entry.tenant, digest): Tombstone(
            tenant_id=entry.tenant,
            digest=digest,
            policy=entry.policy,
            case_uuid=entry.case,
            created_at=entry.moment,
        )
        for entry in entries
        for digest in entry.digests
        if entry.tenant in there and (entry.tenant, digest) not in known
    }
    Tombstone.objects.bulk_create(rows.values(), ignore_conflicts=True)
    return len(rows)


def unknown_to(entries: Iterable[Entry]) -> list[uuid.UUID]:
    """Erasures that the database has and the ledger lacks, as ids of cases: lines were cut off, or it is another
    file."""
    entries = list(entries)
    noted = {entry.case for entry in entries}
    digests = {(entry.tenant, digest) for entry in entries for digest in entry.digests}
    done = PrivacyCase.objects.filter(type=CaseType.ERASURE, state=CaseState.COMPLETED).order_by("completed_at")
    return [
        case
        for case, tenant, subject in done.values_list("pk", "tenant", "subject")
        if case not in noted and (tenant, bytes(subject)) not in digests
    ]


def settle() -> dict[str, int]:
    """Of a database that was just restored: nobody holds its leases, and links to its exports may have been used."""
    ready = PrivacyExport.objects.filter(state=ExportState.READY)
    leased = PrivacyCase.objects.exclude(lease_token=None)
    return {
        "exports": ready.update(state=ExportState.EXPIRED, content=b"", token_digest=None),
        "leases": leased.update(lease_token=None, lease_until=None),
    }


def _meant(entries: Iterable[Entry]) -> Iterator[tuple[uuid.UUID, Entry]]:
    """Rows of people and of names, each with the last entry that means it."""
    latest = sorted(entries, key=lambda entry: entry.moment)
    by_row = {row: entry for entry in latest for row in entry.rows}
    by_digest = {digest: entry for entry in latest for digest in entry.digests}
    tenants = {entry.tenant for entry in latest}
    rows = EndUser.objects.filter(tenant__in=tenants).values_list("pk", "tenant", "external_id", "created_at")
    for pk, tenant, external_id, created_at in rows.iterator(chunk_size=CHUNK):
        same = by_digest.get(conf.digest_of_person(tenant, external_id))
        # Another row under a like id is somebody else, who was there beside whoever was erased.
        named = same if same and same.means(tenant, external_id) else None
        fitting = [
            entry for entry in (by_row.get(ledger.digest_of_row(pk)), named) if entry and created_at < entry.moment
        ]
        if fitting:
            yield pk, max(fitting, key=lambda entry: entry.moment)


def _case_of(found: Found, actor: Actor, now: datetime) -> PrivacyCase:
    """The case that erased them, as the backup has it, if it is open there and about them; else another one."""
    known = cases.cases_of(found.person).open()
    return known.filter(pk=found.entry.case, type=CaseType.ERASURE).first() or cases.open_case(
        tenant=found.person.tenant,
        user_id=found.person.external_id,
        type=CaseType.ERASURE,
        asked_by=Asker.CONTROLLER,
        channel=CHANNEL,
        actor=actor,
        now=now,
    )


def _is_erased(found: Found, actor: Actor, now: datetime) -> bool:
    """Erase them; a failure leaves the others their turn."""
    try:
        case, policy = _case_of(found, actor, now), found.entry.policy
        # What held it up then was over when they were erased.
        done = break_glass.erase(case_id=case.pk, policy=policy, actor=actor, now=now, releases=True)
    except (MemoryHubError, DatabaseError, OSError) as error:
        logger.warning("End user %s is not erased again: %s", found.person.pk, type(error).__name__)
        return False
    return done.state == CaseState.COMPLETED


def _buried() -> Iterator[tuple[uuid.UUID, bytes]]:
    for tenant, digest in Tombstone.objects.values_list("tenant", "digest").iterator(chunk_size=CHUNK):
        yield tenant, bytes(digest)
