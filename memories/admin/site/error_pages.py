"""Error pages of the admin: forbidden, not found, CSRF failure.

They do not use the admin's frame. The frame queries the database, and one of its parts may be what failed. Other paths
get Django's plain answers: no style sheet may be loaded there, and the reader is a program.
"""

from http import HTTPStatus

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views import csrf, defaults

from memories.admin.site.middleware import ADMIN


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """handler403."""
    if not request.path_info.startswith(ADMIN):
        return defaults.permission_denied(request, exception)
    text = _("Your roles do not allow this. Ask an administrator.")
    return _page(request, _("Permission denied"), text, HTTPStatus.FORBIDDEN)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """handler404."""
    if not request.path_info.startswith(ADMIN):
        return defaults.page_not_found(request, exception)
    text = _("The object may have been deleted or erased, or it belongs to a tenant that you cannot see.")
    return _page(request, _("Page not found"), text, HTTPStatus.NOT_FOUND)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponseBase:
    """CSRF_FAILURE_VIEW."""
    if not request.path_info.startswith(ADMIN):
        return csrf.csrf_failure(request, reason)
    text = _(
        "The form is older than your sign-in, or your browser sent no cookie. Go back, reload the page and try again."
    )
    return _page(request, _("Nothing was changed"), text, HTTPStatus.FORBIDDEN)


def _page(request: HttpRequest, heading: str, text: str, status: HTTPStatus) -> HttpResponseBase:
    return render(request, "memories/error_page.html", {"heading": heading, "text": text}, status=status)
