"""Lockout after too many wrong passwords.

django-axes counts failures per name and address together. The hub also counts per name over all addresses and per
address over all names, in windows of an hour (curation/access/sign_ins.py). With the count per name anybody could lock
an operator out again and again. So a browser in which the operator has signed in before has a count of its own.
"""

import ipaddress
import secrets
from datetime import datetime, timedelta
from math import ceil
from typing import Any

from axes.handlers.database import AxesDatabaseHandler
from axes.helpers import get_client_username
from django.conf import settings
from django.contrib import admin
from django.core import signing
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from memories import conf
from memories.curation.access.sign_ins import Counted, count_failure, forget_failures, forgive, shut_until
from memories.curation.access.sign_ins import Kind as FailureKind
from memories.models import Operator

# Prefix length of IPv6: one customer has at least such a network.
NETWORK = 64
# How long the hub recognizes a browser after a sign-in.
KNOWN_FOR = timedelta(days=90)
SHUT_UNTIL = "shut_until"


class Lockout(AxesDatabaseHandler):  # type: ignore[misc]
    """The handler of axes with the two hourly counts."""

    def is_locked(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> bool:
        if super().is_locked(request, credentials):
            return True
        until = shut_until(of=_counted(request, credentials), now=timezone.now())
        setattr(request, SHUT_UNTIL, until)
        return until is not None

    def user_login_failed(
        self, sender: Any, credentials: dict[str, Any], request: HttpRequest | None = None, **kwargs: Any
    ) -> None:
        # A try during a lockout was not checked: it neither counts nor prolongs the lockout.
        was_tried = request is not None and not getattr(request, "axes_locked_out", False)
        super().user_login_failed(sender, credentials, request, **kwargs)
        if request is not None and was_tried:
            count_failure(of=_counted(request, credentials), now=timezone.now())

    def user_logged_in(self, sender: Any, request: HttpRequest, user: Operator, **kwargs: Any) -> None:
        credentials = {"username": user.get_username()}
        failures = self.get_failures(request, credentials)
        super().user_logged_in(sender, request, user, **kwargs)
        forgive(of=_counted(request, credentials), failures=failures)

    def reset_attempts(
        self, *, ip_address: str | None = None, username: str | None = None, ip_or_username: bool = False
    ) -> int:
        """Unlock this name, this address, or all: the commands of axes call it."""
        address = _network(ip_address) if ip_address else None
        counted: list[Counted] = [(FailureKind.NAME, username)] if username else []
        counted += [(FailureKind.ADDRESS, address)] if address else []
        forget_failures(of=counted or None)
        return int(super().reset_attempts(ip_address=address, username=username, ip_or_username=ip_or_username))


def address_of(request: HttpRequest) -> str | None:
    """The client's address as the outermost trusted proxy saw it; None if unknown.

    Each proxy appends its client to X-Forwarded-For. Anybody can forge the entries further to the left.
    """
    forwarded = [part.strip() for part in request.headers.get("X-Forwarded-For", "").split(",")]
    hops = [*(part for part in forwarded if part), request.META.get("REMOTE_ADDR", "")]
    # With fewer hops than proxies the request bypassed a proxy.
    outermost = hops[-1 - settings.MEMORYHUB_TRUSTED_PROXIES] if len(hops) > settings.MEMORYHUB_TRUSTED_PROXIES else ""
    return _address(outermost) or _address(hops[-1])


def counted_address_of(request: HttpRequest) -> str | None:
    """The address under which failures count. For IPv6 the network, since a client may have all of it."""
    address = address_of(request)
    return _network(address) if address else None


def remember(response: HttpResponse, operator: Operator) -> None:
    """Set the cookie that recognizes this operator's browser."""
    name = operator.get_username()
    response.set_cookie(
        _cookie(name),
        signing.TimestampSigner(salt=SHUT_UNTIL).sign(f"{_mark(name)}.{secrets.token_urlsafe(12)}"),
        max_age=KNOWN_FOR,
        path=reverse("admin:index"),
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def response(request: HttpRequest, *_args: object) -> HttpResponse:
    """The page of a lockout. It does not reveal whether the name exists."""
    until: datetime | None = getattr(request, SHUT_UNTIL, None)
    wait = until - timezone.now() if until else settings.AXES_COOLOFF_TIME
    minutes = max(1, ceil(wait.total_seconds() / 60))
    context = {**admin.site.each_context(request), "title": _("Temporarily locked"), "minutes": minutes}
    answer = render(request, "registration/locked_out.html", context, status=429)
    answer["Retry-After"], answer["Cache-Control"] = str(minutes * 60), "no-store"
    return answer


def _counted(request: HttpRequest, credentials: dict[str, Any] | None) -> list[Counted]:
    """The counters of a request, in the order in which their rows are locked."""
    name, address = get_client_username(request, credentials), counted_address_of(request)
    counted: list[Counted] = []
    if name:
        browser = _known_browser(request, name)
        counted.append((FailureKind.BROWSER, browser) if browser else (FailureKind.NAME, name))
    if address:
        counted.append((FailureKind.ADDRESS, address))
    return counted


def _known_browser(request: HttpRequest, name: str) -> str:
    """The value of the browser's cookie for this name; "" without a valid one."""
    cookie = request.COOKIES.get(_cookie(name), "")
    try:
        value = signing.TimestampSigner(salt=SHUT_UNTIL).unsign(cookie, max_age=KNOWN_FOR)
    except signing.BadSignature:
        return ""
    return value if value.partition(".")[0] == _mark(name) else ""


def _cookie(name: str) -> str:
    return f"memoryhub_known_{_mark(name)[:12]}"


def _mark(name: str) -> str:
    return conf.digest("known browser", name.encode()).hex()[:32]


def _network(address: str) -> str:
    found = ipaddress.ip_address(address)
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, NETWORK), strict=False).network_address)


def _address(text: str) -> str | None:
    try:
        return str(ipaddress.ip_address(text.strip("[]")))
    except ValueError:
        return None
