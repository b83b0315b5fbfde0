"""Traces: a post and what a worker makes of it are one, errors and attributes tell of nobody, and off means off."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from memories.exceptions import ModelTimeout
from memories.extraction import consolidation
from memories.models import Session
from memories.telemetry import tracer, traces
from tests import factories
from tests.model import Model, candidate

CLIENTS = "0af7651916cd43dd8448eb211c80319c"
OFF = "from memories.telemetry import traces\nwith traces.span('x'): traces.record('y', 1.0)\n"
UNLOADED = "import sys; sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"


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


def context(span: ReadableSpan) -> Any:
    assert span.context
    return span.context


@pytest.mark.django_db(transaction=True)
def test_a_post_and_its_extraction_are_one_trace(exporter: InMemorySpanExporter, model: Model) -> None:
    person = factories.end_user(factories.tenant(slug="acme-traced"), external_id="somebody-in-person")
    _, plaintext = factories.api_key(person.tenant)
    headers = {"Authorization": f"Bearer {plaintext}", "traceparent": f"00-{CLIENTS}-b7ad6b7169203331-01"}
    for content in ("I live in Leiden.", "I work in Delft."):
        message = {"role": "user", "content": content}
        body = {"user_id": person.external_id, "session_id": "of-somebody", "messages": [message], "flush": True}
        posted = Client().post("/api/v1/turns", body, content_type="application/json", headers=headers)
        assert posted.status_code == 202
    [asked, _] = named(exporter, "POST api/v1/turns")
    assert f"{context(asked).trace_id:032x}" == CLIENTS
    [first, second] = named(exporter, "turns")
    # It begins a trace of its own, as its extraction may come much later, and knows the request's.
    assert (first.parent, first.links[0].context.trace_id) == (None, context(asked).trace_id)
    model.say(candidate())
    session = Session.objects.get(end_user=person)
    run = consolidation.consolidate(session_id=session.pk, now=timezone.now())
    assert run
    assert run.status == "committed", run.failure
    [extraction], [commit] = named(exporter, "extraction"), named(exporter, "commit")
    assert extraction.parent
    assert extraction.parent.span_id == context(first).span_id
    assert [link.context.span_id for link in extraction.links] == [context(second).span_id]
    calls = named(exporter, "model call")
    assert calls
    for span in (*calls, commit):
        assert span.parent
        assert span.parent.span_id == context(extraction).span_id
    together = {context(span).trace_id for span in (first, extraction, commit, *calls)}
    assert together == {context(first).trace_id}
    # Attributes are ids and counts.
    about = {"user_id": person.external_id, "query": "Leiden"}
    for path in ("context", "search"):
        Client().post(f"/api/v1/{path}", about, content_type="application/json", headers=headers)
    assert named(exporter, "context")
    assert named(exporter, "search")
    told = str([dict(span.attributes or {}) for span in exporter.get_finished_spans()])
    assert "acme-traced" in told
    assert not [word for word in ("somebody", "Leiden", "Delft", plaintext, str(person.pk)) if word in told]


def test_of_an_error_its_type_is_told(exporter: InMemorySpanExporter) -> None:
    with pytest.raises(ModelTimeout), traces.span("model call"):
        raise ModelTimeout("what somebody said")
    [span] = exporter.get_finished_spans()
    assert span.status.is_ok is False
    assert dict(span.attributes or {}) == {"error.type": "ModelTimeout"}
    assert "somebody" not in span.to_json()


def test_off_nothing_is_loaded() -> None:
    done = subprocess.run([sys.executable, "-c", OFF + UNLOADED], check=False)
    assert done.returncode == 0
    loaded = subprocess.run([sys.executable, "-c", OFF + "import opentelemetry.trace\n" + UNLOADED], check=False)
    assert loaded.returncode == 1


@pytest.mark.parametrize(
    ("variables", "on"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318/v1/traces"}, True),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, False),
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, False),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_SDK_DISABLED": "true"}, False),
    ],
)
def test_the_usual_variables_decide(variables: dict[str, str], on: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OTEL_TRACES_EXPORTER", "OTEL_SDK_DISABLED", *traces.ENDPOINTS):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert traces.is_on.__wrapped__() is on
