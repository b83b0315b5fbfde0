"""The model's endpoint as a whole: while it is down, one batch at a time asks whether it is back.

A failed call alone does not tell whose fault it was: the same timeout comes from an outage and from a text that the
model chokes on. Two things do. Different sessions in a row point at the endpoint, at no cost. Where few people talk
there are none: then the endpoint is asked a question of our own, without anybody's words (`client.check`). When it
fails at that too it is down: nobody's attempts count and nothing is parked, however long it lasts. When it answers,
the batch is what fails, and its attempts are bounded as ever. While it is down that question, not the batch, finds
out whether it is back: a batch that fails by itself cannot hold an endpoint closed that answers everybody else.
"""

import logging
import uuid
from datetime import timedelta

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from memories.models import EndpointState

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


def answered() -> None:
    """It works, whatever it said: everybody may ask, once a wait that it asked for is over."""
    state = EndpointState.objects.exclude(failures=0, until=None)
    state.update(failures=0, last_session=None, until=None)


def not_asked() -> None:
    """The batch that was to find out did not ask: the next one may."""
    EndpointState.objects.filter(until__gt=Now()).update(until=Now())


@transaction.atomic
def failed(session_id: uuid.UUID, *, retry_after: float | None, surely: bool = False) -> bool:
    """Count a failure that need not be about the batch; True when the endpoint is down as a whole.

    `surely`: it failed at a question that has nothing to do with any batch.
    """
    EndpointState.objects.get_or_create(pk=_ONLY)
    state = EndpointState.objects.with_clock().select_for_update().get(pk=_ONLY)
    if state.failures >= FAILURES_TO_OPEN or state.last_session != session_id:
        state.failures, state.last_session = state.failures + 1, session_id
    if surely and state.failures < FAILURES_TO_OPEN:
        state.failures = FAILURES_TO_OPEN
    if state.failures == FAILURES_TO_OPEN:
        logger.warning("The model's endpoint fails as a whole: batches wait, and one at a time asks whether it is back")
    if retry_after:
        stated = timedelta(seconds=min(retry_after, LONGEST_STATED_PAUSE_SECONDS))
        state.stated_until = max(state.clock + stated, state.stated_until or state.clock)
    pause = pause_after(state.failures)
    state.until = state.clock + timedelta(seconds=pause) if pause else state.stated_until
    state.save()
    return state.failures >= FAILURES_TO_OPEN
