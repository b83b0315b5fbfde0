"""Debounce: when the turns that wait in a session are due for extraction; pure."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from memories.conf import Rules
from memories.models import Role, SessionQueue, Turn


@dataclass(frozen=True)
class PendingTurns:
    """Turns beyond the watermark: a round is a user turn with the replies after it (rules.md, 2.2)."""

    first_at: datetime | None = None
    rounds: int = 0
    tokens: int = 0
    user: bool = False
    reply: bool = False
    round_open: bool = False

    @classmethod
    def of(cls, queue: SessionQueue) -> "PendingTurns":
        """The counts that the row keeps."""
        return cls(
            first_at=queue.first_pending_at,
            rounds=queue.pending_rounds,
            tokens=queue.pending_tokens,
            user=queue.pending_user,
            reply=queue.pending_reply,
            round_open=queue.round_open,
        )

    def plus(self, turns: Iterable[Turn]) -> "PendingTurns":
        """These counts with more turns, in order."""
        pending = self
        for turn in turns:
            replies = turn.role == Role.ASSISTANT and not turn.tool_calls
            closes = replies and pending.round_open
            pending = replace(
                pending,
                first_at=pending.first_at or turn.created_at,
                rounds=pending.rounds + closes,
                tokens=pending.tokens + turn.token_count,
                user=pending.user or turn.role == Role.USER,
                reply=pending.reply or replies,
                round_open=(pending.round_open and not closes) or turn.role == Role.USER,
            )
        return pending

    def is_full(self, rules: Rules) -> bool:
        """Whether these turns go to extraction at once, whatever comes after them."""
        enough = self.rounds >= rules.rounds_due_at_once or self.tokens >= rules.tokens_due_at_once
        return self.user and enough


def due_time(pending: PendingTurns, *, last_at: datetime, rules: Rules, flush: bool, now: datetime) -> datetime | None:
    """When the pending turns go to extraction; None when there is nothing to send (rules.md, 1.3 and 2.2).

    `last_at` is the arrival of the newest pending turn, `now` the present moment of the same clock.
    """
    if not pending.user or pending.first_at is None:
        return None
    if flush or pending.is_full(rules):
        return now
    latest = pending.first_at + timedelta(seconds=rules.max_wait_seconds)
    if not pending.reply:
        # The reply is probably on its way; if it never comes, the turns go at the latest moment.
        return latest
    return min(last_at + timedelta(seconds=rules.debounce_seconds), latest)
