"""/exports/<token>: the page behind a one-time link to a person's export. Whoever has the link needs nothing else.

GET only shows the page, because mail scanners open links before people do. POST downloads the export and uses up the
link. There is no cookie and no form token: a forged request would need the link itself.
"""

from collections.abc import Callable
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.template.loader import render_to_string
from django.utils import timezone, translation
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from memories.api.request_ids import request_id_of
from memories.audit import kept_request_id
from memories.db import tenancy
from memories.exceptions import ExportGone, NotFound
from memories.privacy.exports import downloads
from memories.privacy.exports.downloads import Download

View = Callable[[HttpRequest, str], HttpResponseBase]
# No copies in caches, no address in another site's log, in no search index.
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex, nofollow",
    "X-Content-Type-Options": "nosniff",
}


def attached(download: Download) -> StreamingHttpResponse:
    """The ZIP file as an attachment, sent in parts; whoever gets fewer bytes than announced knows that some lack."""
    headers = {
        **HEADERS,
        "Content-Disposition": f'attachment; filename="{download.name}"',
        "Content-Length": str(download.size),
    }
    return StreamingHttpResponse(download.parts(), content_type="application/zip", headers=headers)


@csrf_exempt
@require_http_methods(["GET", "HEAD", "POST"])
def export_page(request: HttpRequest, token: str) -> HttpResponseBase:
    """GET: a page with a button. POST: the file. 410 for a used or expired link, 404 for an unknown one."""
    # Whose it is, only the link says.
    tenancy.set_current(tenancy.EVERYTHING)
    with translation.override(translation.get_language_from_request(request)):
        try:
            if request.method == "POST":
                request_id = kept_request_id(request_id_of(request))
                return attached(downloads.take(token, timezone.now(), request_id))
            return _page("export_offer", export=downloads.look(token, timezone.now()))
        except ExportGone:
            return _page("export_gone", HTTPStatus.GONE)
        except NotFound:
            return _page("export_unknown", HTTPStatus.NOT_FOUND)


def _page(name: str, status: int = HTTPStatus.OK, **shown: object) -> HttpResponse:
    """Rendered without the request: the page must not show a signed-in operator."""
    context = {"language": translation.get_language(), **shown}
    return HttpResponse(render_to_string(f"memories/{name}.html", context), status=status, headers=HEADERS)
