"""Reads the graph of a person: the triples of an entity, of a predicate, of all times, and how many there are."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.db.models import BooleanField, Count, ExpressionWrapper, Q
from django.db.models.functions import Coalesce

from memories.graph import naming
from memories.models import EndUser, GraphTriple, GraphTripleQuerySet

# From the first to the last; the id decides between those of one moment.
BY_TIME = ("dated_at", "id")


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
    """The same with all that answers and pages show of them."""
    return triples.select_related("subject__merged_into", "object__merged_into")


def about(person: EndUser, triples: GraphTripleQuerySet, name: str, direction: str) -> GraphTripleQuerySet:
    """Those of the person's triples that the entity of this name is in; without such an entity none."""
    entity = naming.find(person, name)
    if entity is None:
        return triples.none()
    names = naming.names_of(entity)
    is_subject, is_object = Q(subject__in=names), Q(object__in=names)
    wanted = {Direction.OUTGOING: is_subject, Direction.INCOMING: is_object, Direction.BOTH: is_subject | is_object}
    return triples.filter(wanted[Direction(direction)])


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
