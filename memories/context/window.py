"""The window of a session (rules.md, 6.1): the turns that an agent still sees, trimmed to its limits, as chat messages.

A round is a user turn with everything up to the next one. A step is a turn with the answers of the tools it called.
"""

import json
import uuid
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from itertools import dropwhile
from typing import Any

from memories import conf
from memories.context.rendering import render_summary
from memories.db import binary_rows
from memories.invisible import strip_invisible
from memories.llm.prompts.framing import shorten
from memories.models import EndUser, Role, Turn, hand_written
from memories.text import attribution
from memories.text.echo import cut_echo
from memories.text.injection import detection
from memories.text.memory_block import ENGLISH, Frame

# The newest turns that are read: an agent may have called hundreds of tools in a few rounds.
MOST_TURNS = 400
# The newest system turns that are read; most sessions have one, at their start.
MOST_SYSTEM_TURNS = 10
# How an earlier version introduced summaries: applications may have posted them.
_OLD_SUMMARY = "Earlier in this conversation: "
# For what a tokenizer does not count: images are not read as words, and calls are short.
_CHARACTERS_A_TOKEN = 4
_COLUMNS = ("id", "number", "role", "content", "parts", "name", "tool_calls", "tool_call_id", "token_count")
_SESSION = """
    SELECT s.id, coalesce(w.left_number, 0), coalesce(w.summary, ''),
        ARRAY(
            SELECT number FROM memories_turn t
            WHERE t.tenant_id = %(tenant)s AND t.session_id = s.id AND t.left_at IS NOT NULL
        ),
        s.turn_count
    FROM memories_session s
    LEFT JOIN memories_workingmemory w ON w.tenant_id = s.tenant_id AND w.session_id = s.id
    WHERE s.tenant_id = %(tenant)s AND s.end_user_id = %(person)s AND s.agent_id = %(agent)s
        AND s.external_id = %(session)s
"""
# `newer_…` count what came after a turn. The user's turn of the newest round is read whatever followed it.
_TURNS = f"""
    WITH last AS (
        SELECT id, number, role, token_count FROM memories_turn
        WHERE tenant_id = %(tenant)s AND session_id = %(session)s AND number > %(left)s AND role <> 'system'
            AND left_at IS NULL
        ORDER BY number DESC LIMIT %(most)s
    ), counted AS (
        SELECT id, role, sum(token_count) OVER newest_first - token_count AS newer_tokens,
            count(*) FILTER (WHERE role = 'user') OVER newest_first - (role = 'user')::int AS newer_rounds
        FROM last WINDOW newest_first AS (ORDER BY number DESC)
    ), wanted AS (
        SELECT id FROM counted WHERE newer_rounds < %(rounds)s
            AND (newer_tokens <= %(tokens)s OR role = 'user' AND newer_rounds = 0)
        UNION ALL
        (SELECT id FROM memories_turn WHERE tenant_id = %(tenant)s AND session_id = %(session)s AND role = 'system'
         ORDER BY number DESC LIMIT %(most_system)s)
    )
    SELECT {hand_written.selected("t", _COLUMNS)} FROM memories_turn t JOIN wanted USING (id)
    WHERE t.tenant_id = %(tenant)s ORDER BY t.number
"""  # noqa: S608  (columns of our own model)

Message = dict[str, Any]


@dataclass(frozen=True, eq=False)
class OpenWindow:
    """The window of a session; empty without a session. `numbers` are those of its turns, system turns included, of
    turns between them that the client left, and of those that the caller has beyond it."""

    session: uuid.UUID | None = None
    system: list[Turn] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    summary: str = ""
    numbers: frozenset[int] = frozenset()

    def covers(self, *, session: uuid.UUID, first: int, last: int) -> bool:
        """Whether all of these turns are in the window."""
        return session == self.session and all(number in self.numbers for number in range(first, last + 1))

    def messages(self, memory: str, recalled: str = "", frame: Frame = ENGLISH) -> list[Message]:
        """The agent's own system turns, the memory block, the summary of what left the window, then the window.

        `recalled`, a block of its own, stands before the round that waits for an answer, if the window has it, else at
        the end: what came before stays the beginning of the next request.
        """
        before, waiting = self.turns, list[Turn]()
        if rounds := _split(self.turns, lambda turn: turn.role == Role.USER):
            last = rounds[-1]
            if last[-1].role != Role.ASSISTANT or last[-1].tool_calls:
                before, waiting = self.turns[: -len(last)], last
        return [
            *messages_of(self.system),
            *_hub_messages(memory, render_summary(self.summary, frame)),
            *messages_of(before),
            *_hub_messages(recalled),
            *messages_of(waiting),
        ]


def _hub_messages(*texts: str) -> list[Message]:
    return [{"role": str(Role.SYSTEM), "content": text} for text in texts if text]


def open_window(person: EndUser, *, agent_id: str, session_id: str, rules: conf.Rules, shown: int = 0) -> OpenWindow:
    """The window of the person's session, named as the caller names it; empty when there is none. `shown`: so many of
    its newest turns the caller has, whatever the window shows."""
    named = {"tenant": person.tenant_id, "person": person.pk, "agent": agent_id, "session": session_id}
    found = binary_rows.fetched(_SESSION, named)
    if not found:
        return OpenWindow()
    ((session, left, summary, left_by_client, turn_count),) = found
    parameters = {
        "tenant": person.tenant_id,
        "session": session,
        "left": left,
        "most": MOST_TURNS,
        "most_system": MOST_SYSTEM_TURNS,
        "tokens": rules.window_tokens,
        "rounds": rules.window_rounds,
    }
    turns = [hand_written.read(Turn, _COLUMNS, row) for row in binary_rows.fetched(_TURNS, parameters)]
    system = [turn for turn in turns if turn.role == Role.SYSTEM]
    own = _own_prompts(system)
    others = [turn for turn in turns if turn.role != Role.SYSTEM]
    if len(others) >= MOST_TURNS:
        # The first round may have begun before what was read: leave out its end, unless there is no other.
        others = list(dropwhile(lambda turn: turn.role != Role.USER, others)) or others
    in_window = trim(others, max_tokens=max(0, rules.window_tokens - cost(own)), max_rounds=rules.window_rounds)
    # An older version of the hub may have stored a summary that speaks to a model.
    safe = "" if detection.speaks_to_model(attribution.plain(summary)) else summary
    numbers = {turn.number for turn in (*system, *in_window)}.union(left_by_client)
    numbers.update(range(max(1, turn_count - shown + 1), turn_count + 1))
    return OpenWindow(session, own, in_window, safe, frozenset(numbers))


def _own_prompts(system: Sequence[Turn]) -> list[Turn]:
    """Each text once, because some applications post their prompt with each message; without what the hub gave them."""
    theirs = [turn for turn in system if not turn.content.startswith(_OLD_SUMMARY) and cut_echo(turn.content).strip()]
    return list({turn.content: turn for turn in theirs}.values())


def trim(turns: Sequence[Turn], *, max_tokens: int, max_rounds: int) -> list[Turn]:
    """The newest rounds that fit both limits; `turns` in order, without system turns.

    The newest round always stays. If it alone is too long, the user's turn and its newest steps stay, at least the last
    one. If even that is too much, long texts keep their two ends: such turns are copies.
    """
    rounds = _split(turns, lambda turn: turn.role == Role.USER)
    kept: list[Turn] = []
    for one in reversed(rounds[-max_rounds:]):
        if cost([*one, *kept]) > max_tokens:
            return kept or _shortened_round(one, max_tokens)
        kept = [*one, *kept]
    return kept


def cost(turns: Sequence[Turn]) -> int:
    """Tokens of the texts, and one for each four characters of tool calls and of parts that are no text."""
    return sum(turn.token_count + _cost_beside_text(turn) for turn in turns)


def _cost_beside_text(turn: Turn) -> int:
    parts = [part for part in turn.parts or [] if not (isinstance(part, dict) and part.get("type") == "text")]
    carried = [*parts, *(turn.tool_calls or [])]
    return len(json.dumps(carried)) // _CHARACTERS_A_TOKEN if carried else 0


def _steps(turns: Sequence[Turn]) -> list[list[Turn]]:
    return _split(turns, lambda turn: turn.role != Role.TOOL)


def _split(turns: Sequence[Turn], begins: Callable[[Turn], bool]) -> list[list[Turn]]:
    parts: list[list[Turn]] = []
    for turn in turns:
        if begins(turn) or not parts:
            parts.append([])
        parts[-1].append(turn)
    return parts


def _shortened_round(turns: Sequence[Turn], max_tokens: int) -> list[Turn]:
    question = [turn for turn in turns[:1] if turn.role == Role.USER]
    kept: list[Turn] = []
    for step in reversed(_steps(turns[len(question) :])):
        if kept and cost([*question, *step, *kept]) > max_tokens:
            break
        kept = [*step, *kept]
    kept = question + kept
    return kept if cost(kept) <= max_tokens else [_shortened(turn) for turn in kept]


def _shortened(turn: Turn) -> Turn:
    if shorten(turn.content) == turn.content and turn.parts is None:
        return turn
    short = copy(turn)
    short.content, short.parts = shorten(turn.content), None
    return short


def messages_of(turns: Sequence[Turn]) -> list[Message]:
    """The turns, given in order, as messages of a chat completion, without invisible characters.

    What no endpoint accepts is left out: a tool's answer without its call before it, and calls without an answer though
    the conversation went on.
    """
    steps = _steps(turns)
    messages = (message for at, step in enumerate(steps) for message in _messages(step, is_last=at == len(steps) - 1))
    return [_visible(message) for message in messages]


def _messages(step: Sequence[Turn], *, is_last: bool) -> Iterator[Message]:
    """The calls of the last step may still be running, so they stay without an answer."""
    first, *answers = step
    if first.role == Role.TOOL:
        return
    listed = [call for call in first.tool_calls or [] if isinstance(call, dict)]
    calls = {call["id"]: call for call in listed if isinstance(call.get("id"), str)}
    answered = _answered(calls, answers)
    message = _message(first)
    kept = first.tool_calls if is_last else [call for name, call in calls.items() if name in answered]
    if kept:
        message |= {"content": message["content"] or None, "tool_calls": kept}
    if message["content"] or kept:
        yield message
    yield from ({**_message(turn), "tool_call_id": name} for name, turn in answered.items())


def _answered(calls: dict[str, Any], answers: Sequence[Turn]) -> dict[str, Turn]:
    """The first answer to each call. An answer without an id answers the next call that no other answer names."""
    named = {turn.tool_call_id for turn in answers}
    unnamed = iter([name for name in calls if name not in named])
    found: dict[str, Turn] = {}
    for turn in answers:
        name = turn.tool_call_id or next(unnamed, "")
        if name in calls:
            found.setdefault(name, turn)
    return found


def _message(turn: Turn) -> Message:
    message = {"role": turn.role, "content": turn.content if turn.parts is None else turn.parts}
    return message | {"name": turn.name} if turn.name else message


def _visible(value: Any) -> Any:
    """The value without invisible characters in any of its texts."""
    match value:
        case str():
            return strip_invisible(value)
        case list():
            return [_visible(one) for one in value]
        case dict():
            return {name: _visible(one) for name, one in value.items()}
    return value
