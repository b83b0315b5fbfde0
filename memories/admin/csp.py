"""What a browser may do with an answer, by its address: nothing but for pages (django-csp sends it)."""

from functools import cache

from csp.constants import HEADER
from csp.middleware import CSPMiddleware, PolicyParts
from csp.utils import build_policy
from django.http import HttpRequest, HttpResponseBase

SELF, NONE = "'self'", "'none'"
_PAGE = {
    "default-src": [SELF],
    "script-src": [SELF],
    # Both Unfold's theme and the API's page bring styles of their own.
    "style-src": [SELF, "'unsafe-inline'"],
    "img-src": [SELF, "data:"],
    "object-src": [NONE],
    "frame-ancestors": [NONE],
    "form-action": [SELF],
    "base-uri": [SELF],
}
# Alpine, which Unfold is built on, makes functions of its attributes.
_ADMIN = {**_PAGE, "script-src": [SELF, "'unsafe-eval'"]}
# For whoever has a link to an export: a button, and nothing that runs.
_DOWNLOAD = {
    "default-src": [NONE],
    "style-src": [SELF],
    "img-src": [SELF],
    "form-action": [SELF],
    "frame-ancestors": [NONE],
    "base-uri": [NONE],
}
# The start of a path → its policy; the first that fits.
POLICIES = (("/admin/", _ADMIN), ("/api/docs/", _PAGE), ("/exports/", _DOWNLOAD))


# Most answers by far, and each stands before the reply of an agent: their policy is put into words once.
DATA = "/api/v1/"


class PolicyMiddleware(CSPMiddleware):
    """One policy a path; what is in no line of the table gets the strict one of the settings."""

    def get_policy_parts(
        self, request: HttpRequest, response: HttpResponseBase, report_only: bool = False
    ) -> PolicyParts:
        parts = super().get_policy_parts(request, response, report_only)
        if not report_only:
            parts.config = parts.config or policy_of(request.path_info)
        return parts

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if not request.path_info.startswith(DATA):
            return super().process_response(request, response)
        response.headers[HEADER] = _strict()
        return response


@cache
def _strict() -> str:
    return build_policy()


def policy_of(path: str) -> dict[str, list[str]] | None:
    """The directives for answers at this path; None: those of the settings."""
    return next((policy for start, policy in POLICIES if path.startswith(start)), None)
