"""/graph: triples are stated, ended and replaced; what holds of an entity, a predicate, at a time."""

from collections.abc import Iterable
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from memories.api import lookups
from memories.api.bound import Bound
from memories.api.endpoints import Endpoint
from memories.api.pagination import CursorPages
from memories.api.schema import operation
from memories.api.v1.graph.serializers import (
    EndedTriplesSerializer,
    EntityQuery,
    GraphStatsQuery,
    GraphStatsSerializer,
    InvalidationSerializer,
    NewTripleSerializer,
    RelationsQuery,
    SupersessionSerializer,
    TimelineQuery,
    TriplePageSerializer,
    TripleSerializer,
    triple_answer,
)
from memories.api.visibility import FactVisibility
from memories.curation.graph.stating import TripleDraft, TripleRelation, add_triple, end_triples, supersede_triple
from memories.curation.people.records import person_for_writing
from memories.exceptions import InvalidInput
from memories.graph import naming, reading
from memories.models import EndUser, Fact, GraphTriple, GraphTripleQuerySet, Scope

# What a body says of a triple beside its relation.
OF_DRAFT = ("valid_from", "valid_to", "confidence", "subject_type", "object_type", "turn_id")


class GraphEndpoint(Endpoint):
    """What the views of the graph share."""

    def visible(self, person: EndUser, given: dict[str, Any]) -> GraphTripleQuerySet:
        """The triples that are served to the caller."""
        visibility = FactVisibility.of(self.caller, given)
        return GraphTriple.objects.of(self.tenant, person).shown(
            visibility.filter(Fact.objects.of(self.tenant, person), person),
            agent_id=visibility.agent_id,
            sees_all=visibility.sees_all and not visibility.agent_only,
        )

    def asked(self, given: dict[str, Any]) -> tuple[EndUser | None, GraphTripleQuerySet]:
        """Whose graph is read, and what of it is shown at the moment asked for; nothing of nobody."""
        person = lookups.readable_person(tenant=self.tenant, user_id=given["user_id"])
        if person is None:
            return None, GraphTriple.objects.none()
        rows = self.visible(person, given)
        return person, rows.held_at(given["as_of"]) if given.get("as_of") else rows

    def page(self, rows: GraphTripleQuerySet, given: dict[str, Any]) -> Response:
        """A page of these triples from the first to the last, and how many there are."""
        pages = CursorPages(self.request, tenant_id=self.tenant.pk, ordering=reading.BY_TIME)
        found, following, previous = pages.page(
            reading.as_rows(rows), size=given["page_size"], cursor=given.get("cursor")
        )
        total = rows.count() if following or previous else len(found)
        return Response({"next": following, "previous": previous, "total": total, "results": self.answers(found)})

    def answers(self, rows: Iterable[Any]) -> list[dict[str, Any]]:
        return [triple_answer(row, now=self.now) for row in rows]

    def triple(self, triple: GraphTriple, *, status: int) -> Response:
        self.subjects.add(triple.end_user_id)
        [answer] = self.answers(reading.as_rows(GraphTriple.objects.filter(pk=triple.pk)))
        return Response(answer, status=status)

    def person(self, user_id: str, *, named: Any = None) -> EndUser:
        """The person to write about. An unknown one has no turns, and a refused request makes nobody."""
        if named and lookups.find_person(tenant=self.tenant, user_id=user_id) is None:
            raise InvalidInput.at("/turn_id", "The person has no turn with this id.", code="does_not_exist")
        return person_for_writing(tenant=self.tenant, user_id=user_id, now=self.now)


class TriplesView(GraphEndpoint):
    @operation(
        "addTriple",
        "State a triple",
        description=(
            "The same relation that still holds, or has this very interval, is answered itself: 200. By a key that "
            "writes as the user it is served at once. It is `pending`, and served nowhere, until an operator approves "
            "it when an agent or a tool states it, or when it speaks to a model. An end before the start is a 400."
        ),
        scope=Scope.WRITE,
        bound=Bound.NAMED,
        request=NewTripleSerializer,
        answers={200: TripleSerializer, 201: TripleSerializer},
        problems=(409, 410, 423),
        idempotent=True,
    )
    def post(self, request: Request) -> Response:
        given = self.body(NewTripleSerializer)
        person = self.person(given["user_id"], named=given.get("turn_id"))
        named = {name: given[name] for name in OF_DRAFT if name in given}
        stated = add_triple(
            end_user=person,
            draft=TripleDraft(_relation(given, given["object"]), **named),
            actor=self.actor,
            now=self.now,
            write_trust=self.write_trust(given.get("stated_by")),
        )
        return self.triple(stated.row, status=201 if stated.is_new else 200)


class InvalidationView(GraphEndpoint):
    @operation(
        "invalidateTriple",
        "End what holds no longer",
        description="The open triples of this relation hold until before `ended`. Sent again it ends nothing. A triple "
        "of a fact answers 409 `of_fact`: change the fact.",
        scope=Scope.WRITE,
        bound=Bound.NAMED,
        request=InvalidationSerializer,
        answers={200: EndedTriplesSerializer},
        problems=(404, 409, 423),
        idempotent=True,
    )
    def post(self, request: Request) -> Response:
        given = self.body(InvalidationSerializer)
        person = lookups.require_unrestricted(lookups.person(tenant=self.tenant, user_id=given["user_id"]))
        ended = end_triples(
            end_user=person,
            relation=_relation(given, given["object"]),
            ended=given.get("ended", self.now),
            actor=self.actor,
            now=self.now,
            write_trust=self.write_trust(given.get("stated_by")),
        )
        self.subjects.add(person.pk)
        ids = [one.pk for one in ended]
        rows = reading.as_rows(GraphTriple.objects.filter(pk__in=ids)).order_by(*reading.BY_TIME)
        return Response({"triples": self.answers(rows)})


class SupersessionView(GraphEndpoint):
    @operation(
        "supersedeTriple",
        "Replace what holds by something else",
        description="At one moment the old triple ends and the new one begins: both, or neither. Sent again, or done "
        "before, it answers the new one: 200. When none is open any more the answer is 409. What would have to wait "
        "for an operator replaces nothing: 409 `review_needed`.",
        scope=Scope.WRITE,
        bound=Bound.NAMED,
        request=SupersessionSerializer,
        answers={200: TripleSerializer, 201: TripleSerializer},
        problems=(404, 409, 423),
        idempotent=True,
    )
    def post(self, request: Request) -> Response:
        given = self.body(SupersessionSerializer)
        person = lookups.require_unrestricted(lookups.person(tenant=self.tenant, user_id=given["user_id"]))
        draft = TripleDraft(
            _relation(given, given["new_object"]),
            confidence=given["confidence"],
            object_type=given.get("object_type", ""),
            turn_id=given.get("turn_id"),
        )
        stated = supersede_triple(
            end_user=person,
            old=_relation(given, given["old_object"]),
            draft=draft,
            at=given.get("at"),
            actor=self.actor,
            now=self.now,
            write_trust=self.write_trust(given.get("stated_by")),
        )
        return self.triple(stated.row, status=201 if stated.is_new else 200)


class EntitiesView(GraphEndpoint):
    @operation(
        "listEntityTriples",
        "List what holds of an entity",
        scope=Scope.READ,
        bound=Bound.NAMED,
        parameters=[EntityQuery],
        answers={200: TriplePageSerializer},
    )
    def get(self, request: Request) -> Response:
        given = self.query(EntityQuery)
        person, rows = self.asked(given)
        if person:
            rows = reading.about(person, rows, given["name"], given["direction"])
        return self.page(rows, given)


class RelationsView(GraphEndpoint):
    @operation(
        "listRelationTriples",
        "List the triples of a predicate",
        scope=Scope.READ,
        bound=Bound.NAMED,
        parameters=[RelationsQuery],
        answers={200: TriplePageSerializer},
    )
    def get(self, request: Request) -> Response:
        given = self.query(RelationsQuery)
        _person, rows = self.asked(given)
        return self.page(rows.filter(predicate=naming.predicate_of(given["predicate"])), given)


class GraphTimelineView(GraphEndpoint):
    @operation(
        "listGraphTimeline",
        "List triples from the first to the last",
        description="Ordered by `valid_from`; what has none stands where it was stored.",
        scope=Scope.READ,
        bound=Bound.NAMED,
        parameters=[TimelineQuery],
        answers={200: TriplePageSerializer},
    )
    def get(self, request: Request) -> Response:
        given = self.query(TimelineQuery)
        person, rows = self.asked(given)
        if person and given.get("entity"):
            rows = reading.about(person, rows, given["entity"], reading.Direction.BOTH)
        return self.page(rows, given)


class GraphStatsView(GraphEndpoint):
    @operation(
        "getGraphStats",
        "Count a graph",
        scope=Scope.READ,
        bound=Bound.NAMED,
        parameters=[GraphStatsQuery],
        answers={200: GraphStatsSerializer},
    )
    def get(self, request: Request) -> Response:
        given = self.query(GraphStatsQuery)
        person = lookups.readable_person(tenant=self.tenant, user_id=given["user_id"])
        counted = reading.GraphStats()
        if person:
            counted = reading.stats(self.visible(person, given), now=given.get("as_of") or self.now)
        return Response(GraphStatsSerializer(counted).data)


def _relation(given: dict[str, Any], name: str) -> TripleRelation:
    """The relation that a body names, to the object of this name."""
    return TripleRelation(given["subject"], given["predicate"], name, given.get("agent_id") or "")
