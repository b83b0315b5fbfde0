"""Exports of lists: each file that leaves the hub is recorded in the audit trail."""

import uuid
from datetime import datetime

from django.db.models import Model

from memories import audit
from memories.audit import Actor
from memories.models import Tenant
from memories.models.ids import new_id


def note_export(*, model: type[Model], rows: int, tenant: Tenant | None, actor: Actor, now: datetime) -> uuid.UUID:
    """Record that so many rows of a list are about to be sent; returns the export's id.

    `tenant` is the tenant of all rows, or None when they are of several.
    """
    export_id = new_id()
    audit.record(
        actor=actor, verb="export", target=model, object_id=export_id, tenant=tenant, now=now, counts={"rows": rows}
    )
    return export_id
