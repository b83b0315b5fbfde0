"""POST /answer."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import OperationalError

from memories.answering import answer as answering
from memories.exceptions import HubBusy
from tests import factories
from tests.api.conftest import Hub
from tests.vectors import embed_all


@pytest.fixture(autouse=True)
def _person(hub: Hub, settings: LazySettings) -> None:
    settings.MEMORYHUB_LLM = "rules"
    person = factories.end_user(hub.tenant, external_id="u1")
    factories.session(person, [("user", "I moved to Ghent in May.")], session_id="s1")
    embed_all(person)


def answered(hub: Hub, **over: Any) -> dict[str, Any]:
    response = hub.client.post("/answer", {"user_id": "u1", "question": "Where did I move to?", **over})
    assert response.status_code == 200, response.content
    found: dict[str, Any] = response.json()
    return found


def test_an_answer_without_a_model(hub: Hub) -> None:
    found = answered(hub)
    (memory,) = found.pop("evidence")
    assert (memory["text"], memory["cited"], memory["session_id"]) == ("I moved to Ghent in May.", False, "s1")
    assert found == {
        "status": "evidence",
        "answer": "",
        "sentences": [],
        "evidence_level": "strong",
        "searches": [],
        "cut": 0,
        "failure": "no_model",
        "model": None,
        "calls": 0,
        "tokens": {"prompt": 0, "completion": 0},
        "cost": None,
    }


def test_somebody_else_s_memories_are_not_answered_from(hub: Hub) -> None:
    assert answered(hub, user_id="u2") == {
        "status": "unknown",
        "answer": "",
        "sentences": [],
        "evidence": [],
        "evidence_level": "none",
        "searches": [],
        "cut": 0,
        "failure": None,
        "model": None,
        "calls": 0,
        "tokens": {"prompt": 0, "completion": 0},
        "cost": None,
    }


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({"question": ""}, "/question"),
        ({"question": "x" * 2_001}, "/question"),
        ({"searches": 0}, "/searches"),
        ({"max_tokens": 499}, "/max_tokens"),
        ({"max_cost": -1}, "/max_cost"),
        ({"stream": "yes"}, "/stream"),
        ({"stream": 1}, "/stream"),
    ],
)
def test_bad_input_is_named(hub: Hub, given: dict[str, Any], place: str) -> None:
    response = hub.client.post("/answer", {"user_id": "u1", "question": "Where?", **given})
    assert response.status_code == 400
    assert [one["pointer"] for one in response.json()["errors"]] == [place]


@pytest.fixture
def _model(settings: LazySettings, tmp_path: Path) -> None:
    said = {"sentences": [{"text": "The user moved to Ghent in May.", "memories": [1]}]}
    path = tmp_path / "script.json"
    path.write_text(json.dumps([{"name": "cited_answer", "answer": said}]), encoding="utf-8")
    settings.MEMORYHUB_LLM, settings.MEMORYHUB_LLM_SCRIPT = "scripted", str(path)


def streamed(hub: Hub, **headers: str) -> list[tuple[str, Any]]:
    """The events; each is whole in one part, or a comment."""
    given = {"user_id": "u1", "question": "Where did I move to?", "stream": True}
    response = hub.client.post("/answer", given, **headers)
    assert response.status_code == 200
    assert response.headers["X-Accel-Buffering"] == "no"
    parts = [part.decode() for part in response.streaming_content]
    found = [part.removesuffix("\n\n").split("\n") for part in parts]
    assert found.pop(0) == [": "]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in found]


@pytest.mark.usefixtures("_model")
def test_a_stream_has_its_events_and_ends_with_the_answer(hub: Hub) -> None:
    events = streamed(hub)
    assert [name for name, _ in events] == ["searches", "evidence", "sentence", "done"]
    searches, evidence, sentence, done = (data for _, data in events)
    assert searches == {"searches": [], "found": 1}
    (memory,) = evidence["evidence"]
    assert sentence == {"text": "The user moved to Ghent in May.", "citations": [memory["id"]]}
    assert (memory["cited"], evidence["evidence_level"]) == (False, "strong")
    assert done == answered(hub)
    assert done["sentences"] == [sentence]


def test_a_stream_without_a_model_is_the_evidence(hub: Hub) -> None:
    # Readers of streams ask for them by their media type.
    events = streamed(hub, Accept="text/event-stream")
    assert [name for name, _ in events] == ["searches", "evidence", "done"]
    assert events[-1][1] == answered(hub)


@pytest.mark.usefixtures("_model")
@pytest.mark.parametrize(
    ("error", "status", "code"),
    [(OperationalError("secret"), 503, "unavailable"), (ZeroDivisionError("secret"), 500, "internal_error")],
)
def test_what_fails_after_the_first_byte_is_an_event(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int, code: str
) -> None:
    def fails(*_: Any) -> Any:
        raise error

    monkeypatch.setattr(answering, "_checked", fails)
    name, problem = streamed(hub)[-1]
    assert (name, problem["status"], problem["code"], problem["instance"]) == ("error", status, code, "/api/v1/answer")
    assert problem["request_id"]
    assert "secret" not in json.dumps(problem)
    # The place among those that are answered is free again.
    monkeypatch.undo()
    assert [streamed(hub)[-1][0] for _ in range(answering.AT_ONCE + 1)] == ["done"] * (answering.AT_ONCE + 1)


@pytest.mark.usefixtures("_model")
def test_what_fails_before_it_has_its_status(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_: Any) -> Any:
        raise HubBusy(seconds=5)

    monkeypatch.setattr(answering._Asking, "events", busy)
    response = hub.client.post("/answer", {"user_id": "u1", "question": "Where?", "stream": True})
    assert (response.status_code, response.headers["Retry-After"]) == (503, "5")
