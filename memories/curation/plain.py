"""A memory of a plain kind (memories/kinds/kind.py) is deleted into the trash, and restored from it."""

import uuid
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from memories import audit
from memories.audit import Actor
from memories.curation.statements import guarding
from memories.curation.statements.write_trust import AS_USER, WriteTrust
from memories.curation.writing import locked_row
from memories.exceptions import Conflict, NotFound, PersonRestricted
from memories.kinds import Kind


def delete(kind: Kind, *, row_id: uuid.UUID, actor: Actor, now: datetime, write_trust: WriteTrust = AS_USER) -> None:
    """Move the row to the trash; an operator can restore it for a while.

    Errors: NotFound (erased, or in the trash already), PersonRestricted.
    """
    with transaction.atomic():
        row = _locked(kind, row_id, actor)
        if row.trashed_at:
            raise NotFound
        guarding.check_outranks(row.trust, write_trust)
        row.trashed_at = now
        row.save(update_fields=["trashed_at"])
        audit.record(actor=actor, verb="delete", target=row, now=now)


def restore(kind: Kind, *, row_id: uuid.UUID, actor: Actor, now: datetime) -> None:
    """Take the row out of the trash. Errors: NotFound, PersonRestricted, Conflict (it is not there)."""
    with transaction.atomic():
        row = _locked(kind, row_id, actor)
        if row.trashed_at is None:
            raise Conflict(_("Somebody else has done this meanwhile."))
        # The undo of what deleted it leaves it alone from now on.
        row.trashed_at = row.change_set = None
        row.save(update_fields=["trashed_at", "change_set"])
        audit.record(actor=actor, verb="restore", target=row, now=now)


def _locked(kind: Kind, row_id: uuid.UUID, actor: Actor) -> Any:
    """The row, with its person locked. Errors: NotFound, PersonRestricted for a key."""
    row: Any = locked_row(kind.model, row_id)
    if row.end_user.restricted_at and not actor.is_operator:
        raise PersonRestricted
    return row
