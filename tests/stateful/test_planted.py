"""Faults that are planted on purpose: a few short lives find each of them."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from hypothesis.stateful import RuleStrategy, run_state_machine_as_test

from memories.models import Fact
from memories.models.facts import FactQuerySet
from memories.pipeline import context, forgetting, ingest, served_facts
from tests.stateful.life import Life
from tests.stateful.test_life import SHORT

Plant = Callable[[pytest.MonkeyPatch], None]


def numbers_with_gaps(patch: pytest.MonkeyPatch) -> None:
    place = ingest._place

    def skip(turn: Any, session: Any, *, number: int, now: Any) -> None:
        place(turn, session, number=number + (number > 3), now=now)

    patch.setattr(ingest, "_place", skip)


def doubles_are_stored(patch: pytest.MonkeyPatch) -> None:
    with connection.cursor() as cursor:
        cursor.execute("DROP INDEX turn_external_id_once")
    patch.setattr(ingest, "_known_turns", lambda session, external_ids: {})


def pending_facts_are_served(patch: pytest.MonkeyPatch) -> None:
    for name in ("_MEASURED", "_WITH_WORDS"):
        patch.setattr(served_facts, name, getattr(served_facts, name).replace("= 'active'", "IN ('active', 'pending')"))


def expired_facts_are_served(patch: pytest.MonkeyPatch) -> None:
    for name in ("_MEASURED", "_WITH_WORDS"):
        patch.setattr(served_facts, name, getattr(served_facts, name).replace("expires_at > %(now)s", "true"))


def budgets_forget_the_headings(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(context, "HEADINGS", ("",) * 5)


def decay_takes_what_is_pinned(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Fact, "protected", property(lambda fact: False))
    patch.setattr(FactQuerySet, "faded", lambda rows, now: rows.active(now=now).filter(forget_at__lte=now))


def trash_keeps_no_revision(patch: pytest.MonkeyPatch) -> None:
    def trash(work: Any, lot: Any, ids: Any, *, now: Any) -> None:
        Fact.objects.filter(pk__in=ids).update(status="trashed", trashed_at=now)

    patch.setattr(forgetting, "_trash_facts", trash)


def strangers_are_told(patch: pytest.MonkeyPatch) -> None:
    told = served_facts._MEASURED, served_facts._WITH_WORDS
    everybody = [sql.replace("tenant_id = %(tenant)s AND end_user_id = %(person)s", "true") for sql in told]
    patch.setattr(served_facts, "_MEASURED", everybody[0])
    patch.setattr(served_facts, "_WITH_WORDS", everybody[1])


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
