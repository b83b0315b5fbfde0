"""What people may do to work that failed."""

from datetime import datetime

from django.db import transaction

from memories import audit
from memories.audit import Actor
from memories.exceptions import Conflict, PersonRestricted
from memories.models import ExtractionRun, Session
from memories.pipeline import debounce, working_memory


def retry_extraction(*, run: ExtractionRun, actor: Actor, now: datetime) -> None:
    """Make the run's batch due at once, with its attempts counted anew.

    Errors: Conflict when it is already done, PersonRestricted for a key.
    """
    if run.end_user.restricted_at and not actor.is_operator:
        raise PersonRestricted
    with transaction.atomic():
        if not debounce.revive(session_id=run.session_id, range_end=run.last_number):
            raise Conflict("There is nothing to retry: the turns of this run are extracted, or being extracted now.")
        audit.record(actor=actor, verb="retry", target=run, object_id=run.pk, tenant=run.tenant, now=now)


def retry_working_memory(*, session: Session, actor: Actor, now: datetime) -> None:
    """Make a session's working memory that failed due at once, with its attempts counted anew.

    Errors: Conflict when nothing of it has failed, or somebody is at it now.
    """
    with transaction.atomic():
        if not working_memory.revive(session.pk):
            raise Conflict("There is nothing to retry: the session's working memory has not failed, or is at work now.")
        audit.record(actor=actor, verb="retry", target=session, object_id=session.pk, tenant=session.tenant, now=now)
