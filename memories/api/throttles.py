"""Rate limits per key and scope: exact where a setting names one, else generous and counted in memory."""

import time
import uuid
from math import ceil
from threading import Lock

from django.views import View
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from memories import conf, upload_heads
from memories.api.authentication import ManagementCaller, caller_of
from memories.conf import Rate
from memories.curation.access.throttles import Allowance, count_request

# Per key, scope and process, where no setting names a limit. No process can answer more.
GENEROUS = Rate(requests=60_000, seconds=60)
# Of a management key, per process, where no setting names a limit.
MANAGEMENT = Rate(requests=600, seconds=60)


class Tally:
    """Counts the requests of the present window in this process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._window = 0
        self._counts: dict[tuple[uuid.UUID, str], int] = {}

    def count(self, key_id: uuid.UUID, scope: str, rate: Rate) -> Allowance:
        """Count one request."""
        now = time.time()
        window = int(now // rate.seconds)
        with self._lock:
            if window != self._window:
                self._window, self._counts = window, {}
            requests = self._counts[key_id, scope] = self._counts.get((key_id, scope), 0) + 1
        return Allowance(
            limit=rate.requests,
            remaining=max(0, rate.requests - requests),
            reset=max(1, ceil((window + 1) * rate.seconds - now)),
            allowed=requests <= rate.requests,
        )


TALLY = Tally()
# Of another limit: windows of another length would end those of the other.
MANAGEMENT_TALLY = Tally()


def count(key_id: uuid.UUID, scope: str) -> Allowance:
    """Count one request of a key: exactly where a setting names a limit."""
    rate = conf.throttle(scope)
    return (
        TALLY.count(key_id, scope, GENEROUS) if rate is None else count_request(key_id=key_id, scope=scope, rate=rate)
    )


class KeyThrottle(BaseThrottle):
    """Runs after HasScope. Without a setting it does not query the database."""

    _allowance: Allowance | None = None

    def allow_request(self, request: Request, view: View) -> bool:
        caller = caller_of(request)
        scope: str = getattr(getattr(view, (request.method or "").lower(), None), "scope", "")
        if caller is None or upload_heads.is_whole(request._request.META):
            return True
        self._allowance = count(caller.key.pk, scope)
        # No headers without a setting: another process counts another number.
        if conf.throttle(scope):
            request._request.rate_allowance = self._allowance  # type: ignore[attr-defined]
        return self._allowance.allowed

    def wait(self) -> float | None:
        return self._allowance.reset if self._allowance else None


class ManagementThrottle(BaseThrottle):
    """Counts the requests of management keys in memory: there are few such keys, and tools do not hurry."""

    _allowance: Allowance | None = None

    def allow_request(self, request: Request, view: View) -> bool:
        user: object = request.user
        if not isinstance(user, ManagementCaller):
            return True
        rate = conf.throttle("management") or MANAGEMENT
        self._allowance = MANAGEMENT_TALLY.count(user.key.pk, "management", rate)
        return self._allowance.allowed

    def wait(self) -> float | None:
        return self._allowance.reset if self._allowance else None


def rate_limit_headers(request: Request) -> dict[str, str]:
    """What is left of the limit; nothing when no setting names one."""
    found: Allowance | None = getattr(request._request, "rate_allowance", None)
    if found is None:
        return {}
    return {
        "RateLimit-Limit": str(found.limit),
        "RateLimit-Remaining": str(found.remaining),
        "RateLimit-Reset": str(found.reset),
    }
