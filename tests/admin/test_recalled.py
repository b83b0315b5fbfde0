"""Why recalled? The ranking with what its scores consist of, the context beside it, and verbs on a hit."""

import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memories.admin.recall.playground import RankedMemory, parts_of
from memories.audit import Actor
from memories.curation.facts.forgetting import forget_fact
from memories.curation.people.external_ids import change_external_id
from memories.curation.people.merging.merge import merge_people
from memories.models import ActorKind, EndUser, Fact
from memories.retrieval import recalls
from memories.retrieval import search as retrieval
from memories.retrieval.search import Finding, SearchRequest
from tests import factories
from tests.admin.conftest import signed_in
from tests.admin.pages import page_of, text_of
from tests.admin.test_tenant_scope import limited
from tests.vectors import embed_all

pytestmark = pytest.mark.django_db
ALL = ("view_enduser", "view_fact", "view_episode", "view_session")
QUESTION = "Where does she live?"


@pytest.fixture
def person() -> EndUser:
    person = factories.end_user(external_id="usr_1000")
    session = factories.session(person, [("user", "I live in Leiden"), ("assistant", "Noted.")])
    factories.fact(person, "She lives in Leiden")
    factories.fact(person, "Allergic to peanuts")
    factories.episode(session, "Told where she lives")
    embed_all(person)
    return person


def ask(client: Client, person: EndUser, **over: Any) -> Any:
    form = {"tenant": str(person.tenant_id), "user_id": person.external_id, "query": QUESTION, "max_tokens": "2000"}
    return client.post(reverse("admin:recalled"), {**form, **over})


def hits(response: Any) -> list[RankedMemory]:
    return [hit for _, _, hits in response.context_data["ranking"] for hit in hits]


def test_it_begins_with_the_person_that_a_link_names(admin: Client, person: EndUser) -> None:
    page: Any = admin.get(reverse("admin:recalled"), {"person": str(person.pk)})
    assert page.context_data["form"].initial["user_id"] == "usr_1000"
    assert "Why did the agent say that?" in text_of(page)
    for nobody in ("", "x", "00000000-0000-7000-8000-000000000000"):
        assert admin.get(reverse("admin:recalled"), {"person": nobody}).status_code == 200


@pytest.mark.parametrize("flagged", [True, False])
def test_a_turn_that_no_context_recalls_is_marked(admin: Client, person: EndUser, *, flagged: bool) -> None:
    person.turns.filter(role="assistant").update(flagged=flagged)
    page = ask(admin, person, query="Noted")
    turns = [hit.memory for hit in hits(page) if hit.memory.kind == "turn"]
    assert "Noted." in [turn.text for turn in turns]
    assert ("Looks like an instruction to a model" in text_of(page)) is flagged


def test_hits_are_those_of_a_search_in_their_order(admin: Client, person: EndUser) -> None:
    ranked = hits(ask(admin, person))
    search = SearchRequest("usr_1000", QUESTION, ("fact",), explain=True)
    found = retrieval.search(tenant=person.tenant, search=search, now=timezone.now(), noted=False)
    assert [hit.memory.id for hit in ranked if hit.memory.kind == "fact"] == [one.id for one in found.results]
    assert {hit.memory.kind for hit in ranked} == {"fact", "episode", "turn"}


def test_the_parts_of_a_score_add_up_to_it(admin: Client, person: EndUser) -> None:
    for hit in hits(ask(admin, person)):
        assert sum(part.adds for part in hit.parts) == pytest.approx(hit.memory.score, abs=0.002)
        assert all(0 < part.share <= 1 for part in hit.parts)
        assert sum(part.share for part in hit.parts) <= 1.001


def test_each_hit_says_how_strong_it_is_as_evidence(admin: Client, person: EndUser) -> None:
    page = ask(admin, person)
    levels = {hit.memory.text: str(hit.evidence) for hit in hits(page) if hit.memory.kind == "fact"}
    assert levels == {"She lives in Leiden": "strong", "Allergic to peanuts": "none"}
    assert "Evidence" in text_of(page)


def test_what_takes_away_is_told_too_and_has_no_bar() -> None:
    parts = {"vector": -0.1, "lexical": 0.0, "confidence": 1.0}
    found = Finding("fact", uuid.uuid4(), "Likes tea", -0.02, parts, factories.NOW)
    shown = [(part.name, round(part.adds, 3), part.share) for part in parts_of(found, 0.16)]
    assert shown == [("vector", -0.1, 0.0), ("confidence", 0.08, 0.5)]
    assert [part.share for part in parts_of(found, 0.0)] == [0.0, 0.0]


def test_each_hit_says_what_became_of_it(admin: Client, person: EndUser) -> None:
    response = ask(admin, person)
    assert all(hit.outcome["tokens"] for hit in hits(response) if hit.memory.kind == "fact")
    assert "In context" in text_of(response)
    tight = ask(admin, person, max_tokens="60")
    assert "budget" in {hit.outcome.get("reason") for hit in hits(tight)}
    assert "No space left" in text_of(tight)


def test_what_does_not_hold_any_more_says_so(admin: Client, person: EndUser) -> None:
    fact = factories.fact(person, "Lives in Leiden")
    assert "Outdated" not in text_of(ask(admin, person))
    forget_fact(fact_id=fact.pk, tenant=None, actor=Actor(kind=ActorKind.OPERATOR, id="7"), now=timezone.now())
    page = ask(admin, person)
    assert [hit.memory.kind for hit in hits(page) if hit.outcome.get("reason") == "outdated"] == ["turn"]
    assert "Outdated" in text_of(page)


def test_an_agent_is_shown_what_it_may_see(admin: Client, person: EndUser) -> None:
    factories.fact(person, "She lives where the coach lives", agent_id="coach")
    assert "She lives where the coach lives" not in {hit.memory.text for hit in hits(ask(admin, person))}
    # Agents are named in lower case.
    assert "She lives where the coach lives" in {hit.memory.text for hit in hits(ask(admin, person, agent="Coach"))}


UNSERVED: list[tuple[dict[str, Any], str]] = [
    ({"status": "pending"}, "waits for review"),
    ({"status": "trashed"}, "In the trash"),
    ({"expires_at": factories.NOW}, "expired"),
    ({"confidence": 0.2}, "below the confidence for serving"),
    ({"agent_id": "tutor"}, "private to the agent tutor"),
    ({"allowed_users": ["somebody"]}, "for other end users only"),
    ({"allowed_roles": ["doctor"]}, "for other roles only"),
    # The person is among these users by an alias.
    ({"allowed_users": ["once"], "allowed_roles": ["doctor"]}, "for other roles only"),
]


def test_what_is_near_and_not_served_says_why(admin: Client, person: EndUser) -> None:
    factories.end_user(person.tenant, external_id="once", merged_into=person)
    for over, reason in UNSERVED:
        made = [factories.fact(person, text, **over) for text in ("She does live in Haarlem", "Plays the cello")]
        response = ask(admin, person)
        told = [(memory.text, memory.reason) for memory in response.context_data["unserved"]]
        assert told == [("She does live in Haarlem", reason)], over
        Fact.objects.filter(pk__in=[fact.pk for fact in made]).delete()
    assert "Similar wording, not served" in text_of(response)


def test_what_is_served_is_not_among_what_is_not(admin: Client, person: EndUser) -> None:
    factories.fact(person, "She does live in Haarlem", agent_id="tutor")
    assert ask(admin, person, agent="tutor").context_data["unserved"] == []
    assert ask(admin, person, agent="coach").context_data["unserved"] != []


def test_a_value_that_the_agent_heard_later_is_why_the_earlier_is_not_served(admin: Client, person: EndUser) -> None:
    stated = {"category": "identity", "key": "mooring"}
    factories.fact(person, "She does live in Haarlem", **stated, value="Haarlem", last_confirmed_at=factories.NOW)
    factories.fact(
        person,
        "She does live in Utrecht",
        **stated,
        value="Utrecht",
        agent_id="tutor",
        last_confirmed_at=factories.NOW + timedelta(hours=1),
    )
    unserved = ask(admin, person, agent="tutor").context_data["unserved"]
    assert [(memory.text, memory.reason) for memory in unserved] == [
        ("She does live in Haarlem", "another value was said later")
    ]


def test_asking_leaves_no_trace(admin: Client, person: EndUser) -> None:
    recalls.flush(now=timezone.now())
    ask(admin, person)
    assert recalls.flush(now=timezone.now()) == 0
    # The same search of an agent is noted.
    retrieval.search(tenant=person.tenant, search=SearchRequest("usr_1000", QUESTION), now=timezone.now())
    assert recalls.flush(now=timezone.now()) > 0


def test_a_hit_is_corrected_from_here(admin: Client, person: EndUser) -> None:
    [hit] = [hit for hit in hits(ask(admin, person)) if hit.memory.text == "She lives in Leiden"]
    form = {**hit.verbs["correct"].initial, "version": hit.memory.row.version, "category": "identity"}
    said = {"content": "She lives in Utrecht", "reason": "Phoned"}
    assert page_of(hit.memory.row, "correct") in text_of(ask(admin, person))
    # The page of a hit's form stays where it is; without a script the next one lists what still says it.
    answer = admin.post(page_of(hit.memory.row, "correct"), {**form, **said}, headers={"X-Fragment": "verb"})
    assert answer.status_code == 302
    assert "She lives in Utrecht" in {hit.memory.text for hit in hits(ask(admin, person))}


def test_verbs_are_offered_to_those_who_may_change_facts(person: EndUser, staff_who_may: Callable[..., Client]) -> None:
    reader, editor = staff_who_may(*ALL), staff_who_may(*ALL, "change_fact")
    assert not any(hit.verbs for hit in hits(ask(reader, person)))
    assert any(hit.verbs for hit in hits(ask(editor, person)))
    assert "data-verb" not in text_of(ask(reader, person))


def test_ids_of_fields_are_there_once(admin: Client, person: EndUser) -> None:
    page = text_of(ask(admin, person))
    names = [part.split('"')[0] for part in page.split(' id="')[1:]]
    assert len(names) == len(set(names)) > 10


def test_bad_input_is_refused(admin: Client, person: EndUser) -> None:
    for fault in ({"user_id": "nobody"}, {"tenant": "x"}, {"query": ""}, {"max_tokens": "-1"}, {"user_id": "a\x00b"}):
        assert ask(admin, person, **fault).status_code == 400, fault


def test_people_of_other_tenants_are_not_there(person: EndUser) -> None:
    operator = limited(factories.tenant())
    client = signed_in(operator)
    assert ask(client, person).status_code == 400
    page = text_of(client.get(reverse("admin:recalled"), {"person": str(person.pk)}))
    assert "usr_1000" not in page
    assert person.tenant.slug not in page
    operator.tenants.add(person.tenant)
    assert ask(client, person).status_code == 200


def test_it_needs_all_permissions(person: EndUser, staff_who_may: Callable[..., Client]) -> None:
    address = reverse("admin:recalled")
    assert staff_who_may(*ALL).get(address).status_code == 200
    for missing in ALL:
        assert staff_who_may(*set(ALL) - {missing}).get(address).status_code == 403
        assert ask(staff_who_may(*set(ALL) - {missing}), person).status_code == 403


def test_the_restricted_are_not_ranked(admin: Client, person: EndUser) -> None:
    EndUser.objects.update(restricted_at=timezone.now())
    response = ask(admin, person)
    assert hits(response) == []
    assert "is restricted" in text_of(response)


def test_a_fragment_is_given_to_a_script(admin: Client, person: EndUser) -> None:
    form = {"tenant": str(person.tenant_id), "user_id": "usr_1000", "query": QUESTION, "max_tokens": "2000"}
    fragment = text_of(admin.post(reverse("admin:recalled"), form, headers={"X-Fragment": "recalled"}))
    assert "<html" not in fragment
    assert "csrfmiddlewaretoken" in fragment


def test_it_takes_few_queries_however_much_is_found(
    admin: Client, person: EndUser, django_assert_max_num_queries: Any
) -> None:
    for number in range(30):
        factories.fact(person, f"She lives in house {number}")
        factories.episode(factories.session(person), f"She lives {number}")
    assert Fact.objects.count() > 30
    with django_assert_max_num_queries(45):
        ask(admin, person)


@pytest.fixture
def renamed(admin: Client, person: EndUser) -> EndUser:
    """The person under another id, to whom the one from before leads."""
    given: dict[str, Any] = {"actor": factories.COMMAND, "now": timezone.now()}
    return change_external_id(end_user=person, external_id="usr_2000", keeps_old=True, **given)


@pytest.mark.parametrize("user_id", ["usr_1000", "usr_2000"])
def test_texts_are_told_by_every_id_of_the_person(admin: Client, renamed: EndUser, user_id: str) -> None:
    response = ask(admin, renamed, user_id=user_id)
    assert response.context_data["person"] == renamed
    texts = {hit.memory.text for hit in hits(response)}
    assert "She lives in Leiden" in texts
    assert "" not in texts
    assert all(hit.memory.row for hit in hits(response))


def test_texts_are_told_after_a_merge(admin: Client, person: EndUser) -> None:
    other = factories.end_user(person.tenant, external_id="usr_7")
    merge_people(survivor=other.pk, merged=person.pk, actor=factories.COMMAND, now=timezone.now())
    embed_all(other)
    for user_id in ("usr_1000", "usr_7"):
        found = hits(ask(admin, other, user_id=user_id))
        assert {"She lives in Leiden", "Told where she lives"} <= {hit.memory.text for hit in found}
    # A link that names the id that only leads on begins with whom it leads to.
    page: Any = admin.get(reverse("admin:recalled"), {"person": str(person.pk)})
    assert page.context_data["form"].initial["user_id"] == "usr_7"


def test_what_has_nothing_to_do_with_the_query_says_so(admin: Client, person: EndUser) -> None:
    said = "In row {} of my garden I planted beans and sowed marigolds between them"
    factories.session(person, [("user", said.format(place)) for place in range(120)])
    factories.fact(person, "Sings in a choir on Thursdays")
    page = ask(admin, person, query="What is the boiling point of tungsten?")
    assert {hit.outcome["reason"] for hit in hits(page) if "choir" in hit.memory.text} == {"unrelated"}
    assert "Not related to the query" in text_of(page)
