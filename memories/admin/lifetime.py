"""How long a sign-in lasts: so many hours at most, and less when nobody is at the browser."""

from datetime import datetime

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.http import HttpRequest

BEGAN_AT, SEEN_AT = "signed_in_at", "seen_at"
# A write per request would cost more than it is worth; a minute is exact enough.
STEP_SECONDS = 60


def begin(request: HttpRequest, *, now: datetime) -> None:
    """Somebody signed in just now, perhaps once more in a session that was open, whose key then ends."""
    request.session.cycle_key()
    _stamp(request, now=now)


def check(request: HttpRequest, *, now: datetime) -> None:
    """End the session when it is over; else note that somebody is there."""
    session, moment = request.session, now.timestamp()
    if SESSION_KEY not in session:
        return
    if BEGAN_AT not in session:
        _stamp(request, now=now)
    elif moment - session[BEGAN_AT] > settings.SESSION_COOKIE_AGE or _is_idle(session[SEEN_AT], moment):
        session.flush()
    elif moment - session[SEEN_AT] > STEP_SECONDS and _is_somebody(request):
        session[SEEN_AT] = moment


def _stamp(request: HttpRequest, *, now: datetime) -> None:
    request.session[BEGAN_AT] = request.session[SEEN_AT] = now.timestamp()


def _is_idle(seen: float, moment: float) -> bool:
    return moment - seen > settings.MEMORYHUB_SESSION_IDLE_SECONDS


def _is_somebody(request: HttpRequest) -> bool:
    """Whether a person asked: figures that a page fetches by itself keep no session open."""
    return request.method != "GET" or request.headers.get("Sec-Fetch-Mode", "navigate") == "navigate"
