"""/extractions: runs, one of them, and a retry."""

from datetime import timedelta
from decimal import Decimal

import pytest

from memories.models import AuditEvent, EndUser, Fact, SessionQueue
from tests import factories
from tests.api.conftest import Hub, hub_of
from tests.model import Model, candidate


def ids(hub: Hub, **query: str) -> list[str]:
    return [row["id"] for row in hub.client.get("/extractions", **query).json()["results"]]


def test_lists_runs_newest_first_with_filters(hub: Hub, other: Hub) -> None:
    wei, ana = factories.end_user(hub.tenant), factories.end_user(hub.tenant)
    done = factories.run(factories.session(wei))
    parked = factories.run(factories.session(wei), status="parked", started_at=factories.NOW + timedelta(seconds=1))
    hers = factories.run(factories.session(ana), started_at=factories.NOW + timedelta(seconds=2))
    factories.run(factories.session(factories.end_user(other.tenant)))
    assert ids(hub) == [str(hers.pk), str(parked.pk), str(done.pk)]
    assert ids(hub, user_id=wei.external_id) == [str(parked.pk), str(done.pk)]
    assert ids(hub, user_id=wei.external_id, status="parked") == [str(parked.pk)]
    assert ids(hub, user_id="nobody") == []


def test_one_shows_range_outcome_and_costs(hub: Hub) -> None:
    session = factories.session(factories.end_user(hub.tenant, external_id="u1"), session_id="s1")
    run = factories.run(
        session, extractor="llm:gpt-4o-mini", prompt_version="1", fed_turns=1, outcome={"stored": 2},
        refusals={"about": 1}, calls=1, prompt_tokens=900, completion_tokens=80, cost=Decimal("0.0012"),
    )  # fmt: skip
    shown = hub.client.get(f"/extractions/{run.pk}").json()
    assert (shown["user_id"], shown["session_id"], shown["status"]) == ("u1", "s1", "committed")
    assert shown["range"] == {"first": 1, "last": 1, "fed": 1}
    assert (shown["outcome"], shown["refusals"]) == ({"stored": 2}, {"about": 1})
    assert (shown["model"], shown["extractor"], shown["prompt_version"]) == ("gpt-4o-mini", "llm:gpt-4o-mini", "1")
    assert (shown["calls"], shown["tokens"], shown["cost"]) == (1, {"prompt": 900, "completion": 80}, 0.0012)


@pytest.mark.usefixtures("with_model")
def test_a_parked_batch_is_retried_and_one_that_is_done_is_not(hub: Hub) -> None:
    session = factories.session(factories.end_user(hub.tenant))
    SessionQueue.objects.update(parked_at=factories.NOW, due_at=None, failure="model_timeout", attempts=5)
    run = factories.run(session, status="parked")
    answer = hub.client.post(f"/extractions/{run.pk}/retry")
    assert (answer.status_code, answer.json()["extraction"]["status"]) == (202, "pending")
    assert SessionQueue.objects.get().attempts == 0
    assert AuditEvent.objects.get(object_id=run.pk).verb == "retry"
    SessionQueue.objects.update(extracted_number=1)
    answer = hub.client.post(f"/extractions/{run.pk}/retry")
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")


def test_a_preview_shows_the_prompt_and_the_answer(hub: Hub, other: Hub, model: Model) -> None:
    person = factories.end_user(hub.tenant, external_id="u1")
    factories.session(person, [("user", "I live in Leiden"), ("assistant", "Noted")], session_id="s1")
    model.say(candidate(), candidate("Is in a hurry", confidence=0.1))
    named = {"user_id": "u1", "session_id": "s1"}
    shown = hub.client.post("/extractions/preview", named).json()
    assert (shown["range"], shown["prompt_version"]) == ({"first": 1, "last": 2, "fed": 2}, "memory_update-5")
    assert [message["role"] for message in shown["prompt"]] == ["system", "user"]
    assert "I live in Leiden" in shown["prompt"][1]["content"]
    answer = shown["answer"]
    assert [(fact["verb"], fact["content"], fact["status"]) for fact in answer["facts"]] == [
        ("extract", "Lives in Leiden", "active")
    ]
    assert answer["refused"] == [{"content": "Is in a hurry", "reason": "low_confidence"}]
    assert (answer["tokens"], answer["failure"]) == ({"prompt": 70, "completion": 7}, None)
    assert not Fact.objects.exists()
    posted = {"user_id": "u2", "messages": [{"role": "user", "content": "I live in Delft"}], "ask": False}
    assert hub.client.post("/extractions/preview", posted).json()["answer"] is None
    assert not EndUser.objects.filter(external_id="u2").exists()
    assert hub.client.post("/extractions/preview", {**named, "user_id": "u9"}).status_code == 404
    assert other.client.post("/extractions/preview", named).status_code == 404
    for body in ({"user_id": "u1"}, {**named, "messages": posted["messages"]}, {**named, "after": -1}):
        assert hub.client.post("/extractions/preview", body).status_code == 400, body
    writes = hub_of(hub.tenant, scopes=["write"])
    refused = writes.client.post("/extractions/preview", {**named, "ask": False})
    assert (refused.status_code, refused.json()["code"]) == (403, "missing_scope")
