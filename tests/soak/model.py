"""The endpoint of the hub: it repeats what people say as facts, chats, embeds, and fails on command."""

import json
import re
import zlib
from collections.abc import Callable
from html import unescape
from typing import Any

from tests import summaries
from tests.faults.parrot import format_of, repeat
from tests.llm import endpoint as at
from tests.llm.endpoint import Handler, Response
from tests.soak.journal import Journal, marks, people_in
from tests.soak.people import reply_to

DIMENSIONS = 64
# What a model takes for an answer, at least.
ANSWER_SECONDS = 0.05

CHAT_FAULTS: dict[str, Response] = {
    "answers 500": at.fails(500),
    "answers 429": at.fails(429, Retry_After="2"),
    "answers garbage": at.says('{"new_facts": [{'),
    "answers in another form": at.says('{"facts": "none"}'),
    "hangs": at.hangs,
    "cuts its answers": at.ends_early,
    "resets connections": at.resets,
}


def _embeds(change: Callable[[list[list[float]]], Any]) -> Response:
    def respond(handler: Handler) -> None:
        _send_vectors(handler, change([vector(text) for text in handler.asked["input"]]))

    return respond


EMBEDDING_FAULTS: dict[str, Response] = {
    "answer 500": at.fails(500),
    "hang": at.hangs,
    "have another dimension": _embeds(lambda rows: [row[:-1] for row in rows]),
    "are fewer than the texts": _embeds(lambda rows: rows[:-1]),
    "are no numbers": _embeds(lambda rows: [[float("nan")] * len(row) for row in rows]),
}


class Model:
    """Answers a request of either kind; a fault is in the place of the answer while it is set."""

    def __init__(self) -> None:
        self.chat_fault: Response | None = None
        self.embedding_fault: Response | None = None
        # Once the traffic begins.
        self.journal: Journal | None = None

    def __call__(self, handler: Handler) -> None:
        # The endpoint keeps what it was asked for tests that look; hours of it are too much.
        handler.endpoint.requests.clear()
        handler.endpoint.headers.clear()
        if handler.path.endswith("/embeddings"):
            (self.embedding_fault or _embeds(lambda rows: rows))(handler)
            return
        fault = self.chat_fault
        prompt = "\n".join(str(message["content"]) for message in handler.asked["messages"])
        is_chat = handler.asked["model"] == "soak"
        kind = "chat" if is_chat else format_of(handler) or "other"
        read = 0 if is_chat or kind in summaries.NAMES else len(summaries.TURN.findall(prompt))
        handler.endpoint.ended.wait(ANSWER_SECONDS)
        (fault or (_chat if is_chat else ANSWERS.get(kind, repeat)))(handler)
        if self.journal:
            noted = {"kind": kind, "people": people_in(prompt), "read": 0 if fault else read, "failed": bool(fault)}
            self.journal.note(do="asked", **noted)


_MEMORY = re.compile(r'<memory n="(\d+)"[^>]* by="person"[^>]*>(.*?)</memory>')
_TRAJECTORY = re.compile(r'<trajectory n="(\d+)" person="(\d+)" outcome="succeeded">')


def _cited(handler: Handler) -> None:
    """The first memories that a person said, word for word."""
    found = _MEMORY.findall(str(handler.asked["messages"][-1]["content"]))[:2]
    sentences = [{"text": unescape(text), "memories": [int(number)]} for number, text in found]
    at.says(json.dumps({"sentences": sentences}, ensure_ascii=False))(handler)


def _planned(handler: Handler) -> None:
    at.says('{"searches": [{"query": "I keep an animal", "kind": "turn"}]}')(handler)


def _procedure(handler: Handler) -> None:
    """What all of them did."""
    found = _TRAJECTORY.findall(str(handler.asked["messages"][-1]["content"]))
    numbers = [int(number) for number, _ in found]
    step = {"section": "step", "text": "Released after make test", "trajectories": numbers}
    title = {"text": "Release the service", "trajectories": numbers}
    at.says(json.dumps({"title": title, "when": title, "lines": [step]}))(handler)


ANSWERS: dict[str, Response] = {"cited_answer": _cited, "answer_plan": _planned, "skills": _procedure}


def _chat(handler: Handler) -> None:
    last = str(handler.asked["messages"][-1]["content"])
    answer = reply_to((marks(last) or ["nobody"])[-1])
    events: list[dict[str, Any]] = [{"delta": {"content": word}} for word in answer.replace(" ", " \0").split("\0")]
    events.append({"delta": {}, "finish_reason": "stop"})
    chunks = [
        {"id": "c1", "object": "chat.completion.chunk", "model": "soak", "choices": [{"index": 0, **event}]}
        for event in events
    ]
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    handler.whole(200, body.encode(), Content_Type="text/event-stream")


def vector(text: str) -> list[float]:
    """Hashed words: alike where texts share some."""
    row = [0.0] * DIMENSIONS
    for word in text.lower().split() or [""]:
        row[zlib.crc32(word.encode()) % DIMENSIONS] += 1.0
    return row


def _send_vectors(handler: Handler, rows: list[list[float]]) -> None:
    data = [{"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(rows)]
    at.sends(json.dumps({"object": "list", "data": data, "model": "soak", "usage": {}}).encode())(handler)
