"""GET and POST /facts."""

from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from memories.models import Category, EndUser, Fact, FactRelation, MemoryType
from tests import factories
from tests.api.client import HubClient, follow
from tests.api.conftest import Hub
from tests.database import at_once
from tests.vectors import embed_all

DOCUMENTED = {
    "id", "user_id", "agent_id", "type", "category", "content", "raw", "structured", "key", "value", "confidence",
    "importance", "tags", "source", "source_error", "trust", "extractor", "status", "pinned", "locked", "mentions",
    "version", "scope", "allowed_users", "allowed_roles", "relations", "evidence", "extraction_id", "created_at",
    "updated_at", "first_observed_at", "last_confirmed_at", "last_recalled_at", "valid_from", "valid_to",
    "superseded_by", "expires_at", "decay_score", "forget_at", "embedding_model", "external_id", "still_said_by",
}  # fmt: skip


def stated(**over: Any) -> dict[str, Any]:
    return {"user_id": "u1", "content": "Allergic to peanuts", "category": "constraint", **over}


def ids(hub: Hub, **query: Any) -> list[str]:
    return [row["id"] for row in hub.client.get("/facts", **query).json()["results"]]


def test_a_fact_has_exactly_the_fields_of_the_contract(hub: Hub) -> None:
    person = factories.end_user(hub.tenant, external_id="u1")
    session = factories.session(person, [("user", "我住在莱顿")], session_id="s1")
    fact = factories.fact(person, "住在莱顿", raw="我住在莱顿", extraction=factories.run(session))
    factories.evidence(fact, session.turns.get(), quote="我住在莱顿")
    row = hub.client.get("/facts", user_id="u1").json()["results"][0]
    assert set(row) == DOCUMENTED
    assert row["evidence"] == [{"session_id": "s1", "turn_number": 1, "quote": "我住在莱顿"}]
    assert (row["content"], row["raw"], row["type"]) == ("住在莱顿", "我住在莱顿", "semantic")
    assert row["extraction_id"] == str(fact.extraction_id)
    nothing = [name for name in ("agent_id", "key", "value", "source_error", "superseded_by") if row[name] is not None]
    assert nothing == []
    assert (row["relations"], row["embedding_model"]) == ([], None)


def test_newest_first_and_only_active_ones(hub: Hub) -> None:
    person = factories.end_user(hub.tenant, external_id="u1")
    old = factories.fact(person, "old")
    new = factories.fact(person, "new", now=factories.NOW + timedelta(seconds=1))
    gone = factories.fact(person, "gone", status="trashed")
    factories.fact(factories.end_user(hub.tenant), "somebody else's")
    assert ids(hub, user_id="u1") == [str(new.pk), str(old.pk)]
    assert ids(hub, user_id="u1", status="trashed") == [str(gone.pk)]
    assert len(ids(hub, user_id="u1", status="all")) == 3


def test_filters(hub: Hub) -> None:
    person = factories.end_user(hub.tenant, external_id="u1")
    later = factories.NOW + timedelta(hours=1)
    given = {"key": "home_city", "confidence": 0.9, "pinned": True, "trust": "tool", "source": "external_data"}
    wanted = factories.fact(person, "Lives in Leiden", category="skill", scope="share", now=later, **given)
    likes = factories.fact(person, "喜欢绿茶 100%", category="preference", tags=["drink", "茶"], confidence=0.5)
    private = factories.fact(person, "Uses VIM", category="goal", agent_id="coder", confidence=0.5)
    for query, expected in [
        ({"category": "preference"}, likes),
        ({"tag": "茶"}, likes),
        ({"q": "绿茶"}, likes),
        ({"q": "100%"}, likes),
        ({"q": "vim"}, private),
        ({"agent_id": "CODER"}, private),
        ({"type": "procedural"}, wanted),
        ({"key": "home_city"}, wanted),
        ({"scope": "share"}, wanted),
        ({"source": "external_data"}, wanted),
        ({"trust": "tool"}, wanted),
        ({"min_confidence": "0.9"}, wanted),
        ({"pinned": "true"}, wanted),
        ({"updated_since": later.isoformat()}, wanted),
    ]:
        assert ids(hub, user_id="u1", **query) == [str(expected.pk)], query
    assert ids(hub, user_id="u1", tag="nothing") == []
    # A parameter without a value is as good as none.
    assert len(ids(hub, user_id="u1", category="", q="")) == 3
    assert str(wanted.pk) not in ids(hub, user_id="u1", pinned="false")


def test_each_category_is_listed_under_one_type(hub: Hub) -> None:
    person = factories.end_user(hub.tenant, external_id="u1")
    facts = [factories.fact(person, str(category.label), category=category) for category in Category]
    found = [(kind, one) for kind in MemoryType for one in ids(hub, user_id="u1", type=kind.value)]
    assert sorted(found) == sorted((fact.type, str(fact.pk)) for fact in facts)


def test_an_order_holds_over_pages_and_has_cursors_of_its_own(hub: Hub) -> None:
    person = factories.end_user(hub.tenant, external_id="u1")
    shares = [0.7, 0.9, 0.7, 0.5, 0.7]
    facts = [factories.fact(person, f"fact {place}", confidence=share) for place, share in enumerate(shares)]
    sorted_up = [str(fact.pk) for fact in sorted(facts, key=lambda fact: (fact.confidence, fact.pk))]
    for sort, expected in (("confidence", sorted_up), ("-confidence", sorted_up[::-1])):
        page = hub.client.get("/facts", user_id="u1", sort=sort, page_size=2).json()
        cursor = parse_qs(urlsplit(page["next"]).query)["cursor"][0]
        found = [row["id"] for row in page["results"]]
        while page["next"]:
            page = follow(hub.client, page["next"])
            found += [row["id"] for row in page["results"]]
        assert found == expected
    for sort, status in (("-confidence", 200), ("confidence", 400), ("-created_at", 400)):
        assert hub.client.get("/facts", user_id="u1", sort=sort, page_size=2, cursor=cursor).status_code == status


def test_a_stated_fact_is_active_and_says_where_it_comes_from(hub: Hub) -> None:
    answer = hub.client.post("/facts", stated())
    assert answer.status_code == 201
    fact = answer.json()
    assert answer.headers["ETag"] == '"1"'
    assert (fact["status"], fact["trust"], fact["extractor"], fact["version"]) == ("active", "user", "api", 1)
    assert (fact["source"], fact["confidence"], fact["importance"]) == ("explicit_user_input", 0.9, 0.5)
    assert EndUser.objects.get(external_id="u1").tenant == hub.tenant
    assert hub.client.get(f"/facts/{fact['id']}").json() == fact


def test_all_that_may_be_stated_is_kept(hub: Hub) -> None:
    given = stated(
        category="preference", confidence=1, importance=0.2, key="tea", value="绿茶", tags=["drink"], scope="share",
        agent_id="Barista", allowed_users=["u1"], allowed_roles=["admin"], expires_at="2099-01-01T00:00:00Z",
        structured={"likes": ["绿茶"]},
    )  # fmt: skip
    fact = hub.client.post("/facts", {**given, "content": "safe\u202e text\U000e0041"}).json()
    # Invisible characters are taken out.
    assert {name: fact[name] for name in given} == {**given, "agent_id": "barista", "content": "safe text"}
    assert fact["forget_at"] is not None


def test_a_key_that_folding_makes_too_long_is_refused(hub: Hub) -> None:
    """One letter that stands for eighteen."""
    letter = "\N{ARABIC LIGATURE SALLALLAHOU ALAYHE WASALLAM}"
    kept = hub.client.post("/facts", stated(key=letter * 5))
    assert (kept.status_code, len(kept.json()["key"])) == (201, 5 * 18)
    edit = f"/facts/{kept.json()['id']}"
    for refused in (
        hub.client.post("/facts", stated(content="Another", key=letter * 6)),
        hub.client.call("PATCH", edit, {"key": letter * 6}),
    ):
        assert refused.status_code == 400, refused.content
        assert [(error["pointer"], error["code"]) for error in refused.json()["errors"]] == [("/key", "max_length")]


def test_the_same_text_again_names_the_known_fact(hub: Hub) -> None:
    known = hub.client.post("/facts", stated()).json()["id"]
    answer = hub.client.post("/facts", stated(content="ALLERGIC  to peanuts"))
    assert (answer.status_code, answer.json()["code"]) == (409, "duplicate")
    assert answer.json()["existing_id"] == known
    assert Fact.objects.count() == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_known", [False, True], ids=["first sight", "known person"])
def test_of_many_clients_at_once_one_states_it(transactional_db: None, is_known: bool) -> None:
    tenant = factories.tenant()
    plaintext = factories.api_key(tenant)[1]
    if is_known:
        factories.end_user(tenant, external_id="u1")
    answers: list[Any] = at_once(8, lambda _: HubClient(plaintext).post("/facts", stated()))
    fact = Fact.objects.get()
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 7
    assert {answer.json().get("existing_id", answer.json().get("id")) for answer in answers} == {str(fact.pk)}
    assert {answer.json()["code"] for answer in answers if answer.status_code == 409} == {"duplicate"}
    assert (fact.mentions, fact.version, fact.revisions.count()) == (1, 1, 1)
    # The control: different facts are all kept.
    at_once(4, lambda index: HubClient(plaintext).post("/facts", stated(content=f"Fact {index}")))
    assert Fact.objects.count() == 5


def test_names_the_model_of_its_vector_once_it_has_one(hub: Hub) -> None:
    person = factories.end_user(hub.tenant, external_id="u1")
    fact = factories.fact(person)

    def model() -> str | None:
        told: str | None = hub.client.get(f"/facts/{fact.pk}").json()["embedding_model"]
        return told

    assert model() is None
    embed_all(person)
    assert model() == "use-multilingual-3"
    assert hub.client.call("PATCH", f"/facts/{fact.pk}", {"content": "Another text"}).json()["embedding_model"] is None


def test_relations(hub: Hub) -> None:
    person = factories.end_user(hub.tenant, external_id="u1")
    fact, other = factories.fact(person, "Lives in Leiden"), factories.fact(person, "Likes Leiden")
    older = [factories.fact(person, f"Lives in {city}", status="superseded", superseded_by=fact) for city in "AB"]
    for target, kind in ((older[0], "contradicts"), (other, "related_to")):
        FactRelation.objects.create(
            tenant_id=fact.tenant_id, fact=fact, target=target, type=kind, created_at=factories.NOW
        )
    told = hub.client.get(f"/facts/{fact.pk}").json()["relations"]
    assert told[:2] == [
        {"type": "contradicts", "target_id": str(older[0].pk)},
        {"type": "related_to", "target_id": str(other.pk)},
    ]
    assert told[2:] == [{"type": "supersedes", "target_id": str(row)} for row in sorted(row.pk for row in older)]
    assert hub.client.get(f"/facts/{other.pk}").json()["relations"] == []
