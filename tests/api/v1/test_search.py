"""POST /search."""

from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from memories.models import EndUser
from tests import factories
from tests.api.conftest import Hub
from tests.vectors import embed_all


@pytest.fixture
def person(hub: Hub) -> EndUser:
    person = factories.end_user(hub.tenant, external_id="u1")
    talk = [("user", "My quokka is called Q."), ("assistant", "What a name!"), ("user", "我的猫叫豆豆")]
    session = factories.session(person, talk, session_id="s1", agent_id="vet")
    fact = factories.fact(person, "Has a quokka called Q", tags=["pets"])
    factories.evidence(fact, session.turns.get(number=1), "My quokka")
    return person


def results(hub: Hub, query: str, **over: Any) -> list[dict[str, Any]]:
    answer = hub.client.post("/search", {"user_id": "u1", "query": query, **over})
    assert answer.status_code == 200
    found: list[dict[str, Any]] = answer.json()["results"]
    return found


@pytest.mark.usefixtures("person")
def test_facts_and_turns_by_default_best_first(hub: Hub) -> None:
    found = results(hub, "quokka")
    assert {one["kind"] for one in found[:2]} == {"fact", "turn"}
    assert all("quokka" in one["text"] for one in found[:2])
    assert len(found) == 4
    scores = [one["score"] for one in found]
    assert scores == sorted(scores, reverse=True)


def test_a_turn(hub: Hub, person: EndUser) -> None:
    turn = person.turns.get(number=1)
    turn.external_id = "m-1"
    turn.save()
    (found,) = results(hub, "quokka", kinds=["turn"], limit=1)
    assert found | {"score": 0, "score_parts": {}} == {
        "flagged": False,
        "outdated_since": None,
        "group": None,
        "path": None,
        "lines": [],
        "attachment_id": None,
        "name": None,
        "page": None,
        "place": None,
        "author": None,
        "evidence_level": "strong",
        "kind": "turn",
        "id": str(turn.pk),
        "external_id": "m-1",
        "text": "My quokka is called Q.",
        "score": 0,
        "score_parts": {},
        "session_id": "s1",
        "agent_id": "vet",
        "turn_numbers": [1],
        "role": "user",
        "category": None,
        "confidence": None,
        "tags": [],
        "evidence": [],
        "created_at": turn.created_at.isoformat().replace("+00:00", "Z"),
    }


@pytest.mark.usefixtures("person")
def test_a_fact_with_its_evidence(hub: Hub) -> None:
    (found,) = results(hub, "quokka", kinds=["fact"])
    assert (found["category"], found["confidence"], found["tags"], found["role"]) == ("knowledge", 0.9, ["pets"], None)
    assert found["evidence"] == [{"session_id": "s1", "turn_number": 1, "quote": "My quokka"}]
    assert found["turn_numbers"] == [1]


@pytest.mark.usefixtures("person")
def test_a_session(hub: Hub) -> None:
    (found,) = results(hub, "豆豆", kinds=["session"])
    assert (found["kind"], found["session_id"], found["text"], found["turn_numbers"]) == (
        "session",
        "s1",
        "我的猫叫豆豆",
        [3],
    )


def test_an_episode(hub: Hub, person: EndUser) -> None:
    session = person.sessions.get()
    told = factories.episode(session, "Presented the quokka Q", last_number=3)
    (found,) = results(hub, "quokka", kinds=["episode"])
    assert found | {"score": 0, "score_parts": {}} == {
        "flagged": False,
        "outdated_since": None,
        "group": None,
        "path": None,
        "lines": [],
        "attachment_id": None,
        "name": None,
        "page": None,
        "place": None,
        "author": None,
        "evidence_level": "strong",
        "kind": "episode",
        "id": str(told.pk),
        "external_id": None,
        "text": "Presented the quokka Q",
        "score": 0,
        "score_parts": {},
        "session_id": "s1",
        "agent_id": "vet",
        "turn_numbers": [1, 3],
        "role": None,
        "category": None,
        "confidence": None,
        "tags": [],
        "evidence": [{"session_id": "s1", "turn_number": number, "quote": None} for number in (1, 3)],
        "created_at": "2026-11-03T09:12:00Z",
    }
    assert results(hub, "quokka", kinds=["episode"], filters={"agent_id": "vet", "session_id": "s1"}) == [found]
    assert results(hub, "quokka", kinds=["episode"], filters={"tags": ["pets"]}) == []


@pytest.mark.usefixtures("person")
def test_filters(hub: Hub) -> None:
    """Each is shown in tests/retrieval/test_search.py; here that they arrive, and which kinds they leave out."""
    assert len(results(hub, "quokka", kinds=["turn"], filters={"agent_id": "VET", "session_id": "s1"})) == 3
    assert results(hub, "quokka", kinds=["turn"], filters={"since": "2099-01-01T00:00:00Z"}) == []
    everything = {"kinds": ["fact", "episode", "turn", "session"], "explain": True}
    for filters in ({"tags": ["pets"]}, {"category": "knowledge"}):
        asked = {"user_id": "u1", "query": "quokka", "filters": filters} | everything
        answer = hub.client.post("/search", asked).json()
        assert [one["kind"] for one in answer["results"]] == ["fact"]
        assert answer["explain"]["searched"] == {"fact": 1, "episode": 0, "turn": 0, "session": 0}


def test_explained(hub: Hub, person: EndUser) -> None:
    asked = {"user_id": "u1", "query": "the quokka's name", "explain": True}
    explained = hub.client.post("/search", asked).json()["explain"]
    assert explained == {
        "terms": ["quokka", "name"],
        "language": "en",
        "embedding_model": None,
        "searched": {"fact": 1, "turn": 3},
    }
    embed_all(person)
    assert hub.client.post("/search", asked).json()["explain"]["embedding_model"] == "use-multilingual-3"


def test_an_unknown_a_restricted_and_a_switched_off_person(hub: Hub, person: EndUser) -> None:
    asked = {"user_id": "nobody", "query": "quokka"}
    assert hub.client.post("/search", asked).json() == {"results": [], "evidence": "none"}
    asked = {"user_id": "u1", "query": "quokka"}
    EndUser.objects.update(serve=False)
    assert hub.client.post("/search", asked).json() == {"results": [], "evidence": "none", "serve": False}
    EndUser.objects.update(serve=True, restricted_at=factories.NOW)
    assert hub.client.post("/search", asked).json() == {"results": [], "evidence": "none", "restricted": True}


@pytest.mark.usefixtures("person")
def test_any_text_is_a_query(hub: Hub) -> None:
    for query in ("?", "的", "\u202e", "🙂", "'; DROP TABLE", "%", "a" * 20_000, "？" * 500):
        assert len(results(hub, query, kinds=["turn"])) == 3, query[:9]


def test_costs_seven_queries(hub: Hub, person: EndUser, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    embed_all(person)
    results(hub, "quokka")
    # Key; person and space; whether facts changed, texts and evidence; how far the sessions are, the turns' texts.
    with django_assert_num_queries(7):
        results(hub, "cats")
    # What groups know is one more, however many there are.
    for _ in range(3):
        factories.group_fact(factories.memory_group(person), person, content="The cats sleep")
    with django_assert_num_queries(8):
        assert len([one for one in results(hub, "cats") if one["kind"] == "group_fact"]) == 3


def test_what_the_persons_groups_know_is_found_as_theirs(hub: Hub, person: EndUser) -> None:
    bob, carl = factories.end_user(hub.tenant), factories.end_user(hub.tenant)
    group, foreign = factories.memory_group(person, bob, name="Zoo"), factories.memory_group(bob, carl)
    known = factories.group_fact(group, bob, content="The quokka eats at nine")
    factories.group_fact(group, bob, content="The gate sticks")
    factories.group_fact(foreign, bob, content="Another quokka came in")
    factories.group_fact(group, carl, content="A quokka that nobody may tell of", about=carl)

    def found(**over: Any) -> list[dict[str, Any]]:
        return [one for one in results(hub, "When does the quokka eat?", **over) if one["kind"] == "group_fact"]

    EndUser.objects.filter(pk=carl.pk).update(restricted_at=factories.NOW)
    (one,) = found()
    assert (one["id"], one["text"]) == (str(known.pk), "The quokka eats at nine")
    assert one["group"] == {"id": str(group.pk), "name": "Zoo"}
    assert (one["category"], one["evidence"], one["session_id"]) == (None, [], None)
    assert found(kinds=["fact"], limit=2, filters={"agent_id": "vet", "until": "2026-11-10T00:00:00Z"})
    for narrow in ({"category": "other"}, {"tags": ["pets"]}, {"session_id": "s1"}, {"since": "2026-11-10T00:00:00Z"}):
        assert not found(filters=narrow), narrow
    assert not found(kinds=["turn", "episode"])
    assert not found(as_of="2026-11-10T00:00:00Z")
    # Nobody whose data may be used says it any more; then the person is in the group no more.
    EndUser.objects.filter(pk=bob.pk).update(restricted_at=factories.NOW)
    assert not found()
    EndUser.objects.filter(pk=bob.pk).update(restricted_at=None)
    assert found()
    group.members.filter(end_user=person).delete()
    assert not found()


def test_a_passage_of_a_file(hub: Hub, person: EndUser) -> None:
    row = factories.memory_file(person, "/notes.md", "Met the quokka.\n", agent_id="vet")
    answer = hub.client.post(
        "/search",
        {"user_id": "u1", "query": "quokka", "kinds": ["file"], "filters": {"agent_id": "vet"}, "explain": True},
    ).json()
    [found] = answer["results"]
    assert (found["kind"], found["id"], found["path"], found["lines"]) == ("file", str(row.pk), "/notes.md", [1, 1])
    assert (found["text"], found["agent_id"]) == ("Met the quokka.", "vet")
    assert answer["explain"]["searched"] == {"file": 1}


def judged(hub: Hub, query: str, **over: Any) -> dict[str, Any]:
    answer = hub.client.post("/search", {"user_id": "u1", "query": query, **over})
    assert answer.status_code == 200, answer.json()
    found: dict[str, Any] = answer.json()
    return found


UNRELATED = "What is the boiling point of tungsten?"


class TestEvidence:
    """The formula is shown in tests/retrieval/test_evidence.py; here what answers say of it, and the two minimums."""

    @pytest.fixture(autouse=True)
    def embedded(self, person: EndUser) -> None:
        embed_all(person)

    def test_each_result_and_the_whole_say_how_strong_it_is(self, hub: Hub) -> None:
        found = judged(hub, "What is my quokka called?")
        assert found["evidence"] == "strong"
        levels = {(one["kind"], one["text"]): one["evidence_level"] for one in found["results"]}
        assert levels[("fact", "Has a quokka called Q")] == levels[("turn", "My quokka is called Q.")] == "strong"
        assert levels[("turn", "What a name!")] != "strong"

    def test_where_nothing_is_relevant_the_answer_says_so(self, hub: Hub) -> None:
        found = judged(hub, UNRELATED)
        assert found["evidence"] == "none"
        assert {one["evidence_level"] for one in found["results"]} == {"none"}

    def test_what_is_too_weak_is_left_out(self, hub: Hub) -> None:
        for least in ("weak", "strong"):
            assert judged(hub, UNRELATED, min_evidence=least) == {"results": [], "evidence": "none"}
            found = judged(hub, "quokka", min_evidence=least)
            assert {one["text"] for one in found["results"]} >= {"Has a quokka called Q", "My quokka is called Q."}
        assert judged(hub, UNRELATED, min_evidence="none") == judged(hub, UNRELATED)
        assert len(judged(hub, UNRELATED)["results"]) == 4

    def test_every_kind_can_be_held_to_it(self, hub: Hub, person: EndUser) -> None:
        factories.episode(person.sessions.get(), "Presented the quokka Q", last_number=3)
        embed_all(person)
        kinds = ["fact", "turn", "episode", "session"]
        found = judged(hub, "quokka", kinds=kinds, min_evidence="strong")
        assert {one["kind"] for one in found["results"]} == set(kinds)
        assert judged(hub, UNRELATED, kinds=kinds, min_evidence="weak")["results"] == []

    def test_the_limit_counts_what_is_left(self, hub: Hub) -> None:
        assert len(judged(hub, "quokka", min_evidence="strong", limit=1)["results"]) == 1

    def test_filters_first(self, hub: Hub) -> None:
        found = judged(hub, "quokka", kinds=["fact"], filters={"category": "preference"}, min_evidence="weak")
        assert found == {"results": [], "evidence": "none"}
        assert judged(hub, "quokka", kinds=["fact"], filters={"tags": ["pets"]}, min_evidence="strong")["results"]

    def test_what_scores_lower_is_left_out(self, hub: Hub) -> None:
        scores = [one["score"] for one in results(hub, "quokka")]
        assert [one["score"] for one in results(hub, "quokka", min_score=scores[1])] == scores[:2]
        assert results(hub, "quokka", min_score=-1e9) == results(hub, "quokka")
        assert judged(hub, "quokka", min_score=1e9) == {"results": [], "evidence": "none"}
        assert results(hub, "quokka", min_score=scores[1], min_evidence="strong")

    def test_an_empty_query(self, hub: Hub) -> None:
        assert hub.client.post("/search", {"user_id": "u1", "query": " ", "min_evidence": "weak"}).status_code == 400
        assert judged(hub, "???")["evidence"] != "strong"


WRONG_MINIMUMS: list[dict[str, Any]] = [
    {"min_score": "0.5"}, {"min_score": True}, {"min_score": None}, {"min_score": [1]},
    {"min_evidence": "STRONG"}, {"min_evidence": ""}, {"min_evidence": None}, {"min_evidence": 1},
    {"min_evidence": ["weak"]}, {"evidence": "weak"},
]  # fmt: skip


def test_wrong_minimums(hub: Hub) -> None:
    """What is no number in JSON: tests/api/test_parsers.py."""
    for wrong in WRONG_MINIMUMS:
        answer = hub.client.post("/search", {"user_id": "u1", "query": "quokka", **wrong})
        assert answer.status_code == 400, wrong
        assert [one["pointer"].split("/")[1] for one in answer.json()["errors"]] == list(wrong)


def test_nobody_learns_from_a_level_what_an_agent_may_not_see(hub: Hub, person: EndUser) -> None:
    """The secret of another agent would be the best: the tail behind it would be cut."""
    asked = "Is the zither from Leiden in tune?"
    factories.fact(person, "Plays a tune now and then", agent_id="")
    before = judged(hub, asked, kinds=["fact"], filters={"agent_id": "vet"})
    secret = factories.fact(person, "The zither from Leiden is in tune", agent_id="other", scope="private")
    embed_all(person)
    assert judged(hub, asked, kinds=["fact"], filters={"agent_id": "other"})["results"][0]["id"] == str(secret.pk)
    levels = {one["text"]: one["evidence_level"] for one in before["results"]}
    after = judged(hub, asked, kinds=["fact"], filters={"agent_id": "vet"})
    assert str(secret.pk) not in {one["id"] for one in after["results"]}
    assert {one["text"] for one in after["results"]} == set(levels)


def test_nobody_elses_memories_move_what_counts(hub: Hub, person: EndUser) -> None:
    embed_all(person)
    asked = ["What is my quokka called?", UNRELATED, "the cat"]
    before = [judged(hub, query) for query in asked]
    for tenant in (hub.tenant, factories.tenant()):
        other = factories.end_user(tenant, external_id="u2")
        for number in range(8):
            factories.fact(other, f"Asks about the boiling point of tungsten, quokka {number}")
        embed_all(other)
    assert [judged(hub, query) for query in asked] == before
