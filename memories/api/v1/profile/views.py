"""/profile: six running summaries of a person."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from memories.api import lookups
from memories.api.bound import Bound
from memories.api.endpoints import Endpoint
from memories.api.schema import operation
from memories.api.v1.profile.serializers import (
    HeldSectionSerializer,
    ProfileQuery,
    ProfileSerializer,
    SummarySerializer,
    held_answer,
    profile_answer,
)
from memories.curation.people.records import person_for_writing
from memories.curation.profile.stating import state_profile_section
from memories.exceptions import NotFound
from memories.models import EndUser, ProfileSection, Scope, Section


class ProfileView(Endpoint):
    @operation(
        "getProfile",
        "Get a person's profile",
        scope=Scope.READ,
        bound=Bound.NAMED,
        parameters=[ProfileQuery],
        answers={200: ProfileSerializer},
    )
    def get(self, request: Request) -> Response:
        given = self.query(ProfileQuery)
        person = lookups.readable_person(tenant=self.tenant, user_id=given["user_id"])
        return Response(profile_answer(given["user_id"], _sections(person, given) if person else ()))


class ProfileSectionView(Endpoint):
    @operation(
        "writeProfileSection",
        "Write a section of a person's profile",
        description=(
            "An empty summary empties the section; one that an operator wrote answers 409 `operator_word`. What speaks "
            "to a model, and what an agent or a tool states, is held: 202, an operator is asked, and the old text goes "
            "on being served. What an operator turned down answers 409 `refused`."
        ),
        scope=Scope.WRITE,
        bound=Bound.NAMED,
        request=SummarySerializer,
        parameters=[OpenApiParameter("section", OpenApiTypes.STR, OpenApiParameter.PATH, enum=Section.values)],
        answers={200: ProfileSerializer, 202: HeldSectionSerializer},
        problems=(404, 409, 410, 423),
    )
    def put(self, request: Request, section: str) -> Response:
        if section not in Section.values:
            raise NotFound
        given = self.body(SummarySerializer)
        person = person_for_writing(tenant=self.tenant, user_id=given["user_id"], now=self.now)
        held = state_profile_section(
            end_user=person,
            section=section,
            summary=given["summary"],
            actor=self.actor,
            now=self.now,
            agent_id=given.get("agent_id") or "",
            write_trust=self.write_trust(given.get("stated_by")),
        )
        if held:
            return Response(held_answer(given["user_id"], _sections(person, given), held), status=202)
        return Response(profile_answer(given["user_id"], _sections(person, given)))


def _sections(person: EndUser, given: dict[str, Any]) -> list[ProfileSection]:
    """The person's own sections, then those of the agent that was named."""
    rows = ProfileSection.objects.written().filter(tenant=person.tenant, end_user=person)
    rows = rows.served_to(given.get("agent_id") or "")
    return list(rows.select_related("extraction__session"))
