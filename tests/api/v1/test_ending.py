"""What a key that writes as an agent may end: nothing that it may not change. A key of the user may."""

import pytest

from memories.curation.access.keys import Binding
from memories.models import DiaryEntry, EndUser, Fact, FileVersion, GraphTriple, MemoryFile, ProfileSection, Session
from tests import factories
from tests.api.client import HubClient, operations, schema
from tests.api.conftest import Hub, hub_of

DENIED = 409, "review_needed"
WHO_DECIDES = "nothing waits for review: a key that writes as the user can do this, or an operator"


@pytest.fixture
def agent(hub: Hub) -> Hub:
    return hub_of(hub.tenant, binding=Binding(writes_as="agent"))


@pytest.fixture
def session(hub: Hub) -> Session:
    person: EndUser = factories.end_user(hub.tenant, external_id="u1")
    return factories.session(person, [("user", "I live in Utrecht."), ("assistant", "Noted.")], session_id="s1")


def stated(hub: Hub, content: str = "Lives in Utrecht") -> str:
    answer = hub.client.post("/facts", {"user_id": "u1", "content": content, "category": "knowledge"})
    return str(answer.json()["id"])


@pytest.mark.parametrize("query", ["", "?hard=true"])
def test_a_fact_of_the_user_is_not_an_agents_to_end(hub: Hub, agent: Hub, query: str) -> None:
    fact = stated(hub)
    refused = agent.client.call("DELETE", f"/facts/{fact}{query}")
    assert (refused.status_code, refused.json()["code"]) == DENIED
    assert WHO_DECIDES in refused.json()["detail"]
    assert hub.client.get(f"/facts/{fact}").json()["status"] == "active"
    assert hub.client.call("DELETE", f"/facts/{fact}{query}").status_code == 204


def test_an_agent_ends_what_it_stated_itself(agent: Hub) -> None:
    assert agent.client.call("DELETE", f"/facts/{stated(agent)}").status_code == 204


def test_many_facts_of_the_user_are_kept_from_an_agent(hub: Hub, agent: Hub) -> None:
    stated(hub)
    seen = agent.client.post("/facts/delete", {"user_id": "u1", "dry_run": True}).json()
    assert (seen["facts"], seen["kept"]) == (0, 1)
    seen = hub.client.post("/facts/delete", {"user_id": "u1", "dry_run": True}).json()
    assert (seen["facts"], seen["kept"]) == (1, 0)


def test_the_memory_is_not_an_agents_to_clear(hub: Hub, agent: Hub) -> None:
    stated(hub)
    refused = agent.client.call("DELETE", "/memory?user_id=u1")
    assert (refused.status_code, refused.json()["code"]) == DENIED
    assert hub.client.call("DELETE", "/memory?user_id=u1").status_code == 200


def test_turns_of_the_user_are_not_an_agents_to_end(hub: Hub, agent: Hub, session: Session) -> None:
    said, answered = session.turns.order_by("number").values_list("pk", flat=True)
    for refused in (
        agent.client.call("DELETE", f"/turns/{said}"),
        agent.client.post(f"/turns/{said}/redact", {"texts": ["Utrecht"]}),
        agent.client.call("DELETE", f"/sessions/{session.pk}"),
    ):
        assert (refused.status_code, refused.json()["code"]) == DENIED
        assert WHO_DECIDES in refused.json()["detail"]
    assert agent.client.call("DELETE", f"/turns/{answered}").status_code == 204
    assert hub.client.call("DELETE", f"/turns/{said}").status_code == 204
    assert hub.client.call("DELETE", f"/sessions/{session.pk}").status_code == 204


def test_an_entry_of_the_user_is_not_an_agents_to_delete(hub: Hub, agent: Hub) -> None:
    entry = hub.client.post("/diary", {"user_id": "u1", "agent_id": "a1", "content": "Went well"}).json()["id"]
    refused = agent.client.call("DELETE", f"/diary/{entry}")
    assert (refused.status_code, refused.json()["code"]) == DENIED
    assert hub.client.call("DELETE", f"/diary/{entry}").status_code == 204


def test_an_episode_that_is_served_is_not_an_agents_to_end(hub: Hub, agent: Hub, session: Session) -> None:
    episode = factories.episode(session)
    refused = agent.client.call("DELETE", f"/episodes/{episode.pk}")
    assert (refused.status_code, refused.json()["code"]) == DENIED
    assert hub.client.call("DELETE", f"/episodes/{episode.pk}").status_code == 204


class TestClearing:
    """All that would go must be the agent's to end, or nothing goes."""

    @pytest.fixture
    def own(self, hub: Hub) -> Hub:
        hub.tenant.trust_assistant = True
        hub.tenant.save()
        return hub_of(hub.tenant, binding=Binding(agent_id="a1", writes_as="agent"))

    def of_agent(self, client: HubClient) -> None:
        fact = {"user_id": "u1", "agent_id": "a1", "category": "knowledge", "content": "Answers in the morning"}
        assert client.post("/facts", fact).json()["status"] == "active"
        entry = {"user_id": "u1", "agent_id": "a1", "content": "Went well"}
        assert client.post("/diary", entry).status_code == 201
        file = {"user_id": "u1", "agent_id": "a1", "path": "/notes.md", "content": "A note"}
        assert client.call("PUT", "/files/content", file).status_code in (200, 201)
        relation = {"subject": "u1", "predicate": "works_at", "object": "Acme"}
        assert client.post("/graph/triples", {"user_id": "u1", "agent_id": "a1", **relation}).status_code == 201
        section = {"user_id": "u1", "agent_id": "a1", "summary": "Busy at noon."}
        assert client.call("PUT", "/profile/work_context", section).status_code == 200

    def clear(self, client: HubClient) -> tuple[int, str]:
        answer = client.call("DELETE", "/memory", query={"user_id": "u1", "agent_id": "a1"})
        return answer.status_code, answer.json().get("code", "")

    def test_what_is_all_the_agents_own_is_cleared(self, hub: Hub, own: Hub) -> None:
        self.of_agent(own.client)
        # Of others, and beyond its scope.
        stated(hub)
        assert self.clear(own.client) == (200, "")
        assert list(Fact.objects.filter(status="active").values_list("content", flat=True)) == ["Lives in Utrecht"]
        assert not DiaryEntry.objects.present().exists()
        assert not MemoryFile.objects.filter(trashed_at=None).exclude(content="").exists()
        assert not ProfileSection.objects.written().exists()
        assert not GraphTriple.objects.exclude(status="trashed").exists()

    def test_what_waits_is_cleared_also_where_agents_are_not_believed(self, hub: Hub) -> None:
        own = hub_of(hub.tenant, binding=Binding(agent_id="a1", writes_as="agent"))
        fact = {"user_id": "u1", "category": "knowledge", "content": "Answers in the morning"}
        assert own.client.post("/facts", fact).json()["status"] == "pending"
        assert self.clear(own.client) == (200, "")
        assert Fact.objects.get().status == "trashed"

    @pytest.mark.parametrize("kind", ["fact", "entry", "file", "triple", "section"])
    def test_beside_one_thing_of_the_users_nothing_goes(self, hub: Hub, own: Hub, kind: str) -> None:
        self.of_agent(own.client)
        whose = {"user_id": "u1", "agent_id": "a1"}
        made = {
            "fact": lambda: hub.client.post("/facts", {**whose, "category": "knowledge", "content": "Lives in Bonn"}),
            "entry": lambda: hub.client.post("/diary", {**whose, "content": "Went badly"}),
            "file": lambda: hub.client.call(
                "PUT", "/files/content", {**whose, "path": "/mine.md", "content": "Of mine"}
            ),
            "triple": lambda: hub.client.post(
                "/graph/triples", {**whose, "subject": "u1", "predicate": "likes", "object": "tea"}
            ),
            "section": lambda: hub.client.call("PUT", "/profile/top_of_mind", {**whose, "summary": "A move."}),
        }[kind]()
        assert made.status_code in (200, 201), made.json()
        assert self.clear(own.client) == DENIED
        assert DiaryEntry.objects.present().exists()
        assert Fact.objects.filter(content="Answers in the morning", status="active").exists()
        assert self.clear(hub.client) == (200, "")

    def test_the_agents_own_facts_are_deleted_by_filters(self, hub: Hub, own: Hub) -> None:
        self.of_agent(own.client)
        hub.client.post("/facts", {"user_id": "u1", "agent_id": "a1", "category": "knowledge", "content": "In Bonn"})
        seen = own.client.post("/facts/delete", {"user_id": "u1", "dry_run": True}).json()
        assert (seen["facts"], seen["kept"]) == (1, 1)
        body = {"user_id": "u1", "dry_run": False, "token": seen["token"]}
        assert own.client.post("/facts/delete", body).json()["facts"] == 1
        assert list(Fact.objects.filter(status="active").values_list("content", flat=True)) == ["In Bonn"]


def test_feedback_of_an_agent_lets_no_fact_of_the_user_fade(hub: Hub, agent: Hub) -> None:
    fact = stated(hub)
    refused = agent.client.post(f"/facts/{fact}/feedback", {"useful": False})
    assert (refused.status_code, refused.json()["code"]) == DENIED
    assert hub.client.get(f"/facts/{fact}").json()["importance"] == 0.5
    assert agent.client.post(f"/facts/{fact}/feedback", {"useful": True}).status_code == 200
    assert hub.client.post(f"/facts/{fact}/feedback", {"useful": False}).status_code == 200


def test_a_group_and_its_facts_are_not_an_agents_to_end(hub: Hub, agent: Hub) -> None:
    factories.end_user(hub.tenant, external_id="u1")
    group = hub.client.post("/groups", {"name": "Team", "kind": "team"}).json()["id"]
    member = {"user_id": "u1", "may_write": True}
    assert hub.client.call("PUT", f"/groups/{group}/members", member).status_code in (200, 201)
    said = {"user_id": "u1", "content": "We meet on Mondays"}
    fact = hub.client.post(f"/groups/{group}/facts", said).json()["id"]
    for path in (f"/groups/{group}/facts/{fact}", f"/groups/{group}/facts/{fact}?user_id=u1", f"/groups/{group}"):
        refused = agent.client.call("DELETE", path)
        assert (refused.status_code, refused.json()["code"]) == DENIED
    assert hub.client.call("DELETE", f"/groups/{group}/facts/{fact}").status_code == 204
    # A group in which nobody said anything that is still there.
    assert agent.client.call("DELETE", f"/groups/{group}").status_code == 204


def test_a_file_of_the_user_is_not_an_agents_to_end(hub: Hub, agent: Hub) -> None:
    whose = {"user_id": "u1", "agent_id": "a1", "path": "/notes.md"}
    for content in ("First", "Second"):
        assert hub.client.call("PUT", "/files/content", {**whose, "content": content}).status_code in (200, 201)
    for refused in (
        agent.client.call("DELETE", "/files", query=whose),
        agent.client.call("PUT", "/files/content", {**whose, "content": ""}),
        agent.client.post("/files/restore", {**whose, "version": 1}),
    ):
        assert (refused.status_code, refused.json()["code"]) == DENIED
    assert hub.client.post("/files/restore", {**whose, "version": 1}).status_code == 200
    own = {**whose, "path": "/own.md"}
    assert agent.client.call("PUT", "/files/content", {**own, "content": "Mine"}).status_code in (200, 201)
    assert agent.client.call("DELETE", "/files", query=own).status_code in (200, 204)
    assert hub.client.call("DELETE", "/files", query=whose).status_code in (200, 204)


def test_no_agent_empties_a_section_or_ends_a_triple_of_the_user(hub: Hub, agent: Hub) -> None:
    hub.tenant.trust_assistant = True
    hub.tenant.save()
    section = {"user_id": "u1", "summary": "Works at Acme."}
    assert hub.client.call("PUT", "/profile/work_context", section).status_code == 200
    asked = agent.client.call("PUT", "/profile/work_context", {**section, "summary": ""})
    assert asked.status_code in (200, 202), asked.json()
    agent.client.call("PUT", "/memory?user_id=u1", {"user": {"workContext": {"summary": ""}}})
    assert ProfileSection.objects.get().summary == "Works at Acme."
    relation = {"user_id": "u1", "subject": "u1", "predicate": "works_at", "object": "Acme"}
    assert hub.client.post("/graph/triples", relation).status_code == 201
    refused = agent.client.post("/graph/invalidate", relation)
    assert (refused.status_code, refused.json()["code"]) == DENIED
    assert hub.client.call("PUT", "/profile/work_context", {**section, "summary": ""}).status_code == 200
    assert not ProfileSection.objects.written().exists()
    assert hub.client.post("/graph/invalidate", relation).status_code == 200


def test_a_dream_is_not_an_agents_to_take_back_where_an_operator_took_an_edit_over(hub: Hub, agent: Hub) -> None:
    person = factories.end_user(hub.tenant, external_id="u1")
    dream = factories.dream(person)
    file = factories.memory_file(person, "/USER.md", "Bakes rye bread", actor_kind="dream", trust="operator")
    FileVersion.objects.filter(file=file).update(change_set=dream.pk)
    refused = agent.client.post(f"/dreams/{dream.pk}/restore", {})
    assert (refused.status_code, refused.json()["code"]) == DENIED
    assert WHO_DECIDES in refused.json()["detail"]
    assert MemoryFile.objects.get().trashed_at is None
    # What the dream wrote itself is a machine's word.
    MemoryFile.objects.update(trust="assistant")
    assert agent.client.post(f"/dreams/{dream.pk}/restore", {}).status_code == 200
    assert MemoryFile.objects.get().trashed_at


def test_no_agent_starts_rests_or_takes_back_an_import_or_deletes_what_a_policy_forbids(hub: Hub, agent: Hub) -> None:
    person = factories.end_user(hub.tenant, external_id="u1")
    trial = factories.policy_finding(factories.fact(person)).trial
    rests = factories.uploaded(hub.tenant, state="paused", content=b"[]")
    calls = {
        f"/imports/{factories.uploaded(hub.tenant, b'[]').pk}/pause": (403, "writes_as_agent", 200),
        f"/imports/{rests.pk}/resume": (403, "writes_as_agent", 202),
        f"/imports/{factories.uploaded(hub.tenant, b'[]').pk}/undo": (403, "writes_as_agent", 202),
        "/imports": (403, "writes_as_agent", 202),
        f"/content-policy/dry-runs/{trial.pk}/delete": (409, "operator_word", 202),
    }
    for path, (status, code, otherwise) in calls.items():
        refused = agent.client.post(path, {})
        assert (refused.status_code, refused.json()["code"]) == (status, code), path
        assert hub.client.post(path, {}).status_code == otherwise, path


# What each operation does that ends, lowers or replaces what is served, when a key writes as an agent.
REFUSES, ASKS, KEEPS, MANAGES = "409 review_needed above its trust", "waits for an operator", "keeps it", "not memory"
# What many people said is not an agent's, and neither is what a tenant forbids.
NO_IMPORT, NO_POLICY = "403 writes_as_agent", "409 operator_word"
ENDING = {
    "deleteAttachment": REFUSES,
    "deleteDiaryEntry": REFUSES,
    "deleteTrajectory": REFUSES,
    # How it came out, said by another key.
    "changeTrajectory": REFUSES,
    "postTrajectorySteps": REFUSES,
    "deleteEpisode": REFUSES,
    "deleteFact": REFUSES,
    "deleteFacts": KEEPS,
    "deleteFile": REFUSES,
    "deleteGroup": REFUSES,
    "deleteGroupFact": REFUSES,
    # Who is told of a group is the application's to say; what was said stays.
    "removeGroupMember": MANAGES,
    "clearMemory": REFUSES,
    "deleteSession": REFUSES,
    "deleteTurn": REFUSES,
    "redactTurn": REFUSES,
    # An application's own rows: nobody states them, and whoever writes one writes over it.
    "deleteStoreItem": MANAGES,
    "batchStore": MANAGES,
    "putStoreItem": MANAGES,
    "changeFact": REFUSES,
    "changeEpisode": REFUSES,
    "giveFactFeedback": REFUSES,
    "restoreFact": REFUSES,
    "restoreFile": REFUSES,
    "restoreDream": REFUSES,
    "writeFile": REFUSES,
    "editFile": REFUSES,
    "invalidateTriple": REFUSES,
    "supersedeTriple": REFUSES,
    # tests/person_page/test_links.py
    "personLink": REFUSES,
    "putMemory": ASKS,
    "writeProfileSection": ASKS,
    "addFact": ASKS,
    "createImport": NO_IMPORT,
    "pauseImport": NO_IMPORT,
    "resumeImport": NO_IMPORT,
    "undoImport": NO_IMPORT,
    "deletePolicyDryRunFindings": NO_POLICY,
}
NO_MEMORY = {
    # Of these an agent's key changes nothing, either: tests/api/v1/test_content_policy.py.
    "putContentPolicy", "restoreContentPolicy", "startPolicyDryRun",
    "changeAgent", "changeGroup", "changeUser", "setGroupMember", "addGroup", "getContext", "search",
    "answerQuestion", "startDream", "retryExtraction", "downloadFiles", "globFiles", "grepFiles", "searchStoreItems",
    "listStoreNamespaces", "endSession", "flushSession", "createPrivacyRequest",
    # It stores nothing.
    "previewExtraction",
    # They add, and end nothing.
    "writeDiaryEntry", "uploadFiles", "addTriple", "addGroupFact", "postTurns", "postTurnsBulk",
    "postTrajectory",
}  # fmt: skip


def test_every_operation_that_can_end_something_says_what_it_does() -> None:
    """A new one fails here until the table says what a key that writes as an agent gets, and a test above shows it."""
    found = {name for name, (method, _path) in operations().items() if method != "GET"}
    assert found == ENDING.keys() | NO_MEMORY
    assert {name for name in found if operations()[name][0] == "DELETE"} <= ENDING.keys()
    for status, kinds in (("409", (REFUSES, NO_POLICY)), ("403", (NO_IMPORT,))):
        refusing = {name for name, does in ENDING.items() if does in kinds}
        documented = {name for name in refusing if status in _answers_of(name)}
        assert documented == refusing


def _answers_of(name: str) -> set[str]:
    method, path = operations()[name]
    return set(schema()["paths"][path][method.lower()]["responses"])
