"""Traces by OpenTelemetry. Off unless its variables name an exporter; then nothing of it is loaded and nothing is done.

A post of turns and what a worker makes of it later are one trace across processes, though nothing is stored or sent
along for it: the ids of a post's span are made of the id of its first turn, which the worker reads anyway. Attributes
are ids, counts and names of the hub, never what somebody said.
"""

import logging
import os
import uuid
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")

logger = logging.getLogger(__name__)


@cache
def is_on() -> bool:
    exporter = os.environ.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    has_endpoint = any(os.environ.get(name, "").strip() for name in ENDPOINTS)
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true" or not (exporter or has_endpoint):
        return False
    if exporter not in ("", "otlp"):
        if exporter != "none":
            logger.warning("OTEL_TRACES_EXPORTER=%s is not known here: set it to otlp. There are no traces.", exporter)
        return False
    if find_spec("opentelemetry.exporter") is None or find_spec("opentelemetry.sdk") is None:
        logger.warning("Traces are asked for: install memory-hub[traces]. There are none.")
        return False
    return True


def span(name: str, **attributes: Any) -> AbstractContextManager[Any]:
    """What runs in the block, as a part of what is traced around it."""
    return _tracer().span(name, attributes) if is_on() else nullcontext()


def request(headers: Mapping[str, str]) -> AbstractContextManager[Any]:
    """A request, as a part of its client's trace if it names one (`traceparent`). It is named when it is answered."""
    return _tracer().request(headers) if is_on() else nullcontext()


def work_span(name: str, posts: Sequence[uuid.UUID], **attributes: Any) -> AbstractContextManager[Any]:
    """Work in the trace of the first of these posts, with links to the others. A post is its first turn's id. Without
    posts it is a trace of its own."""
    return _tracer().work_span(name, posts, attributes) if is_on() else nullcontext()


def record(name: str, seconds: float, **attributes: Any) -> None:
    """What has just ended and took so long."""
    if is_on():
        _tracer().record(name, seconds, attributes)


def record_post(post: uuid.UUID, seconds: float, **attributes: Any) -> None:
    """A post of turns that has just been stored: the beginning of a trace, linked to its request's."""
    if is_on():
        _tracer().record_post(post, seconds, attributes)


@cache
def _tracer() -> Any:
    # Compose passes on what is unset as empty, and the SDK takes an empty endpoint for an address.
    for name in [name for name, value in os.environ.items() if name.startswith("OTEL_") and not value.strip()]:
        del os.environ[name]
    return import_module("memories.telemetry.tracer")
