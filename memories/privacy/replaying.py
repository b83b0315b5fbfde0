"""After a restore, people who were erased since the backup are there again: the ledger says whom to erase again."""

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
from memories.privacy.casework.restriction import cases_of
from memories.privacy.ledger import LedgerEntry
from memories.queue import leases

CHANNEL = "replay"
# People read at a time.
CHUNK = 2_000

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ReturnedPerson:
    """A person to be erased again, and the last entry that says so."""

    person: EndUser
    entry: LedgerEntry


@dataclass
class Replayed:
    """The result in counts; `failed` and `unclear` are ids of people whom staff should look at.

    Unclear: the erased id leads to a person whom the ledger does not name: a merge was undone before the erasure.
    """

    entries: int
    erased: int = 0
    tombstones: int = 0
    failed: list[uuid.UUID] = field(default_factory=list)
    unclear: list[uuid.UUID] = field(default_factory=list)


def find(entries: Iterable[LedgerEntry]) -> tuple[list[ReturnedPerson], list[uuid.UUID]]:
    """The people in the database whom the entries name, and the ids of unclear ones.

    The id of the row or the digest of the external id finds a person, unless the row is newer than the erasure.
    """
    named = dict(_named_by(entries))
    rows = EndUser.objects.select_related("tenant", "merged_into__tenant").in_bulk(list(named))
    found: dict[uuid.UUID, ReturnedPerson] = {}
    unclear: list[uuid.UUID] = []
    for pk, row in rows.items():
        person, entry = row.merged_into or row, named[pk]
        if person.pk in named or ledger.digest_of_row(person.pk) in entry.rows:
            found[person.pk] = ReturnedPerson(person, named.get(person.pk, entry))
        else:
            unclear.append(pk)
    return list(found.values()), unclear


def replay(*, entries: Iterable[LedgerEntry], actor: Actor, now: datetime) -> Replayed:
    """Erase again the people whom the entries name, and write missing tombstones. It is idempotent."""
    entries = list(entries)
    found, unclear = find(entries)
    result = Replayed(len(entries), unclear=unclear)
    for one in found:
        if _erase(one, actor, now):
            result.erased += 1
        else:
            result.failed.append(one.person.pk)
    result.tombstones = write_tombstones(entries)
    return result


def write_tombstones(entries: Iterable[LedgerEntry]) -> int:
    """Write missing tombstones of tenants in the database; how many."""
    tenants = set(Tenant.objects.values_list("pk", flat=True))
    stones = Tombstone.objects.values_list("tenant", "digest").iterator(chunk_size=CHUNK)
    present = {(tenant, bytes(digest)) for tenant, digest in stones}
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
        if entry.tenant in tenants and (entry.tenant, digest) not in present
    }
    Tombstone.objects.bulk_create(rows.values(), ignore_conflicts=True)
    return len(rows)


def missing_in(entries: Iterable[LedgerEntry]) -> list[uuid.UUID]:
    """Ids of completed cases that the ledger lacks: lines were cut off, or it is another file."""
    entries = list(entries)
    noted = {entry.case for entry in entries}
    digests = {(entry.tenant, digest) for entry in entries for digest in entry.digests}
    done = PrivacyCase.objects.filter(type=CaseType.ERASURE, state=CaseState.COMPLETED).order_by("completed_at")
    return [
        case
        for case, tenant, subject in done.values_list("pk", "tenant", "subject")
        if case not in noted and (tenant, bytes(subject)) not in digests
    ]


def end_leases_and_exports() -> dict[str, int]:
    """End the leases of a restored database, which nobody holds, and its exports, which may have been downloaded."""
    ready = PrivacyExport.objects.filter(state=ExportState.READY)
    return {
        "exports": ready.empty(state=ExportState.EXPIRED, token_digest=None),
        "leases": leases.revoke(PrivacyCase.objects.leased()),
    }


def _named_by(entries: Iterable[LedgerEntry]) -> Iterator[tuple[uuid.UUID, LedgerEntry]]:
    """Rows of people and of aliases, each with the last entry that names it."""
    latest = sorted(entries, key=lambda entry: entry.moment)
    by_row = {row: entry for entry in latest for row in entry.rows}
    by_digest = {digest: entry for entry in latest for digest in entry.digests}
    tenants = {entry.tenant for entry in latest}
    rows = EndUser.objects.filter(tenant__in=tenants).values_list("pk", "tenant", "external_id", "created_at")
    for pk, tenant, external_id, created_at in rows.iterator(chunk_size=CHUNK):
        same = by_digest.get(conf.digest_of_person(tenant, external_id))
        # A row whose id has another spelling is another person, who was there beside the erased one.
        named = same if same and same.means(tenant, external_id) else None
        fitting = [
            entry for entry in (by_row.get(ledger.digest_of_row(pk)), named) if entry and created_at < entry.moment
        ]
        if fitting:
            yield pk, max(fitting, key=lambda entry: entry.moment)


def _case_of(found: ReturnedPerson, actor: Actor, now: datetime) -> PrivacyCase:
    """The case that erased them, if the backup has it, open and about them; else a new case."""
    open_cases = cases_of(found.person).open()
    return open_cases.filter(pk=found.entry.case, type=CaseType.ERASURE).first() or cases.open_case(
        tenant=found.person.tenant,
        user_id=found.person.external_id,
        type=CaseType.ERASURE,
        asked_by=Asker.CONTROLLER,
        channel=CHANNEL,
        actor=actor,
        now=now,
    )


def _erase(found: ReturnedPerson, actor: Actor, now: datetime) -> bool:
    """False after a failure, so that the others are erased."""
    try:
        case, policy = _case_of(found, actor, now), found.entry.policy
        # A hold in the backup was over when they were erased.
        done = break_glass.erase(case_id=case.pk, policy=policy, actor=actor, now=now, releases=True)
    except (MemoryHubError, DatabaseError, OSError) as error:
        logger.warning("End user %s is not erased again: %s", found.person.pk, type(error).__name__)
        return False
    return done.state == CaseState.COMPLETED
