"""An operator takes back what a key deleted at once, on the page where clearings are taken back."""

import pytest

from memories import conf
from memories.audit import Actor
from memories.curation.facts.forgetting import forget_fact
from memories.curation.facts.many import forget_facts, look
from memories.models import ActorKind, ChangeSet, EndUser, Fact, FactRefusal
from tests import factories
from tests.admin.conftest import signed_in
from tests.admin.pages import page_of, text_of
from tests.factories import NOW

pytestmark = pytest.mark.django_db


@pytest.fixture
def key(person: EndUser) -> Actor:
    return Actor(kind=ActorKind.KEY, id=str(factories.api_key(person.tenant)[0].pk))


@pytest.fixture
def person() -> EndUser:
    person = factories.end_user()
    for city in ("Leiden", "Delft"):
        factories.fact(person, f"Knows {city}", category="goal", key=f"knows {city}", value=city)
    return person


def deleted(person: EndUser, key: Actor) -> ChangeSet:
    facts = Fact.objects.filter(end_user=person)
    forget_facts(
        end_user=person, facts=facts, token=look(facts, rules=conf.rules(person.tenant)).token, actor=key, now=NOW
    )
    return ChangeSet.objects.get()


def statuses() -> list[str]:
    return list(Fact.objects.order_by("content").values_list("status", flat=True))


def test_all_of_it_comes_back_with_its_refusals(person: EndUser, key: Actor) -> None:
    made = deleted(person, key)
    assert (made.verb, made.actor_kind, made.end_user, made.counts) == ("forget", "key", person, {"facts": 2})
    assert (statuses(), FactRefusal.objects.count()) == (["trashed", "trashed"], 4)
    admin, address = signed_in(factories.operator(is_superuser=True)), page_of(person, "clear")
    assert f'name="undo" value="{made.pk}"' in text_of(admin.get(address))
    admin.post(address, {"undo": made.pk})
    assert (statuses(), FactRefusal.objects.count()) == (["active", "active"], 0)
    assert "already undone" in text_of(admin.post(address, {"undo": made.pk}, follow=True))


def test_what_came_since_stays(person: EndUser, key: Actor) -> None:
    made = deleted(person, key)
    factories.fact(person, "Knows Ghent instead", category="goal", key="knows Delft", value="Ghent")
    admin = signed_in(factories.operator(is_superuser=True))
    admin.post(page_of(person, "clear"), {"undo": made.pk})
    assert sorted(Fact.objects.filter(status="active").values_list("content", flat=True)) == [
        "Knows Ghent instead",
        "Knows Leiden",
    ]


def test_of_one_that_a_key_deletes_nothing_is_kept(person: EndUser, key: Actor) -> None:
    fact = Fact.objects.filter(content="Knows Delft").get()
    forget_fact(fact_id=fact.pk, tenant=person.tenant, actor=key, now=NOW)
    assert not ChangeSet.objects.exists()
