"""/skills: the reviewed procedures that an agent is given."""

from typing import Any

from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from memories.api import lookups
from memories.api.bound import Bound
from memories.api.endpoints import Endpoint
from memories.api.schema import operation
from memories.api.v1.fields import page_of
from memories.api.v1.skills.serializers import (
    SkillSerializer,
    SkillsQuery,
    SkillVersionSerializer,
    SkillVersionsQuery,
    WholeSkillSerializer,
    whole,
)
from memories.exceptions import NotFound
from memories.models import Scope, SkillTrial, SkillVersion
from memories.skills import serving, trials
from memories.skills.serving import Offer

_NAME = OpenApiParameter("name", OpenApiTypes.STR, OpenApiParameter.PATH)


class SkillEndpoint(Endpoint):
    """What the views of skills share."""

    def offer(self, given: dict[str, Any]) -> Offer:
        """What the session is given; of somebody under restriction nothing. Errors: PersonRestricted."""
        person = lookups.find_person(tenant=self.tenant, user_id=given["user_id"])
        person = lookups.require_unrestricted(person) if person else None
        session = serving.Session(self.tenant, person, given.get("agent_id") or "", given.get("session_id") or "")
        return serving.offer(session)


class SkillsView(SkillEndpoint):
    @operation(
        "listSkills",
        "List the skills that an agent is given",
        description="Procedures that were made of trajectories, and reviewed by an operator. "
        "All in one answer. That the session was given them counts as a trial.",
        scope=Scope.READ,
        bound=Bound.NAMED,
        parameters=[SkillsQuery],
        answers={200: page_of(SkillSerializer)},
        problems=(423,),
    )
    def get(self, request: Request) -> Response:
        offered = self.offer(self.query(SkillsQuery))
        trials.note(offered, SkillTrial.Via.API, now=self.now)
        shown = [SkillSerializer(one).data for one in offered.served]
        return Response({"next": None, "previous": None, "results": shown})


class SkillView(SkillEndpoint):
    @operation(
        "getSkill",
        "Read a skill",
        description="Its file and how its trials came out. One that this session is not given is not found.",
        scope=Scope.READ,
        bound=Bound.NAMED,
        parameters=[SkillsQuery, _NAME],
        answers={200: WholeSkillSerializer},
        problems=(404, 423),
    )
    def get(self, request: Request, name: str) -> Response:
        offered = self.offer(self.query(SkillsQuery))
        found = offered.named(name)
        trials.note(offered, SkillTrial.Via.API, now=self.now, read=[name] if found else [])
        if found is None:
            raise NotFound
        return Response(whole(found, trials.figures(found.version)))


class SkillVersionsView(SkillEndpoint):
    @operation(
        "listSkillVersions",
        "List the versions of a skill that were in use, newest first",
        scope=Scope.READ,
        bound=Bound.NAMED,
        parameters=[SkillVersionsQuery, _NAME],
        answers={200: page_of(SkillVersionSerializer)},
        problems=(404, 423),
    )
    def get(self, request: Request, name: str) -> Response:
        given = self.query(SkillVersionsQuery)
        found = self.offer(given).named(name)
        if found is None:
            raise NotFound
        rows = SkillVersion.objects.filter(skill=found.version.skill, served_from__isnull=False)
        return self.listed(rows, SkillVersionSerializer, given=given, ordering=["-number"])


URLS = (
    path("skills", SkillsView.as_view()),
    path("skills/<slug:name>", SkillView.as_view()),
    path("skills/<slug:name>/versions", SkillVersionsView.as_view()),
)
