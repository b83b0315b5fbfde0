"""GET and POST /facts."""

import re
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from memories.models import Category, EndUser, Fact, FactRelation, MemoryType
from tests import factories
from tests.api.client import HubClient, follow
from tests.api.conftest import Hub, hub_of
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
def test_of_many_clients_at_once_one_states_it(transactional_db: None) -> None:
    """At first sight of the person. Of a known one: tests/curation/test_adding.py."""
    tenant = factories.tenant()
    plaintext = factories.api_key(tenant)[1]
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
    to_other = [{"type": "related_to", "target_id": str(fact.pk), "incoming": True}]
    assert hub.client.get(f"/facts/{other.pk}").json()["relations"] == to_other
    listed = {row["id"]: row["relations"] for row in hub.client.get("/facts", user_id="u1").json()["results"]}
    assert listed == {str(fact.pk): told, str(other.pk): to_other}


def test_a_relation_of_a_fact_that_the_caller_may_not_see_is_not_told(hub: Hub) -> None:
    person = factories.end_user(hub.tenant, external_id="u1")
    fact, private = factories.fact(person, "Likes tea"), factories.fact(person, "Likes coffee", agent_id="sales")
    given = {"tenant_id": fact.tenant_id, "type": "related_to", "created_at": factories.NOW}
    FactRelation.objects.create(fact=private, target=fact, **given)
    narrow = hub_of(hub.tenant, scopes=["read"]).client
    assert narrow.get(f"/facts/{fact.pk}").json()["relations"] == []
    assert narrow.get("/facts", user_id="u1").json()["results"][0]["relations"] == []
    [told] = narrow.get(f"/facts/{fact.pk}", agent_id="sales").json()["relations"]
    assert told["target_id"] == str(private.pk)


class TestOwnIds:
    def test_are_kept_found_and_taken_once(self, hub: Hub) -> None:
        mine = hub.client.post("/facts", stated(external_id="u1_mem_002"))
        assert (mine.status_code, mine.json()["external_id"]) == (201, "u1_mem_002")
        hub.client.post("/facts", stated(content="Another"))
        [found] = hub.client.get("/facts", user_id="u1", external_id="u1_mem_002").json()["results"]
        assert found == mine.json()
        assert hub.client.get("/facts", user_id="u1", external_id="u1_mem_003").json()["results"] == []
        again = hub.client.post("/facts", stated(content="A third", external_id="u1_mem_002"))
        assert (again.status_code, again.json()["code"]) == (409, "duplicate")
        # An agent's facts have ids of their own, and what is in the trash holds none.
        assert (
            hub.client.post("/facts", stated(content="Of a", external_id="u1_mem_002", agent_id="a")).status_code == 201
        )
        hub.client.call("DELETE", f"/facts/{mine.json()['id']}")
        assert hub.client.post("/facts", stated(content="A third", external_id="u1_mem_002")).status_code == 201

    def test_can_be_changed(self, hub: Hub) -> None:
        one, two = (hub.client.post("/facts", stated(content=name, external_id=name)).json() for name in "ab")
        taken = hub.client.call("PATCH", f"/facts/{one['id']}", {"external_id": "b"})
        assert (taken.status_code, taken.json()["code"]) == (409, "duplicate")
        for own_id in ("c", None):
            assert (
                hub.client.call("PATCH", f"/facts/{two['id']}", {"external_id": own_id}).json()["external_id"] == own_id
            )

    def test_a_confirmed_fact_gets_the_one_that_it_lacks(self, hub: Hub) -> None:
        keyed = {"category": "identity", "key": "home", "value": "Leiden"}
        known = hub.client.post("/facts", stated(content="Lives in Leiden", **keyed)).json()
        same = hub.client.post("/facts", stated(content="Leiden is home", external_id="mine", **keyed))
        assert (same.status_code, same.json()["id"], same.json()["external_id"]) == (200, known["id"], "mine")

    def test_one_like_the_hubs_is_refused(self, hub: Hub) -> None:
        known = hub.client.post("/facts", stated()).json()
        refused = hub.client.post("/facts", stated(content="Another", external_id=known["id"]))
        assert [(one["pointer"], one["code"]) for one in refused.json()["errors"]] == [("/external_id", "ours")]


class TestReaders:
    """A fact for readers whom the person is not would be served to nobody."""

    @pytest.mark.parametrize(
        ("named", "is_known"), [(["bob"], False), (["u1", "bob"], True), (["u1", "nobody"], False)]
    )
    def test_others_are_refused(self, hub: Hub, named: list[str], is_known: bool) -> None:
        factories.end_user(hub.tenant, external_id="bob")
        if is_known:
            factories.end_user(hub.tenant, external_id="u1")
        refused = hub.client.post("/facts", stated(allowed_users=named))
        [fault] = refused.json()["errors"]
        assert (refused.status_code, fault["code"]) == (400, "does_not_exist")
        assert (fault["pointer"], "group" in fault["detail"]) == (f"/allowed_users/{len(named) - 1}", True)
        assert not Fact.objects.exists()
        # Nobody came into being by it.
        assert EndUser.objects.filter(external_id="u1").exists() == is_known

    def test_the_persons_ids_are_served(self, hub: Hub) -> None:
        person = factories.end_user(hub.tenant, external_id="u1")
        factories.end_user(hub.tenant, external_id="once", merged_into=person)
        for named in (["u1"], ["once"], ["once", "u1"]):
            fact = hub.client.post("/facts", stated(content=f"For {named}", allowed_users=named))
            assert fact.status_code == 201
            assert f"For {named}" in hub.client.post("/context", {"user_id": "u1"}).json()["memory"]
        changed = hub.client.call("PATCH", f"/facts/{fact.json()['id']}", {"allowed_users": ["bob"]})
        assert (changed.status_code, changed.json()["errors"][0]["pointer"]) == (400, "/allowed_users/0")

    def test_a_fact_from_before_can_be_changed_in_other_things(self, hub: Hub) -> None:
        person = factories.end_user(hub.tenant, external_id="u1")
        fact = factories.fact(person, "Likes tea", allowed_users=["bob"])
        assert hub.client.call("PATCH", f"/facts/{fact.pk}", {"tags": ["drink"]}).json()["allowed_users"] == ["bob"]


DAY = timedelta(days=1)


def test_by_importance_and_times(hub: Hub) -> None:
    person = factories.end_user(hub.tenant, external_id="u1")
    for place in range(3):
        said, came = factories.NOW + place * DAY, factories.NOW + (10 - place) * DAY
        factories.fact(
            person, f"Fact {place}", importance=0.2 + place * 0.3, first_observed_at=said, last_confirmed_at=said,
            created_at=came,
        )  # fmt: skip
    second, ninth = (factories.NOW + DAY).isoformat(), (factories.NOW + 9 * DAY).isoformat()
    for asked, found in (
        ({"min_importance": 0.5}, {1, 2}),
        ({"since": second}, {1, 2}),
        ({"until": second}, {0}),
        ({"created_since": ninth}, {0, 1}),
        ({"created_until": ninth}, {2}),
        ({"since": second, "created_since": ninth, "min_importance": 0.4}, {1}),
    ):
        rows = hub.client.get("/facts", user_id="u1", **asked).json()["results"]
        assert {row["content"] for row in rows} == {f"Fact {place}" for place in found}, asked


def test_what_stands_beside_the_text_is_found_by_its_words(hub: Hub) -> None:
    fact = hub.client.post(
        "/facts",
        stated(
            content="Prefers a concise tone", raw="请用简洁,幽默的语气来和我聊天。",
            structured={"tone": ["humorous", {"named": "Zephyr"}]},
        ),
    ).json()  # fmt: skip
    hub.client.post("/facts", stated(content="Prefers long walks"))
    for words in ("幽默", "zephyr", "humorous", "CONCISE"):
        listed = hub.client.get("/facts", user_id="u1", q=words).json()["results"]
        assert [row["id"] for row in listed] == [fact["id"]], words
        found = hub.client.post("/search", {"user_id": "u1", "query": words, "kinds": ["fact"]}).json()["results"]
        assert found[0]["id"] == fact["id"], words
        assert found[0]["score_parts"]["lexical"] > 0 == found[1]["score_parts"]["lexical"], words
    hub.client.call("PATCH", f"/facts/{fact['id']}", {"raw": None, "structured": None})
    found = hub.client.post("/search", {"user_id": "u1", "query": "幽默 Zephyr", "kinds": ["fact"]}).json()["results"]
    assert [row["score_parts"]["lexical"] for row in found] == [0, 0]


RECORD: dict[str, Any] = {
    "memory_id": "user_id_xxx_mem_002",
    "tenant_id": "app",
    "user_id": "user_id_xxx",
    "agent_id": "worker_agent",
    "type": "preference",
    "scope": "private",
    "content": {"raw": "Bitte kurz.", "summary": "Prefers short answers", "structured": {"tone": ["short"]}},
    "embedding": {"model": "e5-large", "vector": [0.123, 0.456]},
    "metadata": {"importance": 0.9, "confidence": 0.9, "tags": ["tone"], "source": "explicit_user_input", "version": 1},
    "time": {
        "created_at": "2026-04-20T10:00:00Z", "updated_at": "2026-04-25T08:00:00Z",
        "last_accessed": "2026-04-25T08:00:00Z", "decay_score": 0.95,
    },
    "relations": [{"type": "related_to", "target_memory_id": "user_id_xxx_mem_001"}],
    "access_control": {"visibility": "private", "allowed_users": ["user_id_xxx"], "allowed_roles": ["admin"]},
}  # fmt: skip
NAMES_HERE = {
    "/memory_id": "external_id", "/type": "category", "/content/raw": "raw", "/content/summary": "content",
    "/content/structured": "structured", "/embedding/model": "embedding_model", "/metadata/importance": "importance",
    "/metadata/confidence": "confidence", "/metadata/tags": "tags", "/metadata/source": "source",
    "/metadata/version": "version", "/time/created_at": "valid_from", "/time/updated_at": "updated_at",
    "/time/last_accessed": "last_recalled_at", "/time/decay_score": "decay_score",
    "/relations/0/target_memory_id": "target_id", "/access_control/visibility": "scope",
    "/access_control/allowed_users": "allowed_users", "/access_control/allowed_roles": "allowed_roles",
}  # fmt: skip


class TestNamesOfOtherSystems:
    def test_a_record_is_answered_with_the_names_here(self, hub: Hub) -> None:
        answer = hub.client.post("/facts", RECORD)
        assert answer.status_code == 400
        faults = {one["pointer"]: one["detail"] for one in answer.json()["errors"]}
        assert {place for place, name in NAMES_HERE.items() if f"`{name}`" not in faults.get(place, "")} == set()
        # The others say why there is none, or are what this needs besides.
        assert faults.keys() - NAMES_HERE.keys() == {
            "/tenant_id", "/embedding/vector", "/category", "/relations/0/target_id",
        }  # fmt: skip
        assert not EndUser.objects.exists()

    def test_with_these_names_it_is_stored_and_read_back(self, hub: Hub) -> None:
        content, more, access = (RECORD[name] for name in ("content", "metadata", "access_control"))
        known = hub.client.post("/facts", stated(user_id="user_id_xxx", agent_id="worker_agent")).json()
        given = {
            **{name: RECORD[name] for name in ("user_id", "agent_id", "scope")},
            "external_id": RECORD["memory_id"], "category": "preference",
            "content": content["summary"], "raw": content["raw"], "structured": content["structured"],
            **{name: more[name] for name in ("importance", "confidence", "tags", "source")},
            "valid_from": "2026-04-20T10:00:00Z", "allowed_users": access["allowed_users"],
            "allowed_roles": access["allowed_roles"],
            "relations": [{"type": "related_to", "target_id": known["id"]}],
        }  # fmt: skip
        fact = hub.client.post("/facts", given)
        assert fact.status_code == 201
        assert {name: fact.json()[name] for name in given} == given

    def test_flat_ones_too_and_in_a_change(self, hub: Hub) -> None:
        fact = hub.client.post("/facts", stated()).json()
        changed = hub.client.call(
            "PATCH", f"/facts/{fact['id']}", {"visibility": "share", "expires_in_days": 3, "nonsense": 1}
        )
        told = {one["pointer"]: (one["code"], one["detail"]) for one in changed.json()["errors"]}
        code, which = told.pop("/nonsense")
        fields = re.fullmatch(r"There is no such field\. There are: `(.*)`\.", which)
        assert code == "unknown_field"
        assert fields
        assert {"content", "category", "importance", "pinned", "expires_at"} <= set(fields[1].split("`, `"))
        assert told == {
            "/visibility": ("unknown_field", "There is no such field. Here it is `scope`."),
            "/expires_in_days": ("unknown_field", "There is no such field. Here it is `expires_at`, a time."),
        }


def test_sums_of_fractions_are_shown_rounded(hub: Hub) -> None:
    person = factories.end_user(hub.tenant, external_id="u1")
    odd = 0.8 + 0.05
    assert odd != 0.85
    fact = factories.fact(person, "Likes tea", confidence=odd, importance=odd)
    told = hub.client.get(f"/facts/{fact.pk}").json()
    [found] = hub.client.post("/search", {"user_id": "u1", "query": "tea", "kinds": ["fact"]}).json()["results"]
    assert {told["confidence"], told["importance"], found["confidence"]} == {0.85}
    # And so is what a second statement makes of it.
    keyed = {"category": "identity", "key": "home", "value": "Leiden", "confidence": 0.8}
    hub.client.post("/facts", stated(content="Lives in Leiden", **keyed))
    again = hub.client.post("/facts", stated(content="Leiden is home", **keyed)).json()
    assert again["confidence"] == Fact.objects.get(pk=again["id"]).confidence == 0.85
