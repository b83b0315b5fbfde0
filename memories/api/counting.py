"""Counts the answers of Django by route: the pattern that an address fits, and never the address."""

from collections.abc import Callable
from functools import cache
from time import monotonic

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

from memories import upload_heads
from memories.api.v1.urls import urlpatterns
from memories.telemetry import traces
from memories.telemetry.families import METHODS, REFUSED, REQUEST_SECONDS, REQUESTS, WHOLE_AT, note_request
from memories.telemetry.log_fields import ANSWERED_ID, ANSWERED_TENANT, REQUEST, TENANT

API = "api/v1/"
# The admin has some hundred patterns, which nobody sets a limit for one by one.
ADMIN, STATIC, UNKNOWN = "admin", "static", "unknown"
CLASSES = ("2xx", "4xx", "5xx")


class CountingMiddleware:
    """Outermost, so that the errors that Django makes of exceptions count, too."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        began = request.META.get(WHOLE_AT) or monotonic()
        with traces.request(request.headers) as span:
            response = self.get_response(request)
            route, status = route_of(request), response.status_code
            if span is not None:
                span.update_name(f"{request.method if request.method in METHODS else 'other'} {route}")
                attributes = {
                    "http.route": route,
                    "http.response.status_code": status,
                    REQUEST: request.META[ANSWERED_ID],
                }
                span.set_attributes(attributes)
                if ANSWERED_TENANT in request.META:
                    span.set_attribute(TENANT, request.META[ANSWERED_TENANT])
        # The head of an upload is counted with its body.
        if not upload_heads.may_come(request.META):
            note_request(route, request.method or "", status, monotonic() - began)
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
    """Have every operation of the API at zero, and the other doors."""
    REFUSED.expect([("gateway",), ("mcp",)])
    for pattern in urlpatterns:
        route = f"{API}{pattern.pattern}"
        REQUEST_SECONDS.expect([(route,)])
        REFUSED.expect([(route,)])
        view = pattern.callback.view_class
        methods = [name.upper() for name in view.http_method_names if hasattr(view, name)]
        REQUESTS.expect((route, method, status) for method in methods for status in CLASSES)
