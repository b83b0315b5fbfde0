"""Deletes a file that came with a turn, with its passages. What the turn says stays."""

import uuid
from datetime import datetime

from django.db import transaction

from memories import audit
from memories.audit import Actor
from memories.curation.statements import guarding
from memories.curation.statements.write_trust import AS_USER, WriteTrust
from memories.curation.writing import locked_row
from memories.exceptions import PersonRestricted
from memories.models import Attachment, Role, Tenant, Trust


def delete_attachment(
    *,
    attachment_id: uuid.UUID,
    tenant: Tenant | None,
    actor: Actor,
    now: datetime,
    write_trust: WriteTrust = AS_USER,
) -> None:
    """For good: what was posted once is not stored again by itself. A worker that reads it stores nothing.

    Errors: NotFound, PersonRestricted for a key, ReviewNeeded where the `write_trust` may not end it.
    """
    with transaction.atomic():
        row = locked_row(Attachment, attachment_id, tenant=tenant)
        if row.end_user.restricted_at and not actor.is_operator:
            raise PersonRestricted
        # As its turn: what came with the person's own word is theirs.
        guarding.check_outranks(Trust.USER if row.turn.role == Role.USER else Trust.TOOL, write_trust)
        audit.record(actor=actor, verb="delete", target=row, now=now)
        Attachment.objects.filter(pk=row.pk).delete()
