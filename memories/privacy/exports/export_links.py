"""How an export leaves the hub, once: by its case through the API, or by a link. Its content goes with the download.

A link is 256 random bits. That is out of reach of guessing, so nobody is locked out or slowed down for trying: the
table holds the SHA-256 of each, and whoever measures how long a look-up takes learns about hashes of guesses alone.
"""

import hashlib
import secrets
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import QuerySet

from memories import audit, conf
from memories.audit import Actor
from memories.exceptions import Conflict, ExportGone, ExportNotReady, NotFound
from memories.models import EXPORTING, ActorKind, CaseState, ExportState, PrivacyCase, PrivacyExport, Tenant

# Each may be large: as many as leave the lock soon.
SWEPT_AT_ONCE = 50
TOKEN_BYTES = 32
_ENDED = (CaseState.COMPLETED, CaseState.REFUSED, CaseState.FAILED)


@dataclass(frozen=True)
class Download:
    """What somebody takes away: the ZIP file, and a name for it that tells of nobody."""

    content: bytes
    name: str


def lifetime(tenant: Tenant) -> timedelta:
    """How long an export waits to be taken: the tenant's own number."""
    return timedelta(days=conf.rules(tenant).keep_exports_days)


def link_for(export: PrivacyExport, actor: Actor, now: datetime) -> str:
    """The token of a new link to the export; it is shown once, and the link before it leads nowhere from now on.

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
    """What a link leads to, without taking it. Errors: NotFound; ExportGone once it was taken or has expired."""
    row = PrivacyExport.objects.defer("content").filter(token_digest=_digest(token)).first()
    if row is None:
        raise NotFound
    _check(row, now=now)
    return row


def take(token: str, now: datetime, request_id: str = "") -> Download:
    """The export behind a link, which goes with it. Errors: NotFound; ExportGone."""
    actor = Actor(kind=ActorKind.LINK, request_id=request_id)
    return _take(PrivacyExport.objects.filter(token_digest=_digest(token)), actor=actor, now=now)


def take_export(export: PrivacyExport, actor: Actor, now: datetime) -> bytes:
    """The content of an export, which goes with it; in a transaction of the caller's, with that. Errors: ExportGone."""
    return _take(PrivacyExport.objects.filter(pk=export.pk), actor=actor, now=now).content


def take_of_case(*, tenant: Tenant, case_id: uuid.UUID, actor: Actor, now: datetime) -> Download:
    """The export of the tenant's case, which goes with it.

    Errors: NotFound; Conflict of a case that makes none, or ended without; ExportNotReady; ExportGone.
    """
    case = PrivacyCase.objects.filter(tenant=tenant, pk=case_id).first()
    if case is None:
        raise NotFound
    if case.type not in EXPORTING:
        raise Conflict("A case of this type makes no export. Open one of the type access or portability.")
    newest = case.exports.order_by("-created_at", "-pk").values("pk")[:1]
    if not newest:
        raise _why_none(case)
    return _take(PrivacyExport.objects.filter(pk__in=newest), actor=actor, now=now)


def sweep_exports(now: datetime) -> int:
    """Empty some exports that nobody took in time, without waiting for any lock; how many there were."""
    due = PrivacyExport.objects.filter(state=ExportState.READY, expires_at__lte=now).order_by("expires_at")
    with transaction.atomic():
        found = list(due.select_for_update(skip_locked=True).values_list("pk", flat=True)[:SWEPT_AT_ONCE])
        if found:
            PrivacyExport.objects.filter(pk__in=found).update(state=ExportState.EXPIRED, content=b"")
    return len(found)


def _take(wanted: QuerySet[PrivacyExport], *, actor: Actor, now: datetime) -> Download:
    with transaction.atomic():
        # Of two at once the second waits, and finds it taken.
        row = _ready(wanted, now=now)
        taken = Download(bytes(row.content), f"export-{row.case_id}.zip")
        row.content, row.state, row.taken_at = b"", ExportState.TAKEN, now
        row.save(update_fields=["content", "state", "taken_at"])
        _record("download", row, actor=actor, now=now)
    return taken


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


def _why_none(case: PrivacyCase) -> Conflict:
    if case.state in _ENDED:
        return Conflict("The case ended without an export. Ask an operator, or open another case.")
    return ExportNotReady()


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _record(verb: str, row: PrivacyExport, *, actor: Actor, now: datetime) -> None:
    named = {"target": row, "object_id": row.pk, "tenant": row.case.tenant, "case": row.case_id}
    audit.record(actor=actor, verb=verb, counts={"bytes": row.size}, now=now, **named)  # type: ignore[arg-type]
