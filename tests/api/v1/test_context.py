"""POST /context."""

from typing import Any

import pytest

from memories.llm import tokenizers, tokens
from memories.llm.tokenizers import CONSERVATIVE, TOKENIZERS
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
@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_never_exceeds_its_budget(hub: Hub, tokenizer: str) -> None:
    for budget in (0, 1, 20, 100, 8000):
        asked = {"user_id": "u1", "max_tokens": budget, "tokenizer": tokenizer}
        answer = hub.client.post("/context", asked).json()
        counted = tokens.count(answer["memory"], tokenizer) if answer["memory"] else 0
        assert answer["token_count"] == counted <= budget
        assert len(answer["items"]) + len(answer["dropped"]) == 3
        assert bool(answer["memory"]) == (budget >= 100)


@pytest.mark.usefixtures("person")
@pytest.mark.parametrize(
    ("name", "tokenizer"), [("Qwen/Qwen3-8B", "qwen3"), ("llama3", "llama-3"), ("claude-sonnet-4", CONSERVATIVE)]
)
def test_a_model_stands_for_its_tokenizer(hub: Hub, name: str, tokenizer: str) -> None:
    by_model = hub.client.post("/context", {"user_id": "u1", "tokenizer": name}).json()
    assert by_model == hub.client.post("/context", {"user_id": "u1", "tokenizer": tokenizer}).json()
    assert by_model["tokenizer"] == tokenizer


def test_a_tokenizer_that_is_not_there_is_refused_with_what_is(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = hub.client.post("/context", {"user_id": "u1", "tokenizer": "p50k_base"})
    assert (unknown.status_code, unknown.json()["errors"][0]["code"]) == (400, "invalid_choice")
    assert all(name in unknown.json()["errors"][0]["detail"] for name in TOKENIZERS)
    monkeypatch.setattr(tokenizers, "_is_installed", lambda package: False)
    missing = hub.client.post("/context", {"user_id": "u1", "tokenizer": "Qwen/Qwen3-8B"})
    assert (missing.status_code, missing.json()["errors"][0]["code"]) == (400, "not_installed")
    assert "memory-hub[tokenizers]" in missing.json()["errors"][0]["detail"]
    assert hub.client.post("/context", {"user_id": "u1", "tokenizer": "o200k_base"}).status_code == 200


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


@pytest.mark.usefixtures("person")
def test_without_a_query_what_was_said_last(hub: Hub) -> None:
    messages = [{"role": "user", "content": f"Said {number}"} for number in range(3)]
    hub.client.post("/turns", {"user_id": "u1", "session_id": "s1", "messages": messages})
    for body in ({}, {"query": None}, {"query": " "}):
        memory = hub.client.post("/context", {"user_id": "u1", **body}).json()["memory"]
        assert [line[-6:] for line in memory.split("\n")[-4:-1]] == ["Said 0", "Said 1", "Said 2"]
        limited = hub.client.post("/context", {"user_id": "u1", "limits": {"turns": 1}, **body}).json()
        assert "Said 2" in limited["memory"]
        assert [item["kind"] for item in limited["items"]].count("turn") == 1


@pytest.mark.usefixtures("person")
def test_two_blocks_on_request(hub: Hub) -> None:
    messages = [{"role": "user", "content": "My oven is broken"}]
    hub.client.post("/turns", {"user_id": "u1", "session_id": "s1", "messages": messages})
    plain = hub.client.post("/context", {"user_id": "u1", "query": "oven"}).json()
    assert not {"stable", "volatile"} & plain.keys()
    answer = hub.client.post("/context", {"user_id": "u1", "query": "oven", "blocks": True}).json()
    stable, volatile = answer["stable"], answer["volatile"]
    assert stable.keys() == volatile.keys() == {"memory", "revision", "token_count", "items"}
    assert answer["memory"] == f"{stable['memory']}\n{volatile['memory']}"
    assert answer["token_count"] == tokens.count(answer["memory"])
    assert "对花生过敏" in stable["memory"]
    assert "My oven is broken" in volatile["memory"]
    nobody = hub.client.post("/context", {"user_id": "nobody", "blocks": True}).json()
    assert nobody["stable"]["memory"] == nobody["volatile"]["memory"] == ""


@pytest.mark.parametrize("field", ["fill", "min_evidence", "min_score"])
def test_a_wrong_choice_is_named(hub: Hub, field: str) -> None:
    answer = hub.client.post("/context", {"user_id": "u1", field: "no such"})
    assert (answer.status_code, [one["pointer"] for one in answer.json()["errors"]]) == (400, [f"/{field}"])


@pytest.mark.usefixtures("person")
def test_confidence_is_shown_on_request(hub: Hub) -> None:
    assert "- [knowledge] Lives in Leiden" in hub.client.post("/context", {"user_id": "u1"}).json()["memory"]
    scored = hub.client.post("/context", {"user_id": "u1", "scores": True}).json()["memory"]
    assert "- [knowledge | 0.80] Lives in Leiden" in scored


@pytest.mark.usefixtures("person")
def test_evidence_is_told_where_a_query_asks(hub: Hub) -> None:
    def evidence(**asked: str) -> Any:
        return hub.client.post("/context", {"user_id": "u1", **asked}).json().get("evidence")

    assert (evidence(), evidence(query="Who lives in Leiden?")) == (None, "strong")
    assert evidence(query="光合作用的方程式是什么？") == evidence(query="Leiden", user_id="nobody") == "none"
