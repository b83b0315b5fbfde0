"""What a browser of staff shows instead of a page: forbidden, not there, a form that was too old.

They stand outside the frame of the admin, which asks the database for its figures and whose parts may be what failed.
"""

from http import HTTPStatus

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.views import csrf, defaults

from memories.admin.language import PAGES

FORBIDDEN = (_("You may not do this"), _("Your roles do not give it to you. An administrator can."))
NOT_FOUND = (
    _("There is no such page"),
    _("What it was about may have been deleted or erased, or is of a tenant that you do not see."),
)
TOO_OLD = (
    _("Nothing was changed"),
    _("The form is older than your sign-in, or your browser sent no cookie. Go back, load the page again, repeat it."),
)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """handler403."""
    if not _of_admin(request):
        return defaults.permission_denied(request, exception)
    return _page(request, FORBIDDEN, HTTPStatus.FORBIDDEN)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """handler404."""
    if not _of_admin(request):
        return defaults.page_not_found(request, exception)
    return _page(request, NOT_FOUND, HTTPStatus.NOT_FOUND)


def too_old(request: HttpRequest, reason: str = "") -> HttpResponseBase:
    """CSRF_FAILURE_VIEW."""
    if not _of_admin(request):
        return csrf.csrf_failure(request, reason)
    return _page(request, TOO_OLD, HTTPStatus.FORBIDDEN)


def _of_admin(request: HttpRequest) -> bool:
    # Elsewhere no style sheet may be loaded, and the reader is a program.
    return request.path_info.startswith(PAGES)


def _page(request: HttpRequest, words: tuple[Promise, Promise], status: HTTPStatus) -> HttpResponseBase:
    return render(request, "memories/error_page.html", {"heading": words[0], "text": words[1]}, status=status)
