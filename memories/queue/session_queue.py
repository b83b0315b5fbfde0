"""The session's row is the queue: arming moves its due time, a worker claims it under a lease, failures postpone it."""

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q

from memories import conf
from memories.models import Role, Session, SessionQueue, Tenant, Turn
from memories.queue import leases, queue_rows
from memories.queue.attempts import SessionLease
from memories.queue.debounce import PendingTurns, due_time
from memories.text import signal_phrases, signals
from memories.text.transcript import fed

# What Pending counts of a turn: a backlog's text stays in the database.
COUNTED = ("number", "role", "tool_calls", "token_count", "created_at")
# What arm() changes.
ARMED = (
    "due_at",
    "first_pending_at",
    "pending_rounds",
    "pending_tokens",
    "pending_user",
    "pending_reply",
    "round_open",
    "signals",
    "extracted_number",
    "woken_at",
    "attempts",
    "parked_at",
    "failure",
)
# The right to extract one session's pending turns; the row as it was at the claim.
Claim = SessionLease[SessionQueue]
# Signals are looked for in the last turns of the user and final replies (rules.md, 1.4).
RECENT = 6
# Turns that one statement reads of a backlog.
LOOKED_AT = 200
# The user's turns and final replies.
_SPOKEN = Q(role=Role.USER) | Q(role=Role.ASSISTANT) & (Q(tool_calls__isnull=True) | Q(tool_calls=[]))


@dataclass(frozen=True)
class ExtractionStatus:
    """idle, pending, running, parked or off; when extraction is due, and when at the latest."""

    status: str
    due_at: datetime | None = None
    max_due_at: datetime | None = None


def status_of(queue: SessionQueue | None, *, now: datetime) -> ExtractionStatus:
    """The state of a session's extraction at `now`."""
    if conf.llm_mode() == conf.LLM_OFF:
        return ExtractionStatus("off")
    if queue is None or (queue.due_at is None and queue.parked_at is None):
        return ExtractionStatus("idle")
    if queue.parked_at:
        return ExtractionStatus("parked")
    limit = None
    if queue.first_pending_at:
        longest = conf.rules(queue.session.tenant).max_wait_seconds
        limit = queue.first_pending_at + timedelta(seconds=longest)
    state = "running" if queue.is_leased(now=now) else "pending"
    return ExtractionStatus(state, due_at=queue.due_at, max_due_at=limit)


def signals_of(turns: Iterable[Turn], tenant: Tenant) -> list[str]:
    """Kinds of signals in the user turns among the last fed of `turns`, which are those of one session in order."""
    texts = [turn.text for turn in list(fed(turns))[-RECENT:] if turn.is_user]
    return signals.find(texts, signal_phrases.patterns_of(tenant.signal_phrases))


def arm(
    queue: SessionQueue,
    turns: Sequence[Turn],
    *,
    rules: conf.Rules,
    now: datetime,
    flush: bool,
    found: Iterable[str] = (),
) -> None:
    """Count new turns as pending, keep the signals `found` in them and move the due time; revives a parked batch.

    The caller holds the row's lock and saves the fields in ARMED.
    """
    queue.signals = sorted({*queue.signals, *found})
    pending = PendingTurns.of(queue).plus(turns)
    _store_counts(queue, pending, turns[-1] if turns else None)
    due = due_time(pending, last_at=now, rules=rules, flush=flush, now=now)
    if queue.parked_at:
        queue.parked_at, queue.attempts, queue.failure = None, 0, ""
    elif queue.due_at and due and not flush:
        if queue.is_leased(now=now):
            # finish() counts what came meanwhile: counted together with the batch, one message looks like a full batch.
            due = queue.due_at
        elif queue.attempts:
            # It backs off.
            due = max(due, queue.due_at)
    queue.due_at = due if conf.llm_mode() != conf.LLM_OFF else None
    # A wake-up already sent may come before the new time and find nothing: the next one must not wait for REWAKE.
    queue.woken_at = None


def claim(session_id: uuid.UUID) -> Claim | None:
    """Take the session's due batch, its attempt counted and committed; None when it is taken or not due."""
    with transaction.atomic():
        rows = SessionQueue.objects.due().select_related("session__tenant", "session__end_user__tenant")
        queue = leases.lock(rows, session_id)
        if queue is None:
            return None
        return queue_rows.take(Claim, queue, queue.session, conf.rules(queue.session.tenant))


def finish(claim: Claim, queue: SessionQueue, *, extracted_number: int, now: datetime) -> None:
    """Move the watermark, end the lease and arm what is left; in the transaction of queue_rows.fence()."""
    pending, last = _beyond(claim.session, extracted_number, claim.rules)
    # While a batch is extracted only a flush moves its due time.
    flush = queue.due_at != claim.row.due_at
    queue.extracted_number, queue.attempts, queue.failure = extracted_number, 0, ""
    queue.signals = _signals_left(claim.session, extracted_number) if last else []
    queue.batch_limit = None
    _store_counts(queue, pending, last)
    queue_rows.end_lease(queue)
    last_at = last.created_at if last else now
    queue.due_at = due_time(pending, last_at=last_at, rules=claim.rules, flush=flush, now=now)
    queue.save()


def recount(queue: SessionQueue, *, rules: conf.Rules, now: datetime) -> None:
    """Count the pending turns anew, after some were left or came back; a batch without any is not due any more.

    The caller holds the row's lock and saves the fields in ARMED. The watermark stays: what was left may come back.
    """
    pending, _ = _beyond(queue.session, queue.extracted_number, rules)
    if not pending.user:
        pending = PendingTurns()
        queue.signals, queue.parked_at, queue.attempts, queue.failure = [], None, 0, ""
    _store_pending(queue, pending)
    if conf.llm_mode() == conf.LLM_OFF or queue.parked_at:
        return
    due = due_time(pending, last_at=queue.session.last_turn_at, rules=rules, flush=False, now=now)
    # A failure's back-off holds.
    queue.due_at = max(due, queue.due_at) if due and queue.due_at and queue.attempts else due
    queue.woken_at = None


def revive(*, session_id: uuid.UUID, range_end: int) -> bool:
    """Make a failed or parked batch due now with its attempts counted anew; False when there is nothing to do."""
    return bool(SessionQueue.objects.failed().filter(pk=session_id, extracted_number__lt=range_end).revive())


def due_sessions(limit: int) -> list[uuid.UUID]:
    """Sessions to wake a worker for, oldest first, marked as woken; inside the caller's transaction."""
    return queue_rows.enqueue(SessionQueue.objects.due(), limit)


def _beyond(session: Session, number: int, rules: conf.Rules) -> tuple[PendingTurns, Turn | None]:
    """The pending turns beyond this number, and the last that was looked at: the last of all, unless they are a full
    batch before it. Each batch of a long session would read all the others otherwise."""
    rows, pending, last = Turn.objects.filter(session=session).readable().only(*COUNTED), PendingTurns(), None
    while turns := list(rows.after(last.number if last else number)[:LOOKED_AT]):
        pending, last = pending.plus(turns), turns[-1]
        if len(turns) < LOOKED_AT or pending.is_full(rules):
            break
    return pending, last


def _signals_left(session: Session, number: int) -> list[str]:
    """The signals of turns that came during extraction; their texts are read only if a user turn is among them."""
    heard = Turn.objects.filter(session=session).readable().after(number).filter(_SPOKEN).order_by("-number")
    spoken = heard.values_list("number", "role")[:RECENT]
    if not any(role == Role.USER for _, role in spoken):
        return []
    numbers = [number for number, _ in spoken]
    return signals_of(Turn.objects.filter(session=session, number__in=numbers).order_by("number"), session.tenant)


def _store_counts(queue: SessionQueue, pending: PendingTurns, last: Turn | None) -> None:
    """Store the counts of the pending turns, the last of which is `last`."""
    if last and not pending.user:
        # Turns without a user turn among them are never sent: the watermark passes over them (rules.md, 1.3).
        queue.extracted_number, pending = last.number, PendingTurns()
    _store_pending(queue, pending)


def _store_pending(queue: SessionQueue, pending: PendingTurns) -> None:
    queue.first_pending_at = pending.first_at
    queue.pending_rounds, queue.pending_tokens = pending.rounds, pending.tokens
    queue.pending_user, queue.pending_reply = pending.user, pending.reply
    queue.round_open = pending.round_open
