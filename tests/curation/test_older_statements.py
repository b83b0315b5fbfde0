"""A statement that rests on turns from before what is known ends before it, in whatever order they are stated."""

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memories import invariants
from memories.audit import Actor
from memories.curation.facts.adding import FactDraft, add_fact
from memories.curation.rollback.roll_back import roll_back
from memories.curation.rollback.selection import Selector
from memories.curation.statements.provenance import Provenance
from memories.curation.writing import WriteResult
from memories.models import ActorKind, EndUser, Fact, FactEvidence, ReviewItem, Turn
from tests import factories
from tests.database import PATIENCE, blocked, held

pytestmark = pytest.mark.django_db
START = datetime(2023, 1, 1, tzinfo=UTC)
CITIES = ("Leiden", "Utrecht", "Delft")
KEY = Actor(kind=ActorKind.KEY, id=str(uuid.UUID(int=7)))


def day(number: int) -> datetime:
    return START + timedelta(days=number)


def turn_of(person: EndUser, number: int) -> Turn:
    session = factories.session(person, [("user", "I told you where I live")], session_id=f"s{number}-{uuid.uuid4()}")
    session.turns.update(timestamp=day(number), created_at=timezone.now())
    return session.turns.get()


def state(person: EndUser, city: str, *numbers: int, actor: Actor = KEY, **over: Any) -> WriteResult[Fact]:
    """State that the person lives there, citing a turn of each of these days; none: now."""
    draft = FactDraft(f"Lives in {city}", "identity", key="city", value=city, **over)
    provenance = Provenance(evidence=[turn_of(person, number).pk for number in numbers])
    return add_fact(end_user=person, draft=draft, actor=actor, now=timezone.now(), provenance=provenance)


def since(moment: datetime | None) -> int | None:
    return (moment - START).days if moment else None


def history(person: EndUser) -> list[tuple[Any, ...]]:
    """Without the trash, in the order of the days: value, status, since, until, successor, days of the evidence."""
    rows = Fact.objects.filter(end_user=person).exclude(status="trashed").select_related("superseded_by")
    return [
        (
            row.value,
            row.status,
            since(row.valid_from),
            since(row.valid_to),
            row.superseded_by and row.superseded_by.value,
            sorted(since(turn.timestamp) or 0 for turn in Turn.objects.filter(pk__in=row.evidence.values("turn"))),
        )
        for row in rows.order_by("valid_from", "pk")
    ]


def staff() -> Actor:
    return Actor.operator(factories.operator())


@pytest.mark.parametrize("by", ["key", "operator"])
def test_it_ends_where_the_newer_one_begins(person: EndUser, by: str) -> None:
    newer = state(person, "Utrecht", 9).row
    older = state(person, "Leiden", 2, actor=staff() if by == "operator" else KEY, confidence=1.0).row
    assert history(person) == [
        ("Leiden", "superseded", 2, 9, "Utrecht", [2]),
        ("Utrecht", "active", 9, None, None, [9]),
    ]
    newer.refresh_from_db()
    assert (newer.version, older.revisions.get().verb, ReviewItem.objects.count()) == (1, "add", 0)
    assert invariants.check() == []


def test_the_controls_said_later_or_now_it_supersedes(person: EndUser) -> None:
    state(person, "Leiden", 2)
    state(person, "Utrecht", 9)
    assert history(person) == [
        ("Leiden", "superseded", 2, 9, "Utrecht", [2]),
        ("Utrecht", "active", 9, None, None, [9]),
    ]
    fact = state(person, "Delft").row
    assert [row[:2] for row in history(person)][1:] == [("Utrecht", "superseded"), ("Delft", "active")]
    assert Fact.objects.get(value="Utrecht").valid_to == fact.valid_from


def test_however_unsure_it_waits_for_nobody(person: EndUser) -> None:
    state(person, "Utrecht", 9, confidence=0.95)
    assert state(person, "Leiden", 2, confidence=0.5).row.status == "superseded"


def test_against_an_operators_word_it_waits(person: EndUser) -> None:
    state(person, "Utrecht", 9, actor=staff())
    assert state(person, "Leiden", 2).row.status == "pending"
    assert ReviewItem.objects.get().reason == "operators_word"


def test_of_the_same_value_the_known_fact_is_dated_back(person: EndUser) -> None:
    state(person, "Leiden", 1)
    known = state(person, "Utrecht", 9).row
    stated = add_fact(
        end_user=person,
        draft=FactDraft("Is at home in Utrecht", "identity", key="city", value="Utrecht"),
        actor=KEY,
        now=timezone.now(),
        provenance=Provenance(evidence=[turn_of(person, 5).pk]),
    )
    assert (stated.is_new, stated.row.pk) == (False, known.pk)
    assert history(person) == [
        ("Leiden", "superseded", 1, 5, "Utrecht", [1]),
        ("Utrecht", "active", 5, None, None, [5, 9]),
    ]


def test_between_two_statements_of_the_same_it_makes_two_and_a_roll_back_makes_them_one(person: EndUser) -> None:
    state(person, "Leiden", 1, 9)
    was, cited = history(person), set(FactEvidence.objects.values_list("fact", "turn"))
    other = Actor(kind=ActorKind.KEY, id=str(uuid.UUID(int=8)))
    state(person, "Utrecht", 5, actor=other)
    assert history(person) == [
        ("Leiden", "superseded", 1, 5, "Utrecht", [1]),
        ("Utrecht", "superseded", 5, 9, "Leiden", [5]),
        ("Leiden", "active", 9, None, None, [9]),
    ]
    assert invariants.check() == []
    selector = Selector(tenant=person.tenant, key=uuid.UUID(other.id))
    roll_back(selector=selector, actor=factories.COMMAND, now=timezone.now())
    assert history(person) == was
    assert cited <= set(FactEvidence.objects.values_list("fact", "turn"))


# Of each value one statement: a second one of the same text would be answered as a duplicate while the first is active.
stories = st.permutations(CITIES).flatmap(lambda cities: st.tuples(st.just(cities), st.permutations(range(3))))


@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(story=stories)
def test_stated_in_any_order_it_is_the_same(db: None, story: tuple[Sequence[str], Sequence[int]]) -> None:
    cities, order = story
    in_order, shuffled = factories.end_user(), factories.end_user()
    for number, city in enumerate(cities):
        state(in_order, city, number)
    for number in order:
        state(shuffled, cities[number], number)
    assert history(shuffled) == history(in_order)
    assert invariants.check() == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("first", [2, 9])
def test_two_at_once_leave_the_same_whoever_is_first(transactional_db: None, first: int) -> None:
    person = factories.end_user()
    cities = {2: "Leiden", 9: "Utrecht"}
    second = 11 - first
    with held(lambda: state(person, cities[first], first)):
        waiting = blocked(lambda: state(person, cities[second], second))
    waiting.result(PATIENCE)
    assert history(person) == [
        ("Leiden", "superseded", 2, 9, "Utrecht", [2]),
        ("Utrecht", "active", 9, None, None, [9]),
    ]
