"""Session files of Claude Code and Codex: what the user typed and the agent answered.

The client's hook posts the same from the same files while a session runs (`memoryhub-client hook`). Names, ids and
texts are those of the hook, so that what one of them stored is known to the other.
"""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from memories.imports.messages import Talk
from memories.imports.places import Given
from memories.imports.raw_documents import RefusedDocumentError, places_of_lines
from memories.imports.records import NOT_SHOWN, OTHER_FORM, TOOLS, Record
from memories.imports.unpacking import Part

LONGEST_TEXT = 500_000
_UNSENDABLE = dict.fromkeys([0, *range(0xD800, 0xE000)], "\ufffd")
# A block of the agent's own inside a user's message: at the start of a line a tag with a hyphen or an underscore, as no
# element of HTML has; some also elsewhere. A fence opens code that the user pasted.
_OPENS = re.compile(
    r"^(?P<fence>```+|~~~+)"
    r"|^[ \t]*<(?P<line>(?:[a-z0-9]+[-_])+[a-z0-9]+|INSTRUCTIONS)(?:\s[^<>]*)?>"
    r"|<(?P<known>system-reminder|local-command-[a-z]+|bash-[a-z]+|ide_[a-z_]+|task-notification|user-prompt-submit-hook)>",
    re.MULTILINE,
)
_PIPED, _PIPE_ENDS = "<stdin>\n", "</stdin>"
_COMMAND = re.compile(r"<command-name>\s*(?P<name>/?\S{1,255}?)\s*</command-name>")
_TYPED, _TYPED_ENDS = "<command-args>", "</command-args>"
_AUTHORS = {"user": "person", "assistant": "model"}
_OF_CODEX = {"user_message": "user", "UserMessage": "user", "agent_message": "assistant", "AgentMessage": "assistant"}
_INTERRUPTED = "[Request interrupted by user"
_NOBODY = ("isMeta", "isSidechain", "isCompactSummary", "isApiErrorMessage")
# A rollout's name ends in the id of its session.
_ROLLOUT = re.compile(r"rollout-.*?-(?P<id>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\Z")


def claude_code(given: Given, parts: list[Part]) -> Iterator[Record]:
    """`~/.claude/projects/…/SESSION.jsonl`."""
    for part in parts:
        talk = Talk(given, PurePosixPath(part.name).stem)
        for line in places_of_lines(part.path):
            entry = line.document
            if isinstance(entry, RefusedDocumentError):
                talk.omit(entry.code)
            elif not isinstance(entry.get("type"), str) or not isinstance(entry.get("message"), dict | None):
                talk.omit(OTHER_FORM)
            elif entry["type"] in ("user", "assistant"):
                # A session that was resumed goes on in another file.
                talk.session_id = entry.get("sessionId") or talk.session_id
                _say(talk, *_of_claude_code(entry), entry.get("timestamp"))
            else:
                # What the agent writes down for itself.
                talk.omit(NOT_SHOWN)
        yield from talk.records()


def codex(given: Given, parts: list[Part]) -> Iterator[Record]:
    """`~/.codex/sessions/…/rollout-….jsonl`."""
    for part in parts:
        named = _ROLLOUT.search(PurePosixPath(part.name).stem)
        talk = Talk(given, named["id"] if named else PurePosixPath(part.name).stem)
        for line in places_of_lines(part.path):
            entry = line.document
            if isinstance(entry, RefusedDocumentError):
                talk.omit(entry.code)
                continue
            payload = entry.get("payload")
            if not isinstance(payload, dict):
                talk.omit(OTHER_FORM)
            elif entry.get("type") == "session_meta" and payload.get("id"):
                talk.session_id = payload["id"]
            elif entry.get("type") == "event_msg":
                _say(talk, *_of_codex(entry, line.start), entry.get("timestamp"))
            else:
                # The same as the model had it, and what the agent writes down for itself.
                talk.omit(NOT_SHOWN)
        yield from talk.records()


def typed(text: str) -> str:
    """What the user typed of a message: a slash command with what stood behind it; no blocks of the agent's own and no
    piped data."""
    command = _COMMAND.search(text)
    if command and text.lstrip().startswith("<command-"):
        said = text.partition(_TYPED)[2].rpartition(_TYPED_ENDS)[0].strip()
        return f"/{command['name'].removeprefix('/')} {said}" if said else ""
    return "".join(_outside_blocks(_without_piped(text)))


def _without_piped(text: str) -> str:
    """Without what stands from the first line that opens piped data to its end, which is that of the text."""
    before, opens, _piped = f"\n{text}".partition(f"\n{_PIPED}")
    return f"{before}\n"[1:] if opens and text.rstrip().endswith(_PIPE_ENDS) else text


def _say(talk: Talk, role: str, text: str, own_id: str, at: Any) -> None:
    text = text.translate(_UNSENDABLE).strip()[:LONGEST_TEXT]
    if not role:
        talk.omit(NOT_SHOWN)
    elif not text:
        talk.omit(TOOLS)
    elif own_id:
        talk.say(role, text, own_id[:255], at, author=_AUTHORS[role])
    else:
        talk.omit(OTHER_FORM)


def _of_claude_code(entry: dict[str, Any]) -> tuple[str, str, str]:
    """Role, text and id. Calls of tools and their answers are left out: they are the project, not the person."""
    message, role = entry.get("message"), str(entry.get("type"))
    if not isinstance(message, dict) or any(entry.get(one) for one in _NOBODY):
        return "", "", ""
    text = _text_of(message.get("content"), ("text",))
    if role == "user":
        text = typed(text)
        text = "" if text.strip().startswith(_INTERRUPTED) else text
    return role, text, str(entry.get("uuid") or "")


def _of_codex(entry: dict[str, Any], place: int) -> tuple[str, str, str]:
    """Role, text and id, of the events that show what was said. A line has no id, but its place never changes."""
    event = entry["payload"] if isinstance(entry.get("payload"), dict) else {}
    # Since 2026 an item that is complete; before, an event of its own for each.
    said = event.get("item") if event.get("type") == "item_completed" else event
    if not isinstance(said, dict):
        return "", "", ""
    content = said["message"] if isinstance(said.get("message"), str) else said.get("content")
    text = _text_of(content, ("text", "Text"))
    role = _OF_CODEX.get(str(said.get("type")), "")
    return role, typed(text) if role == "user" else text, f"{entry.get('timestamp') or ''}-{place}"


def _text_of(content: Any, kinds: tuple[str, ...]) -> str:
    if isinstance(content, str):
        return content
    texts = [
        one if isinstance(one, str) else one.get("text")
        for one in (content if isinstance(content, list) else ())
        if isinstance(one, str) or (isinstance(one, dict) and one.get("type") in kinds)
    ]
    return "\n".join(one for one in texts if isinstance(one, str) and one)


def _outside_blocks(text: str) -> Iterator[str]:
    """The pieces between the blocks, in one pass: of a tag that is never closed the end is looked for once."""
    never_closed: set[str] = set()
    kept = at = 0
    while found := _OPENS.search(text, at):
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
