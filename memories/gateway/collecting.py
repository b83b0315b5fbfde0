"""Reads an answer while it passes by. What cannot be read is passed on all the same."""

from contextlib import suppress
from typing import Any

from memories.gateway.dialects import Dialect, StreamedReply
from memories.gateway.documents import UnreadableDocument, read_object

MOST_BYTES = 4 * 1024 * 1024
_DATA = b"data:"
_NOT_OF_THE_PROTOCOL = (AttributeError, KeyError, TypeError, ValueError, IndexError, RecursionError)


class Collector:
    """`streams`: the answer is a stream of events; else one document."""

    def __init__(self, dialect: Dialect, *, streams: bool) -> None:
        self._dialect, self._streams = dialect, streams
        self._answer, self._rest, self._size = dialect.new_answer(), b"", 0

    def add(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > MOST_BYTES:
            return
        self._rest += part
        if self._streams:
            *lines, self._rest = self._rest.split(b"\n")
            for line in lines:
                self._add_line(line)

    @property
    def has_ended(self) -> bool:
        """Whether a stream has told that the model has ended."""
        return self._streams and self._answer.is_whole

    def answer(self) -> StreamedReply:
        """What was said so far."""
        if self._streams:
            self._add_line(self._rest)
            self._rest = b""
        elif (document := _object(self._rest)) is not None:
            with suppress(*_NOT_OF_THE_PROTOCOL):
                self._answer = self._dialect.read_answer(document)
        return self._answer

    def _add_line(self, line: bytes) -> None:
        if not line.startswith(_DATA):
            return
        event = _object(line[len(_DATA) :])
        if event is None:
            return
        with suppress(*_NOT_OF_THE_PROTOCOL):
            self._dialect.add_event(self._answer, event)


def _object(text: bytes) -> dict[str, Any] | None:
    try:
        return read_object(text)
    except UnreadableDocument:
        return None
