"""The queue row of a session's working memory: due when its window is over a limit, or the session ends or is idle."""

import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Count, Q, Sum

from memories import conf
from memories.conf import Rules
from memories.models import Change, Role, Session, SessionQueue, Turn, WorkingMemory
from memories.queue import leases, queue_rows
from memories.queue.attempts import SessionLease
from memories.queue.eviction import Eviction, WindowContents

# What arm() reads of a row besides what it changes: a post reads no more than it needs.
READ = ("session_id", "left_number", "left_tokens", "left_rounds", "episode_number", "lease_until")
# What arm() changes.
ARMED = ("due_at", "over_since", "unarmed", "woken_at", "attempts", "parked_at", "failure")


@dataclass(frozen=True)
class WindowStatus:
    """idle, pending, running, parked or off, and when a worker looks at the window next."""

    status: str
    due_at: datetime | None = None


@dataclass(kw_only=True)
class WindowClaim(SessionLease[WorkingMemory]):
    """The right to compact a session's window and to summarize what left it; the session as it was at the claim.

    `closing`: the session has ended or is idle, so all of it is summarized.
    """

    closing: bool

    @property
    def window(self) -> WindowContents:
        return WindowContents.of(self.session, self.row)


@dataclass(frozen=True)
class Compacted:
    """What an attempt made: the turns that it evicted with the `summary` of all evicted ones (None: it stays as it
    was), up to which turn there are episodes and whether one is new, and whether nothing is left to do now."""

    evicted: Eviction | None
    summary: str | None
    extractor: str
    prompt_version: str
    episode_number: int
    has_episode: bool
    is_all: bool


def status_of(row: WorkingMemory | None, *, now: datetime) -> WindowStatus:
    """The state of a session's working memory at `now`."""
    if conf.llm_mode() == conf.LLM_OFF:
        return WindowStatus("off")
    if row is None:
        return WindowStatus("idle")
    if row.parked_at:
        return WindowStatus("parked")
    if row.is_leased(now=now):
        return WindowStatus("running", row.due_at)
    is_waiting = row.over_since or row.failure or (row.due_at and row.due_at <= now)
    return WindowStatus("pending" if is_waiting else "idle", row.due_at)


def arm(row: WorkingMemory, session: Session, *, rules: Rules, now: datetime) -> bool:
    """Move the due time after new turns or the end of the session; True when the row is to be saved: what is in ARMED.

    The caller holds the locks of the row and of the session. A post that neither wakes the row nor fills the window
    writes nothing. Revives a parked row.
    """
    if conf.llm_mode() == conf.LLM_OFF:
        if row.due_at or row.unarmed:
            return False
        # It is armed once there is a model. Written once, not by every post.
        row.unarmed = True
        return True
    is_summarized = row.episode_number == session.turn_count and not row.parked_at
    if is_summarized or row.is_leased(now=now):
        # An ended session is ended again, with nothing new; or the worker that holds the row looks at it again.
        return False
    before = [getattr(row, name) for name in ARMED]
    is_over = WindowContents.of(session, row).is_over(rules)
    # It stays set until all that left the window is summarized.
    row.over_since = row.over_since or (now if is_over else None)
    row.due_at = _armed_due_time(row, session, rules=rules, now=now)
    row.unarmed = False
    if row.parked_at:
        row.parked_at, row.attempts, row.failure = None, 0, ""
    if [getattr(row, name) for name in ARMED] == before:
        return False
    # A wake-up already sent may come before the new time and find nothing: the next one must not wait for REWAKE.
    row.woken_at = None
    return True


def due_time(session: Session, over_since: datetime | None, *, rules: Rules, now: datetime) -> datetime:
    """When a worker looks at a window that is over its limits since `over_since` (None: it is not over them)."""
    if session.ended_at:
        return now
    if over_since is None:
        return session.last_turn_at + timedelta(seconds=rules.idle_seconds)
    latest = over_since + timedelta(seconds=rules.compaction_wait_seconds)
    return min(now + timedelta(seconds=rules.compaction_quiet_seconds), latest)


def claim(session_id: uuid.UUID) -> WindowClaim | None:
    """Take the session's due row, its attempt counted and committed; None when it is taken or there is nothing to do.

    A session that went on since it was armed, so that its window is within its limits, is looked at later.
    """
    with transaction.atomic():
        row = leases.lock(WorkingMemory.objects.due(), session_id)
        if row is None:
            return None
        # Read under the lock: a post that has just changed both is seen in both.
        session = Session.objects.select_related("tenant", "end_user__tenant").get(pk=session_id)
        rules = conf.rules(session.tenant)
        closing = session.ended_at is not None or _idle_at(session, rules) <= row.clock
        if not (closing or row.over_since or WindowContents.of(session, row).is_over(rules)):
            WorkingMemory.objects.filter(pk=row.pk).update(due_at=_idle_at(session, rules))
            return None
        return queue_rows.take(WindowClaim, row, session, rules, closing=closing)


def lock_claimed(claim: WindowClaim) -> WorkingMemory:
    """Lock the session's rows and the person for the commit; the row with its clock and the session as it is now.

    Errors: LeaseLost (taken over, the session deleted or the person erased), PersonRestricted.
    """
    # The queue's row first, as every post does: with it nobody adds turns until the commit.
    SessionQueue.objects.select_for_update(of=("self",)).filter(pk=claim.session.pk).first()
    row = queue_rows.fence(claim)
    row.session = Session.objects.get(pk=claim.session.pk)
    return row


def finish(claim: WindowClaim, row: WorkingMemory, done: Compacted, *, now: datetime) -> None:
    """Store the result, end the lease and arm what is left; in the transaction that called lock_claimed()."""
    if done.evicted:
        row.left_number = done.evicted.last_number
        row.left_tokens += done.evicted.tokens
        row.left_rounds += done.evicted.rounds
    if done.summary is not None:
        row.summary, row.updated_at = done.summary, now
        row.extractor, row.prompt_version = done.extractor, done.prompt_version
    row.episode_number, row.attempts, row.failure = done.episode_number, 0, ""
    row.episodes_made += done.has_episode
    queue_rows.end_lease(row)
    _arm_rest(claim, row, done)
    row.save()


def count_left(row: WorkingMemory, session: Session) -> None:
    """Count what is not in the window: turns that were deleted, have left it, or belong to a branch that was left."""
    turns = Turn.objects.filter(Q(number__lte=row.left_number) | Q(left_at__isnull=False), session=session)
    sums = turns.aggregate(tokens=Sum("token_count"), rounds=Count("pk", filter=Q(role=Role.USER)))
    row.left_tokens = session.deleted_tokens + (sums["tokens"] or 0)
    row.left_rounds = session.deleted_rounds + sums["rounds"]


def read_again(row: WorkingMemory, session: Session, *, first_number: int, rules: Rules, now: datetime) -> None:
    """After turns from `first_number` on changed: throw away what a worker may have read of them, forget a summary that
    may tell them (compaction folds the others into a new one), and arm the row.

    The caller holds the locks of both rows and of the session's queue, and saves the row.
    """
    if row.lease_token:
        queue_rows.release(row)
    if first_number <= row.left_number:
        row.summary, row.left_number = "", session.deleted_number
        Change.objects.of_summary(session.pk).delete()
        row.episode_number = max(row.episode_number, session.deleted_number)
    count_left(row, session)
    if row.parked_at:
        return
    row.over_since = now if WindowContents.of(session, row).is_over(rules) else None
    row.unarmed = conf.llm().mode == conf.LLM_OFF
    row.due_at = None if row.unarmed else due_time(session, row.over_since, rules=rules, now=now)
    row.woken_at = None


def revive(session_id: uuid.UUID) -> bool:
    """Make a failed or parked row due now with its attempts counted anew; False when there is nothing to do."""
    return bool(WorkingMemory.objects.failed().filter(pk=session_id).revive())


def due_sessions(limit: int) -> list[uuid.UUID]:
    """Sessions to wake a worker for, oldest first, marked as woken; inside the caller's transaction."""
    return queue_rows.enqueue(WorkingMemory.objects.due(), limit)


def _armed_due_time(row: WorkingMemory, session: Session, *, rules: Rules, now: datetime) -> datetime:
    """The due time of an armed row: while nothing happens it stays as it was, and a failure's back-off holds."""
    due = due_time(session, row.over_since, rules=rules, now=now)
    if row.parked_at or row.due_at is None:
        return due
    if not (row.over_since or session.ended_at):
        return row.due_at
    return max(due, row.due_at) if row.attempts else due


def _arm_rest(claim: WindowClaim, row: WorkingMemory, done: Compacted) -> None:
    """Go on at once with what is left; else arm it as if the turns that came meanwhile had just been posted."""
    session, rules = row.session, claim.rules
    is_longer = session.turn_count > claim.session.turn_count
    # A window whose last round alone is too large cannot be compacted before a new turn comes.
    is_over = is_longer and WindowContents.of(session, row).is_over(rules)
    row.over_since = row.clock if is_over or not done.is_all else None
    if not done.is_all:
        row.due_at = row.clock
    elif claim.closing and not is_longer:
        row.due_at = None
    else:
        row.due_at = due_time(session, row.over_since, rules=rules, now=row.clock)


def _idle_at(session: Session, rules: Rules) -> datetime:
    return session.last_turn_at + timedelta(seconds=rules.idle_seconds)
