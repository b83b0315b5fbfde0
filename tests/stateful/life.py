"""A life of the hub: all rules together, with what must hold after each step and at the end."""

from django.db import connection
from hypothesis.stateful import invariant

from memories import conf, invariants
from memories.models import Fact, SessionQueue, WorkingMemory
from memories.scoring.decay import DecayInput, forget_at
from tests.stateful.asking import Asking
from tests.stateful.curating import Curating
from tests.stateful.working import Working

# Steps; the checks cost more than most of these, and what is broken stays so as a rule.
CHECKED_EVERY = 5


class Life(Working, Curating, Asking):
    """What anybody may do in any order."""

    steps = 0

    @invariant()
    def turns_are_kept(self) -> None:
        self.check_turns()

    @invariant()
    def data_is_sound(self) -> None:
        self.steps += 1
        if self.steps % CHECKED_EVERY == 0:
            check_sound()

    @invariant()
    def dates_are_right(self) -> None:
        """When a fact fades is written by whatever changes it, at once."""
        for fact in Fact.objects.filter(status="active").select_related("tenant"):
            assert fact.forget_at == _fades_at(fact), fact.content

    def teardown(self) -> None:
        try:
            for who in range(len(self.people)):
                self.check_told(who)
            self.drain()
            check_drained()
            check_sound()
            self.check_turns()
        finally:
            super().teardown()


def check_sound() -> None:
    assert invariants.check() == []
    # No commit of a life ever checks them.
    connection.check_constraints()


def check_drained() -> None:
    """Nothing is left in between: it is done, parked with its reason, or its person is restricted (I7, I10)."""
    for rows in (SessionQueue.objects, WorkingMemory.objects):
        left = rows.filter(session__end_user__restricted_at=None)
        assert list(left.due()) == []
        assert list(left.filter(lease_until__isnull=False)) == []
        assert list(left.filter(parked_at__isnull=False, failure="")) == []


def _fades_at(fact: Fact) -> object:
    if fact.protected:
        return None
    rules = conf.rules(fact.tenant)
    memory = DecayInput(fact.importance, fact.last_reinforced, fact.mentions, fact.category, fact.created_at)
    return forget_at(memory, rules, below=rules.forget_below)
