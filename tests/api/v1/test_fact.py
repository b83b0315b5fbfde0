"""GET, PATCH and DELETE /facts/{id}."""

import uuid
from typing import Any

import pytest

from memories.audit import Actor, kept_request_id
from memories.curation.facts.editing import correct_fact
from memories.curation.facts.keeping import lock_fact, pin_fact
from memories.models import AuditEvent, Fact, FactRefusal, FactRevision
from tests import factories
from tests.api.conftest import Hub


@pytest.fixture
def fact(hub: Hub) -> Fact:
    return factories.fact(factories.end_user(hub.tenant, external_id="u1"))


def patch(hub: Hub, fact: Fact, body: Any, **headers: str) -> Any:
    return hub.client.call("PATCH", f"/facts/{fact.pk}", body, headers=headers)


def test_shows_a_fact_with_its_version(hub: Hub, fact: Fact) -> None:
    answer = hub.client.get(f"/facts/{fact.pk}")
    assert (answer.json()["id"], answer.headers["ETag"]) == (str(fact.pk), '"1"')
    assert answer.json()["created_at"] == "2026-11-03T09:12:00Z"


@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
@pytest.mark.parametrize("fact_id", [str(uuid.UUID(int=5)), "5", "%00", "..%2f"])
def test_an_unknown_one_is_not_found(hub: Hub, method: str, fact_id: str) -> None:
    answer = hub.client.call(method, f"/facts/{fact_id}", {"content": "x"})
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_changes_the_named_fields_and_nothing_else(hub: Hub, fact: Fact) -> None:
    before = hub.client.get(f"/facts/{fact.pk}").json()
    answer = patch(hub, fact, {"content": "住在代尔夫特", "tags": ["家"], "agent_id": "Home", "pinned": True})
    after = answer.json()
    changed = {name for name in after if after[name] != before[name]}
    assert changed >= {"content", "tags", "agent_id", "pinned", "version", "updated_at"}
    assert changed <= {"content", "tags", "agent_id", "pinned", "version", "updated_at", "forget_at", "decay_score"}
    assert (after["content"], after["tags"], after["agent_id"]) == ("住在代尔夫特", ["家"], "home")
    assert answer.headers["ETag"] == '"2"'


def test_null_takes_a_value_away(hub: Hub, fact: Fact) -> None:
    patch(hub, fact, {"key": "city", "value": "Leiden", "agent_id": "a", "expires_at": "2099-01-01T00:00:00Z"})
    none = {"key": None, "value": None, "agent_id": None, "expires_at": None, "structured": None}
    assert {name: patch(hub, fact, none).json()[name] for name in none} == none


def test_the_change_is_on_record_with_the_key_and_the_request(hub: Hub, fact: Fact) -> None:
    answer = patch(hub, fact, {"content": "Lives in Delft"}, **{"X-Request-ID": "call-7"})
    event = AuditEvent.objects.get(object_id=fact.pk)
    assert (event.actor_kind, event.actor_id, event.request_id) == ("key", str(hub.key.pk), kept_request_id("call-7"))
    assert answer.headers["X-Request-ID"] == "call-7"
    assert FactRevision.objects.get(fact=fact).before["content"] == "Lives in Leiden"


@pytest.mark.parametrize("version", ['"1"', "1", "*"])
def test_if_match_lets_the_version_through(hub: Hub, fact: Fact, version: str) -> None:
    assert patch(hub, fact, {"content": "x"}, **{"If-Match": version}).status_code == 200


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
def test_a_stale_if_match_changes_nothing(hub: Hub, fact: Fact, method: str) -> None:
    patch(hub, fact, {"content": "Lives in Delft"})
    answer = hub.client.call(method, f"/facts/{fact.pk}", {"content": "x"}, headers={"If-Match": '"1"'})
    assert (answer.status_code, answer.json()["code"]) == (412, "version_mismatch")
    fact.refresh_from_db()
    assert (fact.content, fact.status, fact.version) == ("Lives in Delft", "active", 2)


@pytest.mark.parametrize("version", ["one", '"1", "2"', 'W/"1"', "-1", "9" * 30, "１"])
def test_a_malformed_if_match_is_refused(hub: Hub, fact: Fact, version: str) -> None:
    answer = patch(hub, fact, {"content": "x"}, **{"If-Match": version})
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["pointer"] == "If-Match"


BAD = [
    ({}, "", "empty"),
    ({"content": None}, "/content", "null"),
    ({"content": " "}, "/content", "blank"),
    ({"category": "likes"}, "/category", "invalid_choice"),
    ({"confidence": "high"}, "/confidence", "invalid"),
    ({"importance": 0.1}, "/importance", "min_value"),
    ({"scope": "public"}, "/scope", "operators_only"),
    ({"pinned": "yes"}, "/pinned", "invalid"),
    ({"locked": None}, "/locked", "null"),
    ({"status": "active"}, "/status", "unknown_field"),
    ({"version": 3}, "/version", "unknown_field"),
    ({"user_id": "u2"}, "/user_id", "unknown_field"),
]


@pytest.mark.parametrize(("body", "pointer", "code"), BAD)
def test_bad_changes_are_refused(hub: Hub, fact: Fact, body: dict[str, Any], pointer: str, code: str) -> None:
    answer = patch(hub, fact, body)
    assert answer.status_code == 400
    assert (pointer, code) in [(fault["pointer"], fault["code"]) for fault in answer.json()["errors"]]
    fact.refresh_from_db()
    assert fact.version == 1


def test_the_text_of_another_fact_is_a_duplicate(hub: Hub, fact: Fact) -> None:
    factories.fact(fact.end_user, "Lives in Delft")
    assert patch(hub, fact, {"content": "Lives in Delft"}).json()["code"] == "duplicate"


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
def test_an_operators_word_stands(hub: Hub, fact: Fact, method: str) -> None:
    operator = Actor.operator(factories.operator())
    correct_fact(
        fact_id=fact.pk, tenant=hub.tenant, content="Lives in Delft", reason="asked", actor=operator, now=factories.NOW
    )
    answer = hub.client.call(method, f"/facts/{fact.pk}", {"content": "x"})
    assert (answer.status_code, answer.json()["code"]) == (409, "operator_word")
    fact.refresh_from_db()
    assert (fact.content, fact.status) == ("Lives in Delft", "active")


def test_a_key_may_lift_what_a_key_set(hub: Hub, fact: Fact) -> None:
    assert patch(hub, fact, {"locked": True, "pinned": True}).json()["locked"] is True
    assert patch(hub, fact, {"locked": False}).json()["locked"] is False


def test_delete_goes_to_the_trash_and_is_refused_for_good(hub: Hub, fact: Fact) -> None:
    answer = hub.client.call("DELETE", f"/facts/{fact.pk}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert hub.client.get(f"/facts/{fact.pk}").json()["status"] == "trashed"
    assert FactRefusal.objects.filter(fact=fact).exists()


def test_hard_delete_leaves_no_text(hub: Hub, fact: Fact) -> None:
    answer = hub.client.call("DELETE", f"/facts/{fact.pk}", query={"hard": "true"})
    assert answer.status_code == 204
    assert hub.client.get(f"/facts/{fact.pk}").status_code == 404
    assert not FactRevision.objects.exists()


@pytest.mark.parametrize("hard", ["maybe", "2"])
def test_hard_is_yes_or_no(hub: Hub, fact: Fact, hard: str) -> None:
    assert hub.client.call("DELETE", f"/facts/{fact.pk}", query={"hard": hard}).status_code == 400
    fact.refresh_from_db()
    assert fact.status == "active"


@pytest.mark.parametrize(
    ("method", "body"), [("PATCH", {"content": "x"}), ("PATCH", {"locked": True}), ("DELETE", None)], ids=str
)
def test_a_lock_stands_against_keys_until_one_lifts_it(hub: Hub, fact: Fact, method: str, body: Any) -> None:
    patch(hub, fact, {"locked": True})
    answer = hub.client.call(method, f"/facts/{fact.pk}", body)
    assert (answer.status_code, answer.json()["code"]) == (409, "locked")
    assert patch(hub, fact, {"locked": False, "content": "Lives in Delft"}).json()["content"] == "Lives in Delft"


@pytest.mark.parametrize("keep", [pin_fact, lock_fact])
@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
def test_what_an_operator_keeps_no_key_changes(hub: Hub, fact: Fact, method: str, keep: Any) -> None:
    keep(fact_id=fact.pk, actor=Actor.operator(factories.operator()), now=factories.NOW)
    answer = hub.client.call(method, f"/facts/{fact.pk}", {"locked": False, "pinned": False})
    assert (answer.status_code, answer.json()["code"]) == (409, "operator_word")
