"""Every error becomes a problem document (RFC 9457) here, inside views and outside."""

import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import singledispatch
from http import HTTPStatus
from itertools import islice
from math import ceil
from typing import Any

from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, JsonResponse, UnreadablePostError
from django.utils.encoding import escape_uri_path
from django.views import defaults
from django.views.decorators.csrf import csrf_exempt
from rest_framework import exceptions as drf
from rest_framework.settings import api_settings

from memories.api.parsers import BodyTooLarge, escape
from memories.api.request_ids import request_id_of
from memories.api.shapes import MOST_FAULTS
from memories.exceptions import (
    ContentForbidden,
    DuplicateFact,
    ExportNotReady,
    Fault,
    HubBusy,
    IdempotencyKeyBusy,
    InvalidInput,
    MemoryHubError,
    NotFound,
    OffsetBeyondEnd,
    TextNotFound,
    TextNotUnique,
)

logger = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_SECONDS = 5


@dataclass(frozen=True)
class Problem:
    """What went wrong, without the request. `members` are additional ones of this kind of problem."""

    status: int
    code: str
    detail: str
    faults: Sequence[Fault] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    members: Mapping[str, Any] = field(default_factory=dict)


def answer(request: Any, problem: Problem) -> JsonResponse:
    """The problem as an HTTP answer to this request."""
    document = {
        "type": "about:blank",
        "title": HTTPStatus(problem.status).phrase,
        "status": problem.status,
        "detail": problem.detail,
        # The path alone: a query string may hold a person's id.
        "instance": escape_uri_path(request.path),
        "code": problem.code,
        "request_id": request_id_of(request),
        "errors": [asdict(fault) for fault in problem.faults[:MOST_FAULTS]],
        **problem.members,
    }
    return JsonResponse(document, status=problem.status, content_type=MEDIA_TYPE, headers=dict(problem.headers))


def problem_response(exc: Exception, context: dict[str, Any]) -> HttpResponse | None:
    """REST framework's exception handler. None for unexpected exceptions: they become a 500."""
    problem = problem_of(exc)
    if problem is None:
        return None
    if problem.status == HTTPStatus.SERVICE_UNAVAILABLE:
        logger.warning("%s in request %s", type(exc).__name__, request_id_of(context["request"]))
    return answer(context["request"], problem)


def faults_of(detail: Any, pointer: str = "") -> Iterator[Fault]:
    """REST framework's nested error details as faults with JSON pointers like /messages/0/role."""
    if isinstance(detail, Mapping):
        for key, inner in detail.items():
            below = pointer if key == api_settings.NON_FIELD_ERRORS_KEY else f"{pointer}/{escape(key)}"
            yield from faults_of(inner, below)
    elif isinstance(detail, list):
        nested = any(isinstance(item, Mapping | list) for item in detail)
        for index, item in enumerate(detail):
            yield from faults_of(item, f"{pointer}/{index}" if nested else pointer)
    else:
        yield Fault(pointer=pointer, code=getattr(detail, "code", "invalid"), detail=str(detail))


@singledispatch
def problem_of(exc: Exception) -> Problem | None:
    """The problem that an exception stands for."""
    return None


@problem_of.register
def _(exc: MemoryHubError) -> Problem | None:
    if exc.status == HTTPStatus.INTERNAL_SERVER_ERROR:
        return None
    return Problem(exc.status, exc.code, exc.detail, exc.faults)


@problem_of.register
def _(exc: DuplicateFact) -> Problem:
    members = {"existing_id": str(exc.fact_id)} if exc.fact_id else {}
    return Problem(exc.status, exc.code, exc.detail, members=members)


@problem_of.register(ContentForbidden)
@problem_of.register(OffsetBeyondEnd)
@problem_of.register(TextNotFound)
@problem_of.register(TextNotUnique)
def _(exc: ContentForbidden | OffsetBeyondEnd | TextNotFound | TextNotUnique) -> Problem:
    return Problem(exc.status, exc.code, exc.detail, exc.faults, members=exc.members)


@problem_of.register
def _(exc: HubBusy) -> Problem:
    return Problem(exc.status, exc.code, exc.detail, headers={"Retry-After": str(exc.seconds)})


@problem_of.register(ExportNotReady)
@problem_of.register(IdempotencyKeyBusy)
def _(exc: MemoryHubError) -> Problem:
    return Problem(exc.status, exc.code, exc.detail, headers={"Retry-After": str(RETRY_AFTER_SECONDS)})


@problem_of.register
def _(exc: drf.APIException) -> Problem:
    code = getattr(exc.detail, "code", exc.default_code)
    return Problem(exc.status_code, code, str(exc.detail))


@problem_of.register
def _(exc: drf.ValidationError) -> Problem:
    return _invalid(InvalidInput(faults=list(islice(faults_of(exc.detail), MOST_FAULTS))))


@problem_of.register(drf.NotAuthenticated)
@problem_of.register(drf.AuthenticationFailed)
def _(exc: drf.APIException) -> Problem:
    challenge = {"WWW-Authenticate": getattr(exc, "auth_header", "Bearer")}
    detail = f"{exc.detail} Send 'Authorization: Bearer mh_…' or 'X-API-Key: mh_…' with a valid key."
    return Problem(HTTPStatus.UNAUTHORIZED, "unauthorized", detail, headers=challenge)


@problem_of.register
def _(exc: drf.Throttled) -> Problem:
    wait = str(max(1, ceil(getattr(exc, "wait", None) or 1)))
    detail = f"This key made too many requests. Try again in {wait} s."
    return Problem(exc.status_code, exc.default_code, detail, headers={"Retry-After": wait})


@problem_of.register
def _(exc: drf.UnsupportedMediaType) -> Problem:
    return Problem(exc.status_code, exc.default_code, "Send the body as application/json in UTF-8.")


@problem_of.register
def _(exc: drf.NotAcceptable) -> Problem:
    return Problem(exc.status_code, exc.default_code, "Answers are application/json: accept that, or */*.")


@problem_of.register
def _(exc: Http404) -> Problem | None:
    return problem_of(NotFound())


@problem_of.register(SuspiciousOperation)
@problem_of.register(UnreadablePostError)
def _(exc: Exception) -> Problem:
    detail = "The request is malformed: see the Host header, the number of parameters, and that the body is whole."
    return _invalid(InvalidInput(detail))


@problem_of.register
def _(exc: RequestDataTooBig) -> Problem | None:
    return problem_of(BodyTooLarge())


@problem_of.register(OperationalError)
@problem_of.register(InterfaceError)
def _(exc: Exception) -> Problem:
    detail = "The database cannot answer right now. Try again."
    retry = {"Retry-After": str(RETRY_AFTER_SECONDS)}
    return Problem(HTTPStatus.SERVICE_UNAVAILABLE, "unavailable", detail, headers=retry)


@csrf_exempt
def unknown_address(request: HttpRequest) -> HttpResponseBase:
    """404 for every unknown address below /api/: the same answer as for an unknown object."""
    return answer(request, Problem(NotFound.status, NotFound.code, NotFound().detail))


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """handler400: requests that Django refuses before any view."""
    problem = problem_of(exception)
    if problem is None or not request.path.startswith("/api/"):
        return defaults.bad_request(request, exception)
    return answer(request, problem)


def server_error(request: HttpRequest) -> HttpResponseBase:
    """handler500: a fault of the hub. The log has it under the request id. A page whose database is away is a 503."""
    error = sys.exc_info()[1]
    if isinstance(error, OperationalError | InterfaceError) and not request.path.startswith("/api/"):
        response = defaults.server_error(request, "503.html")
        response.status_code = HTTPStatus.SERVICE_UNAVAILABLE
        response.headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
        return response
    logger.error("Request %s failed", request_id_of(request))
    if not request.path.startswith("/api/"):
        return defaults.server_error(request)
    return answer(request, internal_error())


def internal_error() -> Problem:
    """A fault of the hub, of which only the log tells."""
    detail = "Something went wrong on our side; the log has it under this request id."
    return Problem(HTTPStatus.INTERNAL_SERVER_ERROR, "internal_error", detail)


def _invalid(error: InvalidInput) -> Problem:
    return Problem(error.status, error.code, error.detail, error.faults)
