"""Circuit breakers of the model endpoints: one for the hub's, and one for each tenant with a model of its own.

A failed call is the fault of the batch (then the attempt counts) or of the endpoint (then it does not). One failure
does not show which: an outage and a text that the model cannot handle end in the same timeout. Three failures in a row
of different sessions open the circuit. While it is open, nobody calls the endpoint for 1, 2, 4 … 30 s. Then one worker
at a time probes it with a request that holds nobody's data; an answer closes the circuit. A batch that fails by itself
cannot keep the circuit open.

The attempts of a session that fails alone count. Before its batch is parked the endpoint is probed. If the probe fails,
too, the outage is confirmed: what outages parked goes on as soon as the endpoint answers.
"""

import logging
import uuid
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from memories.db import tenancy
from memories.exceptions import ModelError, ModelMisconfigured, ModelRateLimited, ModelTimeout, ModelUnavailable
from memories.llm import client
from memories.models import EndpointState, LanguageModel, Session, SessionQueue, Tenant, WorkingMemory
from memories.models.conversations.conversations import QueueRowQuerySet
from memories.queue import own_models
from memories.queue.attempts import Attempt
from memories.queue.retry_policy import RetryDecision, retry_for

# Failures for which a batch is parked although the endpoint may be at fault.
OUTAGES = [error.code for error in (ModelUnavailable, ModelTimeout, ModelRateLimited, ModelMisconfigured)]
FAILURES_TO_OPEN = 3
LONGEST_PAUSE_SECONDS = 30.0
# Retry-After may ask for longer, but not for ever.
LONGEST_STATED_PAUSE_SECONDS = 300.0
# The tenant whose own endpoint it is; None: the hub's.
Owner = uuid.UUID | None
_CLOSED: dict[str, Any] = {
    "failures": 0,
    "failing_since": None,
    "last_session": None,
    "until": None,
    "confirmed": False,
}

logger = logging.getLogger(__name__)


def admit(*, lease: timedelta, owner: Owner = None) -> bool:
    """Whether a batch may call. After a pause the first one may, and the others wait for its `lease`.

    Inside the caller's transaction.
    """
    if free_calls(owner) is None:
        return True
    over = Q(stated_until=None) | Q(stated_until__lte=Now())
    over &= Q(until=None) | Q(until__lte=Now())
    return bool(EndpointState.objects.filter(over, tenant=owner).update(until=Now() + lease))


def free_calls(owner: Owner = None) -> int | None:
    """How many batches may be woken now: 0 during a pause, 1 after it, None for no limit."""
    state = EndpointState.objects.with_clock().filter(tenant=owner).first()
    return _free_of(state) if state else None


def limited() -> dict[Owner, int]:
    """The owners of endpoints in or after a pause: how many of their batches may be woken now, 0 or 1."""
    states = EndpointState.objects.with_clock().exclude(until=None, stated_until=None)
    free = {state.tenant_id: _free_of(state) for state in states}
    return {owner: count for owner, count in free.items() if count is not None}


def rows_of(owner: Owner) -> Q:
    """The queue rows whose batches ask this endpoint."""
    # No join: whoever locks the rows locks nothing else.
    sessions = Session.objects.filter(tenant=owner)
    if owner is None:
        sessions = Session.objects.exclude(tenant__in=LanguageModel.objects.others().values("tenant"))
    return Q(pk__in=sessions.values("pk"))


def _free_of(state: EndpointState) -> int | None:
    if any(until and until > state.clock for until in (state.until, state.stated_until)):
        return 0
    return 1 if state.until else None


def is_open(owner: Owner = None) -> bool:
    """Whether the endpoint failed as a whole and has not answered since."""
    return EndpointState.objects.filter(tenant=owner, failures__gte=FAILURES_TO_OPEN).exists()


def probe_if_open(attempt: Attempt) -> None:
    """While the circuit is open, probe the endpoint before it is sent anybody's data. Errors: ModelError."""
    config = attempt.claim.config
    if is_open(config.tenant_id):
        attempt.has_probed = True
        client.check(before_call=attempt.before_call, config=config)
        close(config.tenant_id)


def record_failure(
    attempt: Attempt, error: ModelError, *, fed_turns: int | None = None, batch_limit: int | None = None
) -> RetryDecision:
    """Count a failed call, and say how its batch goes on, as retry_for() does."""
    config, row = attempt.claim.config, attempt.claim.row
    owner, session_id = config.tenant_id, attempt.claim.session.pk
    is_down = error.endpoint_wide and count_failure(session_id, retry_after=error.retry_after, owner=owner)
    retry = retry_for(error, endpoint_down=is_down, fed_turns=fed_turns, batch_limit=batch_limit)
    if not error.endpoint_wide:
        close(owner)
    elif retry.parks(row.attempts, attempt.claim.rules) and not attempt.has_probed and attempt.calls_left > 0:
        # One session alone does not show whose fault it is.
        try:
            client.check(before_call=attempt.before_call, config=config)
        except ModelError as failure:
            count_failure(session_id, retry_after=failure.retry_after, is_confirmed=True, owner=owner)
        else:
            close(owner)
    return retry


@transaction.atomic
def count_failure(
    session_id: uuid.UUID | None, *, retry_after: float | None, is_confirmed: bool = False, owner: Owner = None
) -> bool:
    """Count a failure that need not be about the batch. True when it is not: others fail as well.

    `is_confirmed`: a probe failed; `session_id` None: it belongs to no batch.
    """
    EndpointState.objects.get_or_create(tenant=owner and Tenant(pk=owner))
    state = EndpointState.objects.with_clock().select_for_update().get(tenant=owner)
    was_open = state.failures >= FAILURES_TO_OPEN
    state.confirmed = state.confirmed or is_confirmed
    state.failing_since = state.failing_since or state.clock
    _count(state, session_id, is_confirmed=is_confirmed)
    is_down = state.failures >= FAILURES_TO_OPEN
    if is_down and not was_open:
        logger.warning("The model's endpoint fails as a whole: batches wait, and one at a time asks whether it is back")
    if retry_after:
        stated = timedelta(seconds=min(retry_after, LONGEST_STATED_PAUSE_SECONDS))
        state.stated_until = max(state.clock + stated, state.stated_until or state.clock)
    pause = pause_after(state.failures)
    state.until = state.clock + timedelta(seconds=pause) if pause else state.stated_until
    state.save()
    return is_down and state.last_session != session_id


def _count(state: EndpointState, session_id: uuid.UUID | None, *, is_confirmed: bool) -> None:
    """While the circuit is open `last_session` is the only one that failed; None when there are several."""
    if state.failures >= FAILURES_TO_OPEN:
        state.failures += 1
        if session_id not in (None, state.last_session):
            state.last_session = None
        return
    if state.last_session != session_id:
        state.failures, state.last_session = state.failures + 1, session_id
    if state.failures >= FAILURES_TO_OPEN:
        state.last_session = None
    elif is_confirmed:
        state.failures = FAILURES_TO_OPEN


def pause_after(failures: int) -> float:
    """Seconds without calls after so many failures: 0 below FAILURES_TO_OPEN, then 1, 2, 4 … 30."""
    if failures < FAILURES_TO_OPEN:
        return 0.0
    return min(LONGEST_PAUSE_SECONDS, 2.0 ** min(failures - FAILURES_TO_OPEN, 10))


@tenancy.everything()
@transaction.atomic
def close(owner: Owner = None) -> None:
    """The endpoint answered, whatever it said: everybody may call, once a wait that it stated is over.

    What was parked in a confirmed outage goes on, whosever it is. After failures of single batches it stays parked, as
    they would take turns for ever.
    """
    state = EndpointState.objects.filter(tenant=owner)
    if state.filter(confirmed=True).update(**_CLOSED):
        for parked in _parked_by_outages(owner):
            parked.revive()
    else:
        state.exclude(failures=0, until=None).update(**_CLOSED)


def to_probe(*, lease: timedelta) -> list[Owner]:
    """The endpoints that somebody should probe() now: the outage is confirmed, its pause is over, and parked batches
    wait for it.

    All others wait for `lease` meanwhile. Without a confirmed outage it is one cheap statement.
    """
    confirmed = list(EndpointState.objects.filter(confirmed=True).values_list("tenant", flat=True))
    waited_for = [
        owner
        for owner in confirmed
        if client.is_configured(own_models.config_of(owner))
        and any(parked.exists() for parked in _parked_by_outages(owner))
    ]
    return [owner for owner in waited_for if admit(lease=lease, owner=owner)]


def probe(owner: Owner = None) -> bool:
    """Whether the endpoint answers a request that holds nobody's data; at most one call."""
    try:
        client.check(config=own_models.config_of(owner))
    except ModelError as error:
        count_failure(None, retry_after=error.retry_after, is_confirmed=True, owner=owner)
        return False
    close(owner)
    return True


@transaction.atomic
def forget(owner: uuid.UUID) -> None:
    """The tenant's endpoint is another one now: what is known of the old one goes, and what it parked is due."""
    EndpointState.objects.filter(tenant=owner).update(**_CLOSED, stated_until=None)
    for parked in _parked_by_outages(owner):
        parked.revive()


def release_probe(owner: Owner = None) -> None:
    """The batch that was admitted made no call: the next one may."""
    EndpointState.objects.filter(tenant=owner, until__gt=Now()).update(until=Now())


def _parked_by_outages(owner: Owner) -> list[QueueRowQuerySet[Any]]:
    parked = rows_of(owner) & Q(parked_at__isnull=False, failure__in=OUTAGES)
    return [SessionQueue.objects.filter(parked), WorkingMemory.objects.filter(parked)]
