"""/privacy/requests/{id}/export: the ZIP file of an access or portability request, once."""

import uuid
from typing import Any

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from memories.api.downloads import attached
from memories.api.endpoints import Endpoint
from memories.api.schema import operation
from memories.models import Scope
from memories.privacy import exporting


class ZipRenderer(BaseRenderer):
    """Names the type for the schema; the view answers with the bytes."""

    media_type = "application/zip"
    format = "zip"


class Always(BaseContentNegotiation):
    """There is one type, whatever Accept says: a refusal would not be about the export, and its readers differ."""

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
        answers={200: OpenApiTypes.BINARY},
        problems=(404, 409, 410),
    )
    def get(self, request: Request, case_id: uuid.UUID) -> HttpResponse:
        return attached(
            exporting.take_of_case(tenant=self.tenant, case_id=case_id, actor=self.actor, now=self.now),
        )
