"""/dreams: what a model made of new episodes in a person's memory files."""

import uuid

from rest_framework.request import Request
from rest_framework.response import Response

from memories.api import lookups
from memories.api.bound import Bound
from memories.api.endpoints import Endpoint
from memories.api.schema import etag, if_match, operation
from memories.api.v1.dreams.serializers import (
    DreamSerializer,
    DreamsQuery,
    DreamWithEditsSerializer,
    NewDreamSerializer,
    RestoredDreamSerializer,
)
from memories.api.v1.fields import page_of
from memories.api.v1.filters import selected
from memories.dream.deciding import restore
from memories.dream.dreaming import dream_by_hand
from memories.models import Dream, Scope


class DreamsView(Endpoint):
    @operation(
        "listDreams",
        "List the dreams about a person, newest first",
        scope=Scope.READ,
        bound=Bound.NAMED,
        parameters=[DreamsQuery],
        answers={200: page_of(DreamSerializer)},
    )
    def get(self, request: Request) -> Response:
        given = self.query(DreamsQuery)
        person = lookups.readable_person(tenant=self.tenant, user_id=given["user_id"])
        rows = lookups.dreams(self.tenant).filter(end_user=person) if person else Dream.objects.none()
        rows = selected(rows.filter(agent_id=given.get("agent_id") or ""), DreamsQuery, given)
        return self.listed(rows, DreamSerializer, given=given, ordering=["-started_at", "-id"])

    @operation(
        "startDream",
        "Begin a dream about a person now",
        description=(
            "A worker carries it out, whatever the tenant's interval. Without new episodes there is nothing to do and "
            "no call: 409 `nothing_new`. While a dream runs or waits for approval it answers 409 `dream_open`, and "
            "without a language model 409 `no_model`."
        ),
        scope=Scope.WRITE,
        bound=Bound.NAMED,
        request=NewDreamSerializer,
        answers={202: DreamSerializer},
        problems=(404, 409, 423),
        idempotent=True,
    )
    def post(self, request: Request) -> Response:
        given = self.body(NewDreamSerializer)
        person = lookups.person(tenant=self.tenant, user_id=given["user_id"])
        self.subjects.add(person.pk)
        dream = dream_by_hand(person=person, agent_id=given.get("agent_id") or "", actor=self.actor, now=self.now)
        return self.versioned(dream, DreamSerializer, status=202)


class DreamView(Endpoint):
    @operation(
        "getDream",
        "Get a dream with each edit that was proposed",
        scope=Scope.READ,
        bound=Bound.DREAM,
        parameters=[etag(200)],
        answers={200: DreamWithEditsSerializer},
        problems=(404, 423),
    )
    def get(self, request: Request, dream_id: uuid.UUID) -> Response:
        dream = lookups.dream(tenant=self.tenant, dream_id=dream_id)
        lookups.require_unrestricted(dream.end_user)
        return self.versioned(dream, DreamWithEditsSerializer)


class DreamRestoreView(Endpoint):
    @operation(
        "restoreDream",
        "Make the files what they were before a dream",
        description=(
            "Later dreams about the same files are taken back, too, and the episodes of all of them are new again. A "
            "file that somebody else changed since stays as it is and counts as `kept`; if all stay, it answers 409 "
            "`nothing_to_restore`. For a key that writes as an agent, 409 `review_needed` where an operator took an "
            "edit over: it ends nothing that has more trust than itself."
        ),
        scope=Scope.WRITE,
        bound=Bound.DREAM,
        parameters=[if_match(), etag(200)],
        answers={200: RestoredDreamSerializer},
        problems=(404, 409, 412, 423),
        idempotent=True,
    )
    def post(self, request: Request, dream_id: uuid.UUID) -> Response:
        dream = lookups.dream(tenant=self.tenant, dream_id=dream_id)
        self.subjects.add(dream.end_user_id)
        _dream, kept = restore(
            dream_id=dream.pk,
            actor=self.actor,
            now=self.now,
            expected_version=self.expected_version(),
            write_trust=self.write_trust(),
        )
        fresh = lookups.dream(tenant=self.tenant, dream_id=dream_id)
        shown = RestoredDreamSerializer(fresh, context={"now": self.now, "kept": kept}).data
        return Response(shown, headers={"ETag": f'"{fresh.version}"'})
