"""What staff and applications do to an import: upload a file, start, pause, go on, undo.

A verb changes the row; a worker does the rest. Who is at work on it loses the lease, and stores nothing more.
"""

import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import IO, Any

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _
from django_q.tasks import async_task

from memories import audit, conf
from memories.audit import Actor
from memories.capture import get_or_create
from memories.curation.imports.errors import ImportFileGone, ImportNotReady, ImportTooLarge, TooManyImports
from memories.curation.people.external_ids import check_id
from memories.exceptions import InvalidInput, NotFound, PersonRestricted
from memories.models import EndUser, Import, ImportPiece, Tenant

TASK = "memories.imports.tasks.import_some"
# A slice may hold a step that takes long: the dry run of a large file.
LONGEST_SECONDS = 6 * 3600
# A file that nobody starts, and an import whose workers are gone, are kept for so long.
KEPT = timedelta(days=1)
PIECE_BYTES = 4 << 20
AUTO = "auto"
# What of a file's name says how to read it.
SUFFIXES = (".zip", ".json", ".jsonl", ".ndjson", ".csv", ".md", ".markdown", ".txt")
State = Import.State


@dataclass(frozen=True)
class ImportOptions:
    """How a file is read, and whose it is.

    `authors`: who is named in the file → the hub's `user_id`; "" leaves out what is theirs. Who is not named there
    keeps the name. `vouched`: staff say that an export of a hub was made by one whose operators are believed here.
    `user_id` and `agent_id` are of what names nobody; "" for none. `items`: LangGraph's items stay
    items. `zone` is an IANA name, "" for that of the source.
    """

    source: str = AUTO
    user_id: str = ""
    agent_id: str = ""
    authors: Mapping[str, str] = field(default_factory=dict)
    items: bool = False
    namespace: str = ""
    folder: str = "/memories"
    zone: str = ""
    name: str = ""
    vouched: bool = False


def most_bytes() -> int:
    """How large an uploaded file can be."""
    return int(settings.MEMORYHUB_IMPORT_MEGABYTES) << 20


def enqueue() -> None:
    """Send a worker the task that looks for imports; it starts when the caller's transaction is committed."""
    async_task(TASK, timeout=LONGEST_SECONDS)


def check_room(tenant: Tenant) -> None:
    """Errors: TooManyImports, when as many files as the tenant may have wait already."""
    if Import.objects.filter(tenant=tenant).with_file().count() >= conf.rules(tenant).import_files:
        raise TooManyImports


def upload(
    *, tenant: Tenant, file: IO[bytes], options: ImportOptions, dry_run: bool, actor: Actor, now: datetime
) -> Import:
    """Keep the file, and wake a worker to import it, or to say what the import would do.

    Errors: ImportTooLarge, TooManyImports, InvalidInput for an empty file, Erased, PersonRestricted.
    """
    _check_people(tenant, options)
    with transaction.atomic():
        # Of two uploads at once the second sees the first.
        Tenant.objects.select_for_update(no_key=True).get(pk=tenant.pk)
        check_room(tenant)
        row = Import.objects.create(
            tenant=tenant,
            state=State.CHECKING if dry_run else State.RUNNING,
            options=asdict(options),
            kept_until=now + KEPT,
            actor_kind=actor.kind,
            actor_id=actor.id,
            created_at=now,
            started_at=None if dry_run else now,
        )
        row.size = _keep(file, row)
        row.save(update_fields=["size"])
        _record("upload", row, actor=actor, now=now, counts={"bytes": row.size})
        enqueue()
    return row


def resume(
    *,
    import_id: uuid.UUID,
    tenant: Tenant | None,
    actor: Actor,
    now: datetime,
    user_id: str | None = None,
    authors: Mapping[str, str] | None = None,
) -> Import:
    """Start an import that was checked, or go on with one that was paused or failed with its file still there.

    `user_id` and `authors` replace those of the upload, before the import has begun. Errors: NotFound, ImportNotReady,
    ImportFileGone, InvalidInput, Erased, PersonRestricted.
    """
    with transaction.atomic():
        row = _locked(import_id, tenant)
        if row.state not in (State.CHECKED, State.PAUSED, State.FAILED):
            raise ImportNotReady
        if not row.has_file:
            raise ImportFileGone
        if row.started_at is None:
            # What was taken was taken by the dry run, which has ended, and kept nothing.
            row.position = 0
        given = {"user_id": user_id, "authors": None if authors is None else dict(authors)}
        changed = {name: value for name, value in given.items() if value is not None}
        if changed and row.position:
            raise InvalidInput.at("", _("The import has begun: whose it is can no longer be changed."))
        if not row.position:
            # Those of the dry run.
            row.counts, row.left_out, row.refused, row.findings = {}, {}, {}, []
        row.options = row.options | changed
        _check_people(row.tenant, ImportOptions(**row.options))
        row.state, row.failure, row.attempts, row.kept_until = State.RUNNING, "", 0, now + KEPT
        row.started_at, row.finished_at = row.started_at or now, None
        row.save()
        _record("resume", row, actor=actor, now=now)
        enqueue()
    return row


def pause(*, import_id: uuid.UUID, tenant: Tenant | None, actor: Actor, now: datetime) -> Import:
    """Let the import rest. What is stored stays. Errors: NotFound, ImportNotReady."""
    with transaction.atomic():
        row = _locked(import_id, tenant)
        if row.state != State.RUNNING:
            raise ImportNotReady
        _stop(row, State.PAUSED, kept_until=now + KEPT)
        _record("pause", row, actor=actor, now=now)
    return row


def undo(*, import_id: uuid.UUID, tenant: Tenant | None, actor: Actor, now: datetime) -> Import:
    """Let a worker delete what the import stored, as far as nobody has changed it since; its file goes at once.

    Errors: NotFound, ImportNotReady.
    """
    with transaction.atomic():
        row = _locked(import_id, tenant)
        if row.state in (State.UNDOING, State.UNDONE):
            raise ImportNotReady
        # What was only checked has made nothing.
        _stop(row, State.UNDOING, failure="", attempts=0)
        Import.objects.filter(pk=row.pk).drop_files()
        row.refresh_from_db()
        _record("undo", row, actor=actor, now=now)
        enqueue()
    return row


def pieces_of(row: Import) -> Any:
    """The pieces of its file in order, read one by one."""
    number = 0
    while piece := row.pieces.filter(number=number).values_list("content", flat=True).first():
        yield bytes(piece)
        number += 1


def sweep(now: datetime) -> int:
    """Delete the files of imports that nobody started in time, or whose workers are gone for good; how many."""
    due = Import.objects.with_file().filter(kept_until__lte=now).free()
    with transaction.atomic():
        return due.abandon("abandoned", now=now)


def _keep(file: IO[bytes], row: Import) -> int:
    """Store the file in pieces; its size. Errors: ImportTooLarge, InvalidInput."""
    size, number = 0, 0
    while piece := file.read(PIECE_BYTES):
        size += len(piece)
        if size > most_bytes():
            raise ImportTooLarge
        ImportPiece.objects.create(tenant_id=row.tenant_id, part_of=row, number=number, content=piece)
        number += 1
    if not size:
        raise InvalidInput.at("/file", _("The file is empty."), code="empty")
    return size


def _check_people(tenant: Tenant, options: ImportOptions) -> None:
    """Errors: Erased, PersonRestricted, of whoever is named by the caller."""
    named = {one for one in (options.user_id, *options.authors.values()) if one}
    for user_id in named:
        check_id(user_id)
        get_or_create.refuse_erased(tenant, user_id)
    people = EndUser.objects.filter(tenant=tenant, external_id__in=named).select_related("merged_into")
    if any((one.merged_into or one).restricted_at for one in people):
        raise PersonRestricted


def _locked(import_id: uuid.UUID, tenant: Tenant | None) -> Import:
    """Errors: NotFound."""
    rows = Import.objects.select_for_update(of=("self",)).select_related("tenant").filter(pk=import_id)
    found = (rows.filter(tenant=tenant) if tenant else rows).first()
    if found is None:
        raise NotFound
    return found


def _stop(row: Import, state: Import.State, **changes: Any) -> None:
    """Change the state, and take the lease away: whoever works on it stores nothing more."""
    row.state, row.lease_token, row.lease_until = state, None, None
    for name, value in changes.items():
        setattr(row, name, value)
    row.save()


def _record(verb: str, row: Import, *, actor: Actor, now: datetime, counts: dict[str, int] | None = None) -> None:
    audit.record(actor=actor, verb=verb, target=row, object_id=row.pk, tenant=row.tenant, now=now, counts=counts)
