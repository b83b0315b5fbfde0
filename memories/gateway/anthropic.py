"""POST /v1/messages, Anthropic's protocol."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from memories.capture.ingest import PostedMessage
from memories.gateway.dialects import (
    SYSTEM_ROLES,
    ChatRequest,
    Dialect,
    StreamedReply,
    UnreadableRequest,
    by_author,
    canonical,
    error_type,
    in_front,
    message,
    name_of,
    noted_parts,
    numbered,
    slim,
    system_text,
    text_of,
)
from memories.models import Role

_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT}


class Messages(Dialect):
    path = "/v1/messages"
    key_header = ("x-api-key", "")

    def read(self, document: Mapping[str, Any]) -> ChatRequest:
        given = document.get("messages")
        if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
            raise UnreadableRequest
        user, session = _names(document.get("metadata"))
        system = document.get("system")
        messages, places = numbered(given, _messages)
        return ChatRequest(
            messages=messages,
            streams=document.get("stream") is True,
            user=user,
            session=session,
            instructions="\n".join([system_text([{"role": SYSTEM_ROLES[0], "content": system}]), system_text(given)]),
            has_tools=bool(document.get("tools")),
            places=places,
        )

    def with_memory(self, document: Mapping[str, Any], stable: str, before: Mapping[int, str]) -> dict[str, Any]:
        """Behind the application's own prompt, so that what the endpoint has cached of that stays, and in the user's
        message, behind the results of tools, which come first there. The endpoint caches nothing that nobody marks."""
        messages = list(document["messages"])
        for place, block in before.items():
            content = messages[place].get("content")
            parts = content if isinstance(content, list) else [{"type": "text", "text": content}] if content else []
            kinds = [part.get("type") if isinstance(part, dict) else None for part in parts]
            results = next((at for at, kind in enumerate(kinds) if kind != "tool_result"), len(kinds))
            messages[place] = {**messages[place], "content": in_front(parts, block, after=results)}
        if not stable:
            return {**document, "messages": messages}
        part: dict[str, Any] = {"type": "text", "text": stable}
        if not _has_mark(document):
            part["cache_control"] = {"type": "ephemeral"}
        system = document.get("system")
        prompt = system if isinstance(system, list) else [{"type": "text", "text": system}] if system else []
        return {**document, "system": [*prompt, part], "messages": messages}

    def add_event(self, answer: StreamedReply, event: Mapping[str, Any]) -> None:
        kind = event.get("type")
        if kind == "message_start":
            answer.id = str((event.get("message") or {}).get("id") or "")
        elif kind == "content_block_start":
            block = event.get("content_block") or {}
            if block.get("type") == "tool_use":
                answer.tool_calls.append(_call(block, arguments=""))
            elif answer.text and block.get("type") == "text":
                answer.text += "\n\n"
        elif kind == "content_block_delta":
            delta = event.get("delta") or {}
            answer.text += delta.get("text") or ""
            if delta.get("type") == "input_json_delta":
                answer.tool_calls[-1]["function"]["arguments"] += delta.get("partial_json") or ""
        elif kind == "message_stop":
            answer.is_whole = True
            _read_arguments(answer)

    def read_answer(self, document: Mapping[str, Any]) -> StreamedReply:
        blocks = document.get("content") or []
        texts = [block.get("text") or "" for block in blocks if block.get("type") == "text"]
        calls = [_call(block) for block in blocks if block.get("type") == "tool_use"]
        return StreamedReply("\n\n".join(texts), calls, str(document.get("id") or ""), is_whole=True)

    def error(self, status: int, code: str, detail: str) -> dict[str, Any]:
        return {"type": "error", "error": {"type": error_type(status), "message": f"{detail} ({code})"}}


def _has_mark(document: Mapping[str, Any]) -> bool:
    """Whether the client says itself what the endpoint is to cache."""
    contents = (one.get("content") for one in document["messages"])
    lists = [one for one in (document.get("system"), document.get("tools"), *contents) if isinstance(one, list)]
    parts = [part for one in lists for part in one if isinstance(part, dict)]
    inner = [within for part in parts if isinstance(part.get("content"), list) for within in part["content"]]
    return any(isinstance(one, dict) and one.get("cache_control") for one in (document, *parts, *inner))


def _read_arguments(answer: StreamedReply) -> None:
    """The next request holds them as an object, whose text may be another."""
    for call in answer.tool_calls:
        with suppress(ValueError, RecursionError):
            call["function"]["arguments"] = canonical(json.loads(call["function"]["arguments"] or "{}"))


def _names(metadata: Any) -> tuple[str, str]:
    """The person and the conversation. Claude Code sends an object as text: its device and account are no person that
    memory could be about, its session is the conversation."""
    user = name_of(metadata, "user_id") if isinstance(metadata, dict) else ""
    if not user.lstrip().startswith("{"):
        return user, ""
    try:
        named = json.loads(user)
    except (ValueError, RecursionError):
        return "", ""
    return "", name_of(named, "session_id") if isinstance(named, dict) else ""


def _messages(given: Mapping[str, Any]) -> Iterator[PostedMessage]:
    """A message as turns: the answers of tools, which the user's message holds, are turns of their own."""
    # Claude Code puts its own reminders between the messages.
    if given.get("role") in SYSTEM_ROLES:
        return
    role, content = _ROLES.get(str(given.get("role"))), given.get("content")
    if role is None:
        raise UnreadableRequest
    blocks = content if isinstance(content, list) else []
    for block in blocks:
        if isinstance(block, dict) and block.get("type") == "tool_result":
            text, parts = text_of(block.get("content"))
            yield message(Role.TOOL, text, parts=parts, tool_call_id=str(block.get("tool_use_id") or ""))
    calls = [_call(one) for one in blocks if isinstance(one, dict) and one.get("type") == "tool_use"]
    if blocks:
        content = [one for one in blocks if not (isinstance(one, dict) and one.get("type") in _HIDDEN_BLOCKS)]
    divided = by_author(content) if role == Role.USER else [content]
    given_parts = [text_of(part) for part in divided if part or calls]
    yield from noted_parts(message(role, text, parts=parts, tool_calls=calls or None) for text, parts in given_parts)


_HIDDEN_BLOCKS = ("tool_result", "tool_use", "thinking", "redacted_thinking")


def _call(block: Mapping[str, Any], *, arguments: str | None = None) -> dict[str, Any]:
    """A call in the form that turns have: that of chat completions."""
    given = canonical(block.get("input") or {}) if arguments is None else arguments
    function = {"name": block.get("name") or "", "arguments": given}
    found: dict[str, Any] = slim({"id": block.get("id") or "", "type": "function", "function": function})
    return found
