"""/memory: one person's memory as a document, in the shape of DeerFlow's memory.json."""

from collections.abc import Sequence
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from memories import curation
from memories.api import lookups
from memories.api.endpoints import Endpoint
from memories.api.schema import operation
from memories.api.v1.serializers.memory import (
    DocumentSerializer,
    NamedDocumentSerializer,
    PersonParameter,
    document_of,
    facts_of,
    named_person,
    sections_of,
)
from memories.api.v1.serializers.profile import PersonQuery
from memories.models import EndUser, Fact, ProfileSection, Scope


class MemoryView(Endpoint):
    @operation(
        "getMemory",
        "Get a person's memory as one document",
        description="In the shape of DeerFlow's memory.json: the profile, and the active facts, the surest first.",
        scope=Scope.READ,
        parameters=[PersonQuery],
        answers={200: DocumentSerializer},
    )
    def get(self, request: Request) -> Response:
        user_id = self.query(PersonQuery)["user_id"]
        person = lookups.told_person(tenant=self.tenant, user_id=user_id)
        return Response(self._document(person) if person else document_of((), ()))

    @operation(
        "putMemory",
        "Take a memory document in",
        description=(
            "Its sections are written, its facts added or, where `id` is one of ours, changed. What it leaves out "
            "stays, and so does what an operator wrote. All or nothing: 409 `capacity` when a fact would be archived "
            "at once."
        ),
        scope=Scope.WRITE,
        request=NamedDocumentSerializer,
        parameters=[PersonParameter],
        answers={200: DocumentSerializer},
        problems=(409, 410, 423),
    )
    def put(self, request: Request) -> Response:
        given = self.body(NamedDocumentSerializer)
        user_id = named_person(given, self.query(PersonParameter))
        person = curation.person_for_writing(tenant=self.tenant, user_id=user_id, now=self.now)
        curation.import_document(
            end_user=person, sections=sections_of(given), facts=facts_of(given), actor=self.actor, now=self.now
        )
        return Response(self._document(person))

    def _document(self, person: EndUser) -> dict[str, Any]:
        sections = ProfileSection.objects.written().filter(tenant=person.tenant, end_user=person)
        return document_of(sections, self._facts(person))

    def _facts(self, person: EndUser) -> Sequence[Fact]:
        """What any caller may be served of the person's own facts."""
        facts = lookups.facts(self.tenant).filter(end_user=person).active(now=self.now)
        served = facts.visible_to(user_id=person.external_id, agent_id="", roles=[], person=person)
        return list(served.order_by("-confidence", "-created_at", "-id"))
