"""The model's endpoint as a whole: while it is down, one batch at a time asks whether it is back.

A failed call alone does not tell whose fault it was: the same timeout comes from an outage and from a text that the
model chokes on. Different sessions in a row point at the endpoint: then nobody's attempts count, and a question of our
own, without anybody's words (`client.check`), finds out whether it is back; a batch that fails by itself cannot hold an
endpoint closed that answers everybody else. Where one session fails alone its attempts are bounded as ever. Before it
is parked the endpoint is asked that question: if it fails at that too, what was parked for such a failure goes on by
itself as soon as it answers.
"""

import logging
import uuid
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from memories.exceptions import ModelError, ModelMisconfigured, ModelRateLimited, ModelTimeout, ModelUnavailable
from memories.llm import client
from memories.models import EndpointState, SessionQueue, WorkingMemory

# What a batch is parked for that may have been the endpoint's fault.
OUTAGES = [error.code for error in (ModelUnavailable, ModelTimeout, ModelRateLimited, ModelMisconfigured)]
# So many failures of different sessions with no answer between them: it is not about one batch.
FAILURES_TO_OPEN = 3
LONGEST_PAUSE_SECONDS = 30.0
# The word of the endpoint itself counts for more, within reason.
LONGEST_STATED_PAUSE_SECONDS = 300.0
_ONLY = 1

logger = logging.getLogger(__name__)


def pause_after(failures: int) -> float:
    """Seconds without calls after so many failures: 0 below FAILURES_TO_OPEN, then 1, 2, 4 … 30."""
    if failures < FAILURES_TO_OPEN:
        return 0.0
    return min(LONGEST_PAUSE_SECONDS, 2.0 ** min(failures - FAILURES_TO_OPEN, 10))


def free_calls() -> int | None:
    """How many batches may be woken now: 0 during a pause, 1 after it, None without bound."""
    state = EndpointState.objects.with_clock().first()
    if state is None or not (state.until or state.stated_until):
        return None
    if any(until and until > state.clock for until in (state.until, state.stated_until)):
        return 0
    return 1 if state.until else None


def admit(*, lease: timedelta) -> bool:
    """Whether a batch may ask. After a pause the first one may, and keeps the others waiting for its `lease`.

    In the caller's transaction.
    """
    if free_calls() is None:
        return True
    over = Q(stated_until=None) | Q(stated_until__lte=Now())
    over &= Q(until=None) | Q(until__lte=Now())
    return bool(EndpointState.objects.filter(over).update(until=Now() + lease))


def is_down() -> bool:
    """Whether it failed as a whole and has not answered since."""
    return EndpointState.objects.filter(failures__gte=FAILURES_TO_OPEN).exists()


@transaction.atomic
def answered() -> None:
    """It works, whatever it said: everybody may ask, once a wait that it asked for is over.

    What was parked during an outage goes on; after failures of batches alone it stays: they would take turns for ever.
    """
    back = {"failures": 0, "last_session": None, "until": None, "confirmed": False}
    if EndpointState.objects.filter(confirmed=True).update(**back):
        fresh = {"parked_at": None, "attempts": 0, "failure": "", "due_at": Now(), "woken_at": None}
        for parked in _parked_by_outages():
            parked.update(**fresh)
    else:
        EndpointState.objects.exclude(failures=0, until=None).update(**back)


def turn_to_ask(*, lease: timedelta) -> bool:
    """Whether somebody should ask() now: it is down, its pause is over, and nobody else would find out.

    True keeps all others waiting for `lease`. One cheap statement while it is not down.
    """
    confirmed = EndpointState.objects.filter(confirmed=True).exists()
    # Looked at only while it is down.
    waits = confirmed and client.is_configured() and any(parked.exists() for parked in _parked_by_outages())
    return waits and admit(lease=lease)


def ask() -> bool:
    """Find out whether it is back, without anybody's words; at most one call."""
    try:
        client.check()
    except ModelError as error:
        failed(None, retry_after=error.retry_after, surely=True)
        return False
    answered()
    return True


def not_asked() -> None:
    """The batch that was to find out did not ask: the next one may."""
    EndpointState.objects.filter(until__gt=Now()).update(until=Now())


@transaction.atomic
def failed(session_id: uuid.UUID | None, *, retry_after: float | None, surely: bool = False) -> bool:
    """Count a failure that need not be about the batch; True when it is not: others fail as well.

    `surely`: it failed at a question that has nothing to do with any batch; None: of nobody's batch.
    """
    EndpointState.objects.get_or_create(pk=_ONLY)
    state = EndpointState.objects.with_clock().select_for_update().get(pk=_ONLY)
    was_down = state.failures >= FAILURES_TO_OPEN
    state.confirmed = state.confirmed or surely
    _count(state, session_id, surely=surely)
    down = state.failures >= FAILURES_TO_OPEN
    if down and not was_down:
        logger.warning("The model's endpoint fails as a whole: batches wait, and one at a time asks whether it is back")
    if retry_after:
        stated = timedelta(seconds=min(retry_after, LONGEST_STATED_PAUSE_SECONDS))
        state.stated_until = max(state.clock + stated, state.stated_until or state.clock)
    pause = pause_after(state.failures)
    state.until = state.clock + timedelta(seconds=pause) if pause else state.stated_until
    state.save()
    return down and state.last_session != session_id


def _count(state: EndpointState, session_id: uuid.UUID | None, *, surely: bool) -> None:
    """While it is down `last_session` is the only one that failed, None when there are several."""
    if state.failures >= FAILURES_TO_OPEN:
        state.failures += 1
        if session_id not in (None, state.last_session):
            state.last_session = None
        return
    if state.last_session != session_id:
        state.failures, state.last_session = state.failures + 1, session_id
    if state.failures >= FAILURES_TO_OPEN:
        state.last_session = None
    elif surely:
        state.failures = FAILURES_TO_OPEN


def _parked_by_outages() -> list[QuerySet[Any]]:
    parked = Q(parked_at__isnull=False, failure__in=OUTAGES)
    return [SessionQueue.objects.filter(parked), WorkingMemory.objects.filter(parked)]
