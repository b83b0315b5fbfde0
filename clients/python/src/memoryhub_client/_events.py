"""An answer that comes as events: server-sent events, each as soon as the hub has sent it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from memoryhub_client._calls import PreparedRequest, decoded
from memoryhub_client.errors import UnexpectedAnswerError, problem
from memoryhub_client.models import Answer, AnswerEvidence, AnswerSearch, Sentence
from memoryhub_client.operations import Operations

# What of the data of an event is told, and its type; "": all of it.
_TOLD: dict[str, tuple[str, Any]] = {
    "searches": ("searches", list[AnswerSearch]),
    "evidence": ("evidence", list[AnswerEvidence]),
    "sentence": ("", Sentence),
    "done": ("", Answer),
}


@dataclass(frozen=True)
class AnswerEvent:
    """`data`: of `searches` and `evidence` lists, of a `sentence` that sentence, and of `done` the whole answer."""

    name: Literal["searches", "evidence", "sentence", "done"]
    data: Any


def prepared(given: dict[str, Any]) -> PreparedRequest:
    """The request of `answer_question` for a stream. It is never sent again: a part may have been told."""
    call = Operations.answer_question.call((), given)
    body = json.dumps({**json.loads(call.body or b"{}"), "stream": True}).encode()
    return replace(call, body=body)


class EventReader:
    """Reads the events from the parts in which they come."""

    def __init__(self) -> None:
        self._rest = b""
        self._is_done = False

    def add(self, part: bytes) -> Iterator[AnswerEvent]:
        """Those that are whole with this part. Errors: ProblemError, where the hub failed on the way."""
        *whole, self._rest = (self._rest + part).split(b"\n\n")
        for event in whole:
            # A comment only keeps the connection open.
            fields = dict(line.split(b": ", 1) for line in event.split(b"\n") if not line.startswith(b":"))
            if b"event" in fields:
                name, data = fields[b"event"].decode(), fields.get(b"data", b"")
                try:
                    content = json.loads(data)
                except ValueError as error:
                    raise UnexpectedAnswerError("An event is not JSON.") from error
                if name == "error":
                    raise problem(int(content["status"]), data)
                # What a newer hub adds is passed over.
                if name in _TOLD:
                    member, kind = _TOLD[name]
                    self._is_done = self._is_done or name == "done"
                    yield AnswerEvent(name, decoded(kind, content[member] if member else content))  # type: ignore[arg-type]

    def end(self) -> None:
        """Errors: UnexpectedAnswerError, if it ended before the answer was whole."""
        if not self._is_done:
            raise UnexpectedAnswerError("The answer ended before it was whole.")
