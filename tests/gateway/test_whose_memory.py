"""Over every path of the gateway: nobody is told, or writes into, the memory of another tenant, person or agent."""

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from memories.curation.access.keys import Binding, revoke_api_key
from memories.models import APIKey, EndUser, Session, Tenant, Turn
from tests import factories
from tests.factories import COMMAND, NOW
from tests.gateway.conftest import Client
from tests.llm.endpoint import Endpoint, sends

ASKED = "Where do I live?"
SECRET = "Lives in Leiden"
# The protocols: how each is asked, and where it has a field for the person.
PATHS: dict[str, Callable[[str], dict[str, Any]]] = {
    "/chat/completions": lambda user: {
        "model": "m",
        "messages": [{"role": "user", "content": ASKED}],
        **({"user": user} if user else {}),
    },
    "/responses": lambda user: {"model": "m", "input": ASKED, **({"user": user} if user else {})},
    "/messages": lambda user: {
        "model": "m",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": ASKED}],
        **({"metadata": {"user_id": user}} if user else {}),
    },
}


@pytest.fixture(autouse=True)
def person(tenant: Tenant) -> EndUser:
    person = factories.end_user(tenant, external_id="u1")
    factories.fact(person, SECRET, key="home_city", value="Leiden")
    factories.session(person, [("user", "My code word is Wilhelmina"), ("assistant", "Noted")], session_id="s1")
    factories.end_user(tenant, external_id="u2")
    return person


def each_path(endpoint: Endpoint) -> Iterator[str]:
    """One path after the other, each as if nothing had been asked before."""
    before = set(Session.objects.values_list("pk", flat=True))
    for path in PATHS:
        Session.objects.exclude(pk__in=before).delete()
        endpoint.requests.clear()
        yield path


def told(endpoint: Endpoint) -> bool:
    return any(word in str(endpoint.requests) for word in (SECRET, "Wilhelmina"))


def kept() -> set[tuple[str, str]]:
    """Tenant and person of those of whom something was kept."""
    turns = Turn.objects.filter(content=ASKED)
    return set(turns.values_list("tenant__slug", "end_user__external_id"))


def key_of(tenant: Tenant, *scopes: str, **over: Any) -> str:
    return factories.api_key(tenant, scopes=scopes or ("ingest", "read"), **over)[1]


def ask(client: Client, path: str, *, named: str = "", **headers: str) -> Any:
    return client.post(PATHS[path](named), path=path, **headers)


@pytest.mark.parametrize("by", ["user", "named"])
def test_the_person_of_the_request(client: Client, endpoint: Endpoint, tenant: Tenant, by: str) -> None:
    """In the header or the protocol's field; the positive control of all below."""
    for path in each_path(endpoint):
        answer = ask(client, path, **{by: "u1"})
        assert (answer.status_code, answer.headers["x-memory"], told(endpoint)) == (200, "used", True), path
        assert kept() == {(tenant.slug, "u1")}, path


@pytest.mark.parametrize("given", [{"user": "u2"}, {"named": "u2"}, {"named": "u1", "user": "u2"}])
def test_another_person(client: Client, endpoint: Endpoint, tenant: Tenant, given: dict[str, str]) -> None:
    """The header names the person where both do."""
    for path in each_path(endpoint):
        answer = ask(client, path, session="s1", **given)
        assert (answer.status_code, told(endpoint), kept()) == (200, False, {(tenant.slug, "u2")}), path
        assert Session.objects.filter(external_id="s1").count() == 2, path


@pytest.mark.parametrize("where", ["bearer", "key", "alone"])
def test_a_key_of_another_tenant_wherever_it_stands(
    client: Client, endpoint: Endpoint, tenant: Tenant, where: str
) -> None:
    """In Authorization; in X-Memory-Key beside another Authorization; in x-api-key."""
    other = factories.tenant()
    foreign, own = key_of(other), client.key
    beside = {"bearer": "sk-of-the-caller"} if where == "key" else {}
    for path in each_path(endpoint):
        answer = ask(client, path, user="u1", session="s1", **{**beside, where: foreign})
        assert (answer.status_code, told(endpoint), kept()) == (200, False, {(other.slug, "u1")}), path
        ask(client, path, user="u1", **{**beside, where: own})
        assert (told(endpoint), kept()) == (True, {(other.slug, "u1"), (tenant.slug, "u1")}), path


def test_a_key_for_one_person(client: Client, endpoint: Endpoint, tenant: Tenant) -> None:
    for path in each_path(endpoint):
        client.key = key_of(tenant, binding=Binding(user_id="u2"))
        assert ask(client, path, user="u1").status_code == 403, path
        assert (endpoint.requests, kept()) == ([], set()), path
        # Without a name, and by its own, it is for that person. A name in the body is the application's.
        for headers in ({}, {"user": "u2"}, {"named": "u1"}):
            assert ask(client, path, **headers).status_code == 200, path
        assert (told(endpoint), kept()) == (False, {(tenant.slug, "u2")}), path
        client.key = key_of(tenant, binding=Binding(user_id="u1"))
        assert ask(client, path).headers["x-memory"] == "used", path


def test_a_key_for_one_agent(client: Client, endpoint: Endpoint, tenant: Tenant, person: EndUser) -> None:
    factories.fact(person, "Plans to leave", agent_id="sales", scope="private")
    for path in each_path(endpoint):
        client.key = key_of(tenant, binding=Binding(agent_id="support"))
        refused = ask(client, path, user="u1", agent="sales")
        assert (refused.status_code, endpoint.requests, kept()) == (403, [], set()), path
        for headers in ({}, {"agent": "support"}):
            assert ask(client, path, user="u1", **headers).status_code == 200, path
        assert "Plans to leave" not in str(endpoint.requests), path
        assert set(Turn.objects.filter(content=ASKED).values_list("session__agent_id", flat=True)) == {"support"}
        client.key = key_of(tenant, binding=Binding(agent_id="sales"))
        ask(client, path, user="u1")
        assert "Plans to leave" in str(endpoint.requests), path


def test_scopes(client: Client, endpoint: Endpoint, tenant: Tenant) -> None:
    for scopes in ("read", "ingest", "write", "ingest write", "ingest read"):
        client.key, opens = key_of(tenant, *scopes.split()), scopes == "ingest read"
        for path in each_path(endpoint):
            for mode in ("read-only", "on"):
                assert ask(client, path, user="u1", mode=mode).status_code == (200 if opens else 403), (path, scopes)
            assert (told(endpoint), bool(kept())) == (opens, opens), (path, scopes)


@pytest.mark.parametrize("ended", ["revoked", "expired"])
def test_a_key_whose_time_is_over(client: Client, endpoint: Endpoint, tenant: Tenant, ended: str) -> None:
    key, client.key = factories.api_key(tenant, scopes=["ingest", "read"])
    assert ask(client, "/messages", user="u1").status_code == 200
    Session.objects.filter(turns__content=ASKED).delete()
    if ended == "revoked":
        revoke_api_key(key=key, actor=COMMAND, now=NOW)
    else:
        APIKey.objects.filter(pk=key.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    for path in each_path(endpoint):
        assert ask(client, path, user="u1").status_code == 401, path
        assert (endpoint.requests, kept()) == ([], set()), path


@pytest.mark.parametrize(
    ("changes", "reason"),
    [({"restricted_at": NOW}, "restricted"), ({"serve": False}, "off"), ({"capture": False}, "")],
    ids=["restricted", "not served", "not captured"],
)
def test_a_person_who_is_switched_off(
    client: Client, endpoint: Endpoint, person: EndUser, changes: dict[str, Any], reason: str
) -> None:
    EndUser.objects.filter(pk=person.pk).update(**changes)
    for path in each_path(endpoint):
        answer = ask(client, path, user="u1")
        assert (answer.status_code, answer.headers.get("x-memory-reason", "")) == (200, reason), path
        assert (told(endpoint), bool(kept())) == (reason == "", "serve" in changes), path


def test_another_s_answer_is_not_followed(client: Client, endpoint: Endpoint, tenant: Tenant) -> None:
    """A response's id of somebody else leads to no session of theirs, nor to anything that was said there."""
    part = {"type": "output_text", "text": "In Leiden.", "annotations": []}
    item = {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": [part]}
    replies = [{"id": f"resp_{at}", "status": "completed", "output": [item]} for at in range(4)]
    endpoint.responds(*[sends(json.dumps(reply).encode()) for reply in replies])
    first = ask(client, "/responses", user="u1").headers["x-memory-session"]

    def follow(user: str, key: str) -> str:
        document = {"model": "m", "input": "And now?", "previous_response_id": "resp_0"}
        return str(client.post(document, path="/responses", user=user, bearer=key).headers["x-memory-session"])

    assert follow("u2", client.key) != first
    assert follow("u1", key_of(factories.tenant())) != first
    # The positive control.
    assert follow("u1", client.key) == first


def test_models_are_the_endpoint_s_and_need_a_key_that_reads(
    client: Client, endpoint: Endpoint, tenant: Tenant
) -> None:
    listed = {"object": "list", "data": [{"id": "m", "object": "model"}]}
    endpoint.get = sends(json.dumps(listed).encode())
    keys = [key_of(tenant, "read", binding=one) for one in (Binding(), Binding(user_id="u1"), Binding(agent_id="a"))]
    refused = ["mh_wrong", key_of(tenant, "ingest")]
    for path in ("/models", "/models/m"):
        assert [client.get(path, bearer=key).status_code for key in (*refused, *keys)] == [401, 403, 200, 200, 200]
        assert client.get(path, bearer=keys[0]).json() == listed
