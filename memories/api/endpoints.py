"""The frame of every view: strict input, the caller, and lists in pages."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache, cached_property
from typing import Any
from uuid import UUID

from django.db.models import Model, QuerySet
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.views import APIView

from memories.api.authentication import Caller, caller_of
from memories.api.errors import faults_of
from memories.api.pagination import NEWEST_FIRST, CursorPages
from memories.api.parsers import accept_chunked
from memories.api.queries import parameters, refuse_parameters
from memories.api.throttles import KeyThrottle, rate_limit_headers
from memories.audit import Actor
from memories.exceptions import InvalidInput
from memories.models import Tenant


@cache
def _reader(expected: type[Serializer[Any]]) -> Serializer[Any]:
    """One for all threads: reading leaves nothing behind in it, and making its fields takes longer than that."""
    reader = expected()
    # Now, not in the first thread that reads.
    _ = reader.fields
    return reader


class Endpoint(APIView):
    """A view of version 1; its methods are declared with `@operation`."""

    http_method_names = ["get", "head", "post", "put", "patch", "delete"]
    throttle_classes = (KeyThrottle,)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        accept_chunked(request._request)
        if not getattr(getattr(self, (request.method or "").lower(), None), "takes_parameters", True):
            refuse_parameters(request._request)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        response = super().finalize_response(request, response, *args, **kwargs)
        for name, value in rate_limit_headers(request).items():
            response.headers[name] = value
        return response

    @cached_property
    def caller(self) -> Caller:
        caller = caller_of(self.request)
        if caller is None:
            raise TypeError("HasScope lets nobody in without a key")
        return caller

    @property
    def tenant(self) -> Tenant:
        return self.caller.tenant

    @property
    def actor(self) -> Actor:
        return self.caller.actor

    @cached_property
    def now(self) -> datetime:
        """The moment of this request: one reading of the clock."""
        return timezone.now()

    # What the answer tells of, for the record that is kept of it under an Idempotency-Key.
    told_fact: UUID | None = None

    @cached_property
    def told_people(self) -> set[UUID]:
        return set()

    def body(self, expected: type[Serializer[Any]]) -> dict[str, Any]:
        """The validated body. Errors: those of the parser, ValidationError."""
        given: dict[str, Any] = _reader(expected).run_validation(self.request.data)
        return given

    def query(self, expected: type[Serializer[Any]]) -> dict[str, Any]:
        """The validated query parameters. Errors: InvalidInput, each fault at the parameter's name."""
        serializer = expected(data=parameters(self.request._request))
        if not serializer.is_valid():
            faults = [replace(fault, pointer=fault.pointer.removeprefix("/")) for fault in faults_of(serializer.errors)]
            raise InvalidInput(faults=faults)
        given: dict[str, Any] = serializer.validated_data
        return given

    def listed(
        self,
        rows: QuerySet[Any],
        shown_by: type[Serializer[Any]],
        *,
        given: dict[str, Any],
        ordering: Sequence[str] = NEWEST_FIRST,
    ) -> Response:
        """The page of `rows` that the query asks for (its `page_size` and `cursor`)."""
        pages = CursorPages(self.request, tenant_id=self.tenant.pk, ordering=ordering)
        page = pages.page(rows, size=given["page_size"], cursor=given.get("cursor"))
        results = shown_by(page.rows, many=True, context={"now": self.now}).data
        return Response({"next": page.next, "previous": page.previous, "results": results})

    def shown(self, row: Model, shown_by: type[Serializer[Any]]) -> Any:
        """One object as the answer shows it."""
        return shown_by(row, context={"now": self.now}).data
