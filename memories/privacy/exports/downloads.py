"""The download of an export, once: by its case through the API, or by a link. The download deletes the pieces.

A link is 256 random bits, which nobody can guess, so tries are neither counted nor slowed down. The table holds the
SHA-256 of each token: the time of a look-up shows nothing but hashes of guesses.
"""

import hashlib
import secrets
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from tempfile import SpooledTemporaryFile
from typing import IO

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from memories import audit, conf
from memories.audit import Actor
from memories.exceptions import Conflict, ExportGone, ExportNotReady, NotFound
from memories.models import EXPORTING, ActorKind, CaseState, ExportState, PrivacyCase, PrivacyExport, Tenant
from memories.privacy.exports import pieces

# Bytes of a file in memory; a larger one becomes a temporary file without a name.
SPOOLED_BYTES = 16 << 20
PART_BYTES = 256 << 10
# Each may be large, and the lock should end soon.
SWEPT_AT_ONCE = 50
TOKEN_BYTES = 32
_ENDED = (CaseState.COMPLETED, CaseState.REFUSED, CaseState.FAILED)


@dataclass(frozen=True)
class Download:
    """The ZIP file, a name for it that identifies nobody, and its bytes; it can be read once."""

    file: IO[bytes]
    name: str
    size: int

    def parts(self) -> Iterator[bytes]:
        with self.file:
            while part := self.file.read(PART_BYTES):
                yield part


def lifetime(tenant: Tenant) -> timedelta:
    """How long an export can be downloaded: a rule of the tenant."""
    return timedelta(days=conf.rules(tenant).keep_exports_days)


def link_for(export: PrivacyExport, actor: Actor, now: datetime) -> str:
    """Make a new link to the export, and return its token, which is shown once. An earlier link stops working.

    Errors: ExportGone.
    """
    token = secrets.token_urlsafe(TOKEN_BYTES)
    with transaction.atomic():
        row = _ready(PrivacyExport.objects.filter(pk=export.pk), now=now)
        row.token_digest = _digest(token)
        row.save(update_fields=["token_digest"])
        _record("link", row, actor=actor, now=now)
    return token


def look(token: str, now: datetime) -> PrivacyExport:
    """The export behind a link, without taking it. Errors: NotFound; ExportGone once it was taken or has expired."""
    row = PrivacyExport.objects.filter(token_digest=_digest(token)).first()
    if row is None:
        raise NotFound
    _check(row, now=now)
    return row


def take(token: str, now: datetime, request_id: str = "") -> Download:
    """Take the export behind a link, once. Errors: NotFound; ExportGone."""
    actor = Actor(kind=ActorKind.LINK, request_id=request_id)
    return _take(PrivacyExport.objects.filter(token_digest=_digest(token)), actor=actor, now=now)


def take_export(export: PrivacyExport, actor: Actor, now: datetime) -> Download:
    """Take an export, once; inside a transaction of the caller, together with it. Errors: ExportGone."""
    return _take(PrivacyExport.objects.filter(pk=export.pk), actor=actor, now=now)


def take_of_case(*, tenant: Tenant, case_id: uuid.UUID, actor: Actor, now: datetime) -> Download:
    """Take the export of the tenant's case, once.

    Errors: NotFound; Conflict of a case that makes none, or ended without; ExportNotReady; ExportGone.
    """
    case = PrivacyCase.objects.filter(tenant=tenant, pk=case_id).first()
    if case is None:
        raise NotFound
    if case.type not in EXPORTING:
        raise Conflict(_("A case of this type has no export. Open an access or portability case."))
    made = case.exports.exclude(state=ExportState.MAKING)
    newest = made.order_by("-created_at", "-pk").values("pk")[:1]
    if not newest:
        if case.state in _ENDED:
            raise Conflict(_("The case ended without an export. Ask an operator, or open another case."))
        raise ExportNotReady
    return _take(PrivacyExport.objects.filter(pk__in=newest), actor=actor, now=now)


def sweep_exports(now: datetime) -> int:
    """Empty some exports that nobody took in time, without waiting for locks; how many. What a case that failed had
    begun goes, too."""
    due = PrivacyExport.objects.filter(state=ExportState.READY, expires_at__lte=now).order_by("expires_at")
    with transaction.atomic():
        emptied = due.select_for_update(skip_locked=True)[:SWEPT_AT_ONCE].empty(state=ExportState.EXPIRED)
        PrivacyExport.objects.filter(state=ExportState.MAKING, case__state__in=_ENDED).delete()
    return emptied


def _take(wanted: QuerySet[PrivacyExport], *, actor: Actor, now: datetime) -> Download:
    with transaction.atomic():
        # Of two downloads at once the second waits, and finds it taken.
        row = _ready(wanted, now=now)
        # Whoever gets it reads at their own pace: the hub's copy goes with the transaction.
        file: IO[bytes] = SpooledTemporaryFile(max_size=SPOOLED_BYTES)  # noqa: SIM115  (closed once it is read)
        file.writelines(pieces.of(row))
        PrivacyExport.objects.filter(pk=row.pk).empty(state=ExportState.TAKEN, taken_at=now)
        _record("download", row, actor=actor, now=now)
    file.seek(0)
    return Download(file, f"export-{row.case_id}.zip", row.size)


def _ready(wanted: QuerySet[PrivacyExport], *, now: datetime) -> PrivacyExport:
    """The export, locked. Errors: NotFound; ExportGone."""
    row = wanted.select_for_update(of=("self",), no_key=True).select_related("case__tenant").first()
    if row is None:
        raise NotFound
    _check(row, now=now)
    return row


def _check(row: PrivacyExport, *, now: datetime) -> None:
    if row.state != ExportState.READY or row.expires_at is None or row.expires_at <= now:
        raise ExportGone


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _record(verb: str, row: PrivacyExport, *, actor: Actor, now: datetime) -> None:
    named = {"target": row, "object_id": row.pk, "tenant": row.case.tenant, "case": row.case_id}
    audit.record(actor=actor, verb=verb, counts={"bytes": row.size}, now=now, **named)  # type: ignore[arg-type]
