"""Traces: a post and what a worker makes of it are one, errors and attributes tell of nobody, and off means off."""

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from django.conf import LazySettings
from django.test import Client
from django.utils import timezone
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from memories.capture import flushing
from memories.episodes import compaction
from memories.exceptions import EmbeddingTimeout, ModelTimeout
from memories.extraction import consolidation
from memories.llm import embeddings
from memories.models import Dream, Session
from memories.telemetry import traces
from tests import factories
from tests.dream.dreaming import dream, dreamer, episodes
from tests.model import Model, candidate
from tests.traced import exporter, named

__all__ = ["exporter"]

CLIENTS = "0af7651916cd43dd8448eb211c80319c"
OFF = "from memories.telemetry import traces\nwith traces.span('x'): traces.record('y', 1.0)\n"
UNLOADED = "import sys; sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"


def context(span: ReadableSpan) -> Any:
    assert span.context
    return span.context


@pytest.mark.django_db(transaction=True)
def test_a_post_and_its_extraction_are_one_trace(exporter: InMemorySpanExporter, model: Model) -> None:
    person = factories.end_user(factories.tenant(slug="acme-traced", episode_turns=2), external_id="somebody-in-person")
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
    # What sums the session up is in it, too.
    exporter.clear()
    of = {"user_id": person.external_id, "session_id": session.external_id, "agent_id": session.agent_id}
    flushing.end_session(tenant=person.tenant, **of)
    assert compaction.compact(session_id=session.pk, now=timezone.now())
    [compacted] = named(exporter, "compaction")
    assert compacted.parent
    assert compacted.parent.span_id == context(first).span_id
    assert [link.context.span_id for link in compacted.links] == [context(second).span_id]
    for name in ("model call", "commit"):
        [part] = named(exporter, name)
        assert part.parent
        assert part.parent.span_id == context(compacted).span_id
    # Attributes are ids and counts.
    about = {"user_id": person.external_id, "query": "Leiden"}
    for path in ("context", "search"):
        Client().post(f"/api/v1/{path}", about, content_type="application/json", headers=headers)
    assert named(exporter, "context")
    assert named(exporter, "search")
    told = str([dict(span.attributes or {}) for span in exporter.get_finished_spans()])
    assert "acme-traced" in told
    assert not [word for word in ("somebody", "Leiden", "Delft", plaintext, str(person.pk)) if word in told]


@pytest.mark.django_db
def test_a_dream_is_a_trace_of_ids_and_counts(exporter: InMemorySpanExporter, model: Model) -> None:
    person = dreamer()
    episodes(person, "Moved to Leiden", "Works in Delft")
    row = dream(person)
    assert row.state == Dream.State.UNCHANGED
    [dreamt] = named(exporter, "dream")
    assert dreamt.parent is None
    tenant = person.tenant.slug
    assert dict(dreamt.attributes or {}) == {
        "kind": "files", "dream": str(row.pk), "episodes": 2, "tenant": tenant
    }  # fmt: skip
    for name in ("model call", "commit"):
        [part] = named(exporter, name)
        assert part.parent
        assert part.parent.span_id == context(dreamt).span_id


def test_calls_of_an_embedding_endpoint_tell_no_text(
    exporter: InMemorySpanExporter, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(texts: Sequence[str], _kind: str, _model: str) -> Any:
        if texts == ["fails"]:
            raise EmbeddingTimeout("what somebody said")
        return np.ones((len(texts), 2), dtype=np.float32)

    monkeypatch.setattr("memories.llm.backends.openai_embeddings.embed", answer)
    monkeypatch.setattr("memories.llm.backends.hashed_embeddings.embed", answer)
    settings.MEMORYHUB_EMBEDDINGS = "openai"
    model = embeddings.current_model()
    with traces.span("search"):
        assert embeddings.embed(["I live in Leiden"] * 65).shape == (65, 2)
    with pytest.raises(EmbeddingTimeout):
        embeddings.embed(["fails"], kind="query")
    [search] = named(exporter, "search")
    first, second, failed = named(exporter, "embedding call")
    for span, texts in ((first, 64), (second, 1)):
        assert dict(span.attributes or {}) == {"model": model, "kind": "passage", "texts": texts}
        assert span.parent
        assert span.parent.span_id == context(search).span_id
    assert (failed.attributes or {})["error.type"] == "EmbeddingTimeout"
    assert failed.parent is None
    assert not [word for word in ("Leiden", "somebody", "fails") for span in (first, failed) if word in span.to_json()]
    # A model in the process is no endpoint.
    exporter.clear()
    settings.MEMORYHUB_EMBEDDINGS = "hashed"
    embeddings.embed(["I live in Leiden"])
    assert not exporter.get_finished_spans()


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


def test_an_empty_variable_is_unset() -> None:
    """The SDK would take it for an address, and compose passes on what nobody set."""
    code = (
        "from memories.telemetry import traces\n"
        "exporter = traces._tracer().OTLPSpanExporter()\n"
        "print(exporter._endpoint)"
    )
    given = {
        **os.environ,
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318",
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "",
    }
    done = subprocess.run([sys.executable, "-c", code], env=given, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "http://collector:4318/v1/traces"


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
