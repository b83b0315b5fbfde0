"""/privacy/requests: what people ask about their data. A key opens the case and takes the export; staff do the rest."""

import uuid
from typing import Any

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from memories.api import lookups
from memories.api.bound import Bound
from memories.api.downloads import attached
from memories.api.endpoints import Endpoint
from memories.api.schema import operation
from memories.api.v1.privacy.serializers import PrivacyCaseSerializer, PrivacyRequestSerializer
from memories.models import Scope
from memories.privacy import cases
from memories.privacy.exports import downloads


class PrivacyRequestsView(Endpoint):
    @operation(
        "createPrivacyRequest",
        "Take in what a person asks about their data",
        description="Opens a case. Staff check who asks, and two of them approve an erasure: no key can.",
        scope=Scope.PRIVACY,
        bound=Bound.NAMED,
        request=PrivacyRequestSerializer,
        answers={202: PrivacyCaseSerializer},
        problems=(404,),
        idempotent=True,
    )
    def post(self, request: Request) -> Response:
        given = self.body(PrivacyRequestSerializer)
        case = cases.open_case(tenant=self.tenant, actor=self.actor, now=self.now, **given)
        if case.end_user_id:
            self.subjects.add(case.end_user_id)
        return Response(self.shown(case, PrivacyCaseSerializer), status=202)


class PrivacyRequestView(Endpoint):
    @operation(
        "getPrivacyRequest",
        "Get a privacy case: where it stands, when it is due, and its receipt",
        scope=Scope.PRIVACY,
        bound=Bound.CASE,
        answers={200: PrivacyCaseSerializer},
        problems=(404,),
    )
    def get(self, request: Request, case_id: uuid.UUID) -> Response:
        return Response(self.shown(lookups.case(tenant=self.tenant, case_id=case_id), PrivacyCaseSerializer))


class ZipRenderer(BaseRenderer):
    """Names the type for the schema; the view answers with the bytes."""

    media_type = "application/zip"
    format = "zip"


class Always(BaseContentNegotiation):
    """One type, whatever Accept says: a refusal for the header would not be about the export."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        return parsers[0]

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        return renderers[0], renderers[0].media_type


class PrivacyExportView(Endpoint):
    # No HEAD: it would do what GET does, and GET takes the export away.
    http_method_names = ["get"]
    renderer_classes = (ZipRenderer,)
    content_negotiation_class = Always

    @operation(
        "takePrivacyExport",
        "Download the export of a privacy request, once",
        description="The hub keeps no copy: the content goes with the answer.",
        scope=Scope.PRIVACY,
        bound=Bound.EXPORT,
        answers={200: OpenApiTypes.BINARY},
        problems=(404, 409, 410),
    )
    def get(self, request: Request, case_id: uuid.UUID) -> StreamingHttpResponse:
        download = downloads.take_of_case(tenant=self.tenant, case_id=case_id, actor=self.actor, now=self.now)
        return attached(download)
