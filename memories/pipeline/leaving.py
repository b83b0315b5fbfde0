"""Which turns leave a window that is too full (rules.md, 6.1): whole rounds, the oldest first; pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from memories.conf import Rules
from memories.llm.prompts.framing import LONGEST_TEXT
from memories.models import Role, Session, Turn, WorkingMemory
from memories.pipeline.feed import is_final_reply


class Window(NamedTuple):
    """What a window holds; a round is a user turn with what follows it."""

    tokens: int
    rounds: int

    @classmethod
    def of(cls, session: Session, row: WorkingMemory) -> "Window":
        """All that has not left it."""
        return cls(session.token_count - row.left_tokens, session.round_count - row.left_rounds)

    def is_over(self, rules: Rules) -> bool:
        """Whether it is beyond either limit."""
        return self.tokens > rules.window_tokens or self.rounds > rules.window_rounds

    def is_roomy(self, rules: Rules) -> bool:
        """Whether it holds no more than the share of both limits that compaction keeps."""
        keep = rules.window_keep
        return self.tokens <= keep * rules.window_tokens and self.rounds <= keep * rules.window_rounds


@dataclass(frozen=True)
class Leaving:
    """Turns up to `last_number` leave, with so many tokens and rounds; `is_all`: no more than these need to."""

    last_number: int
    tokens: int = 0
    rounds: int = 0
    is_all: bool = True

    def plus(self, turns: Sequence[Turn]) -> "Leaving":
        """This with a further round."""
        tokens = self.tokens + sum(turn.token_count for turn in turns)
        rounds = self.rounds + sum(turn.role == Role.USER for turn in turns)
        return replace(self, last_number=turns[-1].number, tokens=tokens, rounds=rounds)


def leaving(turns: Iterable[Turn], window: Window, rules: Rules) -> Leaving | None:
    """What leaves of `window`, whose turns are given in order and read only as far as needed; None: nothing can.

    The last round stays, whatever its size. As many leave at a time as one prompt can show, but at least a round.
    """
    taken: Leaving | None = None
    shown = 0
    for whole in _rounds(turns):
        shown += sum(map(_shown_tokens, whole))
        if taken and shown > rules.batch_tokens:
            return replace(taken, is_all=False)
        taken = (taken or Leaving(0)).plus(whole)
        if Window(window.tokens - taken.tokens, window.rounds - taken.rounds).is_roomy(rules):
            return taken
    return taken


def _rounds(turns: Iterable[Turn]) -> Iterator[list[Turn]]:
    """Whole rounds but the last. One that begins with a tool that answers an earlier call belongs to that before."""
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
    """At most so many tokens of a prompt: long texts are cut, and only what was said is shown."""
    return min(turn.token_count, LONGEST_TEXT) if turn.role == Role.USER or is_final_reply(turn) else 0
