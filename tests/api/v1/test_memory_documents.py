"""PUT and GET /memory: DeerFlow's document comes back as it went in, with its own ids, categories and times."""

from collections.abc import Mapping
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from memories.curation.facts.editing import edit_fact
from memories.models import EndUser, Fact, ProfileSection
from memories.text.secrets.redaction import redact_message
from tests import factories
from tests.api.conftest import Hub, hub_of
from tests.api.v1.test_memory import DOCUMENT, get, put

FACT: dict[str, Any] = {
    "id": "fact_1a2b3c4d",
    "content": "Thinks in diagrams",
    "category": "cognitive",
    "topics": ["style", "drawing"],
    "confidence": 0.83,
    "createdAt": "2026-09-01T08:00:00.123456Z",
    "updatedAt": "2026-09-02T08:00:00+02:00",
    "source": "thread-7",
    "schemaVersion": 2,
    "status": "active",
    "scope": {"userId": "u1", "agentName": None},
    "revision": 3,
}
PLACES = [
    *(("user", name) for name in ("workContext", "personalContext", "topOfMind")),
    *(("history", name) for name in ("recentMonths", "earlierContext", "longTermBackground")),
]
# The empty section of a document.
EMPTY = {"summary": "", "updatedAt": ""}

# Letters of several scripts, punctuation and spaces; nothing that is cut out as invisible, and no spaces around it.
TEXT = st.text(st.sampled_from("abcdefgXYZ äé我住在莱顿 .,-_'😀"), min_size=1, max_size=40).map(str.strip).filter(bool)
# Ids as programs make them: no UUID of the hub's own kind among them.
IDS = st.text(st.sampled_from("abcdef0123456789_-"), min_size=1, max_size=30).map("fact_{}".format)
TIMES = st.one_of(st.datetimes().map(lambda moment: moment.isoformat() + "Z"), st.just(""), st.just("yesterday"))
CATEGORIES = st.sampled_from(["preference", "knowledge", "context", "goal", "cognitive", "hobby", "Vorliebe", "other"])
FACTS = st.fixed_dictionaries(
    {
        "id": IDS,
        "content": TEXT,
        "category": CATEGORIES,
        "confidence": st.floats(0, 1),
        "createdAt": TIMES,
        "source": TEXT,
    },
    optional={
        "sourceError": TEXT,
        "topics": st.lists(TEXT, max_size=3),
        "categoryExtension": st.sampled_from(["skill", "weather"]),
        "updatedAt": TIMES,
        "revision": st.integers(1, 9),
        "scope": st.fixed_dictionaries({"userId": IDS, "agentName": st.none()}),
    },
)
SECTIONS = st.fixed_dictionaries({"summary": TEXT, "updatedAt": TIMES.filter(bool)}) | st.just(EMPTY)


def _document(sections: list[dict[str, str]], facts: list[dict[str, Any]], updated: str) -> dict[str, Any]:
    document: dict[str, Any] = {"version": "1.0", "lastUpdated": updated, "facts": facts}
    for (part, name), section in zip(PLACES, sections, strict=True):
        document.setdefault(part, {})[name] = section
    return document


DOCUMENTS = st.builds(
    _document,
    st.lists(SECTIONS, min_size=6, max_size=6),
    # The documented difference: one fact per text.
    st.lists(
        FACTS,
        max_size=4,
        unique_by=(lambda fact: " ".join(fact["content"].split()).casefold(), lambda fact: fact["id"]),
    ),
    st.datetimes().map(lambda moment: moment.isoformat() + "Z"),
)


def told(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document but for what is documented to differ: the order of facts, and when nothing was last updated."""
    parts = {name: document[name] for name in ("version", "user", "history")}
    is_empty = not document["facts"] and all(document[part][name] == EMPTY for part, name in PLACES)
    updated = "" if is_empty else document["lastUpdated"]
    return {**parts, "lastUpdated": updated, "facts": sorted(document["facts"], key=lambda fact: str(fact["id"]))}


@settings(
    max_examples=10,
    deadline=None,
    # A request is slow, and the first failure says enough.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(document=DOCUMENTS)
def test_any_document_comes_back_as_it_went_in(hub: Hub, document: dict[str, Any]) -> None:
    EndUser.objects.all().delete()
    without_secrets = redact_message(content="", metadata=document).metadata
    answer = put(hub, document)
    assert answer.status_code == 200, answer.json()
    assert told(answer.json()) == told(without_secrets)
    # Once more it changes nothing.
    versions = sorted(Fact.objects.values_list("pk", "version"))
    assert told(put(hub, answer.json()).json()) == told(without_secrets)
    assert sorted(Fact.objects.values_list("pk", "version")) == versions


class TestOwnWords:
    def test_ids_categories_times_and_what_the_hub_does_not_know_come_back(self, hub: Hub) -> None:
        document = DOCUMENT | {"facts": [FACT]}
        answer = put(hub, document).json()
        assert answer == document == get(hub)
        fact = Fact.objects.get()
        assert (fact.external_id, fact.category) == ("fact_1a2b3c4d", "behavior")
        assert hub.client.get("/facts", user_id="u1").json()["results"][0]["external_id"] == "fact_1a2b3c4d"

    def test_its_ids_name_facts_when_it_comes_again(self, hub: Hub) -> None:
        put(hub, {"facts": [FACT]})
        changed = FACT | {"content": "Thinks in tables", "category": "habit", "updatedAt": "2026-10-01T00:00:00Z"}
        assert put(hub, {"facts": [changed]}).json()["facts"] == [changed]
        fact = Fact.objects.get()
        assert (fact.content, fact.category, fact.version) == ("Thinks in tables", "other", 2)

    def test_what_the_hub_changed_is_told_in_the_hubs_words(self, hub: Hub) -> None:
        put(hub, DOCUMENT | {"facts": [FACT]})
        fact = Fact.objects.get()
        changes = {"category": "skill", "content": "Draws well"}
        edit_fact(fact_id=fact.pk, tenant=hub.tenant, changes=changes, actor=factories.COMMAND, now=factories.NOW)
        document = get(hub)
        (told_fact,) = document["facts"]
        changed_at = factories.NOW.isoformat().replace("+00:00", "Z")
        assert told_fact == FACT | changes | {"updatedAt": changed_at}
        assert document["lastUpdated"] == max(changed_at, DOCUMENT["lastUpdated"])
        section = ProfileSection.objects.get(section="top_of_mind")
        ProfileSection.objects.filter(pk=section.pk).update(version=2, updated_at=factories.NOW)
        assert get(hub)["user"]["topOfMind"]["updatedAt"] == changed_at
        assert get(hub)["user"]["workContext"] == DOCUMENT["user"]["workContext"]

    def test_an_id_like_the_hubs_own_is_not_taken_over(self, hub: Hub) -> None:
        put(hub, {"facts": [FACT]}, "u1")
        theirs = Fact.objects.get()
        (fact,) = put(hub, {"facts": [FACT | {"id": str(theirs.pk)}]}, "u2").json()["facts"]
        assert fact["id"] != str(theirs.pk)
        assert fact["id"] == str(Fact.objects.get(end_user__external_id="u2").pk)

    def test_secrets_in_its_own_words_are_cut_out(self, hub: Hub) -> None:
        secret = "my password is hunter2secret9"
        facts = [FACT | {"id": secret, "topics": [secret], "source": secret, "note": {"password": "hunter2secret9"}}]
        document = {"facts": facts, "lastUpdated": secret, "user": {"topOfMind": {"summary": "x", "updatedAt": secret}}}
        answer = put(hub, document).json()
        assert "hunter2secret9" not in str(answer)
        assert "[redacted:" in answer["facts"][0]["topics"][0]

    def test_of_facts_with_one_id_each_is_matched_by_its_text(self, hub: Hub) -> None:
        facts = [FACT, FACT | {"content": "Thinks in tables"}]
        put(hub, {"facts": facts})
        answer = put(hub, {"facts": list(reversed(facts))}).json()
        assert {fact["content"] for fact in answer["facts"]} == {"Thinks in diagrams", "Thinks in tables"}
        assert set(Fact.objects.values_list("version", flat=True)) == {1}


class TestAgents:
    def test_a_document_of_an_agent_is_that_agents(self, hub: Hub) -> None:
        client = hub_of(hub.tenant, scopes=["read", "write"]).client

        def of(agent: str, *facts: dict[str, Any]) -> Any:
            query = {"user_id": "u1", "agent_id": agent} if agent else {"user_id": "u1"}
            return client.call("PUT", "/memory", {"facts": list(facts)}, query=query).json()["facts"]

        assert of("Sales", FACT) == [FACT]
        assert of("support", FACT | {"confidence": 0.5}) == [FACT | {"confidence": 0.5}]
        assert set(Fact.objects.values_list("agent_id", "confidence")) == {("sales", 0.83), ("support", 0.5)}
        # The person's own have neither, and an agent's document changes them as little as another agent's.
        assert of("", FACT | {"id": "fact_2", "content": "Sings"}) == [FACT | {"id": "fact_2", "content": "Sings"}]
        # It may stand in the document, too, but not another one.
        document = {"user_id": "u1", "agent_id": "support", "facts": [FACT | {"confidence": 0.6}]}
        client.call("PUT", "/memory", document)
        assert set(Fact.objects.values_list("agent_id", "confidence")) == {
            ("sales", 0.83),
            ("support", 0.6),
            ("", 0.83),
        }
        two = client.call("PUT", "/memory", document, query={"agent_id": "sales"})
        assert (two.status_code, two.json()["errors"][0]["code"]) == (400, "mismatch")
        shouts = FACT | {"id": "fact_2", "content": "Shouts"}
        assert sorted(fact["content"] for fact in of("sales", shouts)) == ["Shouts", "Sings", "Thinks in diagrams"]
        assert set(Fact.objects.filter(agent_id="").values_list("content", flat=True)) == {"Sings"}

    def test_what_the_person_is_known_for_is_not_repeated_for_an_agent(self, hub: Hub) -> None:
        put(hub, {"facts": [FACT]})
        query = {"user_id": "u1", "agent_id": "sales"}
        document = hub.client.get("/memory", **query).json()
        assert hub.client.call("PUT", "/memory", document, query=query).json() == document
        assert list(Fact.objects.values_list("agent_id", flat=True)) == [""]


def test_categories_are_mapped_to_ours(hub: Hub) -> None:
    for given_category, extension, ours in (
        ("preference", None, "preference"),
        ("Preference ", None, "preference"),
        ("cognitive", None, "behavior"),
        ("", None, "context"),
        ("hobby", None, "other"),
        ("other", "skill", "skill"),
        ("other", 7, "other"),
    ):
        Fact.objects.all().delete()
        fact = {"content": "Sings", "category": given_category}
        document = {"facts": [fact | ({"categoryExtension": extension} if extension else {})]}
        (told_fact,) = put(hub, document).json()["facts"]
        assert (told_fact["category"], Fact.objects.get().category) == (given_category, ours)
