"""/facts: what is remembered, one statement at a time."""

import uuid
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from memories import curation
from memories.api import lookups
from memories.api.endpoints import Endpoint
from memories.api.schema import etag, if_match, operation
from memories.api.v1.serializers.facts import (
    ANY_STATUS,
    Deletion,
    FactChangesSerializer,
    FactFeedbackSerializer,
    FactSerializer,
    FactsQuery,
    NewFactSerializer,
    RestoreSerializer,
    RevisionSerializer,
    expected_version,
)
from memories.api.v1.serializers.fields import PageQuery
from memories.api.v1.serializers.page import page_of
from memories.curation import FactDraft
from memories.models import Fact, Scope


class FactEndpoint(Endpoint):
    """What the views of one fact share."""

    def fact_answer(self, fact_id: uuid.UUID, *, status: int = 200) -> Response:
        """The fact as it is now, after a change."""
        return self.shown_fact(lookups.fact(tenant=self.tenant, fact_id=fact_id), status=status)

    def shown_fact(self, fact: Fact, *, status: int = 200) -> Response:
        """The fact with its version as ETag."""
        self.told_fact = fact.pk
        self.told_people.add(fact.end_user_id)
        return Response(self.shown(fact, FactSerializer), status=status, headers={"ETag": f'"{fact.version}"'})

    def change(self, fact_id: uuid.UUID) -> dict[str, Any]:
        """What every verb on a fact is given: which one, by whom, when, and at which version."""
        return {
            "fact_id": fact_id,
            "tenant": self.tenant,
            "actor": self.actor,
            "now": self.now,
            "expected_version": expected_version(self.request.headers.get("If-Match")),
        }


class FactsView(FactEndpoint):
    @operation(
        "listFacts",
        "List a person's facts, newest first",
        scope=Scope.READ,
        parameters=[FactsQuery],
        answers={200: page_of(FactSerializer)},
    )
    def get(self, request: Request) -> Response:
        given = self.query(FactsQuery)
        person = lookups.told_person(tenant=self.tenant, user_id=given["user_id"])
        rows = lookups.facts(self.tenant).filter(end_user=person) if person else Fact.objects.none()
        return self.listed(rows.filter(**_filters(given)), FactSerializer, given=given)

    @operation(
        "addFact",
        "State a fact",
        description="It is active at once, with trust `user`. The same text again is a 409 that names the known fact.",
        scope=Scope.WRITE,
        request=NewFactSerializer,
        parameters=[etag(201)],
        answers={201: FactSerializer},
        problems=(409, 410, 423),
        idempotent=True,
    )
    def post(self, request: Request) -> Response:
        given = self.body(NewFactSerializer)
        person = curation.person_for_writing(tenant=self.tenant, user_id=given.pop("user_id"), now=self.now)
        fact = curation.add_fact(end_user=person, draft=FactDraft(**given), actor=self.actor, now=self.now)
        return self.fact_answer(fact.pk, status=201)


class FactView(FactEndpoint):
    @operation(
        "getFact",
        "Get a fact",
        scope=Scope.READ,
        parameters=[etag(200)],
        answers={200: FactSerializer},
        problems=(404, 423),
    )
    def get(self, request: Request, fact_id: uuid.UUID) -> Response:
        return self.shown_fact(lookups.tell(lookups.fact(tenant=self.tenant, fact_id=fact_id)))

    @operation(
        "changeFact",
        "Change the named fields of a fact",
        description=(
            "A fact that an operator corrected, pinned or locked answers 409 `operator_word`. One that a key locked "
            "answers 409 `locked`, unless the change lifts the lock."
        ),
        scope=Scope.WRITE,
        request=FactChangesSerializer,
        parameters=[if_match(), etag(200)],
        answers={200: FactSerializer},
        problems=(404, 409, 412, 423),
    )
    def patch(self, request: Request, fact_id: uuid.UUID) -> Response:
        changes = self.body(FactChangesSerializer)
        curation.edit_fact(changes=changes, **self.change(fact_id))
        return self.fact_answer(fact_id)

    @operation(
        "deleteFact",
        "Forget a fact",
        description="It goes to the trash, and what it says is not taken from a conversation again.",
        scope=Scope.WRITE,
        parameters=[Deletion, if_match()],
        answers={204: None},
        problems=(404, 409, 412, 423),
    )
    def delete(self, request: Request, fact_id: uuid.UUID) -> Response:
        forget = curation.delete_fact if self.query(Deletion)["hard"] else curation.forget_fact
        forget(**self.change(fact_id))
        return Response(status=204)


class FactHistoryView(Endpoint):
    @operation(
        "listFactHistory",
        "List a fact's versions, newest first",
        scope=Scope.READ,
        parameters=[PageQuery],
        answers={200: page_of(RevisionSerializer)},
        problems=(404, 423),
    )
    def get(self, request: Request, fact_id: uuid.UUID) -> Response:
        given = self.query(PageQuery)
        fact = lookups.tell(lookups.fact(tenant=self.tenant, fact_id=fact_id))
        return self.listed(fact.revisions.all(), RevisionSerializer, given=given, ordering=["-version"])


class FactRestoreView(FactEndpoint):
    @operation(
        "restoreFact",
        "Bring a fact back from the trash, or to what it said in an earlier version",
        scope=Scope.WRITE,
        request=RestoreSerializer,
        parameters=[if_match(), etag(200)],
        answers={200: FactSerializer},
        problems=(404, 409, 412, 423),
        idempotent=True,
    )
    def post(self, request: Request, fact_id: uuid.UUID) -> Response:
        version = self.body(RestoreSerializer).get("version")
        curation.restore_fact(version=version, **self.change(fact_id))
        return self.fact_answer(fact_id)


class FactFeedbackView(FactEndpoint):
    @operation(
        "giveFactFeedback",
        "Say whether a fact helped",
        description=(
            "A useful one counts as confirmed now and matters more (importance + 0.05), another matters less (− 0.1). "
            "What an operator corrected, pinned or locked stays as it is."
        ),
        scope=Scope.WRITE,
        request=FactFeedbackSerializer,
        parameters=[etag(200)],
        answers={200: FactSerializer},
        problems=(404, 409, 423),
        idempotent=True,
    )
    def post(self, request: Request, fact_id: uuid.UUID) -> Response:
        useful = self.body(FactFeedbackSerializer)["useful"]
        curation.give_feedback(fact_id=fact_id, tenant=self.tenant, useful=useful, actor=self.actor, now=self.now)
        return self.fact_answer(fact_id)


def _filters(given: dict[str, Any]) -> dict[str, Any]:
    """The list's parameters as look-ups of the ORM."""
    wanted = {
        "category": given.get("category"),
        "status": None if given["status"] == ANY_STATUS else given["status"],
        "tags__contains": [given["tag"]] if "tag" in given else None,
        "content__icontains": given.get("q"),
        "agent_id": given.get("agent_id"),
    }
    return {name: value for name, value in wanted.items() if value is not None}
