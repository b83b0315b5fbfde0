"""A person's timeline: what happened, newest first, by day and kind, and the pages behind its cursor."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client

from memories.admin.people import timeline
from memories.admin.people.timeline import TimelineFilters
from memories.audit import Actor
from memories.curation.facts.editing import correct_fact
from memories.curation.people.records import update_person
from memories.models import EndUser, Fact, Operator, Turn
from tests import factories
from tests.admin.pages import page_of, text_of
from tests.factories import NOW

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


def turns(person: EndUser, texts: Iterable[str], at: datetime = NOW) -> None:
    session = factories.session(person, [("user", text) for text in texts])
    Turn.objects.filter(session=session).update(created_at=at)


def told(person: EndUser, **wish: Any) -> list[str]:
    """What all pages tell together, each row by its name and what identifies it."""
    said: list[str] = []
    before = ""
    while True:
        page = timeline.read(person, timeline.SOURCES, TimelineFilters(**{"before": before, **wish}))
        assert len(page.items) <= timeline.PAGE
        said += [f"{item.source.name} {item.row.pk}" for item in page.items]
        before = page.older
        if not before:
            return said


def days(client: Client, person: EndUser, **query: str) -> list[tuple[str, list[str]]]:
    response: Any = client.get(f"{page_of(person)}?{urlencode(query)}")
    assert response.status_code == 200
    shown = response.context_data["days"]
    return [(day.isoformat(), [one.source.name for one in items]) for day, items in shown]


def everything(person: EndUser, operator: Operator) -> None:
    """One of each, some hours apart."""
    turns(person, ["Hello"], NOW)
    session = person.sessions.get()
    factories.episode(session, now=NOW + HOUR)
    fact = factories.fact(person, "Lives in Leiden", now=NOW + 2 * HOUR)
    given: dict[str, Any] = {"actor": Actor.operator(operator), "now": NOW + 3 * HOUR}
    correct_fact(fact_id=fact.pk, tenant=None, content="Lives in Utrecht", reason="Phoned", **given)
    factories.profile_revision(person, "Runs a bakery.", created_at=NOW + 4 * HOUR)
    given["now"] = NOW + 5 * HOUR
    update_person(end_user=person, changes={"language": "nl"}, **given)


def test_a_turn_stands_on_the_day_it_was_said(admin: Client, person: EndUser) -> None:
    turns(person, ["Imported", "Posted"])
    Turn.objects.filter(content="Imported").update(timestamp=NOW - timedelta(days=400))
    assert [names for _day, names in days(admin, person)] == [["turn"], ["turn"]]
    (posted, imported) = timeline.read(person, timeline.SOURCES, TimelineFilters()).items
    assert (posted.moment, imported.moment) == (NOW, NOW - timedelta(days=400))
    up_to = (NOW - timedelta(days=399)).date()
    assert [names for _day, names in days(admin, person, day=up_to.isoformat())] == [["turn"]]


def test_all_kinds_stand_in_one_order(admin: Client, person: EndUser, administrator: Operator) -> None:
    everything(person, administrator)
    names = ["record", "profile", "revision", "fact", "turn"]
    assert days(admin, person) == [("2026-11-03", names)]


def test_a_kind_is_shown_alone(admin: Client, person: EndUser, administrator: Operator) -> None:
    everything(person, administrator)
    for kind, names in {
        "turn": ["turn"],
        "fact": ["fact"],
        "episode": ["episode"],
        "edit": ["record", "profile", "revision"],
        "nonsense": ["record", "profile", "revision", "fact", "turn"],
    }.items():
        assert [name for _, shown in days(admin, person, kind=kind) for name in shown] == names, kind


def test_an_edit_says_who_what_and_why(admin: Client, person: EndUser, administrator: Operator) -> None:
    everything(person, administrator)
    page = text_of(admin.get(f"{page_of(person)}?kind=edit"))
    assert "<del>Leiden</del><ins>Utrecht</ins>" in page
    assert f"{administrator.username} corrected a fact" in page
    assert "wrote Profile › Work" in page
    assert "Confidence: 90 % → 100 %" in page
    assert "Reason: Phoned" in page
    # The first text of a section is no change of another.
    assert "<ins>Runs a bakery.</ins>" not in page
    assert "Runs a bakery." in page


def test_days_are_those_of_the_operator(person: EndUser, admin: Client, administrator: Operator) -> None:
    turns(person, ["Late"], datetime(2026, 11, 3, 23, 30, tzinfo=UTC))
    turns(person, ["Early"], datetime(2026, 11, 3, 0, 30, tzinfo=UTC))
    assert days(admin, person) == [("2026-11-03", ["turn", "turn"])]
    Operator.objects.update(time_zone="Asia/Shanghai")
    assert days(admin, person) == [("2026-11-04", ["turn"]), ("2026-11-03", ["turn"])]
    assert days(admin, person, day="2026-11-03") == [("2026-11-03", ["turn"])]


def test_what_is_no_day_is_passed_over(admin: Client, person: EndUser) -> None:
    turns(person, ["Hello"])
    for day in ("2026-13-01", "x", "9999-12-31", "%00", ""):
        assert len(days(admin, person, day=day)) == 1, day


def test_what_others_said_is_not_there(person: EndUser) -> None:
    other = factories.end_user(person.tenant)
    everything(other, factories.operator())
    assert told(person) == []
    assert len(told(other)) == 5


def test_pages_tell_each_row_once(person: EndUser) -> None:
    """Of one moment, too: a post stores all of its messages at once."""
    turns(person, [f"Turn {number}" for number in range(120)])
    turns(person, [f"Other {number}" for number in range(40)])
    for number in range(70):
        factories.fact(person, f"Fact {number}")
    said = told(person)
    assert len(said) == len(set(said)) == 230
    assert [name.split()[0] for name in said] == ["fact"] * 70 + ["turn"] * 160
    numbers = [Turn.objects.get(pk=one.split()[1]).number for one in told(person, kind="turn")]
    assert numbers in ([*range(120, 0, -1), *range(40, 0, -1)], [*range(40, 0, -1), *range(120, 0, -1)])


def test_pages_mix_the_kinds_by_time(person: EndUser) -> None:
    for number in range(60):
        factories.fact(person, f"Fact {number}", now=NOW + number * HOUR)
    for number in range(60):
        turns(person, [f"Turn {number}"], NOW + number * HOUR)
    assert [one.split()[0] for one in told(person)] == ["fact", "turn"] * 60


def test_what_came_meanwhile_moves_nothing(person: EndUser) -> None:
    for number in range(60):
        factories.fact(person, f"Fact {number}", now=NOW + number * HOUR)
    first = timeline.read(person, timeline.SOURCES, TimelineFilters())
    factories.fact(person, "Newer", now=NOW + 100 * HOUR)
    # The very row that the cursor names.
    Fact.objects.filter(content="Fact 10").delete()
    second = timeline.read(person, timeline.SOURCES, TimelineFilters(before=first.older))
    contents = [item.row.content for item in (*first.items, *second.items)]
    assert contents == [f"Fact {number}" for number in range(59, -1, -1)]


MADE_UP = [
    "nonsense",
    "turn~x~y~z",
    "turn~2026-11-03T09:12:00+00:00",
    "fact~2026-11-03T09:12:00~01a20324-90c2-7757-8492-ab753c84d277",
    "fact~2026-11-03T09:12:00+00:00~x",
    "record~2026-11-03T09:12:00+00:00~" + "9" * 40,
    "record~9999-12-31T23:59:59+00:00~-1",
    "fact~\x00~\x00",
    "~",
]


def test_a_cursor_that_somebody_made_up_is_harmless(admin: Client, person: EndUser) -> None:
    turns(person, ["Hello"])
    for before in MADE_UP:
        assert admin.get(page_of(person), {"before": before}).status_code == 200, before


def test_what_lies_further_back_is_a_link_and_a_fragment(admin: Client, person: EndUser) -> None:
    turns(person, [f"Said {number};" for number in range(60)])
    page: Any = admin.get(page_of(person))
    older = page.context_data["older"]
    assert "Show earlier events" in text_of(page)
    address = f"{page_of(person)}?{urlencode({'kind': 'turn', 'before': older})}"
    fragment = text_of(admin.get(address, headers={"X-Fragment": "timeline"}))
    assert "<html" not in fragment
    assert "Said 9;" in fragment
    assert "Said 10;" not in fragment
    assert "<html" in text_of(admin.get(address))


def test_nothing_personal_is_in_the_addresses(admin: Client) -> None:
    person = factories.end_user(external_id="usr_1000")
    turns(person, [f"Secret {number}" for number in range(60)])
    page: Any = admin.get(page_of(person))
    older = page.context_data["older"]
    assert "usr_1000" not in older
    assert "Secret" not in older


SEEN = {"view_session": ["turn"], "view_fact": ["fact", "profile", "revision"], "view_episode": ["episode"]}


def test_each_sees_what_one_may_see(
    person: EndUser, staff_who_may: Callable[..., Client], administrator: Operator
) -> None:
    everything(person, administrator)
    for permission, names in {**SEEN, "view_auditevent": ["record"]}.items():
        client = staff_who_may("view_enduser", permission)
        assert {name for _, shown in days(client, person) for name in shown} == set(names), permission
    assert days(staff_who_may("view_enduser"), person) == []


def test_a_long_turn_is_clipped_and_its_whole_is_a_link_away(admin: Client, person: EndUser) -> None:
    turns(person, ["x" * 5_000])
    page = text_of(admin.get(page_of(person)))
    assert "x" * timeline.CLIP + "…" in page
    assert "x" * (timeline.CLIP + 1) not in page
    assert "#turn-1" in page
