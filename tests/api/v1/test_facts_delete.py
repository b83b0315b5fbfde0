"""POST /facts/delete: first seen, then deleted, and never more than was seen."""

from typing import Any

import pytest

from memories.curation.access.keys import Binding
from memories.curation.facts import many
from memories.models import AuditEvent, EndUser, Fact, FactRefusal
from tests import factories
from tests.api.conftest import Hub, hub_of


@pytest.fixture
def person(hub: Hub) -> EndUser:
    person = factories.end_user(hub.tenant, external_id="u1")
    factories.fact(person, "Lives in Leiden", category="identity", key="city", value="Leiden")
    factories.fact(person, "Drinks tea", category="preference", tags=["drinks"])
    factories.fact(person, "Drinks coffee", category="preference", confidence=0.5)
    factories.fact(factories.end_user(hub.tenant), "Drinks tea", category="preference")
    return person


def ask(hub: Hub, **body: Any) -> Any:
    return hub.client.post("/facts/delete", {"user_id": "u1", **body})


def trashed() -> list[str]:
    return sorted(Fact.objects.filter(status="trashed").values_list("content", flat=True))


@pytest.mark.usefixtures("person")
class TestDeletion:
    def test_what_was_seen_is_deleted(self, hub: Hub) -> None:
        seen = ask(hub, category="preference", dry_run=True).json()
        assert (seen["dry_run"], seen["facts"], seen["kept"], len(seen["ids"])) == (True, 2, 0, 2)
        assert trashed() == []
        done = ask(hub, category="preference", token=seen["token"])
        assert (done.status_code, done.json()) == (200, {**seen, "dry_run": False})
        assert trashed() == ["Drinks coffee", "Drinks tea"]
        assert Fact.objects.filter(end_user__external_id="u1", status="active").count() == 1
        event = AuditEvent.objects.get(verb="forget")
        assert (event.object_type, event.counts) == ("EndUser", {"facts": 2})
        history = hub.client.get(f"/facts/{seen['ids'][0]}/history").json()["results"]
        assert (history[0]["verb"], history[0]["version"]) == ("forget", 2)

    def test_it_is_refused_like_one_that_is_deleted_alone(self, hub: Hub) -> None:
        factories.fact(EndUser.objects.get(external_id="u1"), "At home in Leiden", category="identity", key="city")
        token = ask(hub, q="Lives in", dry_run=True).json()["token"]
        ask(hub, q="Lives in", token=token)
        # Another active fact has the key.
        assert set(FactRefusal.objects.values_list("kind", "actor_kind")) == {("text", "key")}
        token = ask(hub, key="city", dry_run=True).json()["token"]
        ask(hub, key="city", token=token)
        assert FactRefusal.objects.filter(kind="key").count() == 1

    @pytest.mark.parametrize("change", ["more", "changed", "fewer"])
    def test_other_facts_than_were_seen_change_nothing(self, hub: Hub, change: str) -> None:
        token = ask(hub, category="preference", dry_run=True).json()["token"]
        fact = Fact.objects.get(content="Drinks coffee")
        if change == "more":
            factories.fact(fact.end_user, "Sings", category="preference")
        elif change == "fewer":
            hub.client.call("DELETE", f"/facts/{fact.pk}")
        else:
            hub.client.call("PATCH", f"/facts/{fact.pk}", {"importance": 0.9})
        before = trashed()
        # Nor do other filters.
        for filters in ({"category": "preference"}, {}):
            answer = ask(hub, **filters, token=token)
            assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
        assert trashed() == before

    def test_without_a_look_nothing_is_deleted(self, hub: Hub) -> None:
        answer = ask(hub, category="preference")
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "/token")
        assert trashed() == []

    def test_the_filters_are_those_of_the_list(self, hub: Hub) -> None:
        filters: list[tuple[dict[str, Any], int]] = [
            ({}, 3), ({"q": "drinks"}, 2), ({"tag": "drinks"}, 1), ({"min_confidence": 0.8}, 2), ({"key": "city"}, 1),
            ({"type": "profile"}, 1), ({"pinned": True}, 0), ({"status": "pending"}, 0), ({"trust": "user"}, 3),
        ]  # fmt: skip
        for given, number in filters:
            assert ask(hub, **given, dry_run=True).json()["facts"] == number, given
            query = {"user_id": "u1", **{name: str(value) for name, value in given.items()}}
            assert len(hub.client.call("GET", "/facts", query=query).json()["results"]) == number, given

    def test_what_no_key_may_delete_stays(self, hub: Hub) -> None:
        Fact.objects.filter(content="Drinks tea").update(binding=True)
        Fact.objects.filter(content="Drinks coffee").update(locked=True)
        seen = ask(hub, dry_run=True).json()
        assert (seen["facts"], seen["kept"]) == (1, 2)
        assert ask(hub, token=seen["token"]).status_code == 200
        assert trashed() == ["Lives in Leiden"]

    def test_what_the_caller_does_not_see_stays(self, hub: Hub) -> None:
        Fact.objects.filter(content="Drinks coffee").update(allowed_roles=["doctor"])
        blind = Hub(hub.tenant, hub.key, hub_of(hub.tenant, scopes=["write"]).client)
        assert ask(blind, dry_run=True).json()["facts"] == 2
        assert ask(blind, dry_run=True, roles="doctor").json()["facts"] == 3

    def test_a_key_for_an_agent_deletes_that_agents_alone(self, hub: Hub) -> None:
        factories.fact(EndUser.objects.get(external_id="u1"), "Of the agent", agent_id="a")
        agents = hub_of(hub.tenant, binding=Binding(agent_id="a", writes_as="user"))
        assert ask(agents, dry_run=True).json()["facts"] == 1

    def test_too_many_for_one_request_are_refused(self, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(many, "MOST", 2)
        answer = ask(hub, dry_run=True)
        assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
        assert ask(hub, category="preference", dry_run=True).json()["facts"] == 2

    def test_many_take_as_many_statements_as_two(self, hub: Hub, django_assert_max_num_queries: Any) -> None:
        person = EndUser.objects.get(external_id="u1")
        for number in range(20):
            factories.fact(person, f"Fact number {number}", category="goal", key=f"k{number}")
        token = ask(hub, category="goal", dry_run=True).json()["token"]
        with django_assert_max_num_queries(40):
            assert ask(hub, category="goal", token=token).json()["facts"] == 20
        assert FactRefusal.objects.count() == 40


def test_an_unknown_person_is_not_found(hub: Hub) -> None:
    assert ask(hub, dry_run=True).status_code == 404
