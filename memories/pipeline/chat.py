"""Turns as the messages of a chat completion, in the shape that endpoints take; pure."""

from collections.abc import Iterator, Sequence
from typing import Any

from memories.models import Role, Turn
from memories.pipeline import window

Message = dict[str, Any]


def messages_of(turns: Sequence[Turn]) -> list[Message]:
    """The turns, given in order, as messages; what no endpoint would take is left out.

    That is a tool's answer without its call before it, and calls that nobody answered though the conversation went on.
    """
    steps = window.steps(turns)
    return [message for place, step in enumerate(steps) for message in _step(step, is_last=place == len(steps) - 1)]


def system(text: str) -> Message:
    return {"role": str(Role.SYSTEM), "content": text}


def _step(step: Sequence[Turn], *, is_last: bool) -> Iterator[Message]:
    """A turn with the answers of the tools that it called; the calls of the last step may still be under way."""
    first, *answers = step
    if first.role == Role.TOOL:
        return
    calls = _calls(first)
    answered = _answered(calls, answers)
    message = _message(first)
    kept = first.tool_calls if is_last else [calls[name] for name in calls if name in answered]
    if kept:
        message |= {"content": message["content"] or None, "tool_calls": kept}
    if message["content"] or kept:
        yield message
    yield from ({**_message(turn), "tool_call_id": name} for name, turn in answered.items())


def _calls(turn: Turn) -> dict[str, Any]:
    """The calls of a turn by their ids, those that have one."""
    calls = [call for call in turn.tool_calls or [] if isinstance(call, dict)]
    return {call["id"]: call for call in calls if isinstance(call.get("id"), str)}


def _answered(calls: dict[str, Any], answers: Sequence[Turn]) -> dict[str, Turn]:
    """The first answer to each call; one that names none answers the next call that nobody else names."""
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
