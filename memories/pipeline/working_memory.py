"""The row of a session's working memory: armed when its window is too full, the session ends or falls idle; claimed,
finished, given back."""

import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models.functions import Now

from memories import conf
from memories.conf import Rules
from memories.exceptions import LeaseLost
from memories.models import Session, SessionQueue, WorkingMemory
from memories.pipeline import leases
from memories.pipeline.leases import Lease
from memories.pipeline.leaving import Leaving, Window
from memories.pipeline.setbacks import Setback

# What arm() reads of a row besides what it changes: a post takes no more than it needs.
READ = ("session_id", "left_number", "left_tokens", "left_rounds", "episode_number", "lease_until")
# What arm() changes.
ARMED = ("due_at", "over_since", "unarmed", "woken_at", "attempts", "parked_at", "failure")


@dataclass(frozen=True)
class WindowStatus:
    """idle, pending, running, parked or off, and when somebody looks at the window next."""

    status: str
    due_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Claim(Lease):
    """The right to compact a session's window, and to sum up what has left it; the session as it was then.

    `closing`: the session has ended or is idle, so that all of it is summed up.
    """

    row: WorkingMemory
    closing: bool

    @property
    def window(self) -> Window:
        return Window.of(self.session, self.row)


@dataclass(frozen=True)
class Done:
    """What an attempt made: turns that left with the `summary` of all that has left (None: it stays as it was), how
    far episodes reach and whether there is one more, and whether that is all there is to do now."""

    leaving: Leaving | None
    summary: str | None
    extractor: str
    prompt_version: str
    episode_number: int
    has_episode: bool
    is_all: bool


def status_of(row: WorkingMemory | None, *, now: datetime) -> WindowStatus:
    """The state of a session's working memory at `now`."""
    if conf.llm().mode == conf.LLM_OFF:
        return WindowStatus("off")
    if row is None:
        return WindowStatus("idle")
    if row.parked_at:
        return WindowStatus("parked")
    if leases.is_leased(row, now=now):
        return WindowStatus("running", row.due_at)
    is_waiting = row.over_since or row.failure or (row.due_at and row.due_at <= now)
    return WindowStatus("pending" if is_waiting else "idle", row.due_at)


def arm(row: WorkingMemory, session: Session, *, rules: Rules, now: datetime) -> bool:
    """Move the due time after new turns or the end of the session; True when the row is to be saved: what is in ARMED.

    The caller holds the locks of the row and of the session. A post that neither wakes the row nor fills the window
    writes nothing. Revives a parked row.
    """
    if conf.llm().mode == conf.LLM_OFF:
        return _leave_unarmed(row)
    if leases.is_leased(row, now=now) or _is_done(row, session):
        # Whoever holds it looks at the session again when done.
        return False
    before = [getattr(row, name) for name in ARMED]
    is_over = Window.of(session, row).is_over(rules)
    # It stays while what has left is not all summed up.
    row.over_since = row.over_since or (now if is_over else None)
    row.due_at = _due_beside(row, session, rules=rules, now=now)
    row.unarmed = False
    if row.parked_at:
        row.parked_at, row.attempts, row.failure = None, 0, ""
    if [getattr(row, name) for name in ARMED] == before:
        return False
    # A wake-up already sent may come before the new time and find nothing: the next one must not wait for REWAKE.
    row.woken_at = None
    return True


def due_time(session: Session, over_since: datetime | None, *, rules: Rules, now: datetime) -> datetime:
    """When to look at a window that is too full since `over_since` (None: it is not), or for the end of the session."""
    if session.ended_at:
        return now
    if over_since is None:
        return session.last_turn_at + timedelta(seconds=rules.idle_seconds)
    latest = over_since + timedelta(seconds=rules.compaction_wait_seconds)
    return min(now + timedelta(seconds=rules.compaction_quiet_seconds), latest)


def claim(session_id: uuid.UUID) -> Claim | None:
    """Take the session's due row, its attempt counted and committed; None when it is taken or there is nothing to do.

    A session that is neither too full, ended nor idle has gone on since it was armed: it is looked at later.
    """
    with transaction.atomic():
        rows = WorkingMemory.objects.due().filter(pk=session_id).select_for_update(skip_locked=True, of=("self",))
        row = rows.with_clock().first()
        if row is None:
            return None
        # Read under the lock: a post that has just changed both is seen in both.
        session = Session.objects.select_related("tenant", "end_user__tenant").get(pk=session_id)
        rules = conf.rules(session.tenant)
        closing = session.ended_at is not None or _idle_at(session, rules) <= row.clock
        if not (closing or row.over_since or Window.of(session, row).is_over(rules)):
            WorkingMemory.objects.filter(pk=row.pk).update(due_at=_idle_at(session, rules))
            return None
        token = leases.take(row, rules)
    if token is None:
        return None
    return Claim(
        session=session,
        token=token,
        attempt=row.attempts,
        generation=session.end_user.generation,
        rules=rules,
        row=row,
        closing=closing,
    )


def renew(claim: Claim) -> None:
    """Prolong the lease before a model call. Errors: LeaseLost, PersonRestricted."""
    leases.renew(WorkingMemory.objects.all(), claim)


def hold(claim: Claim) -> WorkingMemory:
    """Lock the session's rows and the person for the commit; the row with its clock and the session as it is now.

    Errors: LeaseLost (taken over, the session deleted or the person erased), PersonRestricted.
    """
    # The queue's row first, as every post does: with it nobody adds turns until the commit.
    SessionQueue.objects.select_for_update(of=("self",)).filter(pk=claim.session.pk).first()
    rows = WorkingMemory.objects.select_for_update(of=("self",)).with_clock()
    row = rows.filter(pk=claim.session.pk, lease_token=claim.token).first()
    if row is None:
        raise LeaseLost
    leases.hold_person(claim)
    row.session = Session.objects.get(pk=claim.session.pk)
    return row


def finish(claim: Claim, row: WorkingMemory, done: Done, *, now: datetime) -> None:
    """Write what was done, end the lease and arm what is left; in the transaction that called hold()."""
    if done.leaving:
        row.left_number = done.leaving.last_number
        row.left_tokens += done.leaving.tokens
        row.left_rounds += done.leaving.rounds
    if done.summary is not None:
        row.summary, row.updated_at = done.summary, now
        row.extractor, row.prompt_version = done.extractor, done.prompt_version
    row.episode_number, row.attempts, row.failure = done.episode_number, 0, ""
    row.episodes_made += done.has_episode
    leases.release(row)
    _arm_rest(claim, row, done)
    row.save()


def postpone(claim: Claim, setback: Setback, *, now: datetime) -> bool:
    """Give the row back after a failure, to be tried again after a back-off; True when it was parked instead."""
    with transaction.atomic():
        rows = WorkingMemory.objects.select_for_update(of=("self",)).with_clock()
        row = rows.filter(pk=claim.session.pk, lease_token=claim.token).first()
        if row is None:
            return False
        return leases.give_back(row, setback, max_attempts=claim.rules.max_attempts, now=now)


def revive(session_id: uuid.UUID) -> bool:
    """Make a failed or parked row due now with its attempts counted anew; False when there is nothing to do."""
    rows = WorkingMemory.objects.unclaimed() | WorkingMemory.objects.filter(parked_at__isnull=False)
    waiting = rows.filter(pk=session_id).exclude(failure="")
    return bool(waiting.update(parked_at=None, attempts=0, failure="", due_at=Now(), woken_at=None))


def due_sessions(limit: int) -> list[uuid.UUID]:
    """Sessions to wake a worker for, oldest first, marked as woken; inside the caller's transaction."""
    return leases.wake(WorkingMemory.objects.due(), limit)


def _leave_unarmed(row: WorkingMemory) -> bool:
    """Note that somebody has to arm it once there is a model: written once, not by every post."""
    if row.due_at or row.unarmed:
        return False
    row.unarmed = True
    return True


def _is_done(row: WorkingMemory, session: Session) -> bool:
    """Whether an ended session is ended again, with nothing new."""
    return row.episode_number == session.turn_count and not row.parked_at


def _due_beside(row: WorkingMemory, session: Session, *, rules: Rules, now: datetime) -> datetime:
    """The due time of an armed row: while nothing happens it stays as it was, and a failure's back-off holds."""
    due = due_time(session, row.over_since, rules=rules, now=now)
    if row.parked_at or row.due_at is None:
        return due
    if not (row.over_since or session.ended_at):
        return row.due_at
    return max(due, row.due_at) if row.attempts else due


def _arm_rest(claim: Claim, row: WorkingMemory, done: Done) -> None:
    """Go on at once with what is left, else as if what came meanwhile had just been posted."""
    session, rules = row.session, claim.rules
    is_longer = session.turn_count > claim.session.turn_count
    # A window whose last round alone is too large cannot be helped before something new is said.
    is_over = is_longer and Window.of(session, row).is_over(rules)
    row.over_since = row.clock if is_over or not done.is_all else None
    if not done.is_all:
        row.due_at = row.clock
    elif claim.closing and not is_longer:
        row.due_at = None
    else:
        row.due_at = due_time(session, row.over_since, rules=rules, now=row.clock)


def _idle_at(session: Session, rules: Rules) -> datetime:
    return session.last_turn_at + timedelta(seconds=rules.idle_seconds)
