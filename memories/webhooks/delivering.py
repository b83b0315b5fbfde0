"""Sends deliveries under a lease: claim, POST, mark. A worker that dies after the POST is not known to have sent it, so
another sends the same again, with the same webhook-id: at least once, in no order.

A delivery is tried again after 5 s, 20 s … 6 h, for three days since its first attempt. An endpoint that fails is left
alone for 5 s, 10 s … 5 min, whatever waits for it, so that it holds no worker; what waits goes out once it answers. One
that failed for three days without a success between is disabled.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import httpx2
from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Now
from django_q.tasks import async_task

from memories import conf
from memories.db import tenancy
from memories.exceptions import LeaseLost, ModelError, ModelMisconfigured
from memories.invisible import strip_invisible
from memories.llm.backends.transport import BoundedTransport, deadline
from memories.models import Tenant, WebhookDelivery, WebhookEndpoint
from memories.queue import leases
from memories.queue.leases import Lease
from memories.webhooks import messages

TASK = "memories.tasks.deliver_webhooks"
# For the whole of a request. Shorter than a lease.
SECONDS = 10.0
GIVEN_UP_AFTER = timedelta(days=3)
FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=5), timedelta(hours=6)
LONGEST_REST = timedelta(minutes=5)
# More claims than three days have: most of them ended with their worker.
MOST_CLAIMS = 100
KEPT = timedelta(days=14)
SWEPT_AT_ONCE = 10_000
# Codes of failures.
TIMEOUT, UNREACHABLE, PRIVATE, REFUSED, NO_SECRET, DISABLED = (
    "timeout", "unreachable", "private_address", "refused", "no_secret", "disabled"
)  # fmt: skip
_GONE = 410

State, Reason = WebhookDelivery.State, WebhookEndpoint.Reason


@dataclass(frozen=True)
class DeliveryResult:
    """What came of a request: the status, if there was an answer, and why it counts as a failure."""

    status: int | None = None
    failure: str = ""


def enqueue() -> None:
    """Send a worker the task that looks for due deliveries."""
    async_task(TASK)


def is_due() -> bool:
    return WebhookDelivery.objects.due().exists()


def run_slice(*, now: datetime, seconds: float, clock: Any) -> int:
    """Send what is due for about so long by `clock` (a function that returns seconds); how many were sent."""
    until = clock() + seconds
    sent = 0
    while clock() < until:
        work = _claim_next()
        if work is None:
            break
        with tenancy.of_tenant(work.row.tenant_id):
            sent += send(work, now=now)
    return sent


def _claim_next() -> Lease[WebhookDelivery] | None:
    """The lease of the delivery that waits longest; what others have claimed meanwhile is passed over."""
    due = WebhookDelivery.objects.due().order_by(F("lease_until").asc(nulls_first=True), "occurred_at", "pk")
    for delivery_id in due.values_list("pk", flat=True)[:10]:
        if work := claim(delivery_id):
            return work
    return None


@transaction.atomic
def claim(delivery_id: uuid.UUID) -> Lease[WebhookDelivery] | None:
    """Take the delivery under a lease; None when it is not due any more, or somebody else has it."""
    row = leases.lock(WebhookDelivery.objects.due().select_related("endpoint"), delivery_id)
    if row is None:
        return None
    tried_at = row.tried_at or row.clock
    token = leases.take(row, give_up=_give_up, most_attempts=MOST_CLAIMS, tried_at=tried_at)
    return Lease(row=row, token=token) if token else None


def _give_up(row: WebhookDelivery) -> None:
    ended = {"failure": row.failure or leases.WORKER_LOST, "state": State.FAILED, "ended_at": Now()}
    leases.revoke(WebhookDelivery.objects.filter(pk=row.pk), **ended)


def send(work: Lease[WebhookDelivery], *, now: datetime) -> bool:
    """POST a claimed delivery, outside of any transaction, and note what came of it; whether it was delivered.

    A lease that was lost meanwhile (the endpoint or the person is gone, or somebody else sends it) notes nothing.
    """
    delivery = work.row
    answer = _post(delivery, now=now)
    noted: dict[str, Any] = {"failure": answer.failure, "status": answer.status}
    try:
        if not answer.failure:
            leases.release(work, state=State.DELIVERED, ended_at=Now(), **noted)
        elif delivery.clock - (delivery.tried_at or delivery.clock) >= GIVEN_UP_AFTER:
            leases.release(work, state=State.FAILED, ended_at=Now(), **noted)
        else:
            leases.release(work, pause=backoff(delivery.attempts), **noted)
    except LeaseLost:
        return False
    # Apart from the delivery: operators lock the endpoint first, and then what waits for it.
    if answer.failure:
        _note_failure(delivery.endpoint_id, is_gone=answer.status == _GONE)
    else:
        _note_success(delivery.endpoint_id)
    return not answer.failure


def _post(delivery: WebhookDelivery, *, now: datetime) -> DeliveryResult:
    endpoint = delivery.endpoint
    signed_by = messages.secrets_of(endpoint, now=now)
    if not signed_by:
        return DeliveryResult(failure=NO_SECRET)
    body = messages.body_of(delivery, content=endpoint.content)
    headers = messages.headers(messages.id_of(delivery), body, signed_by=signed_by, now=now)
    return post(endpoint.url, body, headers)[0]


def post(url: str, body: bytes, headers: Mapping[str, str], *, shown: int = 0) -> tuple[DeliveryResult, str]:
    """What came of it, and the first `shown` characters of the answer; by default no answer is read.

    To public addresses alone, unless the host is exempt. Takes at most SECONDS.
    """
    own = {"User-Agent": "MemoryHub-Webhooks", "Accept-Encoding": "identity"}
    transport = BoundedTransport(url, guarded=not conf.is_private_endpoint(url))
    try:
        with (
            deadline(SECONDS),
            httpx2.Client(transport=transport, headers=own, follow_redirects=False) as client,
            client.stream("POST", url, content=body, headers=headers, timeout=SECONDS) as answer,
        ):
            status, text = answer.status_code, _beginning(answer, shown) if shown else ""
    except httpx2.TimeoutException:
        return DeliveryResult(failure=TIMEOUT), ""
    except ModelMisconfigured:
        return DeliveryResult(failure=PRIVATE), ""
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError, ModelError):
        return DeliveryResult(failure=UNREACHABLE), ""
    return DeliveryResult(status, "" if 200 <= status < 300 else REFUSED), text


def _beginning(answer: httpx2.Response, length: int) -> str:
    """The first characters of the body, on one line."""
    read = b""
    for chunk in answer.iter_bytes():
        read += chunk
        # No character has more bytes.
        if len(read) >= 4 * length:
            break
    return " ".join(strip_invisible(read.decode("utf-8", "replace")).split())[:length]


def _note_failure(endpoint_id: uuid.UUID, *, is_gone: bool) -> None:
    """Leave the endpoint alone for a while; disable one that failed for long, or says that it is gone."""
    enabled = WebhookEndpoint.objects.enabled().filter(pk=endpoint_id)
    with transaction.atomic():
        endpoint = enabled.select_for_update(no_key=True).annotate(clock=Now()).first()
        if endpoint is None:
            return
        clock: datetime = endpoint.clock  # type: ignore[attr-defined]  # annotated
        since = endpoint.failing_since or clock
        rest = min(FIRST_PAUSE * 2 ** min(endpoint.failures, 10), LONGEST_REST)
        enabled.update(failures=F("failures") + 1, failing_since=since, paused_until=Now() + rest)
    if is_gone or clock - since >= GIVEN_UP_AFTER:
        with transaction.atomic():
            Tenant.objects.select_for_update(no_key=True).get(pk=endpoint.tenant_id)
            disable(endpoint, Reason.GONE if is_gone else Reason.FAILING)


def _note_success(endpoint_id: uuid.UUID) -> None:
    """It works. What waited because it did not is due at once."""
    well = {"failures": 0, "failing_since": None, "paused_until": None}
    if WebhookEndpoint.objects.filter(pk=endpoint_id, failures__gt=0).update(**well):
        waiting = WebhookDelivery.objects.waiting().filter(endpoint=endpoint_id, lease_token=None)
        with transaction.atomic():
            rows = waiting.exclude(lease_until=None).select_for_update(skip_locked=True)
            WebhookDelivery.objects.filter(pk__in=list(rows.values_list("pk", flat=True))).update(lease_until=None)


def backoff(attempts: int) -> timedelta:
    """The pause after so many attempts."""
    times: int = 4 ** min(max(attempts, 1) - 1, 10)
    return min(FIRST_PAUSE * times, LONGEST_PAUSE)


def disable(endpoint: WebhookEndpoint, why: WebhookEndpoint.Reason) -> None:
    """Tell the endpoint nothing any more, in the caller's transaction, which has locked the tenant. What waits for it
    has failed."""
    changed = WebhookEndpoint.objects.enabled().filter(pk=endpoint.pk)
    if changed.update(disabled_at=Now(), disabled_for=why, paused_until=None):
        give_up_all(WebhookDelivery.objects.filter(endpoint=endpoint))
        note_wanted(endpoint.tenant_id)


def give_up_all(rows: QuerySet[WebhookDelivery]) -> int:
    """What waits among these rows has failed: its endpoint is disabled."""
    waiting = rows.filter(state=State.WAITING)
    return leases.revoke(waiting, state=State.FAILED, ended_at=Now(), failure=DISABLED)


def note_wanted(tenant_id: uuid.UUID) -> None:
    """Note with the tenant which events its enabled endpoints want; its row is locked by the caller."""
    wanted = WebhookEndpoint.objects.enabled().filter(tenant=tenant_id).values_list("events", flat=True)
    events = sorted({event for events in wanted for event in events})
    Tenant.objects.filter(pk=tenant_id).update(webhook_events=events)


def sweep(*, now: datetime) -> int:
    """Delete deliveries that ended long ago."""
    old = WebhookDelivery.objects.filter(ended_at__lt=now - KEPT).order_by("ended_at").values("pk")[:SWEPT_AT_ONCE]
    gone, _ = WebhookDelivery.objects.filter(pk__in=old).delete()
    return gone
