"""OpenTelemetry's SDK as memories/telemetry/traces.py uses it. Loaded only where traces are on."""

import os
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import cache
from types import TracebackType
from typing import Any

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    StatusCode,
    TraceFlags,
    Tracer,
    get_current_span,
    set_span_in_context,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

LOW = (1 << 64) - 1
_chosen: ContextVar[uuid.UUID | None] = ContextVar("chosen", default=None)


class PostIds(RandomIdGenerator):
    """Random ids, but for the span of a post."""

    def generate_trace_id(self) -> int:
        post = _chosen.get()
        return post.int if post else super().generate_trace_id()

    def generate_span_id(self) -> int:
        post = _chosen.get()
        return post.int & LOW if post else super().generate_span_id()


class Recorded(AbstractContextManager[Span]):
    """A span of which an error is its type alone: messages may quote a person."""

    def __init__(self, name: str, attributes: Mapping[str, Any], **more: Any) -> None:
        self._inner = tracer().start_as_current_span(
            name, attributes=attributes, record_exception=False, set_status_on_exception=False, **more
        )

    def __enter__(self) -> Span:
        self._span = self._inner.__enter__()
        return self._span

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._span.set_attribute("error.type", kind.__name__)
            self._span.set_status(StatusCode.ERROR)
        self._inner.__exit__(kind, error, trace)


def tracer() -> Tracer:
    return provider(os.getpid()).get_tracer("memoryhub")


@cache
def provider(_process: int) -> TracerProvider:
    """One for each process: its thread that sends does not survive a fork."""
    named = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": "memory-hub"}
    made = TracerProvider(resource=Resource.create(named), id_generator=PostIds())
    made.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return made


def span(name: str, attributes: Mapping[str, Any]) -> Recorded:
    return Recorded(name, attributes)


def request(headers: Mapping[str, str]) -> Recorded:
    carrier = {name: headers[name] for name in ("traceparent", "tracestate") if name in headers}
    asked = TraceContextTextMapPropagator().extract(carrier, context=Context())
    return Recorded("request", {}, context=asked, kind=SpanKind.SERVER)


def work_span(name: str, posts: Sequence[uuid.UUID], attributes: Mapping[str, Any]) -> Recorded:
    if not posts:
        return Recorded(name, attributes, context=Context(), kind=SpanKind.CONSUMER)
    first, *others = map(_context_of, posts)
    around = set_span_in_context(NonRecordingSpan(first), Context())
    return Recorded(name, attributes, context=around, kind=SpanKind.CONSUMER, links=[Link(one) for one in others])


def record(name: str, seconds: float, attributes: Mapping[str, Any]) -> None:
    now = time.time_ns()
    tracer().start_span(name, attributes=attributes, start_time=now - int(seconds * 1e9)).end(now)


def record_post(post: uuid.UUID, seconds: float, attributes: Mapping[str, Any]) -> None:
    now, asked = time.time_ns(), get_current_span().get_span_context()
    token = _chosen.set(post)
    try:
        made = tracer().start_span(
            "turns",
            context=Context(),
            kind=SpanKind.PRODUCER,
            attributes=attributes,
            links=[Link(asked)] if asked.is_valid else [],
            start_time=now - int(seconds * 1e9),
        )
    finally:
        _chosen.reset(token)
    made.end(now)


def _context_of(post: uuid.UUID) -> SpanContext:
    return SpanContext(post.int, post.int & LOW, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
