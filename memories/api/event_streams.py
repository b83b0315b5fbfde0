"""An answer as server-sent events, each sent once it is made: `event: NAME` and `data: JSON`.

The first is made in the view, so that what can be refused is refused with a status. After it, an error is an event.
"""

import logging
from collections.abc import Generator
from contextvars import copy_context
from typing import Any

from django.http import StreamingHttpResponse
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request

from memories.api import errors
from memories.api.endpoints import Negotiation
from memories.api.request_ids import request_id_of

MEDIA_TYPE = "text/event-stream"
# A proxy that collects an answer would hold it back.
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
# Readers pass over a comment.
COMMENT = b": \n\n"
# Name and data; None: there is nothing to tell yet.
Event = tuple[str, Any] | None

logger = logging.getLogger(__name__)


class EventNegotiation(Negotiation):
    """Takes the media type of a stream, too. Its problems are JSON, as everywhere."""

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        """The renderer and its media type. Errors: NotAcceptable."""
        if MEDIA_TYPE in request._request.META.get("HTTP_ACCEPT", ""):
            [json] = renderers
            return json, json.media_type
        return super().select_renderer(request, renderers, format_suffix)


def streamed(request: Request, events: Generator[Event, None, None]) -> StreamingHttpResponse:
    """The events as an answer. Errors: those of the first one."""
    return StreamingHttpResponse(_Stream(request, events, next(events)), content_type=MEDIA_TYPE, headers=HEADERS)


class _Stream:
    """What is sent. It is made when the view has ended, and yet in its context: its tenancy, budgets and trace."""

    def __init__(self, request: Request, events: Generator[Event, None, None], first: Event) -> None:
        self._request, self._events = request, events
        self._ready: list[Event] = [first]
        self._context = copy_context()

    def __iter__(self) -> "_Stream":
        return self

    def __next__(self) -> bytes:
        if self._ready:
            return _written(self._ready.pop())
        return self._context.run(self._next)

    def _next(self) -> bytes:
        try:
            return _written(next(self._events))
        except StopIteration:
            raise
        except Exception as error:  # noqa: BLE001  (the status is sent: the reader must learn of it as an event)
            self._events.close()
            problem = errors.problem_of(error)
            # Its text may hold what was said.
            logger.log(
                logging.WARNING if problem else logging.ERROR,
                "Request %s failed in its stream: %s",
                request_id_of(self._request),
                type(error).__name__,
            )
            document = errors.answer(self._request, problem or errors.internal_error())
            return _event("error", document.content)

    def close(self) -> None:
        """Called when all is sent, or when the client has left."""
        self._context.run(self._events.close)


def _written(event: Event) -> bytes:
    if event is None:
        return COMMENT
    name, data = event
    return _event(name, JSONRenderer().render(data))


def _event(name: str, data: bytes) -> bytes:
    """JSON has no line breaks of its own."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), data)
