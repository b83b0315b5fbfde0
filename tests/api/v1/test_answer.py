"""POST /answer."""

from typing import Any

import pytest
from django.conf import LazySettings

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
        ({"stream": True}, "/stream"),
    ],
)
def test_bad_input_is_named(hub: Hub, given: dict[str, Any], place: str) -> None:
    response = hub.client.post("/answer", {"user_id": "u1", "question": "Where?", **given})
    assert response.status_code == 400
    assert [one["pointer"] for one in response.json()["errors"]] == [place]
