"""Middleware of the pages: sessions, users, messages, language. Requests of the API skip it, since they carry a key."""

from collections.abc import Awaitable, Callable

from django.conf import settings
from django.contrib.auth import middleware as auth
from django.contrib.messages import middleware as messages
from django.contrib.sessions import middleware as sessions
from django.core.exceptions import BadRequest
from django.db import DataError, connection
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils import timezone, translation
from django.utils.cache import patch_vary_headers
from django.utils.deprecation import MiddlewareMixin
from django.views import defaults

from memories import upload_heads
from memories.admin.access import lifetime
from memories.admin.access.tenant_scope import tenancy_of
from memories.db import tenancy
from memories.exceptions import HubBusy
from memories.invisible import strip_invisible
from memories.models import Operator

ADMIN, API, PERSON = "/admin/", "/api/v1/", "/me/"
# What psycopg says of it, before anything is sent.
_NUL = "NUL (0x00)"


class _PagesOnly(MiddlewareMixin):
    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        if request.path_info.startswith(API):
            return self.get_response(request)
        return super().__call__(request)


class _StaffOnly(MiddlewareMixin):
    """For pages of staff: the page for the person has no session of Django, no user and no messages."""

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        if request.path_info.startswith((API, PERSON)):
            return self.get_response(request)
        return super().__call__(request)


class SessionMiddleware(_StaffOnly, sessions.SessionMiddleware):
    """`request.session`, for pages."""


class AuthenticationMiddleware(_StaffOnly, auth.AuthenticationMiddleware):
    """`request.user`, for pages. Ends sessions that have expired."""

    def process_request(self, request: HttpRequest) -> None:
        super().process_request(request)
        if settings.SESSION_COOKIE_NAME in request.COOKIES:
            # Before anything reads request.user, which is looked up lazily.
            lifetime.check(request, now=timezone.now())
        if upload_heads.is_asked(request.META):
            # The token of a form stands in its body, and is asked for with that: the head alone changes nothing.
            request._dont_enforce_csrf_checks = True  # type: ignore[attr-defined]


class OperatorTenancyMiddleware(_PagesOnly):
    """Where row level security is on, a page reaches the rows of the operator's tenants."""

    def process_request(self, request: HttpRequest) -> None:
        # Of this hub's database backend.
        if not (connection.sent and request.path_info.startswith(ADMIN)):  # type: ignore[attr-defined]
            return
        if isinstance(request.user, Operator):
            tenancy.set_current(tenancy_of(request.user))


class UnstorableTextMiddleware(_PagesOnly):
    """Answers 400 if an address or a form has a NUL that a query then asks for: the database holds none."""

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if isinstance(exception, DataError) and _NUL in str(exception):
            return defaults.bad_request(request, BadRequest())
        return None


class BusyMiddleware(_PagesOnly):
    """Answers 503 where a page would wait too long for an index that another request makes."""

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not isinstance(exception, HubBusy):
            return None
        said = {"heading": translation.gettext("The hub is busy"), "text": translation.gettext(exception.detail)}
        response = render(request, "memories/error_page.html", said, status=exception.status)
        response.headers["Retry-After"] = str(exception.seconds)
        return response


class LanguageMiddleware:
    """The language of an admin page: the operator's own choice, else what the browser asks for.

    Other paths stay in English: probes must answer without the database, and the API has one language.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not request.path_info.startswith(ADMIN):
            return self.get_response(request)
        chosen = request.user.language if isinstance(request.user, Operator) else ""
        # override() restores the language: the next request of this thread may be one of the API.
        with translation.override(chosen or translation.get_language_from_request(request)):
            response = self.get_response(request)
            response.headers["Content-Language"] = translation.get_language() or ""
        patch_vary_headers(response, ("Accept-Language",))
        return response


class SeenTextMiddleware(_PagesOnly):
    """Removes invisible characters from pages, whoever wrote them: operators decide by what they read."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        is_page = response.get("Content-Type", "").startswith("text/html")
        if isinstance(response, HttpResponse) and is_page and not response.content.isascii():
            response.content = strip_invisible(response.content.decode(response.charset)).encode(response.charset)
        return response


class MessageMiddleware(_StaffOnly, messages.MessageMiddleware):
    """Messages to the signed-in operator, for pages."""
