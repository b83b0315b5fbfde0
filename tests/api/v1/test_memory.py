"""GET and PUT /memory: a person's memory as DeerFlow's document."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memories import curation
from memories.audit import Actor
from memories.models import AuditEvent, EndUser, Fact, FactRevision, ProfileSection, ReviewItem, Tenant
from tests import factories
from tests.api.conftest import Hub
from tests.database import elsewhere, held

# As DeerFlow 2.0 writes it.
DOCUMENT: dict[str, Any] = {
    "version": "1.0",
    "lastUpdated": "2026-10-01T08:00:00Z",
    "user": {
        "workContext": {"summary": "后端工程师,负责支付系统。", "updatedAt": "2026-09-30T08:00:00Z"},
        "personalContext": {"summary": "", "updatedAt": ""},
        "topOfMind": {"summary": "Moving house in May.", "updatedAt": "2026-09-30T08:00:00Z"},
    },
    "history": {
        "recentMonths": {"summary": "", "updatedAt": ""},
        "earlierContext": {"summary": "", "updatedAt": ""},
        "longTermBackground": {"summary": "Studied physics.", "updatedAt": "2026-09-30T08:00:00Z"},
    },
    "facts": [
        {
            "id": "fact_1a2b3c4d",
            "content": "Prefers short answers",
            "category": "preference",
            "confidence": 0.95,
            "createdAt": "2026-09-01T08:00:00Z",
            "source": "thread-7",
        },
        {
            "id": "fact_5e6f7a8b",
            "content": "用 Rust 写后端",
            "category": "correction",
            "confidence": 0.9,
            "createdAt": "2026-09-02T08:00:00Z",
            "source": "manual",
            "sourceError": "以为用户写 Go",
        },
    ],
}


def put(hub: Hub, document: dict[str, Any], user_id: str = "u1") -> Any:
    return hub.client.call("PUT", "/memory", {"user_id": user_id, **document})


def get(hub: Hub, user_id: str = "u1") -> dict[str, Any]:
    answer: dict[str, Any] = hub.client.get("/memory", user_id=user_id).json()
    return answer


def said(document: dict[str, Any]) -> Any:
    """What a document says, without ids and times of writing."""
    parts = {name: part["summary"] for half in ("user", "history") for name, part in document[half].items()}
    facts = [{name: value for name, value in fact.items() if name != "id"} for fact in document["facts"]]
    return parts, facts


class TestRoundTrip:
    def test_what_went_in_comes_out(self, hub: Hub) -> None:
        answer = put(hub, DOCUMENT)
        assert answer.status_code == 200, answer.json()
        assert said(answer.json()) == said(DOCUMENT)
        assert get(hub) == answer.json()

    def test_what_came_out_goes_in_and_changes_nothing(self, hub: Hub) -> None:
        put(hub, DOCUMENT)
        document = get(hub)
        answer = hub.client.call("PUT", "/memory", document, query={"user_id": "u1"})
        assert answer.json() == document
        assert FactRevision.objects.count() == 2

    def test_the_same_again_adds_nothing(self, hub: Hub) -> None:
        put(hub, DOCUMENT)
        assert said(put(hub, DOCUMENT).json()) == said(DOCUMENT)
        assert Fact.objects.count() == 2

    def test_an_unknown_person_has_an_empty_document(self, hub: Hub) -> None:
        document = get(hub, "nobody")
        assert (document["version"], document["lastUpdated"], document["facts"]) == ("1.0", "", [])
        assert document["user"]["topOfMind"] == {"summary": "", "updatedAt": ""}
        assert not EndUser.objects.exists()

    def test_it_moves_to_another_person(self, hub: Hub) -> None:
        put(hub, DOCUMENT)
        assert said(put(hub, get(hub), "u2").json()) == said(DOCUMENT)
        assert Fact.objects.filter(end_user__external_id="u2").count() == 2

    def test_a_fact_from_a_conversation_names_it(self, hub: Hub) -> None:
        person = factories.end_user(hub.tenant, external_id="u1")
        conversation = factories.session(person, session_id="thread-9")
        factories.evidence(factories.fact(person), conversation.turns.get())
        assert get(hub)["facts"][0]["source"] == "thread-9"


class TestImport:
    def test_makes_facts_of_the_persons_own(self, hub: Hub) -> None:
        put(hub, DOCUMENT)
        fact = Fact.objects.get(category="preference")
        assert (fact.trust, fact.extractor, fact.status, fact.scope) == ("user", "import", "active", "private")
        assert fact.first_observed_at.isoformat() == "2026-09-01T08:00:00+00:00"
        assert fact.last_confirmed_at == fact.created_at > fact.first_observed_at
        assert fact.forget_at
        assert fact.revisions.get().verb == "import"
        event = AuditEvent.objects.get(verb="import")
        assert (event.counts, event.object_type) == ({"facts": 2, "sections": 6}, "EndUser")

    def test_a_partial_document_is_completed(self, hub: Hub) -> None:
        put(hub, DOCUMENT)
        answer = put(hub, {"user": {"topOfMind": {"summary": "Moved."}, "workContext": {}}}).json()
        assert answer["user"]["topOfMind"]["summary"] == "Moved."
        assert answer["user"]["workContext"]["summary"] == "后端工程师,负责支付系统。"
        assert len(answer["facts"]) == 2

    def test_a_fact_of_ours_is_changed_by_its_id(self, hub: Hub) -> None:
        document = put(hub, DOCUMENT).json()
        document["facts"][0]["content"] = "Prefers long answers"
        answer = put(hub, document).json()
        assert [fact["content"] for fact in answer["facts"]] == ["Prefers long answers", "用 Rust 写后端"]
        assert answer["facts"][0]["id"] == document["facts"][0]["id"]

    def test_what_an_operator_wrote_stays(self, hub: Hub) -> None:
        document = put(hub, DOCUMENT).json()
        person = EndUser.objects.get()
        given: dict[str, Any] = {"actor": Actor.operator(factories.operator()), "now": factories.NOW}
        fact = Fact.objects.get(category="preference")
        curation.correct_fact(fact_id=fact.pk, tenant=None, content="Wants detail", reason="", **given)
        curation.write_profile_section(end_user=person, section="top_of_mind", summary="Bound", **given)
        answer = put(hub, document).json()
        assert answer["facts"][0]["content"] == "Wants detail"
        assert answer["user"]["topOfMind"]["summary"] == "Bound"

    def test_what_was_refused_waits_for_review(self, hub: Hub) -> None:
        document = put(hub, DOCUMENT).json()
        hub.client.call("DELETE", f"/facts/{document['facts'][0]['id']}")
        answer = put(hub, DOCUMENT).json()
        assert [fact["content"] for fact in answer["facts"]] == ["用 Rust 写后端"]
        assert ReviewItem.objects.get().reason == "refused_before"

    def test_secrets_are_cut_out(self, hub: Hub) -> None:
        text = "The password is hunter2secret9"
        answer = put(hub, {"facts": [{"content": text}], "user": {"topOfMind": {"summary": text}}}).json()
        assert "hunter2secret9" not in str(answer)
        assert "[redacted:" in answer["facts"][0]["content"]

    def test_more_than_the_capacity_is_refused_as_a_whole(self, hub: Hub) -> None:
        facts = [{"content": f"Fact number {number}"} for number in range(501)]
        refused = put(hub, {"facts": facts, "user": {"topOfMind": {"summary": "Moved."}}})
        assert (refused.status_code, refused.json()["code"]) == (409, "capacity")
        assert not Fact.objects.exists()
        assert not ProfileSection.objects.exists()
        assert len(put(hub, {"facts": facts[:500]}).json()["facts"]) == 500

    def test_five_hundred_facts_take_as_many_statements_as_two(self, hub: Hub) -> None:
        def statements(user_id: str, count: int) -> int:
            facts = [{"content": f"Fact number {number}"} for number in range(count)]
            with CaptureQueriesContext(connection) as taken:
                put(hub, {"facts": facts}, user_id)
            return len(taken)

        statements("u0", 1)
        assert statements("u1", 2) == statements("u2", 300)

    def test_the_same_text_twice_is_one_fact(self, hub: Hub) -> None:
        answer = put(hub, {"facts": [{"content": "Lives in Leiden"}, {"content": "lives in  leiden"}]})
        assert [fact["content"] for fact in answer.json()["facts"]] == ["Lives in Leiden"]

    def test_a_restricted_person_takes_nothing(self, hub: Hub) -> None:
        factories.end_user(hub.tenant, external_id="u1", restricted_at=factories.NOW)
        assert put(hub, DOCUMENT).status_code == 423
        assert not Fact.objects.exists()

    @pytest.mark.parametrize(
        ("document", "pointer"),
        [
            ({"facts": [{"content": ""}]}, "/facts/0/content"),
            ({"facts": [{"content": "ok"}, {"category": "goal"}]}, "/facts/1/content"),
            ({"facts": [{"content": "ok", "confidence": 1.5}]}, "/facts/0/confidence"),
            ({"facts": {"content": "ok"}}, "/facts"),
            ({}, ""),
            ({"memory": []}, ""),
            ({"user": []}, "/user"),
            ({"user": {"topOfMind": "text"}}, "/user/topOfMind"),
            ({"history": {"recentMonths": {"summary": 7}}}, "/history/recentMonths/summary"),
        ],
    )
    def test_a_fault_names_its_place(self, hub: Hub, document: dict[str, Any], pointer: str) -> None:
        answer = put(hub, document)
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, pointer)
        assert not Fact.objects.exists()

    def test_unreadable_times_and_kinds_are_no_fault(self, hub: Hub) -> None:
        facts = [{"content": "Sings", "createdAt": "yesterday", "category": "hobby", "id": None, "extra": 1}]
        (fact,) = put(hub, {"facts": facts, "mood": "fine"}).json()["facts"]
        assert (fact["category"], fact["source"]) == ("other", "manual")

    def test_the_person_must_be_named_once(self, hub: Hub) -> None:
        assert hub.client.call("PUT", "/memory", DOCUMENT).status_code == 400
        two = hub.client.call("PUT", "/memory", {"user_id": "u1", **DOCUMENT}, query={"user_id": "u2"})
        assert two.json()["errors"][0]["code"] == "mismatch"


@pytest.mark.django_db(transaction=True)
def test_an_import_waits_for_whoever_holds_the_person(transactional_db: None) -> None:
    tenant = factories.tenant()
    person = factories.end_user(tenant)
    stated = curation.DocumentFact(content="Lives in Leiden", category="other", confidence=0.9)

    def work() -> None:
        curation.import_document(
            end_user=person, sections={}, facts=[stated], actor=factories.COMMAND, now=factories.NOW
        )

    with held(work):
        """The first is not committed yet: the second must see it once it is."""
    elsewhere(work)
    assert Fact.objects.count() == 1
    assert Tenant.objects.count() == 1
