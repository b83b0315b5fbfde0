"""POST /v1/chat/completions."""

from collections.abc import Iterator, Mapping
from typing import Any

from memories.capture.ingest import PostedMessage
from memories.gateway.dialects import (
    SYSTEM_ROLES,
    ChatRequest,
    Dialect,
    StreamedReply,
    UnreadableRequest,
    by_author,
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

_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "tool": Role.TOOL, "function": Role.TOOL}


class ChatCompletions(Dialect):
    path = "/v1/chat/completions"

    def read(self, document: Mapping[str, Any]) -> ChatRequest:
        given = document.get("messages")
        if not isinstance(given, list):
            raise UnreadableRequest
        messages, places = numbered(given, lambda one: () if _is_system(one) else _messages(one))
        return ChatRequest(
            messages=messages,
            streams=document.get("stream") is True,
            store=document.get("store") is not False,
            user=name_of(document, "user", "safety_identifier"),
            session=name_of(document, "prompt_cache_key"),
            instructions=system_text(given),
            has_tools=bool(document.get("tools") or document.get("functions")),
            places=places,
        )

    def with_memory(self, document: Mapping[str, Any], stable: str, before: Mapping[int, str]) -> dict[str, Any]:
        """In the first system message, as many models take no second one, and in the user's, as many take no two of
        these in a row."""
        messages = list(document["messages"])
        for place, block in before.items():
            messages[place] = {**messages[place], "content": in_front(messages[place].get("content"), block)}
        if not stable:
            return {**document, "messages": messages}
        first: dict[str, Any] = messages[0] if messages else {}
        if not _is_system(first):
            return {**document, "messages": [{"role": "system", "content": stable}, *messages]}
        content: Any = first.get("content")
        if isinstance(content, list):
            joined: Any = [*content, {"type": "text", "text": stable}]
        else:
            joined = f"{content}\n\n{stable}" if content else stable
        return {**document, "messages": [{**first, "content": joined}, *messages[1:]]}

    def add_event(self, answer: StreamedReply, event: Mapping[str, Any]) -> None:
        answer.id = answer.id or str(event.get("id") or "")
        for choice in event.get("choices") or []:
            # Of several answers the first: if the client goes on with another, that one is in its next request.
            if choice.get("index", 0) != 0:
                continue
            delta = choice.get("delta") or {}
            answer.text += delta.get("content") or delta.get("refusal") or ""
            for call in delta.get("tool_calls") or []:
                _add_call(answer, call)
            answer.is_whole = answer.is_whole or choice.get("finish_reason") is not None

    def read_answer(self, document: Mapping[str, Any]) -> StreamedReply:
        choices = document.get("choices") or [{}]
        first: dict[str, Any] = next((one for one in choices if one.get("index", 0) == 0), {})
        message = first.get("message") or {}
        return StreamedReply(
            text=message.get("content") or message.get("refusal") or "",
            tool_calls=message.get("tool_calls") or [],
            id=str(document.get("id") or ""),
            is_whole=True,
        )


def _is_system(given: Any) -> bool:
    return isinstance(given, dict) and given.get("role") in SYSTEM_ROLES


def _messages(given: Any) -> Iterator[PostedMessage]:
    if isinstance(given, dict) and given.get("role") == Role.USER:
        contents = by_author(given.get("content"))
        yield from noted_parts(_message({**given, "content": content}) for content in contents)
    else:
        yield _message(given)


def _message(given: Any) -> PostedMessage:
    role = _ROLES.get(str(given.get("role"))) if isinstance(given, dict) else None
    if role is None:
        raise UnreadableRequest
    text, parts = text_of(given.get("content"))
    if role == Role.ASSISTANT and not text:
        text, _ = text_of(given.get("refusal"))
    calls = given.get("tool_calls")
    if isinstance(given.get("function_call"), dict) and not calls:
        calls = [{"type": "function", "function": given["function_call"]}]
    if calls is not None and not isinstance(calls, list):
        raise UnreadableRequest
    call_id, name = given.get("tool_call_id"), given.get("name")
    return message(
        role,
        text,
        parts=parts,
        tool_calls=slim(calls) or None,
        tool_call_id=call_id if isinstance(call_id, str) else "",
        name=name if isinstance(name, str) else "",
    )


def _add_call(answer: StreamedReply, part: Mapping[str, Any]) -> None:
    """A call comes in pieces: id and name first, then its arguments."""
    at = part.get("index", len(answer.tool_calls))
    while len(answer.tool_calls) <= at < 1_000:
        answer.tool_calls.append({"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
    call = answer.tool_calls[at]
    call["id"] = call["id"] or part.get("id") or ""
    call["type"] = part.get("type") or call["type"]
    function = part.get("function") or {}
    call["function"]["name"] += function.get("name") or ""
    call["function"]["arguments"] += function.get("arguments") or ""
