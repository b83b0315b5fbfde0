"""Dates in a query: facts, episodes and turns of then come first, also those relative to the day of the request."""

from datetime import UTC, datetime
from typing import Any

import pytest

from memories.context.context import ContextRequest, build
from memories.models import EndUser
from memories.retrieval import search as retrieval
from memories.retrieval.search import SearchRequest
from memories.scoring.constants import DEFAULT
from tests import factories

pytestmark = pytest.mark.django_db
# A Wednesday.
NOW = datetime(2026, 3, 11, 15, tzinfo=UTC)
JANUARY, LAST_WEEK, THIS_WEEK = (
    datetime(2026, 1, 14, 9, tzinfo=UTC),
    *(datetime(2026, 3, day, 9, tzinfo=UTC) for day in (4, 10)),
)


@pytest.fixture
def person() -> EndUser:
    return factories.end_user(external_id="u1", owner=factories.tenant(time_zone="UTC"))


def found(person: EndUser, query: str, kind: str = "fact", **over: Any) -> list[str]:
    asked = SearchRequest(user_id=person.external_id, query=query, kinds=(kind,), **over)
    return [one.text for one in retrieval.search(tenant=person.tenant, search=asked, now=NOW).results]


def paintings(person: EndUser) -> None:
    for what, at in (("a lake", JANUARY), ("a horse", LAST_WEEK), ("a boat", THIS_WEEK)):
        factories.fact(person, f"Painted {what}", now=at)


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("What was painted last week?", "Painted a horse"),
        ("What was painted two months ago?", "Painted a lake"),
        ("What was painted yesterday?", "Painted a boat"),
        ("What was painted in January 2026?", "Painted a lake"),
        ("painted 上周", "Painted a horse"),
        ("painted 两个月前", "Painted a lake"),
        ("painted 昨天", "Painted a boat"),
        # Without a date the newest comes first.
        ("What was painted?", "Painted a boat"),
        ("What was the last name painted?", "Painted a boat"),
    ],
)
def test_facts_of_then_come_first(person: EndUser, query: str, first: str) -> None:
    paintings(person)
    assert found(person, query)[0] == first


def test_a_fact_is_of_when_it_was_said_first_and_last(person: EndUser) -> None:
    paintings(person)
    factories.fact(person, "Painted the sea", now=JANUARY, last_confirmed_at=LAST_WEEK)
    assert found(person, "painted last week")[:2] == ["Painted a horse", "Painted the sea"]
    assert set(found(person, "painted two months ago")[:2]) == {"Painted a lake", "Painted the sea"}


def test_the_part_of_the_score_is_shown(person: EndUser) -> None:
    paintings(person)
    asked = SearchRequest(user_id="u1", query="painted two months ago", kinds=("fact",))
    lake, *others = retrieval.search(tenant=person.tenant, search=asked, now=NOW).results
    assert lake.score_parts["dates"] == pytest.approx(DEFAULT.date)
    assert ["dates" in one.score_parts for one in others] == [False, False]


def test_episodes_of_then_come_first(person: EndUser) -> None:
    for at, what in ((JANUARY, "a lake"), (LAST_WEEK, "a horse"), (THIS_WEEK, "a boat")):
        session = factories.session(person, session_id=what)
        factories.episode(session, f"Painted {what}", started_at=at, ended_at=at)
    assert found(person, "What was painted last week?", "episode")[0] == "Painted a horse"
    assert found(person, "What was painted two months ago?", "episode")[0] == "Painted a lake"
    assert found(person, "What was painted?", "episode")[0] == "Painted a boat"


def test_what_is_asked_as_of_then_is_relative_to_then(person: EndUser) -> None:
    paintings(person)
    assert found(person, "painted two months ago", as_of=THIS_WEEK)[0] == "Painted a lake"
    # Two months before May it was March.
    may = datetime(2026, 5, 20, tzinfo=UTC)
    assert found(person, "painted two months ago", as_of=may)[0] != "Painted a lake"


@pytest.mark.parametrize(("zone", "first"), [("Pacific/Auckland", "Painted a horse"), ("", "Painted a lake")])
def test_yesterday_is_that_of_the_person(person: EndUser, zone: str, first: str) -> None:
    # In Auckland it is the 12th, and the 11th began at 11:00 UTC of the 10th.
    EndUser.objects.filter(pk=person.pk).update(time_zone=zone)
    factories.fact(person, "Painted a lake", now=datetime(2026, 3, 10, 1, tzinfo=UTC))
    factories.fact(person, "Painted a horse", now=datetime(2026, 3, 11, 8, tzinfo=UTC))
    assert found(person, "What was painted yesterday?")[0] == first


def test_a_context_reads_them_too(person: EndUser) -> None:
    paintings(person)
    told = [
        build(
            tenant=person.tenant,
            request=ContextRequest(user_id="u1", query=query, include=frozenset({"facts"}), limits={"facts": 1}),
            now=NOW,
        ).memory
        for query in ("What was painted two months ago?", "What was painted last week?")
    ]
    assert ["a lake" in one for one in told] == [True, False]
    assert ["a horse" in one for one in told] == [False, True]
