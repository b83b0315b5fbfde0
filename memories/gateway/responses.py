"""POST /v1/responses."""

from collections.abc import Mapping
from typing import Any

from memories.capture.ingest import PostedMessage
from memories.gateway.dialects import (
    SYSTEM_ROLES,
    ChatRequest,
    Dialect,
    StreamedReply,
    UnreadableRequest,
    canonical,
    message,
    slim,
    text_of,
)
from memories.models import Role

_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT}
_TEXTS = ("input_text", "output_text", "text")
_CALL, _RESULT = "function_call", "function_call_output"


class Responses(Dialect):
    path = "/v1/responses"

    def read(self, document: Mapping[str, Any]) -> ChatRequest:
        given = document.get("input")
        items = [{"role": "user", "content": given}] if isinstance(given, str) else given
        if not isinstance(items, list) or not all(isinstance(one, dict) for one in items):
            raise UnreadableRequest
        user, follows = document.get("user"), document.get("previous_response_id")
        return ChatRequest(
            messages=[one for one in map(_message, items) if one is not None],
            streams=document.get("stream") is True,
            store=document.get("store") is not False,
            user=user if isinstance(user, str) else "",
            follows=follows if isinstance(follows, str) else "",
        )

    def with_memory(self, document: Mapping[str, Any], memory: str) -> dict[str, Any]:
        instructions = document.get("instructions")
        return {**document, "instructions": f"{instructions}\n\n{memory}" if instructions else memory}

    def new_answer(self) -> StreamedReply:
        return StreamedReply(in_items=True)

    def add_event(self, answer: StreamedReply, event: Mapping[str, Any]) -> None:
        kind = event.get("type")
        if kind in ("response.output_text.delta", "response.refusal.delta"):
            answer.text += event.get("delta") or ""
        elif kind == "response.output_item.done" and (event.get("item") or {}).get("type") == _CALL:
            answer.tool_calls.append(_call(event["item"]))
        elif kind in ("response.completed", "response.incomplete"):
            whole = self.read_answer(event.get("response") or {})
            answer.text, answer.tool_calls = whole.text or answer.text, whole.tool_calls or answer.tool_calls
            answer.id, answer.is_whole = whole.id, kind == "response.completed"
        elif kind == "response.created":
            answer.id = str((event.get("response") or {}).get("id") or "")

    def read_answer(self, document: Mapping[str, Any]) -> StreamedReply:
        answer = self.new_answer()
        answer.id, answer.is_whole = str(document.get("id") or ""), document.get("status") != "incomplete"
        texts = []
        for item in document.get("output") or []:
            if item.get("type") == _CALL:
                answer.tool_calls.append(_call(item))
            elif item.get("type") == "message":
                texts += [part.get("text") or part.get("refusal") or "" for part in item.get("content") or []]
        answer.text = " ".join(texts)
        return answer


def _message(item: Mapping[str, Any]) -> PostedMessage | None:
    """An item as a message; None for what nobody said: reasoning, references, calls of the endpoint's own tools."""
    kind, role = item.get("type", "message"), _ROLES.get(str(item.get("role")))
    if kind == _CALL:
        return message(Role.ASSISTANT, "", tool_calls=[_call(item)])
    if kind == _RESULT:
        text, parts = text_of(item.get("output"), kinds=_TEXTS)
        return message(Role.TOOL, text, parts=parts, tool_call_id=str(item.get("call_id") or ""))
    if kind != "message" or item.get("role") in SYSTEM_ROLES:
        return None
    if role is None:
        raise UnreadableRequest
    content = item.get("content")
    if isinstance(content, list):
        # What the model refused is what it said.
        content = [
            {"type": "output_text", "text": part.get("refusal")} if part.get("type") == "refusal" else part
            for part in content
            if isinstance(part, dict)
        ]
    text, parts = text_of(content, kinds=_TEXTS)
    return message(role, text, parts=parts)


def _call(item: Mapping[str, Any]) -> dict[str, Any]:
    """A call in the form that turns have: that of chat completions."""
    function = {"name": item.get("name") or "", "arguments": canonical(item.get("arguments") or "")}
    found: dict[str, Any] = slim({"id": item.get("call_id") or "", "type": "function", "function": function})
    return found
