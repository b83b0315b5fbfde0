"""The statement written by hand serves the facts that FactQuerySet serves, in the same order."""

from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import product
from typing import Any

import pytest

from memories import conf
from memories.models import EndUser, Fact, FactVector, Tenant
from memories.retrieval import visible_facts
from memories.retrieval.fact_index import FactIndex
from memories.retrieval.visible_facts import Viewer
from tests import factories
from tests.factories import NOW
from tests.vectors import embed_all

pytestmark = pytest.mark.django_db
WAYS: dict[str, tuple[Any, ...]] = {
    "agent_id": ("", "planner", "other"),
    "scope": ("private", "share", "public"),
    "allowed_users": ([], ["u1"], ["u2", "u1"], ["u2"]),
    "allowed_roles": ([], ["doctor"], ["nurse", "doctor"], ["nurse"]),
}
KEPT_BACK_OR_NOT: list[dict[str, Any]] = [
    {"expires_at": NOW},
    {"expires_at": NOW + timedelta(seconds=1)},
    {"confidence": 0.6},
    {"confidence": 0.59},
    *({"status": status} for status in ("pending", "superseded", "rejected", "archived", "trashed")),
]
ASKERS = [
    Viewer(user, agent, roles)
    for user, agent, roles in product(("u1", "u2"), ("", "planner"), ((), ("doctor",), ("clerk", "nurse")))
]


@pytest.fixture
def person() -> EndUser:
    """With a fact of every way to be guarded, and some that time, status or doubt keep back."""
    person = factories.end_user(external_id="u1")
    for number, way in enumerate(product(*WAYS.values())):
        over = dict(zip(WAYS, way, strict=True))
        factories.fact(person, f"Fact {number}", created_at=NOW - timedelta(seconds=number // 2), **over)
    for number, kept in enumerate(KEPT_BACK_OR_NOT):
        factories.fact(person, f"Another {number}", **kept)
    factories.fact(factories.end_user(person.tenant, external_id="u2"), "Another's")
    published(person.tenant)
    return person


def published(tenant: Tenant) -> None:
    """Facts of other people of every way to be guarded, and those of people who may not be served; of two tenants."""
    neighbour = factories.end_user(tenant)
    for number, way in enumerate(product(*WAYS.values())):
        over = dict(zip(WAYS, way, strict=True))
        factories.fact(neighbour, f"Next door {number}", created_at=NOW - timedelta(seconds=number // 2), **over)
    for number, kept in enumerate(KEPT_BACK_OR_NOT):
        factories.fact(neighbour, f"Another next door {number}", scope="public", **kept)
    silent = [factories.end_user(tenant, restricted_at=NOW), factories.end_user(tenant, serve=False)]
    for owner in (*silent, factories.end_user(external_id="u1")):
        factories.fact(owner, "Unheard of", scope="public")


@pytest.mark.parametrize("asker", ASKERS)
def test_both_serve_the_same(person: EndUser, asker: Viewer) -> None:
    rules = conf.rules(person.tenant)
    facts = Fact.objects.active(now=NOW).filter(confidence__gte=rules.served_confidence)
    who: dict[str, Any] = {
        "user_id": asker.user_id,
        "person": person,
        "agent_id": asker.agent_id,
        "roles": list(asker.roles),
    }
    seen = facts.visible_to(**who)
    own, public = seen.of(person.tenant, person), seen.public_beside(person.tenant, person)
    expected = [fact.pk for fact in sorted((*own, *public), key=lambda fact: (fact.created_at, fact.pk), reverse=True)]
    assert 0 < own.count() < len(expected) < Fact.objects.count()
    assert {fact.scope for fact in public} == {"public"}
    assert not any("Unheard" in fact.content for fact in public)
    served = visible_facts.served(person, asker, rules=rules, now=NOW)
    indexed = visible_facts.open_index(person, asker, None, rules=rules, now=NOW).facts
    assert [fact.id for fact in served] == [fact.id for fact in indexed] == expected


def test_a_fact_is_written_with_what_it_is_weighed_by(person: EndUser) -> None:
    fact = factories.fact(person, "Ships with DHL", category="correction", source_error="UPS", mentions=3)
    other = Fact.objects.get(content="Another's")
    written = visible_facts.with_texts(person, [fact.pk, other.pk])
    assert list(written) == [fact.pk]
    assert written[fact.pk].text == (fact.pk, "correction", fact.confidence, "Ships with DHL", "UPS")
    for name in ("first_observed_at", "importance", "mentions", "last_confirmed_at", "last_recalled_at", "forget_at"):
        assert getattr(written[fact.pk].fact, name) == getattr(fact, name)


def edited(fact: Fact) -> None:
    fact.say("Ships with UPS")
    fact.save()


def embedded_anew(fact: Fact) -> None:
    FactVector.objects.filter(fact=fact).update(vector=[-number for number in FactVector.objects.get(fact=fact).vector])


def published_next_door(fact: Fact) -> None:
    factories.fact(factories.end_user(fact.tenant), "Closed on Mondays", scope="public")


def a_day_later(fact: Fact) -> datetime:
    return NOW + timedelta(days=1)


CHANGES: list[Callable[[Fact], Any]] = [
    edited,
    embedded_anew,
    published_next_door,
    a_day_later,
    lambda fact: fact.delete(),
    lambda fact: Fact.objects.filter(pk=fact.pk).update(status="archived"),
    lambda fact: Fact.objects.filter(pk=fact.pk).update(last_recalled_at=NOW),
    lambda fact: factories.fact(fact.end_user, "Likes tea"),
    lambda fact: FactVector.objects.filter(fact=fact).delete(),
    lambda fact: Tenant.objects.filter(pk=fact.tenant_id).update(numbers={"half_life_days": 5}),
]


@pytest.mark.parametrize("change", CHANGES)
def test_an_index_is_kept_until_something_changes(change: Callable[[Fact], Any]) -> None:
    person = factories.end_user(external_id="u1")
    fact = factories.fact(person, "Ships with DHL")
    factories.fact(person, "Lives in Leiden")
    space = embed_all(person)

    def opened(now: datetime) -> FactIndex:
        rules = conf.rules(Tenant.objects.get(pk=person.tenant_id))
        return visible_facts.open_index(person, Viewer("u1"), space, rules=rules, now=now)

    first = opened(NOW)
    assert first.units.vectors is not None
    assert opened(NOW) is first
    changed = change(fact)
    now = changed if isinstance(changed, datetime) else NOW
    second = opened(now)
    assert second is not first
    assert opened(now) is second


def test_another_viewer_has_another_index(person: EndUser) -> None:
    rules = conf.rules(person.tenant)
    indexes = {asker: visible_facts.open_index(person, asker, None, rules=rules, now=NOW) for asker in ASKERS}
    assert len({id(index) for index in indexes.values()}) == len(ASKERS)
    for asker, index in indexes.items():
        served = visible_facts.served(person, asker, rules=rules, now=NOW)
        assert [fact.id for fact in index.facts] == [fact.id for fact in served]
        assert visible_facts.open_index(person, asker, None, rules=rules, now=NOW) is index
