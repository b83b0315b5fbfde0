"""Spans as they end, kept in memory: a fixture for tests of traces."""

from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from memories.telemetry import tracer, traces


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    kept = InMemorySpanExporter()
    provider = TracerProvider(id_generator=tracer.PostIds())
    provider.add_span_processor(SimpleSpanProcessor(kept))
    monkeypatch.setattr(tracer, "provider", lambda _: provider)
    monkeypatch.setattr(traces, "is_on", lambda: True)
    yield kept
    provider.shutdown()


def named(exporter: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    return [span for span in exporter.get_finished_spans() if span.name == name]
