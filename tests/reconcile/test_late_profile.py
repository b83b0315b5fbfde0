"""A profile that is told in any order is the one that rests on what was said last."""

import pytest

from memories.audit import Actor
from memories.curation.profile.sections import release_profile_section, write_profile_section
from memories.models import EndUser, ExtractionRun, ProfileSection, Turn
from tests import factories
from tests.model import Model
from tests.reconcile.test_late_statements import day
from tests.reconcile.test_true_time import extract, told

NAMES = ("work_context", "personal_context")


def say(model: Model, person: EndUser, number: int, *cities: str) -> ExtractionRun:
    """A conversation of that day arrives; the model writes each section from it, "" leaves one as it is."""
    turn = (day(number), f"I work in {' and '.join(filter(None, cities))}")
    sections = {
        name: {"summary": f"Works in {city}.", "should_update": True}
        for name, city in zip(NAMES, cities, strict=False)
        if city
    }
    return extract(model, told(person, f"s{number}", turn), profile=sections)


def profile(person: EndUser) -> list[tuple[str, str]]:
    return sorted(ProfileSection.objects.filter(end_user=person).values_list("section", "summary"))


def test_an_older_batch_does_not_replace_a_newer_section(model: Model, person: EndUser) -> None:
    say(model, person, 9, "Utrecht")
    run = say(model, person, 2, "Leiden", "Delft")
    # A section that nobody has written yet is written from it.
    assert run.outcome == {"profile_older": 1, "profile_sections": 1}
    assert profile(person) == [("personal_context", "Works in Delft."), ("work_context", "Works in Utrecht.")]
    # The control: what was said later does.
    assert say(model, person, 10, "Leiden").outcome == {"profile_sections": 1}


@pytest.mark.parametrize(
    ("said", "order"),
    [
        ([("Leiden", ""), ("", "Delft"), ("Utrecht", "Leiden")], [2, 0, 1]),
        ([("Leiden", "Delft"), ("Leiden", ""), ("", "Utrecht"), ("Delft", "")], [3, 1, 2, 0]),
    ],
)
def test_told_in_any_order_it_is_the_same(
    model: Model, db: None, said: list[tuple[str, str]], order: list[int]
) -> None:
    told_in_order, shuffled = factories.end_user(), factories.end_user()
    for number, cities in enumerate(said):
        say(model, told_in_order, number, *cities)
    for number in order:
        say(model, shuffled, number, *said[number])
    assert profile(shuffled) == profile(told_in_order)


def test_what_a_key_wrote_was_said_when_it_was_written(model: Model, person: EndUser) -> None:
    key = Actor(kind="key", id="0")  # type: ignore[arg-type]
    write_profile_section(end_user=person, section=NAMES[0], summary="Works in Delft.", actor=key, now=day(5))
    assert say(model, person, 2, "Leiden").outcome == {"profile_older": 1}
    assert say(model, person, 9, "Utrecht").outcome == {"profile_sections": 1}


@pytest.mark.parametrize("staff", ["released", "emptied"])
def test_what_staff_released_or_emptied_any_batch_writes(model: Model, person: EndUser, staff: str) -> None:
    say(model, person, 9, "Utrecht")
    given = {"end_user": person, "section": NAMES[0], "actor": Actor.operator(factories.operator()), "now": day(20)}
    write_profile_section(summary="" if staff == "emptied" else "Works in Delft.", **given)  # type: ignore[arg-type]
    release_profile_section(**given)  # type: ignore[arg-type]
    assert say(model, person, 2, "Leiden").outcome == {"profile_sections": 1}


def test_where_retention_deleted_the_turns_their_run_dates_the_section(model: Model, person: EndUser) -> None:
    say(model, person, 9, "Utrecht")
    Turn.objects.all().delete()
    ExtractionRun.objects.update(started_at=day(9))
    assert say(model, person, 2, "Leiden").outcome == {"profile_older": 1}
    assert say(model, person, 10, "Leiden").outcome == {"profile_sections": 1}
