"""Faults that are planted on purpose: a few short lives find each of them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from hypothesis.stateful import RuleStrategy, run_state_machine_as_test

from memories.capture import ingest
from memories.context import budget
from memories.context.rendering import MemoryLine
from memories.forgetting import trash as forgetting
from memories.models import Fact
from memories.models.hand_written import condition, parameter
from memories.models.memories import visibility
from memories.models.memories.facts import FactQuerySet
from memories.retrieval import visible_facts
from tests.stateful.life import Life
from tests.stateful.test_life import SHORT

Plant = Callable[[pytest.MonkeyPatch], None]


def numbers_with_gaps(patch: pytest.MonkeyPatch) -> None:
    number = ingest._number

    def skip(session: Any, turns: Any, timed: Any, *, now: Any, follows: Any) -> tuple[list[Any], list[Any]]:
        stored, new = number(session, turns, timed, now=now, follows=follows)
        for turn in new:
            turn.number += turn.number > 3
        return [replace(one, number=one.number + (not one.duplicate and one.number > 3)) for one in stored], new

    patch.setattr(ingest, "_number", skip)


def doubles_are_stored(patch: pytest.MonkeyPatch) -> None:
    with connection.cursor() as cursor:
        cursor.execute("DROP INDEX turn_external_id_once")
    patch.setattr(ingest, "_existing", lambda session, external_ids: {})


def served_otherwise(patch: pytest.MonkeyPatch, part: str, other: str) -> None:
    written = visible_facts._written
    assert part in written(visible_facts._FEATURES, of_agent=False, then=False)
    patch.setattr(
        visible_facts, "_written", lambda statement, **which: written(statement, **which).replace(part, other)
    )


def pending_facts_are_served(patch: pytest.MonkeyPatch) -> None:
    served_otherwise(patch, "\"status\" = 'active'", "\"status\" IN ('active', 'pending')")


def expired_facts_are_served(patch: pytest.MonkeyPatch) -> None:
    served_otherwise(patch, '"expires_at" > (%(now)s)', "true")


def budgets_forget_the_headings(patch: pytest.MonkeyPatch) -> None:
    takes = budget.Block._takes

    def _takes(block: budget.Block, line: MemoryLine) -> bool:
        frame, block._frame = block._frame, replace(block._frame, headings=("",) * len(block._frame.headings))
        try:
            return takes(block, line)
        finally:
            block._frame = frame

    patch.setattr(budget.Block, "_takes", _takes)


def decay_takes_what_is_pinned(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Fact, "protected", property(lambda fact: False))
    patch.setattr(FactQuerySet, "faded", lambda rows, now: rows.active(now=now).filter(forget_at__lte=now))


def trash_keeps_no_revision(patch: pytest.MonkeyPatch) -> None:
    def trash(work: Any, lot: Any, ids: Any, *, now: Any) -> None:
        Fact.objects.filter(pk__in=ids).update(status="trashed", trashed_at=now)

    patch.setattr(forgetting, "_trash_facts", trash)


def strangers_are_told(patch: pytest.MonkeyPatch) -> None:
    own = condition(Fact, visibility.own(parameter("tenant"), parameter("person")))
    served_otherwise(patch, own, "true")


# With the rules that lead to it, so that few lives do. The other faults above wait for lives that find them as soon.
PLANTED: list[tuple[Plant, tuple[str, ...]]] = [
    (numbers_with_gaps, ("chat", "learn")),
    (pending_facts_are_served, ("learn", "ask_for_all")),
    (budgets_forget_the_headings, ("learn", "ask_for_all")),
    (strangers_are_told, ("learn", "ask_for_all")),
]


@pytest.mark.parametrize(("plant", "rules"), PLANTED, ids=lambda given: getattr(given, "__name__", ""))
def test_a_planted_fault_is_found(
    simulated: None, monkeypatch: pytest.MonkeyPatch, plant: Plant, rules: tuple[str, ...]
) -> None:
    class Focused(Life):
        def __init__(self) -> None:
            super().__init__()
            self.rules = [rule for rule in self.rules if rule.function.__name__ in rules]
            self._rules_strategy = RuleStrategy(self)

    plant(monkeypatch)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(Focused, settings=SHORT)
