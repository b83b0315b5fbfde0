"""/content-policy: what a tenant does not allow to be remembered, on every road."""

from collections.abc import Callable
from typing import Any

import pytest

from memories.curation.access.keys import Binding
from memories.models import (
    DiaryEntry,
    Fact,
    GraphTriple,
    GroupFact,
    MemoryFile,
    PolicyDrop,
    ProfileSection,
    StoreItem,
    WritesAs,
)
from tests.api.conftest import Hub, hub_of
from tests.api.v1.test_groups import group_of, state
from tests.api.v1.test_memory import DOCUMENT

BAD, GOOD = "Was diagnosed with asthma in spring", "Is learning to play the cello"
HEALTH = {"categories": [{"name": "health"}]}


def put(hub: Hub, body: Any = HEALTH, **headers: Any) -> Any:
    return hub.client.call("PUT", "/content-policy", body, **headers)


def log(hub: Hub) -> dict[tuple[str, str], int]:
    rows = hub.client.get("/content-policy/log").json()["results"]
    return {(row["category"], row["road"]): row["count"] for row in rows}


def _document(hub: Hub, text: str) -> Any:
    facts = [{**DOCUMENT["facts"][0], "content": "Lives in Leiden"}, {**DOCUMENT["facts"][1], "content": text}]
    user = {**DOCUMENT["user"], "workContext": {"summary": text, "updatedAt": ""}}
    history = {name: {"summary": "", "updatedAt": ""} for name in DOCUMENT["history"]}
    document = {**DOCUMENT, "facts": facts, "user": user, "history": history}
    return hub.client.call("PUT", "/memory", {"user_id": "ann", **document})


def _edit(hub: Hub, text: str) -> Any:
    given = {"user_id": "ann", "content": f"Has read {len(text)} books", "category": "behavior"}
    made = hub.client.post("/facts", given)
    return hub.client.call("PATCH", f"/facts/{made.json()['id']}", {"content": text})


ROADS: dict[str, tuple[str, Callable[[Hub, str], Any]]] = {
    "a fact": (
        "statement",
        lambda hub, text: hub.client.post("/facts", {"user_id": "ann", "content": text, "category": "other"}),
    ),
    "an edit": ("statement", _edit),
    "a section": (
        "profile",
        lambda hub, text: hub.client.call("PUT", "/profile/work_context", {"user_id": "ann", "summary": text}),
    ),
    "a file": (
        "file",
        lambda hub, text: hub.client.call(
            "PUT", "/files/content", {"user_id": "ann", "path": "/memories/notes.md", "content": f"# Notes\n{text}"}
        ),
    ),
    "a diary": (
        "diary",
        lambda hub, text: hub.client.post(
            "/diary", {"user_id": "ann", "agent_id": "bot", "topic": "today", "content": text}
        ),
    ),
    "a group": ("group", lambda hub, text: state(hub, group_of(hub, "ann"), content=text)),
    "the graph": (
        "graph",
        lambda hub, text: hub.client.post(
            "/graph/triples", {"user_id": "ann", "subject": "user", "predicate": "notes", "object": text}
        ),
    ),
    "the store": (
        "store",
        lambda hub, text: hub.client.call(
            "PUT", "/store/items", {"namespace": ["memories", "ann"], "key": "k", "value": {"said": [text]}}
        ),
    ),
}
KEPT = (Fact, ProfileSection, MemoryFile, DiaryEntry, GroupFact, GraphTriple, StoreItem)


@pytest.mark.parametrize("road", ROADS)
def test_no_road_remembers_what_is_forbidden(hub: Hub, road: str) -> None:
    name, send = ROADS[road]
    put(hub)
    refused = send(hub, BAD)
    assert (refused.status_code, refused.json()["code"]) == (409, "content_forbidden")
    assert (refused.json()["category"], refused.json()["policy_version"]) == ("health", 1)
    assert log(hub) == {("health", name): 1}
    kept = [str(value) for model in KEPT for row in model._default_manager.values() for value in row.values()]
    assert not any("asthma" in text for text in kept)
    assert send(hub, GOOD).status_code < 300
    assert log(hub) == {("health", name): 1}


def test_a_document_loses_what_is_forbidden_and_keeps_the_rest(hub: Hub) -> None:
    put(hub)
    assert _document(hub, BAD).status_code == 200
    assert list(Fact.objects.values_list("content", flat=True)) == ["Lives in Leiden"]
    assert list(ProfileSection.objects.written().values_list("section", flat=True)) == ["top_of_mind"]
    assert log(hub) == {("health", "document"): 1, ("health", "profile"): 1}


def test_only_new_words_of_a_file_count(hub: Hub) -> None:
    file = {"user_id": "ann", "path": "/memories/notes.md"}
    hub.client.call("PUT", "/files/content", {**file, "content": f"# Notes\n{BAD}\n"})
    put(hub)
    longer = {**file, "content": f"# Notes\n{BAD}\n{GOOD}\n"}
    assert hub.client.call("PUT", "/files/content", longer).status_code == 200


def test_the_policy_has_versions_and_an_older_one_is_restored(hub: Hub, other: Hub) -> None:
    empty = hub.client.get("/content-policy")
    assert (empty.json()["version"], empty.json()["categories"], empty.headers["ETag"]) == (0, [], '"0"')
    first = put(hub).json()
    assert (first["version"], first["actor_kind"], first["actor_id"]) == (1, "key", str(hub.key.pk))
    assert "diabetes" in first["categories"][0]["words"]
    assert put(hub).json()["version"] == 1
    own = {"name": "棋牌", "description": "打牌", "words": ["打麻将"], "not_allowed": [], "allowed": []}
    second = put(hub, {"categories": [own]}, headers={"If-Match": '"1"'}).json()
    assert (second["categories"], second["changes"]) == (
        [own],
        {"added": ["棋牌"], "changed": [], "removed": ["health"]},
    )
    assert put(hub, headers={"If-Match": '"1"'}).status_code == 412
    back = hub.client.post("/content-policy/restore", {"version": 1}).json()
    assert (back["version"], back["restored"], back["categories"]) == (3, 1, first["categories"])
    assert hub.client.post("/content-policy/restore", {"version": 9}).status_code == 404
    versions = hub.client.get("/content-policy/versions").json()["results"]
    assert [row["version"] for row in versions] == [3, 2, 1]
    assert put(hub, {"categories": []}).json()["categories"] == []
    assert ROADS["a fact"][1](hub, BAD).status_code == 201
    assert other.client.get("/content-policy/versions").json()["results"] == []


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"categories": [{"name": "a"}, {"name": "A"}]}, "/categories/1/name"),
        ({"categories": [{"name": "a", "words": [7]}]}, "/categories/0/words/0"),
        ({"categories": [{"name": "a", "sort": 1}]}, "/categories/0/sort"),
        ({"categories": {}}, "/categories"),
        ({}, "/categories"),
    ],
)
def test_a_policy_that_is_none_is_refused_by_place(hub: Hub, body: Any, pointer: str) -> None:
    answer = put(hub, body)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, pointer)


def test_agents_and_keys_for_one_person_cannot_change_it(hub: Hub) -> None:
    agent = hub_of(hub.tenant, binding=Binding(writes_as=WritesAs.AGENT))
    assert (put(agent).status_code, put(agent).json()["code"]) == (409, "operator_word")
    bound = hub_of(hub.tenant, binding=Binding(user_id="ann"))
    assert (put(bound).status_code, bound.client.get("/content-policy").status_code) == (403, 403)
    assert not PolicyDrop.objects.exists()
