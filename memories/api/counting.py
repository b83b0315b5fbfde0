"""Counts the answers of Django by route: the pattern that an address fits, and never the address."""

from collections.abc import Callable
from functools import cache
from time import monotonic

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.urls import URLPattern

from memories.api.v1.urls import urlpatterns
from memories.telemetry.families import REQUEST_SECONDS, REQUESTS, note_request

API = "api/v1/"
# The admin has some hundred patterns, which nobody sets a limit for one by one.
ADMIN, STATIC, UNKNOWN = "admin", "static", "unknown"
CLASSES = ("2xx", "4xx", "5xx")
# When the web server had the whole request: waiting for a thread counts, a slow client does not.
WHOLE_AT = "memoryhub.whole_at"


class CountingMiddleware:
    """Outermost, so that the errors that Django makes of exceptions count, too."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        began = request.META.get(WHOLE_AT) or monotonic()
        response = self.get_response(request)
        note_request(route_of(request), request.method or "", response.status_code, monotonic() - began)
        return response


def route_of(request: HttpRequest) -> str:
    match = request.resolver_match
    if match is None:
        return STATIC if request.path_info.startswith(settings.STATIC_URL) else UNKNOWN
    if match.route.startswith("^"):
        return UNKNOWN
    return ADMIN if match.route.startswith(ADMIN) else match.route


@cache
def expect_operations() -> None:
    """Have every operation of the API at zero."""
    for pattern in urlpatterns:
        route = f"{API}{pattern.pattern}"
        REQUEST_SECONDS.expect([(route,)])
        REQUESTS.expect((route, method, status) for method in _methods(pattern) for status in CLASSES)


def _methods(pattern: URLPattern) -> list[str]:
    view = pattern.callback.view_class  # type: ignore[attr-defined]
    return [name.upper() for name in view.http_method_names if hasattr(view, name)]
