"""The statements serve the facts that a plain reading of the rule serves (rules.md, 5.8 and 8.2), in its order."""

from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import product
from typing import Any

import pytest

from memories import conf
from memories.models import EndUser, Fact, FactVector, Tenant
from memories.models.memories.visibility import Viewer
from memories.retrieval import visible_facts
from memories.retrieval.fact_index import FactIndex
from tests import factories
from tests.factories import NOW
from tests.vectors import embed_all

pytestmark = pytest.mark.django_db
WAYS: dict[str, tuple[Any, ...]] = {
    "agent_id": ("", "planner", "other"),
    "scope": ("private", "share", "public"),
    "allowed_users": ([], ["u1"], ["u2", "u1-once"], ["u2"]),
    "allowed_roles": ([], ["doctor"], ["nurse", "doctor"], ["nurse"]),
}
EARLIER = NOW - timedelta(days=5)
KEPT_BACK_OR_NOT: list[dict[str, Any]] = [
    {"expires_at": NOW},
    {"expires_at": NOW + timedelta(seconds=1)},
    {"confidence": 0.6},
    {"confidence": 0.59},
    *({"status": status} for status in ("pending", "superseded", "rejected", "archived", "trashed")),
    {"valid_from": EARLIER},
    {"valid_from": EARLIER, "expires_at": EARLIER},
    {"valid_from": EARLIER, "valid_to": EARLIER},
    *(
        {"valid_from": EARLIER, "valid_to": NOW, "status": status}
        for status in ("active", "pending", "superseded", "rejected", "archived", "trashed")
    ),
]
ASKERS = [
    Viewer(agent, roles, as_of)
    for agent, roles, as_of in product(("", "planner"), ((), ("doctor",), ("clerk", "nurse")), (None, EARLIER))
]


@pytest.fixture
def person() -> EndUser:
    """With a fact of every way to be guarded, and some that time, status or doubt keep back."""
    person = factories.end_user(external_id="u1")
    factories.end_user(person.tenant, external_id="u1-once", merged_into=person)
    for number, way in enumerate(product(*WAYS.values())):
        over = dict(zip(WAYS, way, strict=True))
        factories.fact(
            person, f"Fact {number}", created_at=NOW - timedelta(seconds=number // 2), valid_from=EARLIER, **over
        )
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
        factories.fact(
            neighbour,
            f"Next door {number}",
            created_at=NOW - timedelta(seconds=number // 2),
            valid_from=EARLIER,
            **over,
        )
    for number, kept in enumerate(KEPT_BACK_OR_NOT):
        factories.fact(neighbour, f"Another next door {number}", scope="public", **kept)
    silent = [factories.end_user(tenant, restricted_at=NOW), factories.end_user(tenant, serve=False)]
    for owner in (*silent, factories.end_user(external_id="u1")):
        factories.fact(owner, "Unheard of", scope="public")


def may_see(person: EndUser, asker: Viewer, fact: Fact) -> bool:
    """The rule in plain words, beside the one in models/memories/visibility.py."""
    owner, moment = fact.end_user, asker.as_of or NOW
    lasted = fact.status == "active"
    if asker.as_of and (lasted or (fact.status in ("superseded", "archived") and fact.valid_to)):
        lasted = fact.valid_from <= moment and (fact.valid_to is None or fact.valid_to > moment)
    published = fact.tenant == person.tenant and fact.scope == "public" and owner.serve and not owner.restricted_at
    return (
        (owner == person or published)
        and lasted
        and (fact.expires_at is None or fact.expires_at > moment)
        and fact.confidence >= 0.6
        and (fact.scope != "private" or fact.agent_id in ("", asker.agent_id))
        and (not fact.allowed_users or not {"u1", "u1-once"}.isdisjoint(fact.allowed_users))
        and (not fact.allowed_roles or not set(asker.roles).isdisjoint(fact.allowed_roles))
    )


def test_all_serve_what_the_rule_says(person: EndUser) -> None:
    facts = list(Fact.objects.select_related("end_user", "tenant").order_by("-first_observed_at", "-id"))
    for asker in ASKERS:
        assert_served(person, asker, facts)


def assert_served(person: EndUser, asker: Viewer, facts: list[Fact]) -> None:
    rules = conf.rules(person.tenant)
    expected = [fact.pk for fact in facts if may_see(person, asker, fact)]
    own = [fact.pk for fact in facts if fact.end_user == person and fact.pk in expected]
    assert 0 < len(own) < len(expected) < len(facts)
    served = visible_facts.served(person, asker, rules=rules, now=NOW)
    indexed = visible_facts.open_index(person, asker, None, rules=rules, now=NOW).facts
    assert [fact.id for fact in served] == [fact.id for fact in indexed] == expected
    ordered = Fact.objects.order_by("-first_observed_at", "-id")
    lasting = ordered.held_at(asker.as_of) if asker.as_of else ordered.active(now=NOW)
    seen = lasting.filter(confidence__gte=0.6).visible_to(person, agent_id=asker.agent_id, roles=asker.roles)
    assert [fact.pk for fact in seen.of(person.tenant, person)] == own
    public = [fact.pk for fact in seen.public_beside(person.tenant, person)]
    assert public == [pk for pk in expected if pk not in own]


def test_a_fact_is_written_with_what_it_is_weighed_by(person: EndUser) -> None:
    fact = factories.fact(person, "Ships with DHL", category="correction", source_error="UPS", mentions=3)
    other = Fact.objects.get(content="Another's")
    written = visible_facts.with_texts(person, [fact.pk, other.pk])
    assert list(written) == [fact.pk]
    assert written[fact.pk].text == (fact.pk, "correction", fact.confidence, "Ships with DHL", "UPS")
    for name in ("first_observed_at", "importance", "mentions", "last_confirmed_at", "last_recalled_at", "forget_at"):
        assert getattr(written[fact.pk].fact, name) == getattr(fact, name)


def edited(fact: Fact) -> None:
    fact.set_text("Ships with UPS")
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
        return visible_facts.open_index(person, Viewer(), space, rules=rules, now=now)

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
        # An index of the past is not kept.
        again = visible_facts.open_index(person, asker, None, rules=rules, now=NOW)
        assert (again is index) is (asker.as_of is None)
        served = visible_facts.served(person, asker, rules=rules, now=NOW)
        assert [fact.id for fact in index.facts] == [fact.id for fact in served]
