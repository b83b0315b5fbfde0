"""ChatGPT's exports: conversations as trees, what was said by voice, what the person told it of themselves, and what it
saved as memories.

An export has no list of saved memories: they stand in the conversations, as what the model wrote to its `bio` tool and
as the list that the model was given (`model_set_context`). The newest list says which of them there were then.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from memories.imports import trees
from memories.imports.messages import Talk, object_in
from memories.imports.places import Given, dated
from memories.imports.raw_documents import RefusedDocumentError, unsendable_in
from memories.imports.records import (
    MEDIA,
    NO_TEXT,
    NOT_SHOWN,
    OTHER_FORM,
    THOUGHTS,
    TOOLS,
    UNWANTED,
    LeftOut,
    Record,
)
from memories.imports.stating import memory
from memories.imports.unpacking import Part

# What a person and an assistant said to each other; calls of tools are of other types.
_SPOKEN = ("text", "multimodal_text")
_THOUGHTS = ("thoughts", "reasoning_recap")
_ABOUT, _LIST = "user_editable_context", "model_editable_context"
INSTRUCTIONS = "chatgpt-custom-instructions"
# The texts of the custom instructions: as they are now, and as they were in older exports.
_TOLD = ("user_profile", "user_instructions", "about_user_message", "about_model_message")
# The service's own sentences around what the person wrote.
_PROVIDED, _FENCE = "The user provided ", "```"
_ENTRY = re.compile(r"^[^\S\n]*(?:\d+\.|[-*])\s+(?:\[(?P<day>[0-9-]{10})\]\.?\s*)?", re.MULTILINE)


def read(given: Given, parts: list[Part]) -> Iterator[Record]:
    """Conversations with the branch that was shown last, then custom instructions and saved memories."""
    kept = _Kept(given)
    for conversation in dated(given, parts, lambda one: one.get("create_time")):
        if isinstance(conversation, RefusedDocumentError):
            yield conversation
        elif conversation.get("is_do_not_remember") not in (None, False, "", "false"):
            yield LeftOut(UNWANTED)
        elif isinstance(conversation.get("mapping"), dict):
            yield from _conversation(given, conversation, kept)
        else:
            yield LeftOut(OTHER_FORM)
    yield from kept.records()


class _Kept:
    """What conversations hold beside what was said: it is the person's, not the conversation's."""

    def __init__(self, given: Given) -> None:
        self._given = given
        self._instructions: dict[str, Any] = {}
        self._saved: dict[str, datetime | None] = {}
        self._list: tuple[str, str] = ("", "")

    def tell(self, content: Mapping[str, Any], metadata: Mapping[str, Any], at: Any) -> None:
        """Custom instructions: the person's own words."""
        older = metadata.get("user_context_message_data")
        for where in (content, older if isinstance(older, dict) else {}):
            for name in _TOLD:
                if isinstance(where.get(name), str) and (text := _own(where[name])):
                    self._instructions.setdefault(text, at)

    def save(self, text: str, at: Any) -> bool:
        """Whether there is something to save."""
        if text:
            self._saved.setdefault(text, self._given.moment(at))
        return bool(text)

    def list(self, text: str, at: Any) -> None:
        """The list that the model was given at that time; the newest counts."""
        self._list = max(self._list, (str(self._given.moment(at) or ""), text))

    def records(self) -> Iterator[Record]:
        talk = Talk(self._given, INSTRUCTIONS)
        for text, at in self._instructions.items():
            talk.say(
                "user", text, hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32], at, author="person"
            )
        if talk.messages:
            yield from talk.records()
        listed_at, listed = self._list
        entries = list(_ENTRY.finditer(listed))
        ends = [*(entry.start() for entry in entries[1:]), len(listed)]
        texts = ((listed[entry.end() : end].strip(), entry["day"]) for entry, end in zip(entries, ends, strict=False))
        saved: dict[str, datetime | None] = {text: self._given.moment(day) for text, day in texts if text}
        for text, said in self._saved.items():
            # What is older than the list and not on it was forgotten there.
            if not listed or str(said or "") >= listed_at:
                saved.setdefault(text, said)
            elif text not in saved:
                yield LeftOut("forgotten")
        for text, said in saved.items():
            yield memory("chatgpt", None, text, said.isoformat() if said else None)


def _conversation(given: Given, conversation: dict[str, Any], kept: _Kept) -> Iterator[Record]:
    nodes = {
        name: node
        for name, node in conversation["mapping"].items()
        if isinstance(node, dict) and isinstance(node.get("message"), dict | None)
    }
    at = {name: str(given.moment(_message_of(node).get("create_time")) or "") for name, node in nodes.items()}
    tree = {name: trees.Node(node.get("parent"), at[name]) for name, node in nodes.items()}
    shown = trees.branch(tree, conversation.get("current_node"))
    talk = Talk(
        given, conversation.get("conversation_id") or conversation.get("id"), began=conversation.get("create_time")
    )
    talk.omit(OTHER_FORM, len(conversation["mapping"]) - len(nodes))
    for name in shown:
        # The root of a tree has none.
        if (message := nodes[name].get("message")) is not None:
            _say(talk, message, kept)
    others = [nodes[name]["message"] for name in nodes.keys() - set(shown) if nodes[name].get("message") is not None]
    if others:
        talk.on_other_branches(*(message_there.get("id") for message_there in others))
    yield from talk.records(shown=[_message_of(nodes[name]).get("id") for name in shown])


def _say(talk: Talk, message: dict[str, Any], kept: _Kept) -> None:
    """What was said; what the person told of themselves, and what was saved, is kept beside it."""
    author, content, metadata = (object_in(message, name) for name in ("author", "content", "metadata"))
    kind, at = content.get("content_type"), message.get("create_time") or talk.began
    if not isinstance(author.get("role"), str) or not isinstance(kind, str):
        talk.omit(OTHER_FORM)
    elif kind == _ABOUT:
        kept.tell(content, metadata, at)
    elif kind == _LIST and isinstance(content.get("model_set_context"), str):
        kept.list(content["model_set_context"], at)
    elif author.get("role") == "assistant" and message.get("recipient") == "bio":
        if not kept.save(_text_of(message, of_tool=True).strip(), at):
            talk.omit(NO_TEXT)
    elif reason := _why_left_out(message, author.get("role"), kind):
        talk.omit(reason)
    elif isinstance(parts := content.get("parts"), list):
        others = sum(not isinstance(part, str | dict | None) for part in parts)
        # Where several speak in the person's role, their names say who is who.
        name = author.get("name") if author["role"] == "user" else None
        named = {"name": name} if isinstance(name, str) and name and not unsendable_in(name) else {}
        talk.say(author["role"], _text_of(message), message.get("id"), at, others=others, **named)
    else:
        talk.omit(OTHER_FORM)


def _why_left_out(message: dict[str, Any], role: Any, kind: Any) -> str:
    """Instructions of the system, hidden messages, thoughts, calls of tools and their results, pictures alone."""
    is_hidden = object_in(message, "metadata").get("is_visually_hidden_from_conversation") or message.get("weight") == 0
    reasons = {
        "system": role == "system",
        NOT_SHOWN: bool(is_hidden),
        THOUGHTS: kind in _THOUGHTS,
        TOOLS: role == "tool" or message.get("recipient") not in (None, "all") or kind not in _SPOKEN,
    }
    if left_out := next((reason for reason, fits in reasons.items() if fits), ""):
        return left_out
    parts = object_in(message, "content").get("parts")
    has_media = isinstance(parts, list) and any(isinstance(part, dict) for part in parts)
    return MEDIA if has_media and not _text_of(message).strip() else ""


def _text_of(message: dict[str, Any], *, of_tool: bool = False) -> str:
    """What was typed and what was spoken, as the service wrote it down."""
    content = object_in(message, "content")
    parts = content.get("parts")
    is_said = message.get("recipient") in (None, "all") and object_in(message, "author").get("role") in (
        "user",
        "assistant",
    )
    if not isinstance(parts, list) or content.get("content_type") not in _SPOKEN or not (is_said or of_tool):
        return content["text"] if of_tool and isinstance(content.get("text"), str) else ""
    said = (part.get("text") if isinstance(part, dict) else part for part in parts)
    return "\n".join(one for one in said if isinstance(one, str) and one.strip())


def _message_of(node: dict[str, Any]) -> dict[str, Any]:
    return object_in(node, "message")


def _own(text: str) -> str:
    """What stands between the first fence and the one at the end, where the service put words of its own before it."""
    told = text.strip()
    begins = told.find(_FENCE) + len(_FENCE)
    ends = len(told) - len(_FENCE)
    is_fenced = told.startswith(_PROVIDED) and told.endswith(_FENCE) and begins <= ends
    return told[begins:ends].strip() if is_fenced else told
