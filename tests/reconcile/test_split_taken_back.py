"""A roll back of what split a fact makes it one again, with all of its evidence; its undo splits it again."""

import uuid
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from django.utils import timezone

from memories import invariants
from memories.curation.reverting import revert
from memories.curation.rollback.roll_back import roll_back
from memories.curation.rollback.selection import Selector
from memories.models import ChangeSet, EndUser, ExtractionRun, Fact, FactEvidence, Turn
from tests.factories import COMMAND
from tests.model import Model
from tests.reconcile.test_late_statements import history, say

KEY = uuid.UUID(int=7)
Story = Sequence[tuple[int, str]]
# What was said before, and the one or two statements that split it.
ONCE: Story = [(1, "Leiden"), (9, "Leiden")]
WITH_OTHERS: Story = [(0, "Delft"), (1, "Leiden"), (3, "Leiden"), (9, "Leiden")]


def by_session(runs: Sequence[ExtractionRun]) -> Selector:
    return Selector(tenant=runs[0].tenant, session=runs[0].session_id)


def by_key(runs: Sequence[ExtractionRun]) -> Selector:
    Turn.objects.filter(session__in=[run.session_id for run in runs]).update(key_id=KEY)
    return Selector(tenant=runs[0].tenant, key=KEY)


def by_time(runs: Sequence[ExtractionRun]) -> Selector:
    return Selector(tenant=runs[0].tenant, since=runs[0].started_at)


def left(person: EndUser) -> list[Any]:
    """What is remembered, without the trash."""
    return [row for row in history(person) if row[1] != "trashed"]


@pytest.mark.parametrize(
    ("before", "select", "said"),
    [
        (ONCE, by_session, [5]),
        (WITH_OTHERS, by_session, [5]),
        (ONCE, by_time, [5, 7]),
        (WITH_OTHERS, by_key, [7, 5]),
    ],
)
def test_it_is_one_again(
    model: Model, person: EndUser, before: Story, said: list[int], select: Callable[..., Selector]
) -> None:
    for number, city in before:
        say(model, person, number, city)
    was, cited = history(person), set(FactEvidence.objects.values_list("fact", "turn"))
    runs = [say(model, person, number, f"Utrecht {number}") for number in said]
    split = left(person)
    # The control: it was split.
    assert len(split) > len(was)
    done = roll_back(selector=select(runs), actor=COMMAND, now=timezone.now())
    assert left(person) == was
    living = Fact.objects.exclude(status="trashed").values("pk")
    assert set(FactEvidence.objects.filter(fact__in=living).values_list("fact", "turn")) == cited
    assert revert(change_set=done.id, actor=COMMAND, now=timezone.now())["kept"] == 0
    assert left(person) == split
    assert invariants.check() == []


def test_what_was_confirmed_since_keeps_what_it_has(model: Model, person: EndUser) -> None:
    for number, city in ONCE:
        say(model, person, number, city)
    run = say(model, person, 5, "Utrecht")
    say(model, person, 12, "Leiden")
    assert roll_back(selector=by_session([run]), actor=COMMAND, now=timezone.now()).counts["kept"] == 1
    (row,) = left(person)
    assert (row[0], row[1], row[8]) == ("Leiden", "active", ["s12", "s9"])


def test_a_deleted_part_takes_nothing_back(model: Model, person: EndUser) -> None:
    for number, city in ONCE:
        say(model, person, number, city)
    run = say(model, person, 5, "Utrecht")
    roll_back(selector=by_session([run]), actor=COMMAND, now=timezone.now())
    Fact.objects.filter(status="trashed").delete()
    revert(change_set=ChangeSet.objects.get().pk, actor=COMMAND, now=timezone.now())
    (row,) = left(person)
    assert (row[0], row[8]) == ("Leiden", ["s1", "s9"])
