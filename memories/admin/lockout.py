"""Too many wrong passwords: from where they come, and the page that says what to do now. django-axes counts them."""

import ipaddress

from django.conf import settings
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _


def address_of(request: HttpRequest) -> str | None:
    """The address that the request came from, as seen by the outermost of the trusted proxies; None when unknown.

    Each proxy appends whom it speaks with to X-Forwarded-For. What stands further to the left anybody could write.
    """
    passed = [part.strip() for part in request.headers.get("X-Forwarded-For", "").split(",")]
    hops = [*(part for part in passed if part), request.META.get("REMOTE_ADDR", "")]
    # Fewer hops than proxies: somebody came past them.
    outermost = hops[-1 - settings.MEMORYHUB_TRUSTED_PROXIES] if len(hops) > settings.MEMORYHUB_TRUSTED_PROXIES else ""
    return _address(outermost) or _address(hops[-1])


def response(request: HttpRequest, *_args: object) -> HttpResponse:
    """What is answered instead of another try: the same whether the name exists or not."""
    minutes = round(settings.AXES_COOLOFF_TIME.total_seconds() / 60)
    context = {**admin.site.each_context(request), "title": _("Locked for a while"), "minutes": minutes}
    answer = render(request, "registration/locked_out.html", context, status=429)
    answer["Retry-After"], answer["Cache-Control"] = str(minutes * 60), "no-store"
    return answer


def _address(text: str) -> str | None:
    try:
        return str(ipaddress.ip_address(text.strip("[]")))
    except ValueError:
        return None
