"""/users: the people of the key's tenant."""

from itertools import groupby

from django.db import transaction
from django.db.models import F, Q
from rest_framework.request import Request
from rest_framework.response import Response

from memories.api import lookups
from memories.api.bound import Bound, people_of
from memories.api.endpoints import Endpoint
from memories.api.schema import operation
from memories.api.v1.fields import page_of
from memories.api.v1.people.serializers import (
    PeopleQuery,
    PersonChangesSerializer,
    PersonDetailSerializer,
    PersonSerializer,
)
from memories.api.v1.profile.serializers import PersonQuery
from memories.curation.people.records import update_person
from memories.embedding import vectors
from memories.extraction import turn_reader
from memories.models import EndUser, Episode, EpisodeStatus, Fact, Scope, Status, Turn
from memories.text.transcript import fed


class PeopleView(Endpoint):
    @operation(
        "listUsers",
        "List the people, newest first",
        scope=Scope.READ,
        bound=Bound.PEOPLE,
        parameters=[PeopleQuery],
        answers={200: page_of(PersonSerializer)},
    )
    def get(self, request: Request) -> Response:
        given = self.query(PeopleQuery)
        people = people_of(self.caller)
        if "q" in given:
            people = people.filter(Q(external_id__icontains=given["q"]) | Q(display_name__icontains=given["q"]))
        return self.listed(people, PersonSerializer, given=given)


class PersonView(Endpoint):
    @operation(
        "getUser",
        "Get a person, with counts and what still waits",
        scope=Scope.READ,
        bound=Bound.NAMED,
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
        description="What an operator switched off, of `capture` and `serve`, answers 409 `operator_word`.",
        scope=Scope.WRITE,
        bound=Bound.NAMED,
        request=PersonChangesSerializer,
        parameters=[PersonQuery],
        answers={200: PersonDetailSerializer},
        problems=(404, 409, 423),
    )
    def patch(self, request: Request) -> Response:
        user_id = self.query(PersonQuery)["user_id"]
        changes = self.body(PersonChangesSerializer)
        person = lookups.person(tenant=self.tenant, user_id=user_id)
        return self._detail(update_person(end_user=person, changes=changes, actor=self.actor, now=self.now))

    def _detail(self, person: EndUser) -> Response:
        facts = Fact.objects.of(person.tenant, person)
        episodes = Episode.objects.of(person.tenant, person)
        counts = {
            "sessions": person.sessions.count(),
            "turns": person.turns.count(),
            "facts": facts.filter(status=Status.ACTIVE).count(),
            "episodes": episodes.filter(status=EpisodeStatus.ACTIVE).count(),
        }
        pending = {"extraction": _unread_turns(person), "embedding": vectors.pending_texts(person)}
        return Response({**self.shown(person, PersonSerializer), "counts": counts, "pending": pending})


def _unread_turns(person: EndUser) -> int:
    """Turns beyond the watermark that extraction will be shown."""
    waiting = Q(session__queue__due_at__isnull=False) | Q(session__queue__parked_at__isnull=False)
    beyond = Turn.objects.current().filter(waiting, end_user=person, number__gt=F("session__queue__extracted_number"))
    turns = beyond.order_by("session", "number").only("session", *turn_reader.READ)
    # In a transaction the rows come a few at a time, also behind policies.
    with transaction.atomic():
        sessions = groupby(turns.iterator(chunk_size=turn_reader.PAGE), key=lambda turn: turn.session_id)
        return sum(1 for _, own in sessions for _ in fed(own))
