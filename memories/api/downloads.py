"""/exports/<token>: the page behind a one-time link to a person's export; who has the link needs nothing else.

GET takes nothing, for scanners of mail open links before people do; POST downloads, and the link is used up. There is
no cookie and no form token: what a forged request could do takes the link itself.
"""

from collections.abc import Callable
from functools import wraps
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils import timezone, translation
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from memories.api.request_ids import request_id_of
from memories.audit import kept_request_id
from memories.exceptions import ExportGone, NotFound
from memories.privacy import exporting
from memories.privacy.exporting import Download

View = Callable[[HttpRequest, str], HttpResponse]
# No copy anywhere between, no address of the page in another's log, in no index.
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex, nofollow",
    "X-Content-Type-Options": "nosniff",
}


def attached(download: Download) -> HttpResponse:
    """The ZIP file as an answer that is saved."""
    headers = {**HEADERS, "Content-Disposition": f'attachment; filename="{download.name}"'}
    return HttpResponse(download.content, content_type="application/zip", headers=headers)


def _in_their_language(view: View) -> View:
    @wraps(view)
    def spoken(request: HttpRequest, token: str) -> HttpResponse:
        with translation.override(translation.get_language_from_request(request)):
            return view(request, token)

    return spoken


@csrf_exempt
@require_http_methods(["GET", "HEAD", "POST"])
@_in_their_language
def export_page(request: HttpRequest, token: str) -> HttpResponse:
    """What the link leads to with a button, or the file; 410 once it was used or has expired, 404 for any other."""
    try:
        if request.method == "POST":
            kept = kept_request_id(request_id_of(request))
            return attached(exporting.take(token, timezone.now(), kept))
        return _page("export_offer", export=exporting.look(token, timezone.now()))
    except ExportGone:
        return _page("export_gone", HTTPStatus.GONE)
    except NotFound:
        return _page("export_unknown", HTTPStatus.NOT_FOUND)


def _page(name: str, status: int = HTTPStatus.OK, **told: object) -> HttpResponse:
    """Without the request: the page knows of no operator who may be signed in."""
    context = {"language": translation.get_language(), **told}
    return HttpResponse(render_to_string(f"memories/{name}.html", context), status=status, headers=HEADERS)
