"""/users: the people of the key's tenant."""

from django.db.models import Q
from rest_framework.request import Request
from rest_framework.response import Response

from memories import curation
from memories.api import lookups
from memories.api.endpoints import Endpoint
from memories.api.schema import operation
from memories.api.v1.counts import counts_of, pending_of
from memories.api.v1.serializers.page import page_of
from memories.api.v1.serializers.people import (
    PeopleQuery,
    PersonChangesSerializer,
    PersonDetailSerializer,
    PersonSerializer,
)
from memories.api.v1.serializers.profile import PersonQuery
from memories.models import EndUser, Scope


class PeopleView(Endpoint):
    @operation(
        "listUsers",
        "List the people, newest first",
        scope=Scope.READ,
        parameters=[PeopleQuery],
        answers={200: page_of(PersonSerializer)},
    )
    def get(self, request: Request) -> Response:
        given = self.query(PeopleQuery)
        people = EndUser.objects.of(self.tenant).themselves()
        if "q" in given:
            people = people.filter(Q(external_id__icontains=given["q"]) | Q(display_name__icontains=given["q"]))
        return self.listed(people, PersonSerializer, given=given)


class PersonView(Endpoint):
    @operation(
        "getUser",
        "Get a person, with counts and what still waits",
        scope=Scope.READ,
        parameters=[PersonQuery],
        answers={200: PersonDetailSerializer},
        problems=(404,),
    )
    def get(self, request: Request) -> Response:
        user_id = self.query(PersonQuery)["user_id"]
        return self._detail(lookups.person(tenant=self.tenant, user_id=user_id))

    @operation(
        "changeUser",
        "Change a person's record",
        scope=Scope.WRITE,
        request=PersonChangesSerializer,
        parameters=[PersonQuery],
        answers={200: PersonDetailSerializer},
        problems=(404, 423),
    )
    def patch(self, request: Request) -> Response:
        user_id = self.query(PersonQuery)["user_id"]
        changes = self.body(PersonChangesSerializer)
        person = lookups.person(tenant=self.tenant, user_id=user_id)
        return self._detail(curation.update_person(end_user=person, changes=changes, actor=self.actor, now=self.now))

    def _detail(self, person: EndUser) -> Response:
        record = self.shown(person, PersonSerializer)
        return Response({**record, "counts": counts_of(person), "pending": pending_of(person)})
