"""/profiles and /management/…/profiles: profiles by a schema of the tenant's own."""

from typing import Any

import pytest

from memories.curation.access.keys import Binding
from memories.models import EndUser, Fact, FactEvidence
from tests import factories
from tests.api.client import HubClient
from tests.api.conftest import Hub, hub_of
from tests.profiles.defining import TRAVEL, define, without

BODY = {"schema": TRAVEL}


@pytest.fixture
def manager(hub: Hub) -> HubClient:
    return HubClient(factories.management_key(hub.tenant)[1])


def address(hub: Hub, name: str = "travel") -> str:
    return f"/management/tenants/{hub.tenant.slug}/profiles/{name}"


def state(hub: Hub, field: str, content: str, value: str, **more: Any) -> Any:
    given = {"user_id": "ann", "content": content, "category": "other", "key": f"profile.travel.{field}"}
    return hub.client.post("/facts", {**given, "value": value, **more})


def shown(hub: Hub, name: str = "travel", **query: Any) -> Any:
    return hub.client.get(f"/profiles/{name}", user_id="ann", **query)


class TestDefining:
    def test_a_profile_is_defined_changed_and_removed(self, hub: Hub, manager: HubClient) -> None:
        assert manager.get(address(hub)).status_code == 404
        made = manager.call("PUT", address(hub), BODY)
        assert (made.status_code, made.headers["ETag"], made.json()["version"]) == (201, '"1"', 1)
        assert made.json()["schema"]["properties"]["seat"]["enum"] == ["aisle", "window"]
        again = manager.call(
            "PUT", address(hub), {"schema": without("seat"), "in_context": True}, headers={"If-Match": '"1"'}
        )
        assert (again.status_code, again.json()["version"], again.json()["in_context"]) == (200, 2, True)
        assert manager.call("PUT", address(hub), BODY, headers={"If-Match": '"1"'}).status_code == 412
        assert manager.get(address(hub)).json() == again.json()
        listed = manager.get(f"/management/tenants/{hub.tenant.slug}/profiles").json()["profiles"]
        assert listed == hub.client.get("/profiles").json()["profiles"] == [again.json()]
        assert manager.call("DELETE", address(hub), headers={"If-Match": '"1"'}).status_code == 412
        assert manager.call("DELETE", address(hub)).status_code == 204
        assert manager.call("DELETE", address(hub)).status_code == 404
        assert hub.client.get("/profiles").json() == {"profiles": []}

    def test_a_schema_that_is_not_accepted_is_refused_with_its_places(self, hub: Hub, manager: HubClient) -> None:
        bad = {"type": "object", "properties": {"a": {"type": "string", "pattern": "(a+)+"}, "b": {"$ref": "#"}}}
        refused = manager.call("PUT", address(hub), {"schema": bad})
        assert refused.status_code == 400
        assert [one["pointer"] for one in refused.json()["errors"]] == [
            "/schema/properties/a/pattern",
            "/schema/properties/b/type",
        ]
        for name in ("%00", "Travel"):
            for method in ("GET", "DELETE"):
                assert manager.call(method, address(hub, name)).status_code == 404, name
            assert shown(hub, name).status_code == 404
        surrogate = {"type": "object", "properties": {"a": {"type": "string", "title": "\ud800x", "enum": ["\ud800"]}}}
        assert manager.call("PUT", address(hub), {"schema": surrogate}).status_code == 400
        for name in ("Travel", "a-b", "x" * 25, "%00"):
            assert manager.call("PUT", address(hub, name), BODY).status_code == 400, name


class TestReading:
    def test_the_document_with_evidence_and_a_revision(self, hub: Hub) -> None:
        define(hub.tenant)
        person = factories.end_user(hub.tenant, external_id="ann")
        session = factories.session(person, (("user", "I fly from Eindhoven"), ("assistant", "Noted.")))
        turn = session.turns.get(number=1)
        assert (
            state(hub, "home_airport", "Flies from Eindhoven", "Eindhoven", evidence=[str(turn.pk)]).status_code == 201
        )
        state(hub, "address.city", "Lives in Leiden", "Leiden")
        state(hub, "children", "Has 3 children", "3")
        answer = shown(hub)
        found = answer.json()
        assert found["document"] == {"home_airport": "Eindhoven", "address": {"city": "Leiden"}, "children": 3}
        assert answer.headers["ETag"] == f'"{found["revision"]}"'
        by_field = {one["field"]: one for one in found["evidence"]}
        assert list(by_field) == ["home_airport", "children", "address.city"]
        evidence = by_field["home_airport"]["evidence"]
        assert [(one["turn_id"], one["session_id"], one["turn_number"]) for one in evidence] == [
            (str(turn.pk), session.external_id, 1)
        ]
        assert by_field["children"]["evidence"] == []
        assert (found["missing"], found["invalid"], found["version"]) == ([], [], 1)
        assert shown(hub).json()["revision"] == found["revision"]
        state(hub, "children", "Has 4 children", "4")
        assert shown(hub).json()["document"]["children"] == 4
        assert shown(hub).json()["revision"] != found["revision"]
        assert FactEvidence.objects.count() == 1

    def test_what_the_schema_no_longer_allows_is_named(self, hub: Hub) -> None:
        define(hub.tenant)
        state(hub, "children", "Has 3 children", "3")
        define(hub.tenant, without("home_airport", children={"type": "integer", "maximum": 2}))
        found = shown(hub).json()
        fact = str(Fact.objects.get().pk)
        assert (found["document"], found["version"]) == ({}, 2)
        assert found["invalid"] == [{"field": "children", "fact_id": fact, "detail": "Give at most 2."}]

    def test_a_bad_value_is_refused_where_it_is_stated(self, hub: Hub) -> None:
        define(hub.tenant)
        refused = state(hub, "seat", "Sits in the middle", "middle")
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, "/value")

    def test_people_without_a_document(self, hub: Hub) -> None:
        define(hub.tenant)
        empty = shown(hub).json()
        assert (empty["document"], empty["missing"], empty["evidence"]) == ({}, ["home_airport"], [])
        assert shown(hub, "nope").status_code == 404
        state(hub, "children", "Has 3 children", "3")
        for changed in ({"restricted_at": factories.NOW}, {"restricted_at": None, "serve": False}):
            EndUser.objects.update(**changed)
            assert shown(hub).json()["document"] == {}, changed
        EndUser.objects.update(serve=True)
        assert shown(hub).json()["document"] == {"children": 3}

    def test_an_agents_profile_is_its_own(self, hub: Hub) -> None:
        define(hub.tenant, agent_id="sales")
        state(hub, "children", "Has 3 children", "3")
        assert shown(hub).status_code == shown(hub, agent_id="support").status_code == 404
        assert shown(hub, agent_id="sales").json()["document"] == {"children": 3}
        sales = hub_of(hub.tenant, binding=Binding(agent_id="sales"))
        other = hub_of(hub.tenant, binding=Binding(agent_id="support"))
        assert shown(sales).json()["document"] == {"children": 3}
        assert shown(other).status_code == 404
        assert [len(one.client.get("/profiles").json()["profiles"]) for one in (hub, sales, other)] == [1, 1, 0]
