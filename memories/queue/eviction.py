"""Which turns are evicted from a window that is too full: whole rounds, the oldest first (rules.md, 6.1); pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from memories.conf import Rules
from memories.llm.prompts.framing import LONGEST_TEXT
from memories.models import Role, Session, Turn, WorkingMemory
from memories.text.transcript import is_final_reply


class WindowContents(NamedTuple):
    """What a window holds; a round is a user turn with what follows it."""

    tokens: int
    rounds: int

    @classmethod
    def of(cls, session: Session, row: WorkingMemory) -> "WindowContents":
        """All turns that were not evicted."""
        return cls(session.token_count - row.left_tokens, session.round_count - row.left_rounds)

    def is_over(self, rules: Rules) -> bool:
        """Whether it is beyond either limit."""
        return self.tokens > rules.window_tokens or self.rounds > rules.window_rounds

    def is_small_enough(self, rules: Rules) -> bool:
        """Whether it holds no more than the share of both limits that compaction keeps."""
        keep = rules.window_keep
        return self.tokens <= keep * rules.window_tokens and self.rounds <= keep * rules.window_rounds


@dataclass(frozen=True)
class Eviction:
    """Turns up to `last_number` leave the window, with so many tokens and rounds; `is_all`: no more have to."""

    last_number: int
    tokens: int = 0
    rounds: int = 0
    is_all: bool = True


def evict(turns: Iterable[Turn], window: WindowContents, rules: Rules) -> Eviction | None:
    """What is evicted from `window`, whose turns are given in order and read only as far as needed; None: nothing can.

    The last round stays, whatever its size. One eviction takes as much as one prompt can show, but at least a round.
    """
    evicted: Eviction | None = None
    shown = 0
    for whole in _rounds(turns):
        shown += sum(map(_shown_tokens, whole))
        if evicted and shown > rules.batch_tokens:
            return replace(evicted, is_all=False)
        before = evicted or Eviction(0)
        evicted = Eviction(
            last_number=whole[-1].number,
            tokens=before.tokens + sum(turn.token_count for turn in whole),
            rounds=before.rounds + sum(turn.role == Role.USER for turn in whole),
        )
        if WindowContents(window.tokens - evicted.tokens, window.rounds - evicted.rounds).is_small_enough(rules):
            return evicted
    return evicted


def _rounds(turns: Iterable[Turn]) -> Iterator[list[Turn]]:
    """Whole rounds but the last. One that begins with a tool that answers an earlier call belongs to the one before."""
    current: list[Turn] = []
    for found in _from_user_to_user(turns):
        if current and not _is_orphaned(found):
            yield current
            current = []
        current += found


def _from_user_to_user(turns: Iterable[Turn]) -> Iterator[list[Turn]]:
    found: list[Turn] = []
    for turn in turns:
        if turn.role == Role.USER and found:
            yield found
            found = []
        found.append(turn)
    if found:
        yield found


def _is_orphaned(turns: Iterable[Turn]) -> bool:
    """Whether a tool answers before anybody has called one."""
    for turn in turns:
        if turn.role == Role.TOOL or turn.tool_calls:
            return turn.role == Role.TOOL
    return False


def _shown_tokens(turn: Turn) -> int:
    """How many of its tokens a prompt shows at most: long texts are cut, and only user turns and replies are shown."""
    return min(turn.token_count, LONGEST_TEXT) if turn.role == Role.USER or is_final_reply(turn) else 0
