"""Makes the export of an access or portability case: from one snapshot, in the background, written row by row.

The file is stored in pieces. What a worker that dies had stored belongs to an export that is being made: nobody can
take it, and the next worker deletes it and starts again. The export is kept only if the person is still
who they were when it was begun: not erased, not merged, no erasure under way. A restriction does not matter: the person
may still ask what is kept.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from tempfile import SpooledTemporaryFile
from typing import IO

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone, translation

from memories.db import tenancy
from memories.exceptions import LeaseLost
from memories.models import CaseState, CaseType, EndUser, ExportState, PrivacyCase, PrivacyExport
from memories.privacy.case_leases import ClaimedCase, fail, finish
from memories.privacy.exports import pieces
from memories.privacy.exports.archive import Counts, Heading, write
from memories.privacy.exports.downloads import SPOOLED_BYTES, lifetime
from memories.privacy.exports.rows import subject_of
from memories.queue.leases import renew
from memories.time_zones import zone_or_utc

# Merges of one person do not come one after the other.
TRIES = 3
_ERASING = (CaseState.RUNNING, CaseState.VERIFYING, CaseState.FAILED)


def make(work: ClaimedCase) -> None:
    """Make the export of the case, and complete the case with it.

    While an erasure is under way the case fails. Once the person is gone it is completed without an export. Call it
    outside of any transaction. Errors: LeaseLost.
    """
    for _ in range(TRIES):
        work.counts, work.so_far = Counter(), {}
        # What a worker that died, or a try before, had stored.
        with transaction.atomic():
            renew(work)
            work.case.exports.filter(state=ExportState.MAKING).delete()
        person = EndUser.objects.select_related("tenant").filter(privacy_cases=work.case).first()
        if person is None:
            with transaction.atomic():
                finish(work, now=timezone.now(), verb="export")
            return
        if _is_being_erased(person):
            fail(work, "erased")
            return
        # A merge may have moved the case to another person.
        work.case.end_user = person
        if _make(work, person):
            return
    raise LeaseLost


def language_of(person: EndUser) -> str:
    """The language of the hub's that fits the person's BCP 47 tag (like zh-TW), else English."""
    spoken = person.language.lower().replace("_", "-").partition("-")[0]
    return next((code for code, _ in settings.LANGUAGES if code.partition("-")[0] == spoken), "en")


def _make(work: ClaimedCase, person: EndUser) -> bool:
    """False when the person was merged or erased meanwhile: then nothing is kept."""

    def note(counts: Counts) -> None:
        """After every few rows: tell the case how many there are. Errors: LeaseLost."""
        work.check()
        work.so_far = counts

    with SpooledTemporaryFile(max_size=SPOOLED_BYTES) as file:
        with (
            _snapshot() as now,
            translation.override(work.case.language or language_of(person)),
            timezone.override(zone_or_utc(person.zone)),
        ):
            heading = Heading(subject_of(person, work.case.type), work.case.pk, now, note)
            counts = write(file, heading)
        work.counts = Counter(counts)
        return _keep(work, person, file, now=now)


@contextmanager
def _snapshot() -> Iterator[datetime]:
    """All reads of the block see one moment; yields it, by the database's clock."""
    with transaction.atomic(), connection.cursor() as cursor:
        # The first statement, or it fails: it has no tenancy, which would be another one before it.
        with tenancy.alone():
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute("SELECT CURRENT_TIMESTAMP")
        yield cursor.fetchall()[0][0]


def _keep(work: ClaimedCase, person: EndUser, file: IO[bytes], *, now: datetime) -> bool:
    """Store the file piece by piece, then complete the case with the export; False when the person is not who they
    were. Each step needs the lease, which an erasure takes away. Errors: LeaseLost.
    """
    size = file.tell()
    file.seek(0)
    with transaction.atomic():
        renew(work)
        export = PrivacyExport.objects.create(
            tenant_id=work.case.tenant_id,
            case=work.case,
            profile=work.case.type,
            state=ExportState.MAKING,
            size=size,
            made_at=now,
            created_at=now,
        )
    for number, content in enumerate(pieces.cut(file)):
        with transaction.atomic():
            renew(work)
            pieces.add(export, number, content)
    with transaction.atomic():
        renew(work)
        if not _is_unchanged(person):
            return False
        export.state, export.expires_at = ExportState.READY, now + lifetime(person.tenant)
        export.save(update_fields=["state", "expires_at"])
        finish(work, now=now, verb="export")
    return True


def _is_unchanged(person: EndUser) -> bool:
    """Whether nobody merged or erased the person; the lock keeps it so until the transaction ends."""
    same = EndUser.objects.select_for_update(no_key=True).filter(pk=person.pk, generation=person.generation)
    return same.exists() and not _is_being_erased(person)


def _is_being_erased(person: EndUser) -> bool:
    """Whether an erasure has begun: nobody could say what is left."""
    return PrivacyCase.objects.filter(end_user=person, type=CaseType.ERASURE, state__in=_ERASING).exists()
