"""Limits on a key's requests, per scope; off unless a setting names one."""

from django.views import View
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from memories import conf, curation
from memories.api.authentication import caller_of
from memories.curation import Allowance


class KeyThrottle(BaseThrottle):
    """Runs after HasScope; without a limit for the operation's scope it asks nothing of the database."""

    _allowance: Allowance | None = None

    def allow_request(self, request: Request, view: View) -> bool:
        caller = caller_of(request)
        scope: str = getattr(getattr(view, (request.method or "").lower(), None), "scope", "")
        rate = conf.throttle(scope)
        if caller is None or rate is None:
            return True
        self._allowance = curation.count_request(key_id=caller.key.pk, scope=scope, rate=rate)
        request._request.rate_allowance = self._allowance  # type: ignore[attr-defined]
        return self._allowance.allowed

    def wait(self) -> float | None:
        return self._allowance.reset if self._allowance else None


def rate_limit_headers(request: Request) -> dict[str, str]:
    """What tells the caller where it stands; nothing when no limit holds."""
    found: Allowance | None = getattr(request._request, "rate_allowance", None)
    if found is None:
        return {}
    return {
        "RateLimit-Limit": str(found.limit),
        "RateLimit-Remaining": str(found.remaining),
        "RateLimit-Reset": str(found.reset),
    }
