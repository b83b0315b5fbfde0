"""What people may do to a batch that failed."""

from datetime import datetime

from django.db import transaction

from memories import audit
from memories.audit import Actor
from memories.exceptions import Conflict
from memories.models import ExtractionRun
from memories.pipeline import debounce


def retry_extraction(*, run: ExtractionRun, actor: Actor, now: datetime) -> None:
    """Make the run's batch due at once, with its attempts counted anew. Errors: Conflict when it is already done."""
    with transaction.atomic():
        if not debounce.revive(session_id=run.session_id, range_end=run.last_number):
            raise Conflict("There is nothing to retry: the turns of this run are extracted, or being extracted now.")
        audit.record(actor=actor, verb="retry", target=run, object_id=run.pk, tenant=run.tenant, now=now)
