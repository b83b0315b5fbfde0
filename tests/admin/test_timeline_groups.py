"""What came of a turn stands below it on a person's timeline, and nowhere else."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from memories.admin.people import timeline
from memories.admin.people.timeline import TimelineFilters, TimelineItem
from memories.models import EndUser, Episode, FactEvidence, Session, Turn
from tests import factories
from tests.admin.pages import page_of, text_of
from tests.factories import NOW

pytestmark = pytest.mark.django_db


@pytest.fixture
def session(db: None) -> Session:
    talk = factories.session(factories.end_user(), [("user", "I moved to Leiden"), ("assistant", "Noted.")])
    Turn.objects.filter(session=talk).update(created_at=NOW)
    return talk


def turn_of(session: Session, number: int) -> Turn:
    return Turn.objects.get(session=session, number=number)


def tree(items: list[TimelineItem]) -> list[Any]:
    return [(item.source.name, tree(item.came)) if item.came else item.source.name for item in items]


def shown(person: EndUser, **wish: Any) -> list[Any]:
    return tree(timeline.read(person, timeline.SOURCES, TimelineFilters(**wish)).items)


def everything(session: Session) -> None:
    """Of the second turn: a fact with a question, an episode with one, and a question about the profile."""
    person = session.end_user
    held = factories.fact(person, "Lives in Leiden", status="pending", now=NOW + timedelta(minutes=1))
    factories.evidence(held, turn_of(session, 1))
    factories.evidence(held, turn_of(session, 2))
    factories.review_item(held)
    factories.poor_episode(session)
    Episode.objects.update(last_number=2)
    proposed = factories.profile_revision(person, "Lives in Leiden.", version=None)
    run = factories.run(session)
    factories.review_item(
        None, known=factories.fact(person, "Known"), proposed_section=proposed, extraction=run, kind="flagged"
    )


def test_what_came_of_a_turn_stands_below_it(session: Session) -> None:
    everything(session)
    below = [("fact", ["review"]), ("episode", ["review"]), "review"]
    assert shown(session.end_user) == ["fact", ("turn", below), "turn"]


def test_a_kind_alone_is_not_grouped(session: Session) -> None:
    everything(session)
    person = session.end_user
    assert shown(person, kind="turn") == ["turn", "turn"]
    assert shown(person, kind="fact") == ["fact", "fact"]
    assert shown(person, kind="review") == ["review", "review", "review"]


def test_without_the_turns_nothing_is_missing(session: Session, staff_who_may: Callable[..., Client]) -> None:
    everything(session)
    page: Any = staff_who_may("view_enduser", "view_fact", "view_reviewitem").get(page_of(session.end_user))
    ((_, items),) = page.context_data["days"]
    assert sorted(tree(items)) == ["fact", "fact", "review", "review", "review"]


def test_what_confirms_a_fact_later_does_not_move_it(session: Session) -> None:
    fact = factories.fact(session.end_user)
    factories.evidence(fact, turn_of(session, 1))
    assert shown(session.end_user) == ["turn", ("turn", ["fact"])]
    FactEvidence.objects.create(
        tenant_id=fact.tenant_id,
        fact=fact,
        turn=turn_of(session, 2),
        session=session,
        turn_number=2,
        created_at=NOW + timedelta(hours=1),
    )
    assert shown(session.end_user) == ["turn", ("turn", ["fact"])]


def test_what_came_of_a_turn_that_is_gone_stands_alone(session: Session) -> None:
    """Retention keeps the evidence without its turn; after people were separated, the turn can be another's."""
    fact = factories.fact(session.end_user)
    cited = factories.evidence(fact, turn_of(session, 1))
    FactEvidence.objects.filter(pk=cited.pk).update(turn=None)
    assert sorted(shown(session.end_user)) == ["fact", "turn", "turn"]
    other = factories.session(factories.end_user(session.tenant))
    FactEvidence.objects.filter(pk=cited.pk).update(turn=turn_of(other, 1), session=other)
    assert sorted(shown(session.end_user)) == ["fact", "turn", "turn"]


def test_pages_put_it_below_its_turn_however_far_apart(session: Session) -> None:
    """An import's facts are made long after its turns were said."""
    person = session.end_user
    Turn.objects.filter(session=session).update(timestamp=NOW - timedelta(days=400))
    fact = factories.fact(person)
    factories.evidence(fact, turn_of(session, 1))
    for number in range(60):
        factories.fact(person, f"Fact {number}")
    first = timeline.read(person, timeline.SOURCES, TimelineFilters())
    assert tree(first.items) == ["fact"] * 50
    assert shown(person, before=first.older) == [*["fact"] * 10, "turn", ("turn", ["fact"])]


def test_only_what_the_page_spans_is_looked_up(session: Session) -> None:
    """A page full of turns asks for no older fact: each would take a look-up of its evidence."""
    person = session.end_user
    long = factories.session(person, [("user", "Hi")] * (timeline.PAGE + 1), session_id="long")
    for turn in Turn.objects.filter(session=long):
        Turn.objects.filter(pk=turn.pk).update(timestamp=NOW + timedelta(hours=turn.number))
    old, within_it = (
        factories.fact(person, "Old", now=NOW),
        factories.fact(person, "New", now=NOW + timedelta(hours=40)),
    )
    with CaptureQueriesContext(connection) as queries:
        page = timeline.read(person, timeline.SOURCES, TimelineFilters())
    assert [item.row for item in page.items if item.source.name == "fact"] == [within_it]
    facts = [query["sql"] for query in queries if query["sql"].startswith('SELECT "memories_fact".')]
    assert len([sql for sql in facts if '"memories_fact"."created_at" >= ' in sql]) == 1
    later = timeline.read(person, timeline.SOURCES, TimelineFilters(before=page.older))
    assert [item.row for item in later.items if item.source.name == "fact"] == [old]


def test_a_question_says_what_it_is_about_unless_that_stands_above_it(session: Session, admin: Client) -> None:
    everything(session)
    page = text_of(admin.get(page_of(session.end_user)))
    assert page.count("Lives in Leiden</a>") == 1
    assert "Review (Unconfirmed)" in page
    assert '<p class="hub-muted hub-about">Lives in Leiden' not in page
    alone = text_of(admin.get(f"{page_of(session.end_user)}?kind=review"))
    assert '<p class="hub-muted hub-about">Lives in Leiden' in alone
