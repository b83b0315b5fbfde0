"""What arrives after something newer ends before it; a history imported in any order gives the same memories."""

from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from memories import invariants
from memories.extraction import consolidation
from memories.models import EndUser, ExtractionRun, Fact, Session
from tests import factories
from tests.conftest import Start
from tests.database import PATIENCE
from tests.model import HeldAnswer, Model, candidate
from tests.reconcile.reconciling import CITY, facts, items, only
from tests.reconcile.test_true_time import extract, told

START = datetime(2023, 1, 1, tzinfo=UTC)
CITIES = ("Leiden", "Utrecht", "Delft")


def day(number: int) -> datetime:
    return START + timedelta(days=number)


def lives_in(city: str, **over: Any) -> dict[str, Any]:
    return candidate(f"Lives in {city}", quote=f"live in {city}", evidence=[1], value=city, **{**CITY, **over})


def say(model: Model, person: EndUser, number: int, city: str, **over: Any) -> ExtractionRun:
    """A conversation of that day in which the person said so arrives, and is extracted."""
    session = told(person, f"s{number}", (day(number), f"I live in {city}"))
    return extract(model, session, lives_in(city, **over))


def history(person: EndUser) -> list[tuple[Any, ...]]:
    """What is remembered, in the order of its days."""
    rows = Fact.objects.filter(end_user=person).select_related("superseded_by").order_by("valid_from", "pk")
    return [
        (
            row.value,
            row.status,
            (row.valid_from - START).days,
            row.valid_to and (row.valid_to - START).days,
            (row.last_confirmed_at - START).days,
            row.mentions,
            round(row.confidence, 6),
            row.superseded_by and (row.superseded_by.value, (row.superseded_by.valid_from - START).days),
            sorted(session.external_id for session in Session.objects.filter(pk__in=row.evidence.values("session"))),
        )
        for row in rows
    ]


def test_an_older_statement_ends_before_the_newer_one(model: Model, person: EndUser) -> None:
    say(model, person, 9, "Utrecht")
    newer = only(person)
    # However certain it was.
    run = say(model, person, 2, "Leiden", confidence=1.0)
    assert run.outcome == {"older": 1}
    older = only(person, value="Leiden")
    assert (older.status, older.superseded_by) == ("superseded", newer)
    assert (older.valid_from, older.valid_to) == (day(2), day(9)) == (older.first_observed_at, newer.valid_from)
    newer.refresh_from_db()
    assert (newer.status, newer.version, newer.valid_to) == ("active", 1, None)
    assert (older.revisions.get().verb, older.evidence.count(), items(person)) == ("extract", 1, [])
    assert invariants.check() == []


def test_the_control_a_newer_statement_takes_its_place_from_its_day_on(model: Model, person: EndUser) -> None:
    say(model, person, 2, "Leiden")
    assert say(model, person, 9, "Utrecht").outcome == {"stored": 1, "superseded": 1}
    assert history(person) == [
        ("Leiden", "superseded", 2, 9, 2, 1, 0.9, ("Utrecht", 9), ["s2"]),
        ("Utrecht", "active", 9, None, 9, 1, 0.9, None, ["s9"]),
    ]


def test_between_two_statements_of_the_same_a_fact_becomes_two(model: Model, person: EndUser) -> None:
    for number, city in ((1, "Leiden"), (9, "Leiden"), (5, "Utrecht")):
        say(model, person, number, city)
    assert history(person) == [
        ("Leiden", "superseded", 1, 5, 1, 1, 0.9, ("Utrecht", 5), ["s1"]),
        ("Utrecht", "superseded", 5, 9, 5, 1, 0.9, ("Leiden", 9), ["s5"]),
        ("Leiden", "active", 9, None, 9, 1, 0.9, None, ["s9"]),
    ]


@pytest.mark.parametrize(
    ("cities", "order"),
    [
        (["Leiden", "Utrecht", "Leiden"], [0, 2, 1]),
        (["Leiden", "Leiden", "Utrecht", "Delft", "Leiden"], [4, 0, 3, 1, 2]),
        (["Utrecht", "Delft", "Delft", "Utrecht", "Leiden", "Leiden"], [5, 2, 3, 0, 4, 1]),
    ],
)
def test_a_history_imported_in_any_order_gives_the_same_memories(
    model: Model, db: None, cities: list[str], order: list[int]
) -> None:
    told_in_order, shuffled = factories.end_user(), factories.end_user()
    for number, city in enumerate(cities):
        say(model, told_in_order, number, city)
    for number in order:
        say(model, shuffled, number, cities[number])
    assert history(shuffled) == history(told_in_order)
    assert [fact.value for fact in facts(shuffled, status="active")] == [cities[-1]]
    assert invariants.check() == []


def test_an_older_removal_removes_nothing_that_was_said_since(model: Model, person: EndUser) -> None:
    say(model, person, 9, "Utrecht")
    removal = {"fact": 1, "reason": "Moved away", "evidence": [1], "replaced_by": None}
    session = told(person, "s2", (day(2), "I do not live in Utrecht"))
    assert extract(model, session, removed=[removal]).refusals == {"said_since": 1}
    assert only(person).status == "active"
    # The control: said later, it counts, from that day on.
    assert extract(model, told(person, "s10", (day(10), "I left Utrecht")), removed=[removal]).outcome == {
        "named_removed": 1
    }
    assert (only(person).status, only(person).valid_to) == ("archived", day(10))


def test_an_operators_word_stays_as_it_is(model: Model, person: EndUser) -> None:
    word = factories.fact(person, "Lives in Delft", **CITY, value="Delft", binding=True, now=day(9))
    assert say(model, person, 2, "Leiden").outcome == {"conflicts": 1}
    word.refresh_from_db()
    assert (word.status, word.version) == ("active", 1)
    assert only(person, value="Leiden").status == "pending"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("first", [2, 9])
def test_two_at_once_leave_the_same_whoever_is_first(
    transactional_db: None, model: Model, start: Start, first: int
) -> None:
    person = factories.end_user()
    cities = {2: "Leiden", 9: "Utrecht"}
    sessions = {
        number: told(person, f"s{number}", (day(number), f"I live in {city}")) for number, city in cities.items()
    }
    gates: dict[int, HeldAnswer] = {}
    workers: dict[int, Future[Any]] = {}
    for number, city in cities.items():
        gates[number] = HeldAnswer(new_facts=[lives_in(city)])
        model.answers.append(gates[number])
        workers[number] = start(_consolidate, sessions[number])
        assert gates[number].reached.wait(PATIENCE)
    for number in sorted(cities, key=lambda number: number != first):
        gates[number].opened.set()
        assert workers[number].result(PATIENCE).status == "committed"
    assert history(person) == [
        ("Leiden", "superseded", 2, 9, 2, 1, 0.9, ("Utrecht", 9), ["s2"]),
        ("Utrecht", "active", 9, None, 9, 1, 0.9, None, ["s9"]),
    ]


def _consolidate(session: Session) -> ExtractionRun | None:
    return consolidation.consolidate(session_id=session.pk, now=timezone.now())
