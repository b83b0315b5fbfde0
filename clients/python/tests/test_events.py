"""An answer that comes as events, with both clients."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from memoryhub_client import (
    AnswerEvent,
    AsyncMemoryHub,
    ConnectionFailedError,
    MemoryHub,
    UnavailableError,
    UnexpectedAnswerError,
)
from memoryhub_client._retrying import httpx
from memoryhub_client.models import Answer, Sentence

TOLD: dict[str, Any] = {"text": "The user moved to Ghent\u0085in May.", "citations": ["1"]}
DONE = {
    "status": "answered", "answer": TOLD["text"], "sentences": [TOLD], "evidence": [], "evidence_level": "strong",
    "searches": [], "cut": 0, "failure": None, "model": "m", "calls": 1, "tokens": {"prompt": 1, "completion": 2},
    "cost": None,
}  # fmt: skip
PROBLEM = {"status": 503, "code": "unavailable", "detail": "no", "title": "t", "errors": []}
Read = Callable[[Any], list[AnswerEvent]]


def event(name: str, data: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def sync(respond: Any) -> list[AnswerEvent]:
    hub = MemoryHub("mh_fake", transport=httpx.MockTransport(respond))
    return list(hub.stream_answer(user_id="u1", question="Where?", searches=1))


def in_loop(respond: Any) -> list[AnswerEvent]:
    async def run() -> list[AnswerEvent]:
        async with AsyncMemoryHub("mh_fake", transport=httpx.MockTransport(respond)) as hub:
            return [one async for one in hub.stream_answer(user_id="u1", question="Where?", searches=1)]

    return asyncio.run(run())


@pytest.fixture(params=[sync, in_loop])
def read(request: pytest.FixtureRequest) -> Read:
    found: Read = request.param
    return found


def test_events_come_as_dataclasses(read: Read) -> None:
    asked: list[dict[str, Any]] = []

    def respond(request: httpx.Request) -> httpx.Response:
        asked.append(json.loads(request.content))
        told = [event("sentence", TOLD), b": \n\n", event("of a newer hub", {}), event("done", DONE)]
        return httpx.Response(200, content=b": \n\n" + event("searches", {"searches": [], "found": 1}) + b"".join(told))

    events = read(respond)
    assert asked == [{"user_id": "u1", "question": "Where?", "searches": 1, "stream": True}]
    assert [one.name for one in events] == ["searches", "sentence", "done"]
    assert events[1].data == Sentence(**TOLD)
    assert isinstance(events[2].data, Answer)


def test_refusals_and_failures_are_exceptions(read: Read) -> None:
    def unreachable(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("no")

    with pytest.raises(UnavailableError):
        read(lambda _: httpx.Response(503, json=PROBLEM))
    with pytest.raises(UnavailableError):
        read(lambda _: httpx.Response(200, content=event("error", PROBLEM)))
    with pytest.raises(UnexpectedAnswerError):
        read(lambda _: httpx.Response(200, content=event("sentence", TOLD)))
    with pytest.raises(ConnectionFailedError):
        read(unreachable)
