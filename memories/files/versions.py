"""Writes a version of a file: the row as it is now, and beside it the version that it became."""

import uuid
from datetime import datetime, timedelta
from typing import Any

from memories import conf
from memories.audit import Actor
from memories.files.paths import SCRATCH
from memories.models import FileVersion, MemoryFile, Trust

Verb = FileVersion.Verb


def add_version(
    file: MemoryFile,
    verb: FileVersion.Verb,
    *,
    content: str,
    encoding: str,
    size: int,
    actor: Actor,
    trust: Trust,
    now: datetime,
    reason: str = "",
    restored: int | None = None,
    change_set: uuid.UUID | None = None,
) -> FileVersion:
    """Save a locked file, or a new one, with this content as its next version; of a deletion the content is empty.

    Call it in the transaction that locked the person.
    """
    is_new = file._state.adding
    file.version = 1 if is_new else file.version + 1
    file.content, file.encoding, file.size = content, encoding, size
    file.actor_kind, file.trust = actor.kind, trust
    file.created_at = now if is_new else file.created_at
    if file.trashed_at and verb != Verb.DELETE:
        # It is a new file under an old name.
        file.created_at = now
    file.updated_at = now
    file.trashed_at = now if verb == Verb.DELETE else None
    if file.path.startswith(SCRATCH):
        file.expires_at = now + timedelta(days=conf.rules(file.tenant).scratch_days)
    file.save(force_insert=is_new, force_update=not is_new)
    return FileVersion.objects.create(
        tenant_id=file.tenant_id,
        file=file,
        version=file.version,
        verb=verb,
        content=content,
        encoding=encoding,
        size=size,
        actor_kind=actor.kind,
        actor_id=actor.id,
        trust=trust,
        reason=reason,
        restored=restored,
        change_set=change_set,
        created_at=now,
    )


def restore_version(
    file: MemoryFile,
    found: FileVersion | None,
    *,
    actor: Actor,
    now: datetime,
    reason: str,
    change_set: uuid.UUID,
) -> None:
    """Make a locked file what it was in this version. None, or a deletion: it goes to the trash.

    The text is worth as much as it was: nobody has vouched for it anew.
    """
    change: dict[str, Any] = {"actor": actor, "now": now, "reason": reason, "change_set": change_set}
    if found is None or found.verb == Verb.DELETE:
        add_version(file, Verb.DELETE, content="", encoding=file.encoding, size=0, trust=Trust(file.trust), **change)
        return
    add_version(
        file,
        Verb.RESTORE,
        content=found.content,
        encoding=found.encoding,
        size=found.size,
        trust=Trust(found.trust),
        restored=found.version,
        **change,
    )
