"""What a coding agent did, read from its transcript: a task for each message of the user, with the calls of tools that
followed, their results, and what the agent said between them. Claude Code and Codex write it."""

import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from memoryhub_client._conversation import sendable, text_of
from memoryhub_client._memory import LONGEST_ID, Memory, logged
from memoryhub_client.errors import BadRequestError, ConflictError, MemoryHubError, TooLargeError
from memoryhub_client.models import NewStep

logger = logging.getLogger(__name__)
# What the hub keeps of a text, in characters.
LONGEST_TASK, LONGEST_TEXT, LONGEST_TOOL = 8_000, 20_000, 200
# Of one request: the hub takes 10 MB.
MOST_STEPS = 50
# Claude Code marks the result of a command that failed; of the others it tells no exit code.
SHELLS = frozenset({"Bash"})
CALLS = {"function_call": "arguments", "custom_tool_call": "input", "local_shell_call": "action"}
RESULTS = frozenset({"function_call_output", "custom_tool_call_output", "local_shell_call_output"})


@dataclass
class Task:
    """A message of the user and what followed it. `start` is the byte at which its line begins."""

    text: str
    id: str
    start: int
    began: str = ""
    ended: str = ""
    steps: list[NewStep] = field(default_factory=list)

    @property
    def is_work(self) -> bool:
        """Whether a tool was called: all else is talk."""
        return any(step["kind"] == "tool_call" for step in self.steps)


# Role, text and id of a line, as the hook reads them.
Said = Callable[[dict[str, Any], int], tuple[str, str, str]]


def tasks(transcript: Path, start: int, said: Said) -> Iterator[Task]:
    """The tasks from a byte on; what stands before the first message of the user belongs to none."""
    task: Task | None = None
    shells: set[str] = set()
    with transcript.open("rb") as file:
        file.seek(start)
        end = start
        for line in file:
            begin, end = end, end + len(line)
            entry = _entry(line)
            if entry is None:
                continue
            role, text, own_id = said(entry, begin)
            text, at = str(sendable(text)).strip(), str(entry.get("timestamp") or "")
            if role == "user" and text:
                if task:
                    yield task
                task = Task(text[:LONGEST_TASK], own_id, begin, began=at)
            if task:
                steps = list(_steps(entry, shells))
                if role == "assistant" and text:
                    steps.insert(0, {"kind": "message", "content": text[:LONGEST_TEXT], "call_id": own_id[:LONGEST_ID]})
                task.steps += [{**step, "at": at} if at else step for step in steps]
                task.ended = at if steps and at else task.ended
    if task:
        yield task


def post(memory: Memory, names: dict[str, str | None], task: Task) -> bool:
    """Post a task as a trajectory, or what the hub lacks of it; whether it is done: stored, or never to be."""
    hub = memory.hub
    given: dict[str, Any] = {"ended_at": task.ended} if task.ended else {}
    try:
        receipt = hub.post_trajectory(
            **names,  # type: ignore[arg-type]
            task=task.text,
            external_id=f"{names['session_id']}:{task.id}"[-LONGEST_ID:],
            **({"started_at": task.began} if task.began else {}),  # type: ignore[arg-type]
        )
        if receipt.trajectory is None:
            return True
        for at in range(0, len(task.steps), MOST_STEPS):
            hub.post_trajectory_steps(receipt.trajectory.id, steps=task.steps[at : at + MOST_STEPS], **given)
    except (BadRequestError, ConflictError, TooLargeError) as error:
        logger.warning("The hub does not take what was done for a task: %s", logged(error))
        return True
    except MemoryHubError as error:
        memory.failed("The hub did not take what was done, which is posted at the next chance", error)
        return False
    return True


def _entry(line: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(line) if line.endswith(b"\n") else None
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None


def _steps(entry: dict[str, Any], shells: set[str]) -> Iterator[NewStep]:
    """The calls and results of a line. `shells`: the calls of shells so far."""
    if isinstance(entry.get("payload"), dict):
        yield from _of_codex(entry["payload"])
        return
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if entry.get("isSidechain") or not isinstance(content, list):
        return
    for block in content:
        if isinstance(block, dict) and block.get("type") == "tool_use" and block.get("name"):
            if block["name"] in SHELLS:
                shells.add(str(block.get("id")))
            yield _call(str(block["name"]), str(block.get("id") or ""), block.get("input"))
        elif isinstance(block, dict) and block.get("type") == "tool_result":
            yield _result_of_claude(block, is_whole=not _is_interrupted(entry), shells=shells)


def _result_of_claude(block: dict[str, Any], *, is_whole: bool, shells: set[str]) -> NewStep:
    call_id = str(block.get("tool_use_id") or "")
    step = _result(call_id, text_of(block.get("content"), kinds=("text",)))
    if block.get("is_error") is True:
        step["is_error"] = True
    elif call_id in shells and is_whole:
        step["exit_code"] = 0
    return step


def _is_interrupted(entry: dict[str, Any]) -> bool:
    """Also of a command that goes on behind the conversation."""
    told = entry.get("toolUseResult")
    return isinstance(told, dict) and bool(told.get("interrupted") or told.get("backgroundTaskId"))


def _of_codex(payload: dict[str, Any]) -> Iterator[NewStep]:
    kind, call_id = str(payload.get("type")), str(payload.get("call_id") or payload.get("id") or "")
    if kind in CALLS:
        yield _call(str(payload.get("name") or "shell"), call_id, payload.get(CALLS[kind]))
    elif kind in RESULTS:
        output = payload.get("output")
        yield _result(call_id, output if isinstance(output, str) else json.dumps(output, ensure_ascii=False))


def _call(tool: str, call_id: str, given: Any) -> NewStep:
    step: dict[str, Any] = {"kind": "tool_call", "tool": tool[:LONGEST_TOOL]}
    step |= {"call_id": call_id[:LONGEST_ID]} if call_id else {}
    if isinstance(given, dict):
        text = json.dumps(given, ensure_ascii=False)
        given = given if len(text) <= LONGEST_TEXT else text
    if isinstance(given, dict | str) and given:
        step["arguments"] = sendable(given[:LONGEST_TEXT] if isinstance(given, str) else given)
    return cast("NewStep", step)


def _result(call_id: str, text: str) -> NewStep:
    step: dict[str, Any] = {"kind": "tool_result", "content": str(sendable(text))[:LONGEST_TEXT]}
    step |= {"call_id": call_id[:LONGEST_ID]} if call_id else {}
    return cast("NewStep", step)
