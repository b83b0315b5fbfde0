"""Triples of facts follow every change of them."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from memories import invariants
from memories.curation.facts.adding import FactDraft, add_fact
from memories.curation.facts.editing import edit_fact
from memories.curation.facts.forgetting import delete_fact, forget_fact
from memories.curation.facts.restoring import restore_fact
from memories.curation.people.clearing import clear_memories
from memories.curation.people.merging.merge import merge_people
from memories.curation.reverting import revert
from memories.curation.statements.provenance import Provenance
from memories.forgetting import trash
from memories.models import ChangeSet, EndUser, Fact, GraphEntity, GraphTriple
from tests import factories
from tests.factories import COMMAND, NOW

DAY = timedelta(days=1)
SINCE = datetime(2024, 3, 1, tzinfo=UTC)


@pytest.fixture
def person(db: None) -> EndUser:
    return factories.end_user(factories.tenant(), external_id="u1")


@pytest.fixture(autouse=True)
def ended_sound(db: None) -> Any:
    yield
    assert [one for one in invariants.check() if "triple" in one.name or "graph" in one.name] == []


def state(person: EndUser, value: str, *, since: datetime = SINCE, now: datetime = NOW, **over: Any) -> Fact:
    draft = FactDraft(f"Lives in {value}", "identity", key="home_city", value=value, **over)
    return add_fact(end_user=person, draft=draft, actor=COMMAND, now=now, provenance=Provenance(valid_from=since)).row


def told(person: EndUser) -> list[tuple[str, str, str, datetime | None, datetime | None]]:
    rows = GraphTriple.objects.filter(end_user=person).order_by("dated_at", "pk")
    return [(one.subject.name, one.predicate, one.object.name, one.valid_from, one.valid_to) for one in rows]


def test_a_fact_opens_a_triple_and_its_successor_ends_it(person: EndUser) -> None:
    first = state(person, "Leiden")
    assert told(person) == [("user", "home_city", "Leiden", SINCE, None)]
    second = state(person, "Utrecht", since=SINCE + 100 * DAY, now=NOW + DAY)
    assert told(person) == [
        ("user", "home_city", "Leiden", SINCE, SINCE + 100 * DAY),
        ("user", "home_city", "Utrecht", SINCE + 100 * DAY, None),
    ]
    assert [one.fact for one in GraphTriple.objects.order_by("dated_at")] == [first, second]


def test_an_entity_stays_no_longer_than_what_names_it(person: EndUser) -> None:
    fact, other = state(person, "Leiden"), state(person, "Leiden", agent_id="nova")

    def entities() -> set[str]:
        return set(GraphEntity.objects.values_list("name", flat=True))

    edit_fact(fact_id=fact.pk, tenant=None, changes={"value": "Utrecht"}, actor=COMMAND, now=NOW + DAY)
    assert entities() == {"user", "Leiden", "Utrecht"}
    edit_fact(fact_id=other.pk, tenant=None, changes={"value": "Delft"}, actor=COMMAND, now=NOW + DAY)
    assert entities() == {"user", "Delft", "Utrecht"}
    for one in (fact, other):
        delete_fact(fact_id=one.pk, tenant=None, actor=COMMAND, now=NOW + DAY)
    assert entities() == set()


def test_without_key_or_value_there_is_none(person: EndUser) -> None:
    add_fact(end_user=person, draft=FactDraft("Likes tea", "preference"), actor=COMMAND, now=NOW)
    add_fact(end_user=person, draft=FactDraft("Drinks tea", "preference", key="drink"), actor=COMMAND, now=NOW)
    assert told(person) == []
    assert GraphEntity.objects.count() == 0


def test_an_edit_is_followed_and_a_lost_value_removes_it(person: EndUser) -> None:
    fact = state(person, "Leiden")
    given: dict[str, Any] = {"fact_id": fact.pk, "tenant": person.tenant, "actor": COMMAND, "now": NOW}
    edit_fact(changes={"value": "Delft"}, **given)
    assert [row[2] for row in told(person)] == ["Delft"]
    edit_fact(changes={"value": ""}, **given)
    assert told(person) == []
    edit_fact(changes={"value": "Delft", "expires_at": NOW + DAY}, **given)
    assert [row[2:] for row in told(person)] == [("Delft", SINCE, NOW + DAY)]


def test_forgotten_it_is_removed_and_restored_it_is_back(person: EndUser) -> None:
    fact = state(person, "Leiden")
    given: dict[str, Any] = {"fact_id": fact.pk, "tenant": person.tenant, "actor": COMMAND, "now": NOW}
    forget_fact(**given)
    assert told(person) == []
    restore_fact(**given)
    assert [row[2] for row in told(person)] == ["Leiden"]
    delete_fact(**given)
    assert told(person) == []


def test_a_pass_that_trashes_facts_removes_their_triples(person: EndUser) -> None:
    fact, kept = state(person, "Leiden", expires_at=NOW + DAY), state(person, "Utrecht", agent_id="travel")
    work: Any = SimpleNamespace(row=factories.decay_pass(person.tenant))
    trash._trash_facts(work, trash.EXPIRED[0], [fact.pk], now=NOW + 2 * DAY)
    assert [one.fact for one in GraphTriple.objects.all()] == [kept]


def test_a_merge_moves_them_and_its_undo_parts_them(person: EndUser) -> None:
    other = factories.end_user(person.tenant, external_id="u2")
    state(person, "Leiden"), state(other, "Utrecht")
    factories.triple(other, "Max", "works_at", "Acme")
    factories.triple(person, "max", "works_at", "ACME")
    factories.triple(other, "Max", "likes", "Chess")
    before = [sorted(row[:3] for row in told(one)) for one in (person, other)]
    changes = merge_people(survivor=person.pk, merged=other.pk, actor=COMMAND, now=NOW)
    # What both have openly stays once; the other is left with the alias.
    assert [row[2] for row in told(other)] == ["Acme"]
    assert {row[2] for row in told(person)} == {"Leiden", "Utrecht", "ACME", "Chess"}
    revert(change_set=changes.id, actor=COMMAND, now=NOW + DAY)
    assert [sorted(row[:3] for row in told(one)) for one in (person, other)] == before
    assert not GraphEntity.objects.filter(end_user=person, name="Chess").exists()


def test_clearing_takes_stated_ones_along_and_its_undo_brings_all_back(person: EndUser) -> None:
    state(person, "Leiden")
    factories.triple(person, "Max", "works_at", "Acme")
    clear_memories(end_user=person, actor=COMMAND, now=NOW)
    assert [(one.object.name, one.status) for one in GraphTriple.objects.all()] == [("Acme", "trashed")]
    revert(change_set=ChangeSet.objects.get(verb="clear").pk, actor=COMMAND, now=NOW + DAY)
    assert {(one.object.name, one.status) for one in GraphTriple.objects.all()} == {
        ("Acme", "active"), ("Leiden", "active"),
    }  # fmt: skip
