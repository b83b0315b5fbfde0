"""Where a statement belongs among what was said of the same before and after it, whenever each of them arrived.

A history that is imported in any order leaves the same facts: of the statements about one key, in the order in which
they were said, each run of equal values is a fact, which ends where the next one begins.
"""

import uuid
from collections.abc import Collection, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memories.models import Fact, FactEvidence, Status, sent_at
from memories.models.ids import new_id

# When the turn of a row of evidence was said.
SENT_AT = sent_at("turn__")


@dataclass(frozen=True)
class Interval:
    """Between the fact that was stated last before a moment, if there is one, and the one that was stated first after
    it, with these moments. They can be one fact."""

    before: Fact | None
    before_at: datetime | None
    after: Fact
    after_at: datetime

    @property
    def neighbours(self) -> list[Fact]:
        return [fact for fact in (self.before, self.after) if fact]


def find_interval(facts: Sequence[Fact], *, moment: datetime) -> Interval | None:
    """Where a statement of this moment belongs among the facts; None: nothing was said later."""
    if not any(fact.last_confirmed_at > moment for fact in facts):
        return None
    by_id = {fact.pk: fact for fact in facts}
    stated = sorted((at, pk) for pk, at in _statements(facts))
    before_at, before = next(((at, pk) for at, pk in reversed(stated) if at <= moment), (None, None))
    after_at, after = next((at, pk) for at, pk in stated if at > moment)
    return Interval(by_id[before] if before else None, before_at, by_id[after], after_at)


def close(fact: Fact, interval: Interval, stated_at: Iterable[datetime]) -> None:
    """Make an unsaved fact, said at these moments, what held in the interval until the next one was stated."""
    fact.valid_from = min(fact.valid_from, fact.last_confirmed_at)
    if interval.before_at and fact.valid_from < interval.before_at:
        fact.valid_from = min(at for at in stated_at if at >= interval.before_at)
    fact.valid_to = (
        interval.after_at if interval.before is interval.after else max(fact.valid_from, interval.after.valid_from)
    )
    fact.status, fact.superseded_by = Status.SUPERSEDED, interval.after


def ends_at(fact: Fact, *, by: Fact) -> bool:
    """Whether the fact held when `by` began, as far as it was known: it ends there now."""
    return fact.valid_to is None or fact.valid_to > by.valid_from


def split(fact: Fact, *, by: Fact, confirmed_by: float, now: datetime) -> tuple[Fact, list[int]]:
    """`by` was said between two statements of the fact: the earlier ones become a closed fact of their own.

    Returns that one, and the ids of the evidence that is its own; the fact becomes the later part. Nothing is saved.
    """
    since, until = by.valid_from, by.valid_to or now
    cited = list(fact.evidence.filter(turn__isnull=False).annotate(sent_at=SENT_AT).order_by("sent_at", "pk"))
    older: list[Any] = [row for row in cited if row.sent_at < since]
    earlier = copy(fact)
    earlier.id, earlier.version, earlier.updated_at, earlier.embedded_hash = new_id(), 1, now, None
    earlier._state.adding = True
    earlier.last_confirmed_at = max((row.sent_at for row in older), default=fact.first_observed_at)
    earlier.status, earlier.valid_to, earlier.superseded_by = Status.SUPERSEDED, since, by
    fact.first_observed_at = fact.valid_from = until
    # A batch counts as one mention.
    earlier.mentions = max(1, len({(row.session_id, row.created_at) for row in older}))
    fact.mentions = max(1, fact.mentions - earlier.mentions)
    for part in (earlier, fact):
        part.confidence = min(part.confidence, round(part.stated_confidence + confirmed_by * (part.mentions - 1), 6))
    return earlier, [row.pk for row in older]


def predecessors(fact: Fact, *, earlier: Fact, by: Fact) -> list[Fact]:
    """What the fact replaced before it was split: the earlier part is its successor now."""
    return list(fact.older.exclude(pk=by.pk).filter(valid_to__lte=earlier.valid_from).order_by("pk"))


def _statements(facts: Collection[Fact]) -> Iterable[tuple[uuid.UUID, datetime]]:
    """Each fact with the moments at which it was stated, as far as they are known."""
    for fact in facts:
        yield fact.pk, fact.first_observed_at
        yield fact.pk, fact.last_confirmed_at
    # Retention may have deleted turns in between.
    cited = FactEvidence.objects.filter(fact__in=facts, turn__isnull=False).order_by("pk")
    yield from cited.values_list("fact_id", SENT_AT)
