"""/profile: six running summaries of a person."""

from rest_framework.request import Request
from rest_framework.response import Response

from memories import curation
from memories.api import lookups
from memories.api.endpoints import Endpoint
from memories.api.schema import operation, section_of_path
from memories.api.v1.serializers.profile import PersonQuery, ProfileSerializer, SummarySerializer, profile_answer
from memories.exceptions import NotFound
from memories.models import EndUser, ProfileSection, Scope, Section


class ProfileView(Endpoint):
    @operation(
        "getProfile",
        "Get a person's profile",
        scope=Scope.READ,
        parameters=[PersonQuery],
        answers={200: ProfileSerializer},
    )
    def get(self, request: Request) -> Response:
        user_id = self.query(PersonQuery)["user_id"]
        person = lookups.told_person(tenant=self.tenant, user_id=user_id)
        return Response(profile_answer(user_id, _sections(person) if person else ()))


class ProfileSectionView(Endpoint):
    @operation(
        "writeProfileSection",
        "Write a section of a person's profile",
        description="An empty summary empties the section; one that an operator wrote answers 409 `operator_word`.",
        scope=Scope.WRITE,
        request=SummarySerializer,
        parameters=[section_of_path()],
        answers={200: ProfileSerializer},
        problems=(404, 409, 410, 423),
    )
    def put(self, request: Request, section: str) -> Response:
        if section not in Section.values:
            raise NotFound
        given = self.body(SummarySerializer)
        person = curation.person_for_writing(tenant=self.tenant, user_id=given["user_id"], now=self.now)
        curation.write_profile_section(
            end_user=person, section=section, summary=given["summary"], actor=self.actor, now=self.now
        )
        return Response(profile_answer(given["user_id"], _sections(person)))


def _sections(person: EndUser) -> list[ProfileSection]:
    return list(ProfileSection.objects.written().filter(tenant=person.tenant, end_user=person))
