"""Reads the graph of a person: the triples of an entity, of a predicate, of all times, and how many there are."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.db.models import BooleanField, Count, ExpressionWrapper, Q
from django.db.models.functions import Coalesce

from memories.graph import naming
from memories.models import EndUser, GraphTriple, GraphTripleQuerySet

# From the first to the last; the id decides between those of one moment.
BY_TIME = ("dated_at", "id")

# What an answer shows of a triple, of its entities and of those that they are another name of.
_OF_ENTITY = tuple(f"{entity}__{name}" for entity in ("{0}", "{0}__merged_into") for name in ("id", "name", "type"))
SHOWN = (
    "id", "agent_id", *(name.format("subject") for name in _OF_ENTITY), "predicate",
    *(name.format("object") for name in _OF_ENTITY), "valid_from", "valid_to", "confidence", "status", "trust",
    "fact_id", "turn_id", "created_at", "updated_at", "dated_at",
)  # fmt: skip


class Direction(StrEnum):
    OUTGOING = "outgoing"
    INCOMING = "incoming"
    BOTH = "both"


@dataclass(frozen=True)
class GraphStats:
    """How much of a graph is shown, and what its relations are called."""

    entities: int = 0
    triples: int = 0
    active: int = 0
    historical: int = 0
    future: int = 0
    predicates: Sequence[str] = ()


def with_names(triples: GraphTripleQuerySet) -> GraphTripleQuerySet:
    """The same with all that contexts and pages show of them."""
    return triples.select_related("subject__merged_into", "object__merged_into")


def as_rows(triples: GraphTripleQuerySet) -> Any:
    """The same as named tuples of SHOWN: five objects for each triple of a page would take most of its time."""
    return triples.values_list(*SHOWN, named=True)


def about(person: EndUser, triples: GraphTripleQuerySet, name: str, direction: str) -> GraphTripleQuerySet:
    """Those of the person's triples that the entity of this name is in; without such an entity none."""
    names = naming.called(person, name)
    if not names:
        return triples.none()
    is_subject, is_object = Q(subject__in=names), Q(object__in=names)
    wanted = {Direction.OUTGOING: is_subject, Direction.INCOMING: is_object, Direction.BOTH: is_subject | is_object}
    return triples.filter(wanted[Direction(direction)])


def touching(triples: GraphTripleQuerySet, names: Sequence[uuid.UUID]) -> GraphTripleQuerySet:
    """Those of the triples that one of these entities is in."""
    return triples.filter(Q(subject__in=names) | Q(object__in=names))


def between(triples: GraphTripleQuerySet, names: Sequence[uuid.UUID]) -> GraphTripleQuerySet:
    """Those of the triples that one of these entities is in: first what is between two of them, then the newest."""
    is_subject, is_object = Q(subject__in=names), Q(object__in=names)
    found = triples.filter(is_subject | is_object).annotate(
        has_both=ExpressionWrapper(is_subject & is_object, BooleanField())
    )
    return found.order_by("-has_both", "-dated_at", "-id")


def stats(triples: GraphTripleQuerySet, *, now: datetime) -> GraphStats:
    """Counts of these triples, as of now."""
    begun = Q(valid_from=None) | Q(valid_from__lte=now)
    ended = Q(valid_to__lte=now)
    counts = triples.aggregate(
        triples=Count("pk"),
        historical=Count("pk", filter=ended),
        active=Count("pk", filter=begun & (Q(valid_to=None) | Q(valid_to__gt=now))),
    )
    sides = [
        triples.order_by().values_list(Coalesce(f"{side}__merged_into", side), flat=True)
        for side in ("subject", "object")
    ]
    return GraphStats(
        entities=sides[0].union(sides[1]).count(),
        future=counts["triples"] - counts["historical"] - counts["active"],
        predicates=list(triples.order_by("predicate").values_list("predicate", flat=True).distinct()),
        **counts,
    )


def of_person(person: EndUser) -> GraphTripleQuerySet:
    """All triples of a person, in any state."""
    return GraphTriple.objects.of(person.tenant, person)
