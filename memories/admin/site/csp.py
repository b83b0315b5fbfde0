"""Content security policy by path; django-csp sends the header.

Answers that are not pages get the strict policy of the settings, which loads and runs nothing.
"""

from functools import cache

from csp.constants import HEADER
from csp.middleware import CSPMiddleware, PolicyParts
from csp.utils import build_policy
from django.http import HttpRequest, HttpResponseBase

from memories.admin.site.middleware import ADMIN, API

SELF, NONE = "'self'", "'none'"
_PAGE = {
    "default-src": [SELF],
    "script-src": [SELF],
    # Unfold's theme and the page of the API bring their own styles.
    "style-src": [SELF, "'unsafe-inline'"],
    "img-src": [SELF, "data:"],
    "object-src": [NONE],
    "frame-ancestors": [NONE],
    "form-action": [SELF],
    "base-uri": [SELF],
}
# Unfold uses Alpine, which compiles its attributes to functions.
_ADMIN = {**_PAGE, "script-src": [SELF, "'unsafe-eval'"]}
# For anyone who has a link: forms, and nothing that runs. Of the page for the person its view says who may frame it.
_DOWNLOAD = {
    "default-src": [NONE],
    "style-src": [SELF],
    "img-src": [SELF],
    "form-action": [SELF],
    "frame-ancestors": [NONE],
    "base-uri": [NONE],
}
# Path prefix → policy; the first match applies.
POLICIES = ((ADMIN, _ADMIN), ("/api/docs/", _PAGE), ("/exports/", _DOWNLOAD), ("/me/", _DOWNLOAD))


class PolicyMiddleware(CSPMiddleware):
    def get_policy_parts(
        self, request: HttpRequest, response: HttpResponseBase, report_only: bool = False
    ) -> PolicyParts:
        parts = super().get_policy_parts(request, response, report_only)
        if not report_only:
            parts.config = parts.config or policy_of(request.path_info)
        return parts

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if not request.path_info.startswith(API):
            return super().process_response(request, response)
        response.headers[HEADER] = _strict_policy()
        return response


@cache
def _strict_policy() -> str:
    """The policy of the settings. Built once: an agent waits for every answer of the API."""
    return build_policy()


def policy_of(path: str) -> dict[str, list[str]] | None:
    """The directives for this path. None: those of the settings."""
    return next((policy for prefix, policy in POLICIES if path.startswith(prefix)), None)
