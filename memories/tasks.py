"""What the worker runs: tasks take ids and return counts, so that no queue holds anything personal."""

import logging
import traceback
import uuid
from collections.abc import Callable
from typing import TypeVar

from django.utils import timezone

from memories.models import ExtractionRun
from memories.pipeline import compaction, consolidation, endpoint

T = TypeVar("T")

logger = logging.getLogger(__name__)


def consolidate_session(session_id: str) -> int:
    """Extract the session's due batch; returns how many batches were committed, 0 or 1."""
    run = _run(consolidation.consolidate, session_id)
    return int(run is not None and run.status == ExtractionRun.Status.COMMITTED)


def compact_session(session_id: str) -> int:
    """Do what the session's working memory is due for; returns how many steps were committed, 0 or 1."""
    return int(bool(_run(compaction.compact, session_id)))


def _run(work: Callable[..., T], session_id: str) -> T | None:
    """The outermost frame of the work on one session."""
    try:
        return work(session_id=uuid.UUID(session_id), now=timezone.now())
    except Exception as error:  # noqa: BLE001 - the work is already postponed, the worker lives on
        # The place and the kind alone: the message of an error may quote a person.
        place = traceback.extract_tb(error.__traceback__)[-1]
        logger.error("Session %s: %s at %s:%s", session_id, type(error).__name__, place.name, place.lineno)
        return None


def ask_endpoint() -> int:
    """Find out whether the model's endpoint is back after an outage; 1 when it is. What was parked then goes on."""
    return int(endpoint.ask())
