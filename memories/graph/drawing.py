"""Which part of a person's graph is drawn: of thousands of triples only as many as somebody can look at."""

import uuid
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from heapq import heappop, heappush
from typing import NamedTuple

from django.db.models.functions import Coalesce

from memories.graph import reading
from memories.models import EndUser, GraphEntity, TripleStatus

# As many pills and lines as can be told apart on a page.
ENTITIES, TRIPLES = 40, 200
# The newest triples, from which these are chosen.
READ = 10_000


class DrawnTriple(NamedTuple):
    """A line, between entities of which neither is another name of something."""

    id: uuid.UUID
    subject: uuid.UUID
    object: uuid.UUID
    predicate: str
    valid_from: datetime | None
    valid_to: datetime | None
    dated_at: datetime
    status: str
    fact: uuid.UUID | None

    def held_at(self, moment: datetime) -> bool:
        """As GraphTripleQuerySet.held_at()."""
        began = self.valid_from is None or self.valid_from <= moment
        return began and (self.valid_to is None or self.valid_to > moment)

    @property
    def ends(self) -> tuple[uuid.UUID, uuid.UUID]:
        return self.subject, self.object


@dataclass(frozen=True)
class Drawing:
    """What is drawn, the most connected entity first, and how much there is of the graph, or of what is in focus.

    `degrees`: how many of all the triples each drawn entity is in at that moment. `moments`: of all starts and ends.
    """

    entities: Sequence[GraphEntity] = ()
    triples: Sequence[DrawnTriple] = ()
    degrees: Mapping[uuid.UUID, int] = field(default_factory=dict)
    all_entities: int = 0
    all_triples: int = 0
    moments: Collection[datetime] = ()
    reads_all: bool = True

    @property
    def is_cut(self) -> bool:
        return self.all_entities > len(self.entities) or self.all_triples > len(self.triples) or not self.reads_all


def draw(person: EndUser, *, moment: datetime, focus: uuid.UUID | None = None) -> Drawing:
    """Of what holds at that moment the most connected entities, of like ones the newest, and the triples between them.

    Where there is room for more, also what held before or will hold. With a `focus`, which is no other name of
    something, that entity and its neighbours alone. What waits for an operator is drawn, no trash. Two queries.
    """
    found = list(_rows(person))
    rows, reads_all = found[:READ], len(found) <= READ
    moments = {one for row in rows for one in (row.valid_from, row.valid_to) if one}
    if focus:
        near = {end for row in rows if focus in row.ends for end in row.ends}
        rows = [row for row in rows if near.issuperset(row.ends)]
    held = [row for row in rows if row.held_at(moment)]
    degrees = _degrees(held)
    ranked = _ranked(rows, degrees, first=focus)
    chosen = _connected(ranked, rows)
    between = [row for row in (*held, *(row for row in rows if not row.held_at(moment))) if chosen.issuperset(row.ends)]
    entities = GraphEntity.objects.in_bulk(chosen)
    return Drawing(
        # An entity may have been deleted since the triples were read.
        entities=[entities[pk] for pk in ranked if pk in entities],
        triples=[row for row in between[:TRIPLES] if entities.keys() >= set(row.ends)],
        degrees=degrees,
        all_entities=len(ranked),
        all_triples=len(rows),
        moments=moments,
        reads_all=reads_all,
    )


def _rows(person: EndUser) -> Iterator[DrawnTriple]:
    """The newest first and one more than READ, as plain rows: as objects they would take most of the time."""
    rows = reading.of_person(person).exclude(status=TripleStatus.TRASHED).order_by("-dated_at", "-id")
    sides = (Coalesce(f"{side}__merged_into", side) for side in ("subject", "object"))
    columns = ("predicate", "valid_from", "valid_to", "dated_at", "status", "fact_id")
    return map(DrawnTriple._make, rows.values_list("id", *sides, *columns)[: READ + 1])


def _degrees(rows: Sequence[DrawnTriple]) -> Counter[uuid.UUID]:
    """In how many of the triples each entity is."""
    return Counter(end for row in rows for end in set(row.ends))


def _ranked(
    rows: Sequence[DrawnTriple], degrees: Mapping[uuid.UUID, int], *, first: uuid.UUID | None
) -> list[uuid.UUID]:
    """All entities of the triples: the most connected ones first, then those of the newest triples."""
    overall = _degrees(rows)
    # In the order of the triples; the sort is stable.
    ends = dict.fromkeys(end for row in rows for end in row.ends)
    return sorted(ends, key=lambda end: (end != first, -degrees.get(end, 0), -overall[end]))


def _connected(ranked: Sequence[uuid.UUID], rows: Sequence[DrawnTriple]) -> set[uuid.UUID]:
    """The first of the entities, and then always the next one of those that a triple connects with them: the most
    connected ones by themselves could be dots without a line between them."""
    rank = {end: number for number, end in enumerate(ranked)}
    beside: defaultdict[uuid.UUID, set[uuid.UUID]] = defaultdict(set)
    for row in rows:
        beside[row.subject].add(row.object)
        beside[row.object].add(row.subject)
    chosen: set[uuid.UUID] = set()
    reached: list[int] = []
    for start in range(len(ranked)):
        heappush(reached, start)
        while reached and len(chosen) < ENTITIES:
            end = ranked[heappop(reached)]
            if end not in chosen:
                chosen.add(end)
                for other in beside[end] - chosen:
                    heappush(reached, rank[other])
        if len(chosen) == ENTITIES:
            break
    return chosen
