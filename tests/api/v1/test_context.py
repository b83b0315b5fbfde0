"""POST /context."""

from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from memories.llm import tokens
from memories.models import EndUser
from tests import factories
from tests.api.conftest import Hub


@pytest.fixture
def person(hub: Hub) -> EndUser:
    person = factories.end_user(hub.tenant, external_id="u1")
    factories.fact(person, "对花生过敏", category="constraint")
    factories.fact(person, "Lives in Leiden", confidence=0.8)
    factories.profile_section(person)
    return person


@pytest.mark.usefixtures("person")
def test_serves_what_is_remembered(hub: Hub) -> None:
    answer = hub.client.post("/context", {"user_id": "u1"}).json()
    assert answer["memory"].startswith("<memory>")
    assert "对花生过敏" in answer["memory"]
    assert "Runs a bakery." in answer["memory"]
    assert (answer["max_tokens"], answer["tokenizer"]) == (2000, "o200k_base")
    assert answer["token_count"] == tokens.count(answer["memory"])
    assert {item["kind"] for item in answer["items"]} == {"fact", "profile"}
    assert answer["dropped"] == []
    assert not {"unchanged", "restricted", "serve"} & answer.keys()


@pytest.mark.usefixtures("person")
@pytest.mark.parametrize("tokenizer", tokens.TOKENIZERS)
@pytest.mark.parametrize("budget", [0, 1, 20, 100, 8000])
def test_never_exceeds_its_budget(hub: Hub, tokenizer: str, budget: int) -> None:
    asked = {"user_id": "u1", "max_tokens": budget, "tokenizer": tokenizer}
    answer = hub.client.post("/context", asked).json()
    assert answer["token_count"] == tokens.count(answer["memory"], tokenizer) <= budget
    assert len(answer["items"]) + len(answer["dropped"]) == 3
    assert bool(answer["memory"]) == (budget >= 100)


@pytest.mark.usefixtures("person")
def test_the_same_revision_is_unchanged(hub: Hub) -> None:
    revision = hub.client.post("/context", {"user_id": "u1"}).json()["revision"]
    again = hub.client.post("/context", {"user_id": "u1", "if_revision": revision}).json()
    assert again == {"unchanged": True, "revision": revision}
    assert "memory" in hub.client.post("/context", {"user_id": "u1", "if_revision": "other"}).json()


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_guidelines_come_on_request_in_the_tenants_language(hub: Hub, person: EndUser, language: str) -> None:
    hub.tenant.language = language
    hub.tenant.save()
    plain = hub.client.post("/context", {"user_id": "u1"}).json()
    assert "guidelines" not in plain
    answer = hub.client.post("/context", {"user_id": "u1", "guidelines": True}).json()
    guidelines = answer["guidelines"]
    assert guidelines.startswith("<memory_guidelines>\n")
    assert guidelines.endswith("\n</memory_guidelines>")
    assert ("绝不要记密码" in guidelines, "Never note passwords" in guidelines) == (language != "en", language == "en")
    assert answer["memory"] == plain["memory"]
    assert answer["token_count"] == plain["token_count"] + tokens.count(guidelines)
    # Of somebody who is new nothing is known, and all is to be written.
    new = hub.client.post("/context", {"user_id": "new", "guidelines": True}).json()
    assert (new["memory"], new["guidelines"], new["token_count"]) == ("", guidelines, tokens.count(guidelines))


def test_guidelines_are_inside_the_budget_and_not_for_people_of_whom_nothing_may_be_written(
    hub: Hub, person: EndUser
) -> None:
    for budget in (0, 50, 150, 200, 250, 300, 8000):
        asked = {"user_id": "u1", "guidelines": True, "max_tokens": budget}
        answer = hub.client.post("/context", asked).json()
        told = tokens.count(answer["memory"]) + tokens.count(answer["guidelines"])
        assert answer["token_count"] == told <= budget
        assert bool(answer["guidelines"]) == (budget >= 250)
    for state in ({"restricted_at": person.created_at}, {"restricted_at": None, "serve": False}):
        EndUser.objects.filter(pk=person.pk).update(**state)
        answer = hub.client.post("/context", {"user_id": "u1", "guidelines": True}).json()
        assert (answer["memory"], answer["guidelines"], answer["token_count"]) == ("", "", 0)


@pytest.mark.usefixtures("person")
def test_include_decides_what_is_served(hub: Hub) -> None:
    def kinds(*include: str) -> set[str]:
        answer = hub.client.post("/context", {"user_id": "u1", "include": list(include)}).json()
        return {item["kind"] for item in answer["items"]}

    hub.client.post("/turns", {"user_id": "u1", "session_id": "s", "messages": [{"role": "user", "content": "Hey"}]})
    assert kinds("profile") == {"profile"}
    assert kinds("facts") == {"fact"}
    assert kinds("facts", "unextracted") == {"fact", "turn"}
    assert kinds() == set()


def test_agents_and_roles_open_what_is_guarded(hub: Hub, person: EndUser) -> None:
    factories.fact(person, "Told support only", agent_id="support")
    factories.fact(person, "For admins", allowed_roles=["admin"])

    def memory(**over: Any) -> str:
        text: str = hub.client.post("/context", {"user_id": "u1", **over}).json()["memory"]
        return text

    assert "Told support only" not in memory()
    assert "Told support only" in memory(agent_id="SUPPORT")
    assert "For admins" not in memory(roles=["user"])
    assert "For admins" in memory(roles=["admin"])


@pytest.mark.usefixtures("person")
def test_limits_bound_the_ranked_facts(hub: Hub) -> None:
    answer = hub.client.post("/context", {"user_id": "u1", "limits": {"facts": 0, "episodes": 3}}).json()
    assert [item["reason"] for item in answer["dropped"]] == ["limit"]


def test_unknown_restricted_and_switched_off_people_get_an_empty_one(hub: Hub) -> None:
    factories.fact(factories.end_user(hub.tenant, external_id="locked", restricted_at=factories.NOW))
    factories.fact(factories.end_user(hub.tenant, external_id="off", serve=False))

    def answer(user_id: str) -> Any:
        return hub.client.post("/context", {"user_id": user_id}).json()

    unknown, locked, off = answer("nobody"), answer("locked"), answer("off")
    assert unknown["memory"] == locked["memory"] == off["memory"] == ""
    assert "restricted" not in unknown
    assert locked["restricted"] is True
    assert off["serve"] is False


def test_limits_bound_the_episodes(hub: Hub, person: EndUser) -> None:
    talk = factories.session(person, [("user", str(n)) for n in range(5)])
    for number in range(1, 6):
        factories.episode(talk, f"Episode {number}", first_number=number, last_number=number)

    def told(**limits: int) -> int:
        answer = hub.client.post("/context", {"user_id": "u1", "limits": limits}).json()
        return [item["kind"] for item in answer["items"]].count("episode")

    assert (told(), told(facts=5), told(episodes=4), told(episodes=0), told(episodes=100)) == (3, 3, 4, 0, 5)


def test_the_messages_of_the_session(hub: Hub, person: EndUser) -> None:
    messages = [{"role": "system", "content": "You are a vet."}, {"role": "user", "content": "Hey", "name": "Ana"}]
    hub.client.post("/turns", {"user_id": "u1", "session_id": "s1", "agent_id": "vet", "messages": messages})
    asked = {"user_id": "u1", "session_id": "s1", "agent_id": "VET", "include": ["facts", "working_memory"]}
    answer = hub.client.post("/context", asked).json()
    assert answer["messages"] == [messages[0], {"role": "system", "content": answer["memory"]}, messages[1]]
    unknown = hub.client.post("/context", asked | {"session_id": "s2"}).json()
    assert unknown["messages"] == [{"role": "system", "content": unknown["memory"]}]
    assert "messages" not in hub.client.post("/context", asked | {"include": ["facts"]}).json()
    unchanged = hub.client.post("/context", asked | {"if_revision": answer["revision"]}).json()
    assert unchanged == {"unchanged": True, "revision": answer["revision"]}


def test_a_query_recalls_what_was_said(hub: Hub, person: EndUser) -> None:
    factories.session(person, [("user", "My quokka is called Q."), ("assistant", "What a name!")], session_id="s1")
    asked = {"user_id": "u1", "query": "What is the quokka called?"}
    answer = hub.client.post("/context", asked).json()
    assert "Recalled turns:" in answer["memory"]
    assert "user: My quokka is called Q." in answer["memory"]
    assert [item["kind"] for item in answer["items"]].count("turn") == 2
    without = hub.client.post("/context", asked | {"include": ["facts"]}).json()
    assert "quokka" not in without["memory"]


@pytest.mark.usefixtures("person")
@pytest.mark.parametrize("body", [{}, {"query": None}, {"query": " "}])
def test_without_a_query_what_was_said_last(hub: Hub, body: dict[str, Any]) -> None:
    messages = [{"role": "user", "content": f"Said {number}"} for number in range(3)]
    hub.client.post("/turns", {"user_id": "u1", "session_id": "s1", "messages": messages})
    memory = hub.client.post("/context", {"user_id": "u1", **body}).json()["memory"]
    assert [line[-6:] for line in memory.split("\n")[-4:-1]] == ["Said 0", "Said 1", "Said 2"]
    limited = hub.client.post("/context", {"user_id": "u1", "limits": {"turns": 1}, **body}).json()
    assert "Said 2" in limited["memory"]
    assert [item["kind"] for item in limited["items"]].count("turn") == 1


BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"user_id": None}, "/user_id", "null"),
    ({"user_id": "a\tb"}, "/user_id", "control"),
    ({"query": "x" * 20_001}, "/query", "max_length"),
    ({"query": 5}, "/query", "invalid"),
    ({"max_tokens": -1}, "/max_tokens", "min_value"),
    ({"max_tokens": 8001}, "/max_tokens", "max_value"),
    ({"max_tokens": 10**9}, "/max_tokens", "max_value"),
    ({"max_tokens": True}, "/max_tokens", "invalid"),
    ({"max_tokens": "5"}, "/max_tokens", "invalid"),
    ({"max_tokens": 5.0}, "/max_tokens", "invalid"),
    ({"max_tokens": None}, "/max_tokens", "null"),
    ({"max_token": 5}, "/max_token", "unknown_field"),
    ({"include": "facts"}, "/include", "not_a_list"),
    ({"include": ["photos"]}, "/include/0", "invalid_choice"),
    ({"include": ["facts", 5]}, "/include/1", "invalid_choice"),
    ({"tokenizer": "p50k_base"}, "/tokenizer", "invalid_choice"),
    ({"tokenizer": {}}, "/tokenizer", "invalid_choice"),
    ({"roles": "admin"}, "/roles", "not_a_list"),
    ({"roles": [5]}, "/roles/0", "invalid"),
    ({"roles": ["x" * 101]}, "/roles/0", "max_length"),
    ({"limits": []}, "/limits", "invalid"),
    ({"limits": {"facts": -1}}, "/limits/facts", "min_value"),
    ({"limits": {"facts": 501}}, "/limits/facts", "max_value"),
    ({"limits": {"episodes": -1}}, "/limits/episodes", "min_value"),
    ({"limits": {"episodes": 101}}, "/limits/episodes", "max_value"),
    ({"limits": {"episodes": "3"}}, "/limits/episodes", "invalid"),
    ({"session_id": 5}, "/session_id", "invalid"),
    ({"session_id": "a\nb"}, "/session_id", "control"),
    ({"session_id": "x" * 256}, "/session_id", "max_length"),
    ({"limits": {"fact": 5}}, "/limits/fact", "unknown_field"),
    ({"if_revision": 5}, "/if_revision", "invalid"),
    ({"agent_id": ""}, "/agent_id", "blank"),
]


@pytest.mark.parametrize(("over", "pointer", "code"), BAD)
def test_bad_input_is_refused_with_its_place(hub: Hub, over: dict[str, Any], pointer: str, code: str) -> None:
    answer = hub.client.post("/context", {"user_id": "u1", **over})
    assert answer.status_code == 400
    assert (pointer, code) in [(fault["pointer"], fault["code"]) for fault in answer.json()["errors"]]


@pytest.mark.usefixtures("person")
def test_costs_four_queries(hub: Hub, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    hub.client.post("/context", {"user_id": "u1"})
    # Key, person with profile, facts, turns.
    with django_assert_num_queries(4):
        hub.client.post("/context", {"user_id": "u1"})
