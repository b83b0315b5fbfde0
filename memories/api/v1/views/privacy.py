"""/privacy/requests: what people ask of what is kept about them. A key takes it in; all that follows takes staff."""

import uuid

from rest_framework.request import Request
from rest_framework.response import Response

from memories.api import lookups
from memories.api.endpoints import Endpoint
from memories.api.schema import operation
from memories.api.v1.serializers.privacy import PrivacyCaseSerializer, PrivacyRequestSerializer
from memories.models import Scope
from memories.privacy import cases


class PrivacyRequestsView(Endpoint):
    @operation(
        "createPrivacyRequest",
        "Take in what a person asks about their data",
        description="Opens a case. Staff check who asks, and two of them approve an erasure: no key can.",
        scope=Scope.PRIVACY,
        request=PrivacyRequestSerializer,
        answers={202: PrivacyCaseSerializer},
        problems=(404,),
        idempotent=True,
    )
    def post(self, request: Request) -> Response:
        given = self.body(PrivacyRequestSerializer)
        case = cases.open_case(tenant=self.tenant, actor=self.actor, now=self.now, **given)
        if case.end_user_id:
            # The kept answer names them: it goes when they do.
            self.told_people.add(case.end_user_id)
        return Response(self.shown(case, PrivacyCaseSerializer), status=202)


class PrivacyRequestView(Endpoint):
    @operation(
        "getPrivacyRequest",
        "Get a privacy case: where it stands, when it is due, and its receipt",
        scope=Scope.PRIVACY,
        answers={200: PrivacyCaseSerializer},
        problems=(404,),
    )
    def get(self, request: Request, case_id: uuid.UUID) -> Response:
        return Response(self.shown(lookups.case(tenant=self.tenant, case_id=case_id), PrivacyCaseSerializer))
