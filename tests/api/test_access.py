"""Facts for certain roles, readers or agents: by key, too, they are seen by whom a context could serve them to."""

from typing import Any

import pytest

from memories.audit import Actor
from memories.curation.facts.adding import FactDraft, add_fact
from memories.curation.people.merging.merge import merge_people
from memories.curation.people.records import add_person, update_person
from memories.models import ActorKind, AuditEvent, EndUser, Fact, Tenant
from tests import factories
from tests.api.client import HubClient
from tests.api.conftest import Hub, hub_of

STAFF = Actor(kind=ActorKind.OPERATOR, id="7")
WITHOUT = ("ingest", "read", "write", "privacy")
GUARDED: dict[str, dict[str, Any]] = {
    "of a role": {"allowed_roles": ["doctor", "nurse"]},
    "of a reader": {"allowed_users": ["berta"]},
    "of one agent": {"agent_id": "sales"},
}
OPEN: dict[str, dict[str, Any]] = {
    "of everybody": {},
    "of the person": {"allowed_users": ["anna"]},
    "of an agent that shares": {"agent_id": "sales", "scope": "share"},
}


@pytest.fixture
def plain(db: None) -> Hub:
    """A key without `read_all`."""
    return hub_of(factories.tenant(), scopes=WITHOUT)


@pytest.fixture
def seer(plain: Hub) -> Hub:
    """Another key of the tenant, with it."""
    return hub_of(plain.tenant)


@pytest.fixture
def anna(plain: Hub) -> EndUser:
    return factories.end_user(plain.tenant, external_id="anna")


def contents(client: HubClient, **query: Any) -> set[str]:
    return {row["content"] for row in client.get("/facts", user_id="anna", **query).json()["results"]}


def test_lists_and_documents_tell_what_a_context_could(plain: Hub, seer: Hub, anna: EndUser) -> None:
    for name, given in (GUARDED | OPEN).items():
        factories.fact(anna, name, **given)
    assert contents(plain.client) == set(OPEN)
    assert contents(plain.client, status="all", q="of") == set(OPEN)
    assert contents(plain.client, roles="nurse") == {*OPEN, "of a role"}
    assert contents(plain.client, agent_id="Sales") == {"of one agent", "of an agent that shares"}
    assert contents(seer.client) == {*OPEN, *GUARDED}
    for client, asked, told in (
        (plain.client, {}, set(OPEN)),
        (plain.client, {"roles": "x,doctor", "agent_id": "sales"}, {*OPEN, "of a role", "of one agent"}),
        (seer.client, {}, {*OPEN, *GUARDED}),
    ):
        document = client.get("/memory", user_id="anna", **asked).json()
        assert {fact["content"] for fact in document["facts"]} == told
        context = client.post("/context", {"user_id": "anna", **_listed(asked)}).json()["memory"]
        assert client is seer.client or all((name in context) == (name in told) for name in GUARDED)


def _listed(asked: dict[str, str]) -> dict[str, Any]:
    return {name: value.split(",") if name == "roles" else value for name, value in asked.items()}


def test_roles_are_given_with_commas_or_several_times(plain: Hub, anna: EndUser) -> None:
    factories.fact(anna, "of a role", **GUARDED["of a role"])
    for query in ("nurse", "x,nurse", "x&roles=nurse", "%20nurse%20,", "nurse&roles=doctor"):
        found = plain.client.call("GET", "/facts", query=f"user_id=anna&roles={query}").json()["results"]
        assert [row["content"] for row in found] == ["of a role"], query
    for none in ("r" * 101, ",".join(["r"] * 101)):
        refused = plain.client.call("GET", "/facts", query=f"user_id=anna&roles={none}")
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, "roles")


def test_other_parameters_are_still_given_once(plain: Hub) -> None:
    assert plain.client.call("GET", "/facts", query="user_id=anna&user_id=berta").status_code == 400


OPERATIONS: dict[str, tuple[str, str, Any, dict[str, str]]] = {
    "get": ("GET", "", None, {}),
    "history": ("GET", "/history", None, {}),
    "patch": ("PATCH", "", {"tags": ["seen"]}, {}),
    "restore": ("POST", "/restore", {"version": 1}, {}),
    "feedback": ("POST", "/feedback", {"useful": True}, {}),
    "delete": ("DELETE", "", None, {}),
    "hard delete": ("DELETE", "", None, {"hard": "true"}),
}


@pytest.mark.parametrize(("guarded", "key"), [("of a role", "roles"), ("of one agent", "agent_id")])
def test_one_fact(plain: Hub, seer: Hub, anna: EndUser, guarded: str, key: str) -> None:
    asked = {key: "doctor" if key == "roles" else "sales"}
    for operation, (method, end, body, query) in OPERATIONS.items():
        draft = FactDraft(content=f"Takes warfarin, {operation}", category="other", **GUARDED[guarded])
        fact = add_fact(end_user=anna, draft=draft, actor=factories.COMMAND, now=factories.NOW).row
        path = f"/facts/{fact.pk}{end}"
        never = plain.client.call(method, f"/facts/{anna.pk}{end}", body, query=query)
        before, events = Fact.objects.filter(pk=fact.pk).values().get(), AuditEvent.objects.count()
        refused = plain.client.call(method, path, body, query=query)
        assert (refused.status_code, refused.json()["detail"]) == (never.status_code, never.json()["detail"])
        assert refused.status_code == 404, operation
        assert "warfarin" not in refused.content.decode(), operation
        assert Fact.objects.filter(pk=fact.pk).values().get() == before, operation
        assert AuditEvent.objects.count() == events, operation
        # To restore what it says already is a 409.
        taken = {200, 204, 409} if operation == "restore" else {200, 204}
        assert plain.client.call(method, path, body, query={**query, **asked}).status_code in taken, operation
        seen = seer.client.call("GET", f"/facts/{fact.pk}").status_code
        assert seen == (404 if operation == "hard delete" else 200), operation


def test_a_reader_is_meant_by_all_of_their_names(plain: Hub, anna: EndUser) -> None:
    factories.end_user(plain.tenant, external_id="old name", merged_into=anna)
    fact = factories.fact(anna, "Has a cat", allowed_users=["old name"])
    assert contents(plain.client) == {"Has a cat"}
    assert plain.client.get(f"/facts/{fact.pk}").status_code == 200


def test_which_fact_says_the_same_is_told_to_who_may_see_it(plain: Hub, seer: Hub, anna: EndUser) -> None:
    fact = factories.fact(anna, "Takes warfarin", allowed_roles=["doctor"])
    stated = {"user_id": "anna", "content": "Takes warfarin", "category": "other"}
    hidden, told = plain.client.post("/facts", stated), seer.client.post("/facts", stated)
    assert (hidden.status_code, hidden.json().get("existing_id")) == (409, None)
    assert (told.status_code, told.json()["existing_id"]) == (409, str(fact.pk))


def test_a_document_changes_no_fact_that_its_key_does_not_see(plain: Hub, seer: Hub, anna: EndUser) -> None:
    fact = factories.fact(anna, "Takes warfarin", allowed_roles=["doctor"])
    document = {"user_id": "anna", "facts": [{"id": str(fact.pk), "content": "Takes nothing"}]}
    assert plain.client.call("PUT", "/memory", document).status_code == 200
    fact.refresh_from_db()
    assert fact.content == "Takes warfarin"
    document["facts"] = [{"id": str(fact.pk), "content": "Takes little"}]
    assert seer.client.call("PUT", "/memory", document).status_code == 200
    fact.refresh_from_db()
    assert fact.content == "Takes little"


def test_the_scope_alone_opens_nothing(plain: Hub, anna: EndUser) -> None:
    alone = hub_of(plain.tenant, scopes=["read_all"])
    assert alone.client.get("/facts", user_id="anna").json()["code"] == "missing_scope"


# Capture and serve


def switch(client: HubClient, **changes: bool) -> Any:
    return client.call("PATCH", "/users/detail", changes, query={"user_id": "anna"})


@pytest.mark.parametrize("name", ["capture", "serve"])
def test_what_an_operator_switched_off_no_key_switches_on(plain: Hub, anna: EndUser, name: str) -> None:
    # What a key switched off a key switches on.
    assert [switch(plain.client, **{name: word}).json()[name] for word in (False, True)] == [False, True]
    update_person(end_user=anna, changes={name: False}, actor=STAFF, now=factories.NOW)
    refused = switch(plain.client, **{name: True})
    assert (refused.status_code, refused.json()["code"]) == (409, "operator_word")
    anna.refresh_from_db()
    assert getattr(anna, name) is False
    # Off once more is taken, and stays the operator's word.
    assert switch(plain.client, **{name: False}).status_code == 200
    assert switch(plain.client, **{name: True}).status_code == 409
    # The other fields of the same request are not changed either.
    both = plain.client.call("PATCH", "/users/detail", {name: True, "display_name": "A"}, query={"user_id": "anna"})
    assert both.status_code == 409
    anna.refresh_from_db()
    assert anna.display_name == ""
    update_person(end_user=anna, changes={name: True}, actor=STAFF, now=factories.NOW)
    assert switch(plain.client, **{name: False}).status_code == 200
    assert switch(plain.client, **{name: True}).status_code == 200


def test_a_person_whom_an_operator_added_switched_off(plain: Hub) -> None:
    add_person(tenant=plain.tenant, external_id="anna", record={"capture": False}, actor=STAFF, now=factories.NOW)
    assert switch(plain.client, capture=True).status_code == 409


def test_the_tenants_switches_are_their_own(plain: Hub, anna: EndUser) -> None:
    Tenant.objects.filter(pk=plain.tenant.pk).update(capture=False)
    assert switch(plain.client, capture=False).status_code == 200
    assert switch(plain.client, capture=True).status_code == 200


@pytest.mark.parametrize("first", ["key", "operator"])
def test_merged_an_operators_word_stays_one(plain: Hub, anna: EndUser, first: str) -> None:
    other = factories.end_user(plain.tenant, external_id="berta")
    of_key, of_operator = (anna, other) if first == "key" else (other, anna)
    plain.client.call("PATCH", "/users/detail", {"serve": False}, query={"user_id": of_key.external_id})
    update_person(end_user=of_operator, changes={"serve": False}, actor=STAFF, now=factories.NOW)
    merge_people(survivor=anna.pk, merged=other.pk, actor=STAFF, now=factories.NOW)
    assert switch(plain.client, serve=True).json()["code"] == "operator_word"
