"""Keys for one person or one agent: every operation of the live schema, called with the ids and objects of others."""

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from memories.api.endpoints import ManagementEndpoint
from memories.curation.access.keys import Binding, rotate_api_key
from memories.curation.facts.publishing import publish_fact
from memories.curation.people.external_ids import change_external_id
from memories.models import APIKey, EndUser, Fact, PrivacyCase, Session
from tests import factories
from tests.api.calls import CALLS, SECRET, Ids, populated, send
from tests.api.client import operations
from tests.api.conftest import Hub, hub_of
from tests.api.test_isolation import everything_of, said
from tests.database import undone

# What names its person by user_id; all else names an object in its address, or lists.
NAMED = {
    *(
        "postTurns",
        "postTurnsBulk",
        "flushSession",
        "endSession",
        "getContext",
        "search",
        "answerQuestion",
        "listSessions",
    ),
    "listFacts",
    *("addFact", "getMemory", "putMemory", "clearMemory", "listEpisodes", "getProfile"),
    *("writeProfileSection", "getUser", "changeUser", "createPrivacyRequest", "listExtractions", "deleteFacts"),
    *("listFiles", "readFile", "writeFile", "editFile", "globFiles", "grepFiles", "uploadFiles", "downloadFiles"),
    *("deleteFile", "listFileHistory", "restoreFile", "listDiary", "writeDiaryEntry", "listGroups"),
    *("addTriple", "invalidateTriple", "supersedeTriple", "listEntityTriples", "listRelationTriples"),
    *("listGraphTimeline", "getGraphStats", "listTrajectories", "postTrajectory"),
    "listAttachments",
    *("listDreams", "startDream", "personLink", "previewExtraction", "getPersonProfile"),
    *("listSkills", "getSkill", "listSkillVersions"),
}
OBJECTS = {
    *("deleteSession", "getSession", "listTurns", "getFact", "changeFact", "deleteFact", "listFactHistory"),
    *("restoreFact", "giveFactFeedback", "getEpisode", "changeEpisode", "deleteEpisode", "getPrivacyRequest"),
    *("getExtraction", "retryExtraction", "takePrivacyExport", "deleteTurn", "redactTurn"),
    *("deleteDiaryEntry", "getGroup", "listGroupFacts", "addGroupFact", "deleteGroupFact"),
    *("getDream", "restoreDream", "getTrajectory", "changeTrajectory", "deleteTrajectory"),
    *("listTrajectorySteps", "postTrajectorySteps"),
    *("getAttachment", "listPassages", "deleteAttachment"),
}
LISTS = {"listUsers"}
# Of no person: tests/api/v1/test_profiles.py.
DEFINITIONS = {"listProfiles"}
# Who belongs to a group concerns others.
GROUPS = {"addGroup", "changeGroup", "deleteGroup", "listGroupMembers", "setGroupMember", "removeGroupMember"}
# It concerns the whole tenant: tests/api/v1/test_content_policy.py.
TENANT = {
    *("getContentPolicy", "putContentPolicy", "listContentPolicyVersions", "restoreContentPolicy"),
    *("listContentPolicyTopics", "listContentPolicyDrops"),
    *("startPolicyDryRun", "getPolicyDryRun", "listPolicyDryRunFindings", "deletePolicyDryRunFindings"),
}
# A file can hold what others said.
IMPORTS = {"listImports", "createImport", "getImport", "pauseImport", "resumeImport", "undoImport"}
# Of no person: tests/api/v1/test_agents.py.
AGENTS = {"listAgents", "getAgent", "changeAgent"}
# What names its person by a namespace.
STORE = {
    *("getStoreItem", "putStoreItem", "deleteStoreItem", "searchStoreItems", "listStoreNamespaces", "batchStore"),
}
TABLE = NAMED | OBJECTS | LISTS | DEFINITIONS | AGENTS | STORE | GROUPS | TENANT | IMPORTS

pytestmark = pytest.mark.usefixtures("with_model")


def bound_to(hub: Hub, **ids: str) -> Hub:
    """Another key of the same tenant."""
    return hub_of(hub.tenant, binding=Binding(**ids))


@pytest.fixture
def own(hub: Hub) -> Ids:
    """The person whom the key is for, with something of every kind."""
    return populated(hub.tenant)


@pytest.fixture
def theirs(hub: Hub) -> Ids:
    """Somebody else of the same tenant."""
    return populated(hub.tenant)


@pytest.fixture
def bound(hub: Hub, own: Ids) -> Hub:
    return bound_to(hub, user_id=own.user_id)


def test_every_operation_has_its_place() -> None:
    assert CALLS.keys() == operations().keys() == TABLE


def addresses(patterns: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    for one in patterns:
        here = before + str(one.pattern)
        if isinstance(one, URLResolver):
            yield from addresses(one.url_patterns, here)
        elif isinstance(one, URLPattern) and here.startswith("api/v1/"):
            yield here, getattr(one.callback, "view_class", None)


def test_every_route_declares_its_policy() -> None:
    found = [
        (address, method)
        for address, view in addresses(get_resolver().url_patterns)
        # No key of a tenant opens these.
        if not issubclass(view or object, ManagementEndpoint)
        for method in getattr(view, "http_method_names", ())
        if method != "head" and (handler := getattr(view, method, None)) and not getattr(handler, "bound", None)
    ]
    assert found == []
    assert len([address for address, view in addresses(get_resolver().url_patterns) if view]) >= 25


def test_a_route_without_a_policy_lets_no_bound_key_in(bound: Hub, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    from memories.api.v1.people.views import PeopleView

    monkeypatch.setattr(PeopleView.get, "bound", None)
    assert hub.client.get("/users").status_code == 200
    assert bound.client.get("/users").json()["code"] == "key_bound"


def test_another_persons_id_is_refused(bound: Hub, theirs: Ids) -> None:
    before, nobody = everything_of(bound), Ids()
    for operation in sorted(NAMED):
        answer = send(bound.client, operation, theirs)
        assert (answer.status_code, answer.json()["code"]) == (403, "key_bound"), operation
        assert [fault["code"] for fault in answer.json()["errors"]] == ["key_bound"], operation
        assert answer.json()["errors"][0]["pointer"].endswith("user_id"), operation
        assert SECRET not in answer.content.decode(), operation
        # Whether there is such a person is told to nobody.
        assert said(answer, theirs) == said(send(bound.client, operation, nobody), nobody), operation
    assert everything_of(bound) == before


def test_another_persons_namespace_is_refused(hub: Hub, bound: Hub, own: Ids, theirs: Ids) -> None:
    before, nobody = everything_of(bound), Ids()
    for operation in sorted(STORE):
        with undone():
            answer = send(bound.client, operation, theirs)
            assert (answer.status_code, answer.json()["code"]) == (403, "key_bound"), operation
            assert everything_of(bound) == before, operation
            assert said(answer, theirs) == said(send(bound.client, operation, nobody), nobody), operation
        with undone():
            assert send(bound.client, operation, own).status_code in (200, 204), operation
        with undone():
            # Items are no agent's.
            of_agent = bound_to(hub, agent_id=own.agent_name)
            assert send(of_agent.client, operation, own).json()["code"] == "key_bound", operation


def test_who_belongs_to_a_group_is_no_matter_of_a_bound_key(hub: Hub, bound: Hub, own: Ids) -> None:
    keys = (bound, bound_to(hub, agent_id=own.agent_name))
    before = everything_of(bound)
    for one in keys:
        for operation in sorted(GROUPS | IMPORTS):
            assert send(one.client, operation, own).json()["code"] == "key_bound", operation
    assert everything_of(bound) == before


def test_another_persons_object_never_existed(bound: Hub, theirs: Ids) -> None:
    before, nobody = everything_of(bound), Ids()
    for operation in sorted(OBJECTS):
        answer = send(bound.client, operation, theirs)
        assert answer.status_code == 404, operation
        assert said(answer, theirs) == said(send(bound.client, operation, nobody), nobody), operation
    assert everything_of(bound) == before


def test_ones_own_is_as_under_any_key(hub: Hub, bound: Hub, own: Ids) -> None:
    """The positive control: on the person's own the bound key does what it is for."""
    for operation in sorted(NAMED | OBJECTS):
        with undone():
            answer = send(bound.client, operation, own)
            # `duplicate`: the person has the fact already.
            assert answer.status_code in (200, 201, 202, 204, 409), operation
            assert answer.status_code != 409 or answer.json()["code"] in ("duplicate", "operator_word"), operation


def test_a_user_id_that_is_left_out_is_the_keys_own(bound: Hub, own: Ids, theirs: Ids) -> None:
    for operation in sorted(NAMED - {"postTurnsBulk"}):
        method, template = operations()[operation]
        call = CALLS[operation](own)
        query = {name: value for name, value in call.query.items() if name != "user_id"}
        body = {name: value for name, value in (call.body or {}).items() if name != "user_id"} if call.body else None
        path = template.removeprefix("/api/v1").format(**call.path)
        with undone():
            left_out = bound.client.call(method, path, body, query=query)
            assert left_out.status_code in (200, 201, 202, 409), operation
            assert theirs.user_id not in left_out.content.decode(), operation


def test_every_conversation_of_many_is_held_against_the_key(bound: Hub, own: Ids, theirs: Ids) -> None:
    said_now = [{"role": "user", "content": "Good morning"}]
    conversation: dict[str, Any] = {"session_id": "s-9", "messages": said_now}
    mixed = [conversation, {**conversation, "user_id": theirs.user_id}]
    refused = bound.client.post("/turns/bulk", {"conversations": mixed})
    assert (refused.status_code, refused.json()["code"]) == (403, "key_bound")
    assert refused.json()["errors"][0]["pointer"] == "/conversations/1/user_id"
    assert not Session.objects.filter(external_id="s-9").exists()
    taken = bound.client.post("/turns/bulk", {"conversations": [conversation, {**conversation, "session_id": "s-8"}]})
    assert taken.status_code == 202
    people = Session.objects.filter(external_id__in=["s-8", "s-9"]).values_list("end_user__external_id", flat=True)
    assert set(people) == {own.user_id}


def test_people_are_that_one(hub: Hub, bound: Hub, own: Ids, theirs: Ids) -> None:
    def listed(client: Any, **query: str) -> set[str]:
        return {row["user_id"] for row in client.get("/users", **query).json()["results"]}

    assert {own.user_id, theirs.user_id} <= listed(hub.client)
    assert listed(bound.client) == {own.user_id}
    assert listed(bound.client, q=theirs.user_id) == set()


def test_a_name_that_leads_to_the_person_is_theirs(hub: Hub, bound: Hub, own: Ids, theirs: Ids) -> None:
    person = EndUser.objects.get(external_id=own.user_id)
    factories.end_user(hub.tenant, external_id="another name", merged_into=person)
    assert SECRET in bound.client.get("/facts", user_id="another name").content.decode()
    by_name = bound_to(hub, user_id="another name")
    assert SECRET in by_name.client.get("/facts").content.decode()
    assert by_name.client.get("/facts", user_id=own.user_id).status_code == 200
    assert by_name.client.get(f"/facts/{own.fact}").status_code == 200
    assert by_name.client.get("/facts", user_id=theirs.user_id).status_code == 403
    assert [row["user_id"] for row in by_name.client.get("/users").json()["results"]] == [own.user_id]
    # What is written under it is the person's, whatever the name leads to a moment later.
    bound.client.post("/turns", {"user_id": "another name", "session_id": "s-7", "messages": [_hello()]})
    assert Session.objects.get(external_id="s-7").end_user == person


@pytest.mark.parametrize("keeps_old", [True, False])
def test_called_otherwise_it_is_for_the_same_person(hub: Hub, bound: Hub, own: Ids, keeps_old: bool) -> None:
    """Also once somebody else got the id that it was made for."""
    change_external_id(
        end_user=EndUser.objects.get(external_id=own.user_id),
        external_id="new id",
        keeps_old=keeps_old,
        actor=factories.COMMAND,
        now=factories.NOW,
    )
    assert hub.client.post("/facts", {"user_id": own.user_id, "content": "Somebody else's", "category": "other"})
    for asked in ({}, {"user_id": "new id"}):
        seen = bound.client.get("/facts", **asked).content.decode()
        assert SECRET in seen
        assert ("Somebody else's" in seen) is keeps_old
    assert bound.client.get("/facts", user_id=own.user_id).status_code == (200 if keeps_old else 403)


def test_a_person_who_is_not_there_yet(hub: Hub, theirs: Ids) -> None:
    early = bound_to(hub, user_id="tomorrow")
    assert early.client.get("/users").json()["results"] == []
    assert early.client.get(f"/facts/{theirs.fact}").status_code == 404
    assert early.client.post("/turns", {"session_id": "s", "messages": [_hello()]}).status_code == 202
    assert Session.objects.get(external_id="s").end_user.external_id == "tomorrow"


def test_a_public_fact_of_somebody_else_is_theirs(hub: Hub, bound: Hub, theirs: Ids) -> None:
    publish_fact(fact_id=uuid.UUID(theirs.fact), actor=factories.COMMAND, now=factories.NOW)
    assert hub.client.get(f"/facts/{theirs.fact}").status_code == 200
    assert bound.client.get(f"/facts/{theirs.fact}").status_code == 404


def test_rotated_it_is_bound_as_before(hub: Hub, own: Ids, theirs: Ids) -> None:
    old = bound_to(hub, user_id=own.user_id, agent_id="Support")
    key, plaintext = rotate_api_key(key=old.key, ends_at=factories.NOW, actor=factories.COMMAND, now=factories.NOW)
    assert (key.user_id, key.agent_id, key.writes_as) == (own.user_id, "support", "agent")
    old.client.plaintext = plaintext
    assert old.client.get("/facts", user_id=theirs.user_id).json()["code"] == "key_bound"


def test_replays_are_the_keys_own(bound: Hub, hub: Hub, own: Ids, theirs: Ids) -> None:
    body = {"user_id": theirs.user_id, "content": "Lives in Cologne", "category": "other"}
    assert hub.client.post("/facts", body, **{"Idempotency-Key": "one"}).status_code == 201
    assert bound.client.post("/facts", body, **{"Idempotency-Key": "one"}).json()["code"] == "key_bound"


# For one agent


def agents_world(hub: Hub) -> dict[str, Fact]:
    person = factories.end_user(hub.tenant, external_id="anna")
    facts = {
        "shared": factories.fact(person, "Lives in Bonn"),
        "support": factories.fact(person, "Has ticket 7", agent_id="support"),
        "sales": factories.fact(person, "Has a discount", agent_id="sales"),
        "told": factories.fact(person, "Prefers mail", agent_id="sales", scope="share"),
    }
    for agent in ("support", "sales", ""):
        session = factories.session(person, session_id=f"of-{agent or 'none'}", agent_id=agent)
        factories.episode(session, f"Spoke with {agent or 'nobody'}")
        factories.run(session)
    return facts


def contents(answer: Any) -> set[str]:
    assert answer.status_code == 200, answer.content
    return {row["content"] for row in answer.json()["results"]}


def test_an_agents_key_sees_what_its_contexts_would(hub: Hub) -> None:
    facts = agents_world(hub)
    agent = bound_to(hub, agent_id="Support")
    seen = {facts[name].content for name in ("shared", "support", "told")}
    assert contents(agent.client.get("/facts", user_id="anna")) == seen
    assert contents(agent.client.get("/facts", user_id="anna", agent_id="SUPPORT")) == {facts["support"].content}
    memory = agent.client.get("/memory", user_id="anna").json()
    assert {fact["content"] for fact in memory["facts"]} == seen
    context = agent.client.post("/context", {"user_id": "anna"}).json()["memory"]
    assert [fact.content in context for fact in facts.values()] == [True, True, False, True]
    found = agent.client.post("/search", {"user_id": "anna", "query": "ticket discount", "kinds": ["fact"]}).json()
    assert {one["text"] for one in found["results"]} <= seen
    # The control: a key for every agent is told of all of them.
    assert len(contents(hub.client.get("/facts", user_id="anna"))) == 4
    for name, status in (("shared", 200), ("support", 200), ("told", 200), ("sales", 404)):
        for path in (f"/facts/{facts[name].pk}", f"/facts/{facts[name].pk}/history"):
            assert agent.client.get(path).status_code == status
            assert hub.client.get(path).status_code == 200


def test_another_agents_id_is_refused(hub: Hub) -> None:
    agents_world(hub)
    agent = bound_to(hub, agent_id="support")
    other: dict[str, Any] = {"user_id": "anna", "agent_id": "sales"}
    asked = [
        agent.client.post("/context", other),
        agent.client.post("/search", {"user_id": "anna", "query": "x", "filters": {"agent_id": "sales"}}),
        agent.client.post("/turns", {**other, "session_id": "of-sales", "messages": [_hello()]}),
        agent.client.post("/turns/bulk", {"conversations": [{**other, "session_id": "s", "messages": [_hello()]}]}),
        agent.client.post("/sessions/end", {**other, "session_id": "of-sales"}),
        agent.client.post("/sessions/flush", {**other, "session_id": "of-sales"}),
        agent.client.post("/facts", {**other, "content": "x", "category": "other"}),
        *(agent.client.get(path, **other) for path in ("/facts", "/episodes", "/sessions", "/memory")),
    ]
    assert [(one.status_code, one.json()["code"]) for one in asked] == [(403, "key_bound")] * len(asked)
    assert not Session.objects.filter(external_id="s").exists()
    own = {"user_id": "anna", "agent_id": "Support"}
    assert agent.client.post("/context", own).status_code == 200
    assert agent.client.post("/sessions/end", {**own, "session_id": "of-support"}).status_code == 202


def test_an_agent_that_is_left_out_is_the_keys_own(hub: Hub) -> None:
    agents_world(hub)
    agent = bound_to(hub, agent_id="support")
    agent.client.post("/turns", {"user_id": "anna", "session_id": "new", "messages": [_hello()]})
    agent.client.post(
        "/turns/bulk",
        {"conversations": [{"user_id": "anna", "session_id": "new 2", "agent_id": None, "messages": [_hello()]}]},
    )
    assert set(Session.objects.filter(external_id__startswith="new").values_list("agent_id", flat=True)) == {"support"}
    stated = agent.client.post("/facts", {"user_id": "anna", "content": "Owes a call", "category": "other"})
    assert stated.json()["agent_id"] == "support"
    agent.client.call("PUT", "/memory", {"user_id": "anna", "facts": [{"content": "Came by bus"}]})
    assert Fact.objects.get(content="Came by bus").agent_id == "support"
    # Of no agent, so of none of the key's.
    assert agent.client.post("/sessions/end", {"user_id": "anna", "session_id": "of-none"}).status_code == 404


def test_sessions_and_what_is_made_of_them_are_that_agents(hub: Hub) -> None:
    agents_world(hub)
    agent = bound_to(hub, agent_id="support")
    for path in ("/sessions", "/episodes", "/extractions"):
        rows = agent.client.get(path, user_id="anna").json()["results"]
        assert {row["agent_id"] for row in rows} == {"support"}
        assert len(hub.client.get(path, user_id="anna").json()["results"]) == 3
    for session in Session.objects.all():
        status = 200 if session.agent_id == "support" else 404
        run, episode = session.runs.get(), session.episodes.get()
        paths = (f"/sessions/{session.pk}", f"/sessions/{session.pk}/turns", f"/extractions/{run.pk}")
        for path in (*paths, f"/episodes/{episode.pk}"):
            assert agent.client.get(path).status_code == status
            assert hub.client.get(path).status_code == 200


def test_it_writes_for_its_agent_alone(hub: Hub) -> None:
    facts = agents_world(hub)
    agent = bound_to(hub, agent_id="support", writes_as="user")
    for name, status in (("sales", 404), ("shared", 403), ("told", 403), ("support", 200)):
        path, before = f"/facts/{facts[name].pk}", facts[name].version
        assert agent.client.call("PATCH", path, {"tags": ["x"]}).status_code == status
        facts[name].refresh_from_db()
        assert facts[name].version == before + (status == 200)
    for given in ({"agent_id": "sales"}, {"agent_id": None}):
        refused = agent.client.call("PATCH", f"/facts/{facts['support'].pk}", given)
        assert (refused.status_code, refused.json()["code"]) == (403, "key_bound")
    taken_over = {"user_id": "anna", "facts": [{"id": str(facts["sales"].pk), "content": "taken over"}]}
    assert agent.client.call("PUT", "/memory", taken_over).status_code == 200
    facts["sales"].refresh_from_db()
    assert facts["sales"].content == "Has a discount"
    assert agent.client.call("DELETE", f"/facts/{facts['told'].pk}").status_code == 403
    assert agent.client.call("DELETE", f"/facts/{facts['support'].pk}").status_code == 204


def test_no_agents_key_takes_an_export(hub: Hub, own: Ids) -> None:
    agent = bound_to(hub, agent_id="support")
    refused = send(agent.client, "takePrivacyExport", own)
    assert (refused.status_code, refused.json()["code"]) == (403, "key_bound")
    assert PrivacyCase.objects.get(pk=own.case).exports.get().pieces.exists()
    assert send(hub.client, "takePrivacyExport", own).status_code == 200


def test_both_bindings_hold_together(hub: Hub, own: Ids, theirs: Ids) -> None:
    both = bound_to(hub, user_id=own.user_id, agent_id="support")
    assert both.client.get("/facts", user_id=theirs.user_id).status_code == 403
    assert both.client.get("/facts", agent_id="sales").status_code == 403
    assert both.client.post("/context", {}).status_code == 200
    assert both.client.get(f"/sessions/{own.session}").status_code == 404


def test_nothing_of_the_key_is_left_of_an_erased_person(hub: Hub) -> None:
    from memories.privacy.stores.unlinked import BOUND_KEYS

    person = factories.end_user(hub.tenant, external_id="gone-person")
    factories.end_user(hub.tenant, external_id="gone-namesake", merged_into=person)
    keys = [bound_to(hub, user_id=name) for name in ("gone-person", "gone-namesake")]
    stays = bound_to(hub, user_id="stays")
    # Another tenant's namesake.
    elsewhere = hub_of(factories.tenant(), binding=Binding("gone-person"))
    assert [row["user_id"] for row in BOUND_KEYS.export_rows(person)] == ["gone-person", "gone-namesake"]
    assert BOUND_KEYS.erase(person) == 2
    assert BOUND_KEYS.verify(person) == 0
    assert [one.client.get("/facts").status_code for one in (*keys, stays, elsewhere)] == [401, 401, 200, 200]
    left = json.dumps(list(APIKey.objects.filter(tenant=hub.tenant).values()), default=str)
    # No time, id or secret of a key can have that word.
    assert "gone-" not in left
    # And should somebody give it back by hand, it is for nobody.
    APIKey.objects.filter(pk=keys[0].key.pk).update(revoked_at=None)
    assert keys[0].client.get("/users").json()["results"] == []
    assert keys[0].client.get("/facts", user_id="stays").status_code == 403


def _hello() -> dict[str, str]:
    return {"role": "user", "content": "Hello"}
