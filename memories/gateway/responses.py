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
    by_author,
    canonical,
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
_TEXTS = ("input_text", "output_text", "text")
_CALL, _RESULT = "function_call", "function_call_output"


class Responses(Dialect):
    path = "/v1/responses"

    def read(self, document: Mapping[str, Any]) -> ChatRequest:
        items = _items(document)
        if not isinstance(items, list) or not all(isinstance(one, dict) for one in items):
            raise UnreadableRequest
        instructions = document.get("instructions")
        messages, places = numbered(items, _messages)
        return ChatRequest(
            messages=messages,
            streams=document.get("stream") is True,
            store=document.get("store") is not False,
            user=name_of(document, "user", "safety_identifier"),
            session=_conversation(document) or name_of(document, "prompt_cache_key"),
            follows=name_of(document, "previous_response_id"),
            is_kept_there=bool(name_of(document, "previous_response_id") or _conversation(document)),
            instructions="\n".join([instructions if isinstance(instructions, str) else "", system_text(items)]),
            has_tools=bool(document.get("tools")),
            places=places,
        )

    def with_memory(self, document: Mapping[str, Any], stable: str, before: Mapping[int, str]) -> dict[str, Any]:
        """In the instructions, which an endpoint that keeps the conversation does not carry over, and in items of their
        own: what is read back from there is not the user's."""
        found = dict(document)
        if stable:
            instructions = document.get("instructions")
            found["instructions"] = f"{instructions}\n\n{stable}" if instructions else stable
        if before:
            items = []
            for place, item in enumerate(_items(document)):
                if place in before:
                    content = [{"type": "input_text", "text": before[place]}]
                    items.append({"type": "message", "role": "developer", "content": content})
                items.append(item)
            found["input"] = items
        return found

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
        answer.text = "\n\n".join(texts)
        return answer


def _items(document: Mapping[str, Any]) -> Any:
    given = document.get("input")
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


def _conversation(document: Mapping[str, Any]) -> str:
    """The conversation that the endpoint keeps: its id, or an object with it."""
    given = document.get("conversation")
    return name_of(given, "id") if isinstance(given, dict) else name_of(document, "conversation")


def _messages(item: Mapping[str, Any]) -> list[PostedMessage]:
    contents = by_author(item.get("content")) if item.get("role") == Role.USER else [item.get("content")]
    found = (_message({**item, "content": content}) for content in contents)
    return noted_parts(one for one in found if one is not None)


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
