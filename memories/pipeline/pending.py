"""What waits in a session and when it is due: the debounce policy, pure."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from memories.conf import Rules
from memories.models import Role, SessionQueue, Turn


@dataclass(frozen=True)
class Pending:
    """Turns beyond the watermark: a round is a user turn with the replies after it (rules.md, 2.2)."""

    first_at: datetime | None = None
    rounds: int = 0
    tokens: int = 0
    user: bool = False
    reply: bool = False
    round_open: bool = False

    @classmethod
    def of(cls, queue: SessionQueue) -> "Pending":
        """What the row has counted."""
        return cls(
            first_at=queue.first_pending_at,
            rounds=queue.pending_rounds,
            tokens=queue.pending_tokens,
            user=queue.pending_user,
            reply=queue.pending_reply,
            round_open=queue.round_open,
        )

    def plus(self, turns: Iterable[Turn]) -> "Pending":
        """This with more turns after it."""
        pending = self
        for turn in turns:
            pending = pending._with(turn)
        return pending

    def _with(self, turn: Turn) -> "Pending":
        answered = turn.role == Role.ASSISTANT and not turn.tool_calls
        closes = answered and self.round_open
        return replace(
            self,
            first_at=self.first_at or turn.created_at,
            rounds=self.rounds + closes,
            tokens=self.tokens + turn.token_count,
            user=self.user or turn.role == Role.USER,
            reply=self.reply or answered,
            round_open=(self.round_open and not closes) or turn.role == Role.USER,
        )


def pending_of(turns: Iterable[Turn]) -> Pending:
    """What these turns, in order, amount to."""
    return Pending().plus(turns)


def due_time(pending: Pending, *, last_at: datetime, rules: Rules, flush: bool, now: datetime) -> datetime | None:
    """When the pending turns go to extraction; None when there is nothing to send (rules.md, 1.3 and 2.2).

    `last_at` is the arrival of the newest pending turn, `now` the present moment of the same clock.
    """
    if not pending.user or pending.first_at is None:
        return None
    if flush or pending.rounds >= rules.rounds_due_at_once or pending.tokens >= rules.tokens_due_at_once:
        return now
    latest = pending.first_at + timedelta(seconds=rules.max_wait_seconds)
    if not pending.reply:
        # The reply is probably on its way; without one the stretch goes at the latest moment.
        return latest
    return min(last_at + timedelta(seconds=rules.debounce_seconds), latest)
