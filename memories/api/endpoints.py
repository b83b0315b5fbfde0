"""Base of all views: strict input, the caller, lists in pages, versions of objects."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import UUID

from django.db.models import Model, QuerySet
from django.utils import timezone
from rest_framework.exceptions import ValidationError
from rest_framework.negotiation import BaseContentNegotiation, DefaultContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.views import APIView

from memories import budgets
from memories.api import bound, shapes
from memories.api.authentication import Caller, HasManagementKey, ManagementAuthentication, ManagementCaller, caller_of
from memories.api.errors import faults_of
from memories.api.pagination import NEWEST_FIRST, CursorPages
from memories.api.parsers import accept_chunked, parameters, refuse_parameters
from memories.api.throttles import KeyThrottle, ManagementThrottle, rate_limit_headers
from memories.audit import Actor
from memories.curation.statements.write_trust import WriteTrust, write_trust_of
from memories.db import tenancy
from memories.exceptions import InvalidInput, NotFound
from memories.models import Tenant
from memories.telemetry import log_fields
from memories.text.secrets import effort

WITH_BODY = ("POST", "PUT", "PATCH")
# What nearly every client sends. To weigh it against the one renderer takes as long as to write most answers.
_JSON = frozenset({"*/*", "application/json", "application/json, */*;q=0.1"})


class Negotiation(DefaultContentNegotiation):
    """Which form an answer has: JSON, or 406."""

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> Any:
        """The renderer and its media type. Errors: NotAcceptable."""
        given = request._request.META
        asked = given.get("QUERY_STRING", "")
        # The parameter `format` may name a form, too, and be written in escapes.
        if given.get("HTTP_ACCEPT", "*/*") in _JSON and "format" not in asked and "%" not in asked:
            [json] = renderers
            return json, json.media_type
        return super().select_renderer(request, renderers, format_suffix)


class AnyEndpoint(APIView):
    """What endpoints for both kinds of keys have."""

    http_method_names = ["get", "head", "post", "put", "patch", "delete"]
    content_negotiation_class: type[BaseContentNegotiation] = Negotiation

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        with effort.bounded(), budgets.of_request():
            return super().dispatch(request, *args, **kwargs)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        accept_chunked(request._request)
        operation = getattr(self, (request.method or "").lower(), None)
        if not getattr(operation, "takes_parameters", True):
            refuse_parameters(request._request)

    @cached_property
    def now(self) -> datetime:
        """The moment of this request: one reading of the clock."""
        return timezone.now()

    def expected_version(self) -> int | None:
        """The version that If-Match names; None without the header or for `*`. Errors: InvalidInput."""
        text = (self.request.headers.get("If-Match") or "*").strip()
        if text == "*":
            return None
        digits = text.removeprefix('"').removesuffix('"')
        if not (digits.isascii() and digits.isdigit() and len(digits) < 10):
            raise InvalidInput.at("If-Match", 'Give one version as in the ETag, e.g. "3".')
        return int(digits)

    def body(self, expected: type[Serializer[Any]]) -> dict[str, Any]:
        """The validated body. Errors: those of the parser, ValidationError."""
        return shapes.validated(expected, self.request.data)

    def query(self, expected: type[Serializer[Any]]) -> dict[str, Any]:
        """The validated query parameters. Errors: InvalidInput, each fault at the parameter's name."""
        return _checked_query(expected, parameters(self.request._request))

    def listed(
        self,
        rows: QuerySet[Any],
        shown_by: type[Serializer[Any]],
        *,
        given: dict[str, Any],
        ordering: Sequence[str] = NEWEST_FIRST,
        long: Sequence[str] = (),
        **context: Any,
    ) -> Response:
        """The page of `rows` that the query asks for by `page_size` and `cursor`. `long`: columns without a small
        limit, for which a page may end earlier. `context` is for the serializer."""
        pages = CursorPages(self.request, tenant_id=self.cursors_of(), ordering=ordering)
        found, following, previous = pages.page(rows, size=given["page_size"], cursor=given.get("cursor"), long=long)
        results = shown_by(found, many=True, context={"now": self.now, **context}).data
        return Response({"next": following, "previous": previous, "results": results})

    def cursors_of(self) -> UUID:
        """Whose cursors those of its lists are."""
        raise NotImplementedError

    def shown(self, row: Model, shown_by: type[Serializer[Any]]) -> Any:
        """One object as the answer shows it."""
        return shown_by(row, context={"now": self.now}).data

    def versioned(self, row: Any, shown_by: type[Serializer[Any]], *, status: int = 200) -> Response:
        """One object with its version as ETag."""
        return Response(self.shown(row, shown_by), status=status, headers={"ETag": f'"{row.version}"'})


class Endpoint(AnyEndpoint):
    """A view of version 1 for keys of tenants. Its methods are declared with `@operation`."""

    throttle_classes = (KeyThrottle,)
    # The fact that the answer shows, for the record that is kept under an Idempotency-Key.
    subject_fact: UUID | None = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        operation = getattr(self, (request.method or "").lower(), None)
        if operation is not None:
            bound.guard(getattr(operation, "bound", None), self.caller, kwargs)

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

    def cursors_of(self) -> UUID:
        return self.tenant.pk

    @cached_property
    def subjects(self) -> set[UUID]:
        """The people whom the answer is about, for the record that is kept under an Idempotency-Key."""
        return set()

    def write_trust(self, stated_by: str | None = None) -> WriteTrust:
        """Whose words the caller writes. The request can only lower it."""
        return write_trust_of(writes_as=self.caller.key.writes_as, stated_by=stated_by)

    def body(self, expected: type[Serializer[Any]]) -> dict[str, Any]:
        """The validated body. Errors: those of the parser, ValidationError, KeyBound."""
        data = self.request.data
        if self.caller.is_bound:
            is_named = "user_id" in parameters(self.request._request)
            data = bound.complete(shapes.reader_of(expected), data, self.caller, is_named=is_named)
        given = shapes.validated(expected, data)
        bound.check_bound_ids(given, self.caller, at="/")
        return given

    def query(self, expected: type[Serializer[Any]]) -> dict[str, Any]:
        """The validated query parameters. Errors: InvalidInput, each fault at the parameter's name; KeyBound."""
        data: Any = parameters(self.request._request)
        if self.caller.is_bound:
            body = self.request.data if self.request.method in WITH_BODY else None
            is_named = isinstance(body, Mapping) and "user_id" in body
            data = bound.complete(shapes.reader_of(expected), data, self.caller, is_named=is_named)
        given = _checked_query(expected, data)
        bound.check_bound_ids(given, self.caller, at="")
        return given


class ManagementEndpoint(AnyEndpoint):
    """A view for management keys. The address names the tenant: the one exception to the rule that a key alone decides
    it. A tenant that the key does not manage does not exist for it."""

    authentication_classes = (ManagementAuthentication,)
    permission_classes = (HasManagementKey,)
    throttle_classes = (ManagementThrottle,)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        response = super().finalize_response(request, response, *args, **kwargs)
        # Some answers have a secret in them.
        response.headers["Cache-Control"] = "no-store"
        return response

    @cached_property
    def caller(self) -> ManagementCaller:
        user: object = self.request.user
        if not isinstance(user, ManagementCaller):
            raise TypeError("HasManagementKey lets nobody in without a management key")
        return user

    @property
    def actor(self) -> Actor:
        return self.caller.actor

    def tenants(self) -> QuerySet[Tenant]:
        """Those that the key manages."""
        own = self.caller.key.tenant_id
        return Tenant.objects.filter(pk=own) if own else Tenant.objects.all()

    @cached_property
    def tenant(self) -> Tenant:
        """The tenant of the address. Errors: NotFound."""
        found = self.tenants().filter(slug=self.kwargs["slug"]).first()
        if found is None:
            raise NotFound
        tenancy.set_current(tenancy.of_one(found.pk))
        log_fields.note_tenant(found.slug)
        self.request._request.META[log_fields.ANSWERED_TENANT] = found.slug
        return found

    def cursors_of(self) -> UUID:
        return self.caller.key.pk


def _checked_query(expected: type[Serializer[Any]], data: Any) -> dict[str, Any]:
    try:
        given = shapes.validated(expected, data)
    except ValidationError as error:
        faults = [replace(fault, pointer=fault.pointer.removeprefix("/")) for fault in faults_of(error.detail)]
        raise InvalidInput(faults=faults) from None
    return given
