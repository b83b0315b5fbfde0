"""Makes the export of an access or portability case: of one snapshot, in the background, written row by row.

A worker that dies leaves nothing behind, and the next one makes it anew. What was made is kept only while the person is
still who they were when it was begun: not erased, not merged, no erasure under way. A restriction does not matter:
whoever may not be written about may still ask what is kept.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from tempfile import SpooledTemporaryFile

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone, translation

from memories.exceptions import LeaseLost
from memories.models import CaseState, CaseType, EndUser, ExportState, PrivacyCase, PrivacyExport
from memories.pipeline.zones import zone_or_utc
from memories.privacy.erasure.case_leases import Work, fail, finish, keep
from memories.privacy.exports.archive import Counts, write
from memories.privacy.exports.computed import subject_of
from memories.privacy.exports.export_lease import Lease
from memories.privacy.exports.export_links import (
    Download,
    lifetime,
    link_for,
    look,
    sweep_exports,
    take,
    take_export,
    take_of_case,
)
from memories.privacy.exports.headings import Heading

__all__ = ["Download", "link_for", "look", "make", "sweep_exports", "take", "take_export", "take_of_case"]

# Of the file in memory; what is larger goes to a file without a name.
SPOOLED_BYTES = 16 << 20
# Merges of one person do not come one after the other.
TRIES = 3
_HALF_GONE = (CaseState.RUNNING, CaseState.VERIFYING, CaseState.FAILED)


def make(work: Work) -> None:
    """Make the export of the case, and complete the case with it. While an erasure is at work it fails; once the
    person is gone it is completed without one: nothing is kept of them.

    Outside of any transaction. Errors: LeaseLost.
    """
    for _ in range(TRIES):
        person = EndUser.objects.select_related("tenant").filter(privacy_cases=work.case).first()
        if person is None:
            _end_empty(work)
            return
        if _is_going(person):
            fail(work, "erased")
            return
        # It may have passed on with a merge.
        work.case.end_user = person
        if _make(work, person):
            return
    raise LeaseLost


def _make(work: Work, person: EndUser) -> bool:
    """False when the person was merged meanwhile, or is gone: then nothing is kept of it."""
    with SpooledTemporaryFile(max_size=SPOOLED_BYTES) as file:
        with Lease(work) as lease, _snapshot() as now, _in_words_of(person):
            heading = Heading(subject_of(person, work.case.type), work.case.pk, now, lease.prolong)
            counts = write(file, heading)
        file.seek(0)
        return _keep(work, person, file.read(), counts, now=now)


def _end_empty(work: Work) -> None:
    with transaction.atomic():
        finish(work, now=timezone.now(), verb="export")


def _keep(work: Work, person: EndUser, content: bytes, counts: Counts, *, now: datetime) -> bool:
    """The export and the end of its case, in one transaction; False when the person is not who they were."""
    with transaction.atomic():
        keep(work)
        if not _is_still(person):
            return False
        PrivacyExport.objects.create(
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


def _is_still(person: EndUser) -> bool:
    """Whether nobody merged or erased the person, or begins to while the lock is held."""
    same = EndUser.objects.select_for_update(no_key=True).filter(pk=person.pk, generation=person.generation)
    return same.exists() and not _is_going(person)


def _is_going(person: EndUser) -> bool:
    """Whether an erasure has begun: of what is left, nobody could say what it is."""
    cases = PrivacyCase.objects.filter(end_user=person, type=CaseType.ERASURE)
    return cases.filter(state__in=_HALF_GONE).exists()


@contextmanager
def _snapshot() -> Iterator[datetime]:
    """All reads inside are of one moment, which is given by the database's clock."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute("SELECT CURRENT_TIMESTAMP")
        yield cursor.fetchall()[0][0]


@contextmanager
def _in_words_of(person: EndUser) -> Iterator[None]:
    """The person's language, if it is one of ours, and zone."""
    with translation.override(_language(person.language)), timezone.override(zone_or_utc(person.zone)):
        yield


def _language(tag: str) -> str:
    """Of BCP 47, like zh-TW: the language of the settings that a reader of it understands; else English."""
    spoken = tag.lower().replace("_", "-").partition("-")[0]
    return next((code for code, _ in settings.LANGUAGES if code.partition("-")[0] == spoken), "en")
