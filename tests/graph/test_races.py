"""The graph on two connections at once: replacements, and a statement against an erasure."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from memories import invariants
from memories.curation.facts.adding import FactDraft, add_fact
from memories.curation.graph.stating import TripleDraft, TripleRelation, add_triple, supersede_triple
from memories.exceptions import PersonRestricted
from memories.models import CaseState, EndUser, GraphEntity, GraphTriple
from memories.privacy import running
from tests import factories
from tests.database import PATIENCE, at_once, blocked, held
from tests.factories import COMMAND, NOW
from tests.privacy.erased_world import erasure, stand_in

pytestmark = pytest.mark.django_db(transaction=True)
AT = NOW + timedelta(days=1)


@pytest.fixture
def person(db: None) -> EndUser:
    return factories.end_user(factories.tenant())


@pytest.fixture(autouse=True)
def ended_sound(db: None) -> Any:
    yield
    assert invariants.check() == []


def employer(name: str) -> TripleRelation:
    return TripleRelation("Max", "works_at", name)


def replace(person: EndUser, name: str) -> Any:
    own = EndUser.objects.select_related("tenant").get(pk=person.pk)
    draft = TripleDraft(employer(name))
    return supersede_triple(end_user=own, old=employer("Acme"), draft=draft, at=AT, actor=COMMAND, now=AT)


def open_ones(person: EndUser) -> list[str]:
    return list(GraphTriple.objects.filter(end_user=person).open().values_list("object__name", flat=True))


def test_of_two_replacements_one_takes_place(person: EndUser) -> None:
    factories.triple(person, "Max", "works_at", "Acme")
    outcomes = at_once(4, lambda number: replace(person, f"Company {number}"))
    assert sorted(type(one).__name__ for one in outcomes) == ["Conflict"] * 3 + ["WriteResult"]
    assert len(open_ones(person)) == 1
    assert GraphTriple.objects.get(object__name="Acme").valid_to == AT


def test_the_same_replacement_twice_takes_place_once(person: EndUser) -> None:
    factories.triple(person, "Max", "works_at", "Acme")
    outcomes: list[Any] = at_once(4, lambda _: replace(person, "NewCo"))
    assert sorted(one.is_new for one in outcomes) == [False, False, False, True]
    assert open_ones(person) == ["NewCo"]


def test_the_same_statement_at_once_is_one_triple(person: EndUser) -> None:
    def state(_: int) -> Any:
        own = EndUser.objects.select_related("tenant").get(pk=person.pk)
        return add_triple(end_user=own, draft=TripleDraft(employer("Acme")), actor=COMMAND, now=NOW)

    outcomes: list[Any] = at_once(4, state)
    assert sorted(one.is_new for one in outcomes) == [False, False, False, True]
    assert len({one.row.pk for one in outcomes}) == 1
    assert GraphEntity.objects.count() == 2


def test_a_fact_that_is_replaced_twice_at_once_leaves_one_open(person: EndUser) -> None:
    def state(number: int) -> Any:
        own = EndUser.objects.select_related("tenant").get(pk=person.pk)
        draft = FactDraft(f"Lives in City {number}", "identity", key="home_city", value=f"City {number}")
        return add_fact(end_user=own, draft=draft, actor=COMMAND, now=AT + timedelta(minutes=number))

    state(9)
    at_once(2, state)
    assert GraphTriple.objects.count() == 3
    assert len(open_ones(person)) == 1


class TestErasure:
    @pytest.fixture(autouse=True)
    def alone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        stand_in(monkeypatch)

    def test_waits_for_a_replacement_and_takes_it_along(self, person: EndUser) -> None:
        factories.triple(person, "Max", "works_at", "Acme")
        other = factories.triple(factories.end_user(person.tenant), "Max", "works_at", "Acme")

        def erase() -> None:
            case = running.carry_out(case_id=erasure(person).pk, now=timezone.now(), wait_seconds=PATIENCE)
            assert case.state == CaseState.COMPLETED, (case.failure, case.findings)

        with held(lambda: replace(person, "NewCo")):
            going = blocked(erase)
        going.result(PATIENCE)
        assert GraphTriple.objects.get() == other
        assert GraphEntity.objects.exclude(end_user=other.end_user).count() == 0

    def test_a_replacement_that_waited_for_it_stores_nothing(self, person: EndUser) -> None:
        factories.triple(person, "Max", "works_at", "Acme")

        def restrict() -> None:
            # As the first step of an erasure does it.
            EndUser.objects.select_for_update().get(pk=person.pk)
            EndUser.objects.filter(pk=person.pk).update(restricted_at=timezone.now())

        with held(restrict):
            waiting = blocked(lambda: replace(person, "NewCo"))
        with pytest.raises(PersonRestricted):
            waiting.result(PATIENCE)
        assert open_ones(person) == ["Acme"]
