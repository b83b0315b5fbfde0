"""Public facts: told to all people of the tenant, and nothing of whose they are or where they were said."""

from typing import Any

import pytest

from memories.context import context
from memories.context.context import ContextRequest
from memories.models import EndUser, Fact
from memories.retrieval import search
from memories.retrieval.hits import Finding, SearchFilters
from memories.retrieval.search import SearchRequest
from tests import factories
from tests.factories import NOW
from tests.vectors import embed_all

pytestmark = pytest.mark.django_db
TEXT = "The canteen serves lunch at noon"


@pytest.fixture
def owner() -> EndUser:
    return factories.end_user(external_id="owner-4711")


@pytest.fixture
def reader(owner: EndUser) -> EndUser:
    return factories.end_user(owner.tenant)


def publish(owner: EndUser, content: str = TEXT, **over: Any) -> Fact:
    """A public fact with evidence and a quote."""
    session = factories.session(owner, session_id="s-4711")
    fact = factories.fact(owner, content, **{"scope": "public", "binding": True, "raw": "lunch at noon", **over})
    factories.evidence(fact, session.turns.get(), "lunch at noon")
    return fact


def told(person: EndUser, query: str = "", **over: Any) -> str:
    request = ContextRequest(person.external_id, query=query, **over)
    return context.build(tenant=person.tenant, request=request, now=NOW).memory


def found(person: EndUser, query: str = "When is lunch?", **over: Any) -> list[Finding]:
    wanted = SearchRequest(person.external_id, query, kinds=("fact",), **over)
    return search.search(tenant=person.tenant, search=wanted, now=NOW).results


def is_told(person: EndUser, content: str = TEXT) -> set[bool]:
    """Whether contexts with and without a question, and searches with and without a filter, tell it."""
    lunch = SearchFilters(category="knowledge")
    ways = [told(person), told(person, "When is lunch?")]
    ways += ["\n".join(one.text for one in results) for results in (found(person), found(person, filters=lunch))]
    return {content in way for way in ways}


@pytest.mark.parametrize("query", ["", "When is lunch?"])
def test_what_ones_own_fact_says_too_is_told_once(owner: EndUser, reader: EndUser, query: str) -> None:
    publish(owner, confidence=1.0)
    factories.fact(reader, "Lives in Leiden")
    assert told(reader, query).count(TEXT) == 1
    factories.fact(reader, TEXT, category="preference")
    assert told(reader, query).count(TEXT) == 1
    assert "Lives in Leiden" in told(reader, query)


@pytest.mark.parametrize("scope", ["public", "share", "private"])
def test_a_public_fact_is_told_to_others_and_no_other_is(owner: EndUser, reader: EndUser, scope: str) -> None:
    publish(owner, scope=scope)
    assert is_told(owner) == {True}
    assert is_told(reader) == {scope == "public"}
    assert is_told(factories.end_user()) == {False}


@pytest.mark.parametrize("kept_back", [{"status": "pending"}, {"confidence": 0.5}, {"allowed_users": ["somebody"]}])
def test_gates_hold_for_it_too(owner: EndUser, reader: EndUser, kept_back: dict[str, Any]) -> None:
    """The whole rule is in test_visible_facts.py."""
    publish(owner, **kept_back)
    assert is_told(reader) == {False}


def test_whom_it_names_may_read_it(owner: EndUser, reader: EndUser) -> None:
    publish(owner, allowed_users=[reader.external_id], allowed_roles=["doctor"])
    assert TEXT in told(reader, roles=("doctor",))
    assert [one.text for one in found(reader, roles=("doctor",))] == [TEXT]
    assert TEXT not in told(reader)
    assert TEXT not in told(factories.end_user(owner.tenant), roles=("doctor",))


@pytest.mark.parametrize("change", [{"restricted_at": NOW}, {"serve": False}])
def test_it_is_silent_with_its_owner(owner: EndUser, reader: EndUser, change: dict[str, Any]) -> None:
    publish(owner)
    assert is_told(reader) == {True}
    EndUser.objects.filter(pk=owner.pk).update(**change)
    assert is_told(reader) == {False}


def test_it_goes_with_its_owner(owner: EndUser, reader: EndUser) -> None:
    publish(owner)
    owner.delete()
    assert is_told(reader) == {False}


def test_a_finding_tells_nothing_of_its_owner(owner: EndUser, reader: EndUser) -> None:
    publish(owner)
    (finding,) = found(reader)
    (own,) = found(owner)
    assert (finding.evidence, finding.session_id, finding.turn_numbers) == ([], None, [])
    assert (own.evidence[0].session_id, own.session_id) == ("s-4711", "s-4711")
    assert "4711" not in str(finding)
    assert found(reader, filters=SearchFilters(session_id="s-4711")) == []
    assert len(found(owner, filters=SearchFilters(session_id="s-4711"))) == 1


def test_facts_of_both_are_told_in_one_order(owner: EndUser, reader: EndUser) -> None:
    """What operators protect stands first, as it does in every context."""
    publish(owner, confidence=0.8)
    factories.fact(reader, "Likes lunch", confidence=0.9)
    factories.fact(reader, "Sleeps", confidence=0.7)
    lines = [line.split("] ")[1] for line in told(reader).splitlines() if line.startswith("- [")]
    assert lines == [TEXT, "Likes lunch", "Sleeps"]


def test_it_is_found_by_its_meaning_and_anew_after_a_change(owner: EndUser, reader: EndUser) -> None:
    fact = publish(owner)
    factories.fact(reader, "Owns a bicycle")
    assert [one.score_parts["vector"] for one in found(reader) if one.id == fact.pk] == [0.0]
    embed_all(owner)
    assert [one.score_parts["vector"] for one in found(reader) if one.id == fact.pk] > [0.1]
    assert found(reader)[0].id == fact.pk
    Fact.objects.filter(pk=fact.pk).update(scope="private")
    assert [one.text for one in found(reader)] == ["Owns a bicycle"]
