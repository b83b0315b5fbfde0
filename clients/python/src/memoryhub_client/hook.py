"""`memoryhub-client hook`: memory for Claude Code and Codex. Both call it at events, with a JSON object on its input.

When a session starts it prints what the hub remembers, as both take it. When the agent stops, before the conversation
is compacted and when the session ends it posts what the transcript has and the hub has not. At the end it also tells
the hub that the session is over. With `--trajectories` it also posts what the agent did: calls of tools and results.
"""

import hashlib
import json
import logging
import os
import re
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

from memoryhub_client import _tasks
from memoryhub_client._conversation import sendable, text_of
from memoryhub_client._memory import LONGEST_ID, TIMEOUT_SECONDS, Memory
from memoryhub_client._retrying import Retries
from memoryhub_client.client import MemoryHub
from memoryhub_client.models import NewMessage

logger = logging.getLogger(__name__)
POSTS = frozenset({"Stop", "PreCompact", "SessionEnd"})
MAX_TOKENS = 2000
LONGEST_TEXT = 500_000
# What opens a block that both write into the user's messages, who did not say it: at the start of a line a tag with a
# hyphen or an underscore, as no element of HTML has; some also elsewhere. A fence opens code that the user pasted.
OPENS = re.compile(
    r"^(?P<fence>```+|~~~+)"
    r"|^[ \t]*<(?P<line>(?:[a-z0-9]+[-_])+[a-z0-9]+|INSTRUCTIONS)(?:\s[^<>]*)?>"
    r"|<(?P<known>system-reminder|local-command-[a-z]+|bash-[a-z]+|ide_[a-z_]+|task-notification|user-prompt-submit-hook)>",
    re.MULTILINE,
)
# What was piped to `codex exec`, behind what was typed. Nothing that it holds can end it.
PIPED = re.compile(r"^<stdin>\n.*</stdin>\s*\Z", re.DOTALL | re.MULTILINE)
# A slash command as Claude Code writes it.
COMMAND = re.compile(r"<command-name>\s*(?P<name>/?\S+?)\s*</command-name>")
TYPED = re.compile(r"<command-args>(?P<args>.*)</command-args>", re.DOTALL)
# Events of Codex that are somebody's words.
AUTHORS = {"user": "person", "assistant": "model"}
OF_CODEX = {"user_message": "user", "UserMessage": "user", "agent_message": "assistant", "AgentMessage": "assistant"}
INTERRUPTED = "[Request interrupted by user"
NOBODY = ("isMeta", "isSidechain", "isCompactSummary", "isApiErrorMessage")


class TranscriptLine(NamedTuple):
    """A message of a transcript, and the byte after its line."""

    message: NewMessage
    end: int


def run(options: Namespace) -> int:
    """The exit status; never 2, by which a hook holds an agent up."""
    try:
        event = json.load(sys.stdin)
    except ValueError:
        event = None
    if not isinstance(event, dict) or not event.get("session_id"):
        print("This is a hook of Claude Code or Codex: it wants the JSON of an event on its input.", file=sys.stderr)  # noqa: T201
        return 1
    try:
        hub = MemoryHub(
            options.key, base_url=options.url, timeout=TIMEOUT_SECONDS, retries=Retries(times=1, longest_wait=1)
        )
    except ValueError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1
    names = {
        "user_id": options.user or os.environ.get("MEMORYHUB_USER") or None,
        "session_id": str(event["session_id"])[:LONGEST_ID],
        "agent_id": options.agent or None,
    }
    which = json.dumps([options.url or os.environ.get("MEMORYHUB_URL"), options.key or os.environ.get("MEMORYHUB_KEY")])
    with hub:
        memory = Memory(hub, max_tokens=MAX_TOKENS, log=logger)
        answer = answered(event, memory, names, which, tells=options.trajectories)
    if answer:
        print(json.dumps(answer))  # noqa: T201
    return 0


def answered(
    event: Mapping[str, Any], memory: Memory, names: Mapping[str, str | None], hub: str, *, tells: bool = False
) -> dict[str, Any] | None:
    """Do what the event asks for. What is to be printed. `hub` stands for the hub and the key. `tells`: also what the
    agent did."""
    if event.get("hook_event_name") in POSTS:
        path = str(event.get("transcript_path") or "")
        post(path, memory, names, hub)
        if tells and memory.may_ask():
            post_tasks(path, memory, names, hub)
    # While messages wait for the next chance it is not over for the hub.
    if event.get("hook_event_name") == "SessionEnd" and memory.may_ask():
        memory.end(names)
    if event.get("hook_event_name") != "SessionStart":
        return None
    # A session that is resumed shows its turns itself. One that was cleared or compacted does not.
    asked = names if event.get("source") == "resume" else {**names, "session_id": None}
    context = memory.of(asked, None)
    return {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": context}} if context else None


def post(path: str, memory: Memory, names: Mapping[str, str | None], hub: str) -> None:
    """Post what the transcript has behind the place up to which it was posted. The hub knows what it has already."""
    transcript = Path(path).expanduser()
    if not path or not transcript.is_file():
        logger.warning("There is no transcript to remember.")
        return
    place = TranscriptPosition(transcript, names, hub)
    lines = list(said(transcript, place.read()))
    done = memory.post(names, [line.message for line in lines]) if lines else 0
    if done:
        place.write(lines[done - 1].end)


def post_tasks(path: str, memory: Memory, names: Mapping[str, str | None], hub: str) -> None:
    """Post what the agent did for each message of the user. The last one may go on: it is read again the next time, and
    the hub knows which of its calls it has."""
    transcript = Path(path).expanduser()
    if not path or not transcript.is_file():
        return
    place = TranscriptPosition(transcript, names, hub, what="tasks")
    for task in _tasks.tasks(transcript, place.read(), _role_of):
        if task.is_work and not _tasks.post(memory, dict(names), task):
            return
        place.write(task.start)


def _role_of(entry: dict[str, Any], place: int) -> tuple[str, str, str]:
    return _of_codex(entry, place) if "payload" in entry else _of_claude_code(entry)


class TranscriptPosition:
    """Up to which byte a transcript was posted: a small file, without which all of it is posted again."""

    def __init__(self, transcript: Path, names: Mapping[str, str | None], hub: str, *, what: str = "") -> None:
        folder = Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser()
        # For another hub, key or person it is another one.
        whose = [str(transcript), hub, names["user_id"], names["agent_id"], *([what] if what else [])]
        digest = hashlib.sha256(json.dumps(whose).encode()).hexdigest()[:32]
        self._file = folder / "memoryhub-client" / "hooks" / digest
        self._size = transcript.stat().st_size

    def read(self) -> int:
        try:
            place = int(self._file.read_text("ascii"))
        except (OSError, ValueError):
            return 0
        # A file that has become shorter is another one.
        return place if place <= self._size else 0

    def write(self, place: int) -> None:
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._file.write_text(str(place), "ascii")
        except OSError as error:
            logger.warning("The place in the transcript is not kept: %s", error.strerror)


def said(transcript: Path, start: int) -> Iterator[TranscriptLine]:
    """What the user and the agent said, from a byte on. A line that is still being written is for the next time."""
    with transcript.open("rb") as file:
        file.seek(start)
        end = start
        for line in file:
            begin, end = end, end + len(line)
            if line.endswith(b"\n") and (message := _message(line, begin)):
                yield TranscriptLine(message, end)


def _message(line: bytes, place: int) -> NewMessage | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    if not isinstance(entry, dict):
        return None
    role, text, own_id = _role_of(entry, place)
    text = str(sendable(text)).strip()[:LONGEST_TEXT]
    if not role or not text or not own_id:
        return None
    message = {"role": role, "author": AUTHORS[role], "content": text, "external_id": own_id[:LONGEST_ID]}
    if isinstance(entry.get("timestamp"), str):
        message["timestamp"] = entry["timestamp"]
    return cast("NewMessage", message)


def _of_claude_code(entry: dict[str, Any]) -> tuple[str, str, str]:
    """Role, text and id. Calls of tools and their answers are left out: they are the project, not the person."""
    message, role = entry.get("message"), entry.get("type")
    if role not in {"user", "assistant"} or not isinstance(message, dict) or any(entry.get(one) for one in NOBODY):
        return "", "", ""
    text = text_of(message.get("content"), kinds=("text",))
    if role == "user":
        text = typed(text)
        text = "" if text.strip().startswith(INTERRUPTED) else text
    return role, text, str(entry.get("uuid") or "")


def typed(text: str) -> str:
    """What the user typed of a message: a slash command with what stood behind it; no blocks of the agent's own and no
    piped data."""
    command, args = COMMAND.search(text), TYPED.search(text)
    if command and text.lstrip().startswith("<command-"):
        said = args["args"].strip() if args else ""
        return f"/{command['name'].removeprefix('/')} {said}" if said else ""
    return "".join(_outside_blocks(PIPED.sub("", text)))


def _outside_blocks(text: str) -> Iterator[str]:
    """The pieces between the blocks, in one pass: of a tag that is never closed the end is looked for once."""
    never_closed: set[str] = set()
    kept = at = 0
    while found := OPENS.search(text, at):
        at = found.end()
        close = f"\n{found['fence']}" if found["fence"] else f"</{found['line'] or found['known']}>"
        end = -1 if close in never_closed else text.find(close, at)
        if end < 0:
            never_closed.add(close)
            continue
        at = end + len(close)
        if not found["fence"]:
            yield text[kept : found.start()]
            kept = at
    yield text[kept:]


def _of_codex(entry: dict[str, Any], place: int) -> tuple[str, str, str]:
    """Role, text and id, of the events that show what was said. A line has no id, but its place never changes."""
    event = entry["payload"] if isinstance(entry["payload"], dict) else {}
    # Since 2026 an item that is complete; before, an event of its own for each.
    said = event.get("item") if event.get("type") == "item_completed" else event
    if entry.get("type") != "event_msg" or not isinstance(said, dict):
        return "", "", ""
    content = said["message"] if isinstance(said.get("message"), str) else said.get("content")
    text = text_of(content if isinstance(content, str | list) else None, kinds=("text", "Text"))
    role = OF_CODEX.get(str(said.get("type")), "")
    return role, typed(text) if role == "user" else text, f"{entry.get('timestamp') or ''}-{place}"
