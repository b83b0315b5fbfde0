"""/memory: one person's memory as a document, in the shape of DeerFlow's memory.json."""

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from memories.api import lookups
from memories.api.bound import Bound
from memories.api.endpoints import Endpoint
from memories.api.schema import operation
from memories.api.v1.memory.serializers import (
    DocumentSerializer,
    MemoryQuery,
    NamedDocumentSerializer,
    PersonParameter,
    TakenDocumentSerializer,
    document_of,
    facts_of,
    named_person,
    pending_of,
    sections_of,
)
from memories.api.visibility import FactVisibility
from memories.curation.people.records import person_for_writing
from memories.curation.statements.documents import import_document
from memories.models import EndUser, Fact, FactQuerySet, ProfileSection, Scope


class MemoryView(Endpoint):
    @operation(
        "getMemory",
        "Get a person's memory as one document",
        description="In the shape of DeerFlow's memory.json: the profile, and the active facts, the surest first.",
        scope=Scope.READ,
        bound=Bound.NAMED,
        parameters=[MemoryQuery],
        answers={200: DocumentSerializer},
    )
    def get(self, request: Request) -> Response:
        given = self.query(MemoryQuery)
        person = lookups.readable_person(tenant=self.tenant, user_id=given["user_id"])
        return Response(self._document(person, given) if person else document_of((), ()))

    @operation(
        "putMemory",
        "Take a memory document in",
        description=(
            "Its sections are written, its facts added or, where `id` is one of ours, changed. What it leaves out "
            "stays, and so does what an operator wrote. What speaks to a model, and what an agent or a tool states, "
            "waits for an operator; `pending` counts it. All or nothing: 409 `capacity` when a fact would be archived "
            "at once."
        ),
        scope=Scope.WRITE,
        bound=Bound.NAMED,
        request=NamedDocumentSerializer,
        parameters=[PersonParameter],
        answers={200: TakenDocumentSerializer},
        problems=(409, 410, 423),
    )
    def put(self, request: Request) -> Response:
        given, query = self.body(NamedDocumentSerializer), self.query(PersonParameter)
        user_id = named_person(given, query)
        person = person_for_writing(tenant=self.tenant, user_id=user_id, now=self.now)
        waiting = import_document(
            end_user=person,
            sections=sections_of(given),
            facts=facts_of(given),
            changeable=self._changeable(person, query),
            agent_id=self.caller.agent_id,
            actor=self.actor,
            now=self.now,
            voice=self.voice(given.get("stated_by")),
        )
        return Response(self._document(person, query) | pending_of(waiting))

    def _document(self, person: EndUser, query: dict[str, Any]) -> dict[str, Any]:
        """The profile, and the person's active facts that the caller sees."""
        sections = ProfileSection.objects.written().filter(tenant=person.tenant, end_user=person)
        facts = lookups.facts(self.tenant).filter(end_user=person).active(now=self.now)
        visible = FactVisibility.of(self.caller, query).filter(facts, person)
        return document_of(sections, list(visible.order_by("-confidence", "-created_at", "-id")))

    def _changeable(self, person: EndUser, query: dict[str, Any]) -> FactQuerySet:
        """The facts that the document may change: visible ones; under a key for one agent only that agent's."""
        visible = FactVisibility.of(self.caller, query).filter(Fact.objects.all(), person)
        return visible.filter(agent_id=self.caller.agent_id) if self.caller.agent_id else visible
