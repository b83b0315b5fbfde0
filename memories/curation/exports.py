"""What leaves the hub as a file leaves a line in the audit trail."""

import uuid
from datetime import datetime

from django.db.models import Model

from memories import audit
from memories.audit import Actor
from memories.models import Tenant
from memories.models.ids import new_id


def note_export(*, model: type[Model], rows: int, tenant: Tenant | None, actor: Actor, now: datetime) -> uuid.UUID:
    """Say in the trail that so many rows of a list are about to be sent; the id is the export's own.

    `tenant` is the one that all rows are of, if they are of one.
    """
    export_id = new_id()
    audit.record(
        actor=actor, verb="export", target=model, object_id=export_id, tenant=tenant, now=now, counts={"rows": rows}
    )
    return export_id
