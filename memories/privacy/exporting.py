"""Makes the export of an access or portability case: from one snapshot, in the background, written row by row.

A worker that dies leaves nothing behind, and the next one starts again. The export is kept only if the person is still
who they were when it was begun: not erased, not merged, no erasure under way. A restriction does not matter: the person
may still ask what is kept.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from tempfile import SpooledTemporaryFile

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone, translation

from memories.db import tenancy
from memories.exceptions import LeaseLost
from memories.models import CaseState, CaseType, EndUser, ExportState, PrivacyCase, PrivacyExport
from memories.privacy.case_leases import ClaimedCase, fail, finish
from memories.privacy.exports.archive import Counts, Heading, write
from memories.privacy.exports.downloads import lifetime
from memories.privacy.exports.rows import subject_of
from memories.queue.leases import renew
from memories.time_zones import zone_or_utc

# Bytes of the file in memory; a larger one becomes a temporary file without a name.
SPOOLED_BYTES = 16 << 20
# Merges of one person do not come one after the other.
TRIES = 3
_ERASING = (CaseState.RUNNING, CaseState.VERIFYING, CaseState.FAILED)


def make(work: ClaimedCase) -> None:
    """Make the export of the case, and complete the case with it.

    While an erasure is under way the case fails. Once the person is gone it is completed without an export. Call it
    outside of any transaction. Errors: LeaseLost.
    """
    for _ in range(TRIES):
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


def _make(work: ClaimedCase, person: EndUser) -> bool:
    """False when the person was merged or erased meanwhile: then nothing is kept."""
    with SpooledTemporaryFile(max_size=SPOOLED_BYTES) as file:
        with _snapshot() as now, _in_language_of(person):
            heading = Heading(subject_of(person, work.case.type), work.case.pk, now, work.check)
            counts = write(file, heading)
        file.seek(0)
        return _keep(work, person, file.read(), counts, now=now)


@contextmanager
def _snapshot() -> Iterator[datetime]:
    """All reads of the block see one moment; yields it, by the database's clock."""
    with transaction.atomic(), connection.cursor() as cursor:
        # The first statement, or it fails: it has no tenancy, which would be another one before it.
        with tenancy.alone():
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute("SELECT CURRENT_TIMESTAMP")
        yield cursor.fetchall()[0][0]


@contextmanager
def _in_language_of(person: EndUser) -> Iterator[None]:
    """The person's time zone, and the language that fits their BCP 47 tag (like zh-TW), else English."""
    spoken = person.language.lower().replace("_", "-").partition("-")[0]
    language = next((code for code, _ in settings.LANGUAGES if code.partition("-")[0] == spoken), "en")
    with translation.override(language), timezone.override(zone_or_utc(person.zone)):
        yield


def _keep(work: ClaimedCase, person: EndUser, content: bytes, counts: Counts, *, now: datetime) -> bool:
    """Store the export and complete its case, in one transaction; False when the person is not who they were."""
    with transaction.atomic():
        renew(work)
        if not _is_unchanged(person):
            return False
        PrivacyExport.objects.create(
            tenant_id=work.case.tenant_id,
            case=work.case,
            profile=work.case.type,
            state=ExportState.READY,
            content=content,
            size=len(content),
            made_at=now,
            expires_at=now + lifetime(person.tenant),
            created_at=now,
        )
        work.counts.update(counts)
        finish(work, now=now, verb="export")
    return True


def _is_unchanged(person: EndUser) -> bool:
    """Whether nobody merged or erased the person; the lock keeps it so until the transaction ends."""
    same = EndUser.objects.select_for_update(no_key=True).filter(pk=person.pk, generation=person.generation)
    return same.exists() and not _is_being_erased(person)


def _is_being_erased(person: EndUser) -> bool:
    """Whether an erasure has begun: nobody could say what is left."""
    return PrivacyCase.objects.filter(end_user=person, type=CaseType.ERASURE, state__in=_ERASING).exists()
