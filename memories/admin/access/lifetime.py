"""The lifetime of a sign-in: an absolute limit, and an idle limit."""

from datetime import datetime

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.http import HttpRequest

BEGAN_AT, SEEN_AT = "signed_in_at", "seen_at"
# Minimal time between two writes of SEEN_AT: one per request would cost too much.
STEP_SECONDS = 60


def begin(request: HttpRequest, *, now: datetime) -> None:
    """Start the lifetime at sign-in. A session that was open gets a new key."""
    request.session.cycle_key()
    _stamp(request, now=now)


def check(request: HttpRequest, *, now: datetime) -> None:
    """End an expired session; else record activity."""
    session, moment = request.session, now.timestamp()
    if SESSION_KEY not in session:
        return
    if BEGAN_AT not in session:
        _stamp(request, now=now)
        return
    age, idle = moment - session[BEGAN_AT], moment - session[SEEN_AT]
    # What a page fetches by itself does not keep a session open.
    by_person = request.method != "GET" or request.headers.get("Sec-Fetch-Mode", "navigate") == "navigate"
    if age > settings.SESSION_COOKIE_AGE or idle > settings.MEMORYHUB_SESSION_IDLE_SECONDS:
        session.flush()
    elif idle > STEP_SECONDS and by_person:
        session[SEEN_AT] = moment


def _stamp(request: HttpRequest, *, now: datetime) -> None:
    request.session[BEGAN_AT] = request.session[SEEN_AT] = now.timestamp()
