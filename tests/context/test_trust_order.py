"""Contexts tell what operators and the person said before anything that others said, however much that is."""

from itertools import product
from typing import Any

import pytest

from memories.context import context
from memories.context.context import ContextRequest
from memories.models import EndUser, Fact
from tests import factories
from tests.factories import NOW

pytestmark = pytest.mark.django_db
CATEGORIES = ("correction", "preference", "constraint", "knowledge")
OWN = {f"My {category} of trust {trust}" for category, trust in product(CATEGORIES, ("user", "operator"))}
QUERIES = ["", "Which poison tea does the person prefer?"]


@pytest.fixture
def person() -> EndUser:
    """Eight facts of the person and of operators, and behind them in time a hundred surer ones that others said."""
    person = factories.end_user(factories.tenant(trust_assistant=True))
    for category, trust in product(CATEGORIES, ("user", "operator")):
        factories.fact(person, f"My {category} of trust {trust}", category=category, trust=trust, confidence=0.7)
    for number, (category, trust) in enumerate(product(CATEGORIES * 13, ("assistant", "tool"))):
        fact = {"category": category, "trust": trust, "confidence": 1.0, "importance": 1.0}
        factories.fact(person, f"Prefers poison tea {number}", **fact)
    return person


def told(person: EndUser, **over: Any) -> list[str]:
    """The facts of a context in the order in which they claim room."""
    request = ContextRequest(person.external_id, include=frozenset({"facts"}), fill="budget", **over)
    built = context.build(tenant=person.tenant, request=request, now=NOW)
    texts = {str(pk): text for pk, text in Fact.objects.values_list("pk", "content")}
    return [texts[item["id"]] for item in built.items]


@pytest.mark.parametrize("query", QUERIES)
def test_what_is_trusted_comes_first_in_every_budget(person: EndUser, query: str) -> None:
    everything = told(person, query=query, max_tokens=8000)
    assert set(everything[:8]) == OWN
    assert len(everything) > 20
    for budget in (60, 100, 150, 200, 400):
        some = told(person, query=query, max_tokens=budget)
        assert some
        assert some == everything[: len(some)]
    # A limit leaves out the others: two of knowledge are the only ones of OWN that are ranked.
    assert set(told(person, query=query, limits={"facts": 2}, max_tokens=8000)[:8]) == OWN


@pytest.mark.parametrize("query", QUERIES)
def test_without_trust_the_others_would_crowd_them_out(person: EndUser, query: str) -> None:
    """The control: the same facts, all of one trust."""
    Fact.objects.update(trust="user")
    assert not OWN.intersection(told(person, query=query, max_tokens=200))


def test_standing_facts_of_others_are_told_beyond_the_limit(person: EndUser) -> None:
    """As operators approve them one by one: they are served, behind what the person said."""
    Fact.objects.filter(content__startswith="Prefers").delete()
    factories.fact(person, "Likes cake", category="preference", trust="assistant")
    factories.fact(person, "Lives in Leiden", category="knowledge", trust="assistant")
    everything = told(person, limits={"facts": 2})
    assert set(everything[:8]) == OWN
    assert everything[8:] == ["Likes cake"]


def test_among_equals_nothing_changes(person: EndUser) -> None:
    """One trust, whichever it is, gives one order."""
    orders = []
    for trust in ("user", "operator"):
        Fact.objects.update(trust=trust)
        orders.append(told(person, max_tokens=8000))
    assert orders[0] == orders[1]
