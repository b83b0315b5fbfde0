"""Django's middleware for people who sign in: the API knows keys alone, so its requests pass it by."""

from collections.abc import Awaitable

from django.conf import settings
from django.contrib.auth import middleware as auth
from django.contrib.messages import middleware as messages
from django.contrib.sessions import middleware as sessions
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone
from django.utils.deprecation import MiddlewareMixin

from memories.admin import lifetime

API = "/api/v1/"


class _PagesOnly(MiddlewareMixin):
    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        if request.path_info.startswith(API):
            return self.get_response(request)
        return super().__call__(request)


class SessionMiddleware(_PagesOnly, sessions.SessionMiddleware):
    """`request.session`, for pages."""


class AuthenticationMiddleware(_PagesOnly, auth.AuthenticationMiddleware):
    """`request.user`, for pages, and the end of sessions that are over."""

    def process_request(self, request: HttpRequest) -> None:
        super().process_request(request)
        if settings.SESSION_COOKIE_NAME in request.COOKIES:
            # Before anybody asks for the user, who is looked up only then.
            lifetime.check(request, now=timezone.now())


class MessageMiddleware(_PagesOnly, messages.MessageMiddleware):
    """Messages to whoever is signed in, for pages."""
