"""/facts/{id}: one fact, its changes and deletion, its history, restoration and feedback.

What each verb does is shown in tests/curation/test_facts.py.
"""

import uuid
from typing import Any

import pytest
from django.db.models import F

from memories import audit
from memories.audit import Actor, kept_request_id
from memories.curation.facts.editing import correct_fact
from memories.curation.facts.forgetting import forget_fact
from memories.curation.facts.keeping import pin_fact
from memories.models import ActorKind, AuditEvent, Fact, FactRefusal, FactRevision
from tests import factories
from tests.api.conftest import Hub
from tests.factories import NOW


@pytest.fixture
def fact(hub: Hub) -> Fact:
    return factories.fact(factories.end_user(hub.tenant, external_id="u1"), importance=0.5)


def patch(hub: Hub, fact: Fact, body: Any, **headers: str) -> Any:
    return hub.client.call("PATCH", f"/facts/{fact.pk}", body, headers=headers)


def give(hub: Hub, fact: Fact, useful: bool) -> Any:
    return hub.client.post(f"/facts/{fact.pk}/feedback", {"useful": useful})


def test_shows_a_fact_with_its_version(hub: Hub, fact: Fact) -> None:
    answer = hub.client.get(f"/facts/{fact.pk}")
    assert (answer.json()["id"], answer.headers["ETag"]) == (str(fact.pk), '"1"')
    assert answer.json()["created_at"] == "2026-11-03T09:12:00Z"


@pytest.mark.parametrize("kind", ["facts", "episodes"])
def test_what_is_no_id_is_not_found(hub: Hub, kind: str) -> None:
    for method in ("GET", "PATCH", "DELETE"):
        for name in (str(uuid.UUID(int=5)), "5", "%00", "..%2f"):
            answer = hub.client.call(method, f"/{kind}/{name}", {"pinned": True})
            assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), (method, name)


def test_changes_the_named_fields_and_nothing_else(hub: Hub, fact: Fact) -> None:
    before = hub.client.get(f"/facts/{fact.pk}").json()
    answer = patch(hub, fact, {"content": "住在代尔夫特", "tags": ["家"], "agent_id": "Home", "pinned": True})
    after = answer.json()
    changed = {name for name in after if after[name] != before[name]}
    assert changed >= {"content", "tags", "agent_id", "pinned", "version", "updated_at"}
    assert changed <= {
        "content",
        "tags",
        "agent_id",
        "pinned",
        "version",
        "updated_at",
        "forget_at",
        "decay_score",
        "still_said_by",
    }
    assert (after["content"], after["tags"], after["agent_id"]) == ("住在代尔夫特", ["家"], "home")
    assert answer.headers["ETag"] == '"2"'
    patch(hub, fact, {"key": "city", "value": "Leiden", "agent_id": "a", "expires_at": "2099-01-01T00:00:00Z"})
    none = {"key": None, "value": None, "agent_id": None, "expires_at": None, "structured": None}
    assert {name: patch(hub, fact, none).json()[name] for name in none} == none


def test_the_change_is_on_record_with_the_key_and_the_request(hub: Hub, fact: Fact) -> None:
    answer = patch(hub, fact, {"content": "Lives in Delft"}, **{"X-Request-ID": "call-7"})
    event = AuditEvent.objects.get(object_id=fact.pk)
    assert (event.actor_kind, event.actor_id, event.request_id) == ("key", str(hub.key.pk), kept_request_id("call-7"))
    assert answer.headers["X-Request-ID"] == "call-7"
    assert FactRevision.objects.get(fact=fact).before["content"] == "Lives in Leiden"


def test_if_match_lets_its_version_through_alone(hub: Hub, fact: Fact) -> None:
    for number, version in enumerate(('"1"', "2", "*")):
        assert patch(hub, fact, {"content": f"{number}"}, **{"If-Match": version}).status_code == 200
    path = f"/facts/{fact.pk}"
    for method, address, body in (
        ("PATCH", path, {"content": "x"}),
        ("DELETE", path, None),
        ("POST", f"{path}/restore", {"version": 1}),
    ):
        answer = hub.client.call(method, address, body, headers={"If-Match": '"1"'})
        assert (answer.status_code, answer.json()["code"]) == (412, "version_mismatch")
    for version in ("one", '"1", "2"', 'W/"1"', "-1", "9" * 30, "１"):
        answer = patch(hub, fact, {"content": "x"}, **{"If-Match": version})
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "If-Match"), version
    fact.refresh_from_db()
    assert (fact.content, fact.status, fact.version) == ("2", "active", 4)


def corrected(fact: Fact, **given: Any) -> None:
    correct_fact(fact_id=fact.pk, tenant=None, content="Lives in Delft", reason="asked", **given)


def pinned(fact: Fact, **given: Any) -> None:
    pin_fact(fact_id=fact.pk, **given)


# How else an operator keeps one: tests/curation/test_keeping.py.
@pytest.mark.parametrize("says", [corrected, pinned])
def test_an_operators_word_stands(hub: Hub, fact: Fact, says: Any) -> None:
    says(fact, actor=Actor.operator(factories.operator()), now=factories.NOW)
    fact.refresh_from_db()
    before = (fact.content, fact.status, fact.importance)
    for method in ("PATCH", "DELETE"):
        answer = hub.client.call(method, f"/facts/{fact.pk}", {"locked": False, "pinned": False, "importance": 1})
        assert (answer.status_code, answer.json()["code"]) == (409, "operator_word"), method
    # Feedback is taken, and changes nothing.
    assert (give(hub, fact, False).status_code, give(hub, fact, False).json()["importance"]) == (200, before[2])
    fact.refresh_from_db()
    assert (fact.content, fact.status, fact.importance) == before


def test_a_lock_stands_against_keys_until_one_lifts_it(hub: Hub, fact: Fact) -> None:
    assert patch(hub, fact, {"locked": True, "pinned": True}).json()["locked"] is True
    calls: tuple[tuple[str, Any], ...] = (("PATCH", {"content": "x"}), ("PATCH", {"locked": True}), ("DELETE", None))
    for method, body in calls:
        answer = hub.client.call(method, f"/facts/{fact.pk}", body)
        assert (answer.status_code, answer.json()["code"]) == (409, "locked"), body
    assert patch(hub, fact, {"locked": False, "content": "Lives in Delft"}).json()["content"] == "Lives in Delft"


def test_deleted_it_is_in_the_trash_and_comes_back(hub: Hub, fact: Fact) -> None:
    path = f"/facts/{fact.pk}"
    refused = hub.client.post(f"{path}/restore", {})
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    answer = hub.client.call("DELETE", path)
    assert (answer.status_code, answer.content) == (204, b"")
    assert hub.client.get(path).json()["status"] == "trashed"
    assert FactRefusal.objects.filter(fact=fact).exists()
    answer = hub.client.post(f"{path}/restore")
    assert (answer.status_code, answer.json()["status"], answer.headers["ETag"]) == (200, "active", '"3"')
    assert not FactRefusal.objects.exists()
    assert hub.client.call("DELETE", path, query={"hard": "true"}).status_code == 204
    assert hub.client.get(path).status_code == 404
    assert not FactRevision.objects.exists()


def test_archived_because_it_was_called_over_it_comes_back(hub: Hub, fact: Fact) -> None:
    path = f"/facts/{fact.pk}"
    for verb, status in (("archive", 409), ("remove", 200)):
        Fact.objects.update(status="archived", version=F("version") + 1, valid_to=fact.valid_from)
        fact.refresh_from_db()
        was = {"status": "active"}
        audit.revise(fact=fact, verb=verb, actor=Actor(kind=ActorKind.RUN), before=was, reason="", now=NOW)
        assert hub.client.post(f"{path}/restore").status_code == status
    fact.refresh_from_db()
    assert (fact.status, fact.valid_to) == ("active", None)


def test_its_versions_are_listed_and_one_is_brought_back(hub: Hub) -> None:
    stated = {"user_id": "u1", "content": "住在莱顿", "category": "knowledge"}
    path = f"/facts/{hub.client.post('/facts', stated).json()['id']}"
    hub.client.call("PATCH", path, {"content": "住在代尔夫特"})
    hub.client.call("DELETE", path)
    history = hub.client.get(f"{path}/history").json()["results"]
    assert [(row["version"], row["verb"]) for row in history] == [(3, "forget"), (2, "edit"), (1, "add")]
    assert history[1]["before"] == {"content": "住在莱顿"}
    assert history[1]["after"]["content"] == "住在代尔夫特"
    assert history[1]["actor"] == {"kind": "key", "id": str(hub.key.pk)}
    assert history[2]["before"] == {}
    page = hub.client.get(f"{path}/history", page_size=2).json()
    assert ([row["version"] for row in page["results"]], "cursor=" in page["next"]) == ([3, 2], True)
    assert hub.client.post(f"{path}/restore", {"version": 9}).status_code == 404
    answer = hub.client.post(f"{path}/restore", {"version": 1})
    assert (answer.json()["content"], answer.json()["version"]) == ("住在莱顿", 4)


class TestFeedback:
    def test_a_useful_fact_fades_later_and_another_sooner(self, hub: Hub, fact: Fact) -> None:
        answer = give(hub, fact, True).json()
        assert (answer["importance"], answer["version"]) == (0.55, 2)
        useful = Fact.objects.get()
        assert useful.last_confirmed_at > fact.last_confirmed_at
        assert give(hub, fact, False).json()["importance"] == 0.45
        useless = Fact.objects.get()
        assert useless.last_confirmed_at == useful.last_confirmed_at
        assert fact.forget_at
        assert useful.forget_at
        assert useless.forget_at
        assert useful.forget_at > fact.forget_at
        assert useless.forget_at < useful.forget_at
        newest = fact.revisions.first()
        assert newest
        assert (newest.verb, newest.reason, newest.actor_id) == ("feedback", "not useful", str(hub.key.pk))

    @pytest.mark.parametrize(("useful", "near", "end"), [(True, 0.98, 1.0), (False, 0.05, 0.0)])
    def test_it_stays_from_0_to_1(self, hub: Hub, fact: Fact, useful: bool, near: float, end: float) -> None:
        Fact.objects.update(importance=near)
        assert [give(hub, fact, useful).json()["importance"] for _ in range(2)] == [end, end]

    def test_what_is_served_nowhere_takes_none(self, hub: Hub, fact: Fact) -> None:
        forget_fact(fact_id=fact.pk, tenant=None, actor=factories.COMMAND, now=factories.NOW)
        assert give(hub, fact, True).status_code == 409

    def test_nor_does_a_kept_one_of_a_restricted_person(self, hub: Hub, fact: Fact) -> None:
        """Without it: tests/api/test_restricted.py."""
        Fact.objects.update(pinned=True)
        fact.end_user.restricted_at = factories.NOW
        fact.end_user.save()
        assert give(hub, fact, True).status_code == 423
