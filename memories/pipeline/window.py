"""What of a conversation stands in its window: the last whole rounds that fit (rules.md, 6.1); pure.

A round is a user turn with what follows it. A step is a turn with the answers of the tools that it called.
"""

import json
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

from memories.llm.prompts.framing import shorten
from memories.models import Role, Turn

# What is no text is not counted by a tokenizer: images are not read as words, and calls are short.
_CHARACTERS_A_TOKEN = 4


def trim(turns: Sequence[Turn], *, max_tokens: int, max_rounds: int) -> list[Turn]:
    """The newest rounds that fit both limits; `turns` in order, without those of the system.

    The newest round always stays. When it is too long alone, the user's turn and its newest steps stay, the last one in
    any case, and where even that is too much, long texts keep their two ends: such turns are copies.
    """
    rounds = _parted(turns, lambda turn: turn.role == Role.USER)
    kept: list[Turn] = []
    for one in reversed(rounds[-max_rounds:]):
        if cost([*one, *kept]) > max_tokens:
            return kept or _squeezed(one, max_tokens)
        kept = [*one, *kept]
    return kept


def cost(turns: Sequence[Turn]) -> int:
    """Tokens of the turns' texts, and one for each four characters of what else they carry."""
    return sum(turn.token_count + _beside_text(turn) for turn in turns)


def steps(turns: Sequence[Turn]) -> list[list[Turn]]:
    """Each turn with the tool turns after it."""
    return _parted(turns, lambda turn: turn.role != Role.TOOL)


def _parted(turns: Sequence[Turn], begins: Callable[[Turn], bool]) -> list[list[Turn]]:
    parts: list[list[Turn]] = []
    for turn in turns:
        if begins(turn) or not parts:
            parts.append([])
        parts[-1].append(turn)
    return parts


def _squeezed(turns: Sequence[Turn], max_tokens: int) -> list[Turn]:
    asked = [turn for turn in turns[:1] if turn.role == Role.USER]
    kept: list[Turn] = []
    for step in reversed(steps(turns[len(asked) :])):
        if kept and cost([*asked, *step, *kept]) > max_tokens:
            break
        kept = [*step, *kept]
    kept = asked + kept
    return kept if cost(kept) <= max_tokens else [_shortened(turn) for turn in kept]


def _shortened(turn: Turn) -> Turn:
    if shorten(turn.content) == turn.content and turn.parts is None:
        return turn
    short = copy(turn)
    short.content, short.parts = shorten(turn.content), None
    return short


def _beside_text(turn: Turn) -> int:
    parts = [part for part in turn.parts or [] if not _is_text(part)]
    carried = [*parts, *(turn.tool_calls or [])]
    return len(json.dumps(carried)) // _CHARACTERS_A_TOKEN if carried else 0


def _is_text(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "text"
