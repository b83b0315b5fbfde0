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
    named_agent,
    named_person,
    pending_of,
    sections_of,
)
from memories.api.visibility import FactVisibility
from memories.curation.people.clearing import clear_memories
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
            "Its sections are written, its facts added or, where the hub knows the `id`, changed. What it leaves out "
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
        user_id, agent_id = named_person(given, query), named_agent(given, query)
        query |= {"agent_id": agent_id} if agent_id else {}
        person = person_for_writing(tenant=self.tenant, user_id=user_id, now=self.now)
        waiting = import_document(
            end_user=person,
            sections=sections_of(given),
            facts=facts_of(given),
            visible=self._visible(Fact.objects.all(), person, query),
            agent_id=agent_id,
            updated=given.get("lastUpdated") or "",
            actor=self.actor,
            now=self.now,
            write_trust=self.write_trust(given.get("stated_by")),
        )
        return Response(self._document(person, query) | pending_of(waiting))

    @operation(
        "clearMemory",
        "Clear a person's memory",
        description=(
            "Moves facts, episodes, memory files, diary entries and what the person stated in groups to the trash and "
            "empties the profile; with `agent_id`, only what is that agent's. What an operator wrote stays, and so do "
            "turns, and what other members stated, too. A key that writes as an agent clears nothing, and gets 409 "
            "`review_needed`, where something of it is not its to end. Answers the document as it is afterwards."
        ),
        scope=Scope.WRITE,
        bound=Bound.NAMED,
        parameters=[MemoryQuery],
        answers={200: DocumentSerializer},
        problems=(409, 423),
    )
    def delete(self, request: Request) -> Response:
        given = self.query(MemoryQuery)
        person = lookups.find_person(tenant=self.tenant, user_id=given["user_id"])
        if person is None:
            return Response(document_of((), ()))
        clear_memories(
            end_user=person,
            visible=FactVisibility.of(self.caller, given).of_agents(Fact.objects.all(), person),
            agent_id=given.get("agent_id") or "",
            actor=self.actor,
            now=self.now,
            write_trust=self.write_trust(),
        )
        return Response(self._document(person, given))

    def _document(self, person: EndUser, query: dict[str, Any]) -> dict[str, Any]:
        """The profile, and the person's active facts that the caller sees."""
        sections = ProfileSection.objects.written().filter(tenant=person.tenant, end_user=person)
        sections = sections.served_to(query.get("agent_id") or "")
        facts = lookups.facts(self.tenant).filter(end_user=person).active(now=self.now)
        visible = self._visible(facts, person, query).latest_for(query.get("agent_id") or "")
        return document_of(sections, list(visible.order_by("-confidence", "-created_at", "-id")))

    def _visible(self, facts: FactQuerySet, person: EndUser, query: dict[str, Any]) -> FactQuerySet:
        """What the caller sees; of an agent's document, also with the scope `read_all`, what that agent does."""
        visible = FactVisibility.of(self.caller, query).filter(facts, person)
        agent_id = query.get("agent_id")
        return visible.for_agent(agent_id) if agent_id else visible
