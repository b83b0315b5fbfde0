"""Where a statement belongs among what was said of the same before and after it, whenever each of them arrived.

A history that is imported in any order leaves the same facts: of the statements about one key, in the order in which
they were said, each run of equal values is a fact, which ends where the next one begins.
"""

import uuid
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from memories.models import Fact, FactEvidence, said_at

# When the turn of a row of evidence was said.
SAID = said_at("turn__")


@dataclass(frozen=True)
class Gap:
    """Between the fact that was stated last before a moment, if there is one, and the one that was stated first after
    it, with these moments. They can be one fact."""

    before: Fact | None
    before_at: datetime | None
    after: Fact
    after_at: datetime

    @property
    def neighbours(self) -> list[Fact]:
        return [fact for fact in (self.before, self.after) if fact]


def place(facts: Sequence[Fact], *, moment: datetime) -> Gap | None:
    """Where a statement of this moment belongs among the facts; None: nothing was said later."""
    if not any(fact.last_confirmed_at > moment for fact in facts):
        return None
    by_id = {fact.pk: fact for fact in facts}
    stated = sorted((said, pk) for pk, said in _statements(facts))
    before_at, before = next(((said, pk) for said, pk in reversed(stated) if said <= moment), (None, None))
    after_at, after = next((said, pk) for said, pk in stated if said > moment)
    return Gap(by_id[before] if before else None, before_at, by_id[after], after_at)


def _statements(facts: Collection[Fact]) -> Iterable[tuple[uuid.UUID, datetime]]:
    """Each fact with the moments at which it was stated, as far as they are known."""
    for fact in facts:
        yield fact.pk, fact.first_observed_at
        yield fact.pk, fact.last_confirmed_at
    # Retention may have deleted turns in between.
    cited = FactEvidence.objects.filter(fact__in=facts, turn__isnull=False).order_by("pk")
    yield from cited.values_list("fact_id", SAID)
