"""Lines of the hub's log, as text or as JSON. Of errors they have place and type, never the message.

The message of an error may quote a person. PostgreSQL quotes the values of a duplicate key, and parsers their input.
Tokens of one-time links are masked.
"""

import json
import logging
import re
import traceback
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

from memories.telemetry import log_fields

Raised = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
LEFT_OUT = "(its message is left out)"
_LINK = re.compile(r"(/exports/|/me/open/)[^/\s?\"']+")


def masked(text: str) -> str:
    """The text without the token of a one-time link."""
    return _LINK.sub(r"\1…", text)


class Masked(logging.Filter):
    """Masks Django's lines about failed requests, which quote their paths."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(masked(one) if isinstance(one, str) else one for one in record.args)
        return True


class DiscreetFormatter(logging.Formatter):
    """Tracebacks contain only places and error types."""

    def formatException(self, ei: Raised) -> str:  # noqa: N802  (the name is logging's)
        return "\n".join(_lines(ei[1])) if ei[1] is not None else ""


class JsonFormatter(DiscreetFormatter):
    """One object a line. Of what a library attaches to a record nothing is written: Django attaches whole requests."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, Any] = {
            "time": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **log_fields.current(),
            **_of_request(record),
            **_answered(record),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line)


def _of_request(record: logging.LogRecord) -> Mapping[str, str]:
    """Django says what became of a request when nothing is at work on it any more."""
    meta = getattr(getattr(record, "request", None), "META", {})
    names = {log_fields.REQUEST: log_fields.ANSWERED_ID, log_fields.TENANT: log_fields.ANSWERED_TENANT}
    return {name: meta[key] for name, key in names.items() if key in meta}


def _answered(record: logging.LogRecord) -> Mapping[str, Any]:
    """The fields of a line about an answer, which the web server's logger gives under their names."""
    given = record.args
    if record.name != "gunicorn.access" or not isinstance(given, Mapping):
        return {}
    return {name: value for name, value in given.items() if len(name) > 1 and value not in ("", None)}


def _lines(error: BaseException) -> Iterator[str]:
    """The first cause first, as in Python's own tracebacks."""
    for one in reversed(list(_chain(error))):
        yield "Traceback (most recent call last):"
        yield from (line.rstrip("\n") for line in traceback.format_tb(one.__traceback__))
        yield f"{type(one).__module__}.{type(one).__qualname__} {LEFT_OUT}"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and its causes."""
    met: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in met:
        met.add(id(one))
        yield one
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)
