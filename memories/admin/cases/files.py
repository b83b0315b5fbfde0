"""The files of a privacy case: a receipt to read and keep, an export that is handed over once."""

import uuid

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, StreamingHttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from memories.admin.access import fresh
from memories.admin.site.page import RecordPage, actor_of, address, render_page, url_of
from memories.exceptions import MemoryHubError
from memories.models import CaseType, ExportState, PrivacyCase, PrivacyExport
from memories.privacy import receipt_page, receipts
from memories.privacy.exports import downloads


class FileViews(RecordPage):
    """A page of cases with the files of each."""

    @address("<uuid:object_id>/receipt/")
    def receipt(self, request: HttpRequest, object_id: uuid.UUID) -> HttpResponse:
        """The receipt, to be read and printed."""
        case = self._with_receipt(request, object_id)
        page = receipt_page.ReceiptPage.of(case.receipt, signature=case.signature, public_key=receipts.public_key())
        shown = {"title": _("Receipt"), "opts": self.opts, "original": case, "case": case, "page": page}
        return render_page(request, "memories/case_receipt.html", **shown)

    @address("<uuid:object_id>/receipt_json/")
    def receipt_json(self, request: HttpRequest, object_id: uuid.UUID) -> HttpResponse:
        """The receipt with its signature, as `verify_receipt` reads it."""
        case = self._with_receipt(request, object_id)
        return _file(receipts.document(case), "application/json", f"receipt-{case.pk}.json")

    @address("<uuid:object_id>/receipt_html/")
    def receipt_html(self, request: HttpRequest, object_id: uuid.UUID) -> HttpResponse:
        """The receipt as a page that needs no hub."""
        case = self._with_receipt(request, object_id)
        return _file(receipts.page(case).encode(), "text/html; charset=utf-8", f"receipt-{case.pk}.html")

    @address("<uuid:object_id>/link/")
    def link(self, request: HttpRequest, object_id: uuid.UUID) -> HttpResponse:
        """Make the one-time link to the export. It is shown only this once."""
        export = self._export(request, object_id)
        if export is None or request.method != "POST":
            return HttpResponseRedirect(f"{url_of(self.find(request, str(object_id), may_change=True))}#next")
        if asked := fresh.required(request):
            return asked
        try:
            token = downloads.link_for(export, actor_of(request), timezone.now())
        except MemoryHubError as error:
            return self._not_done(request, export.case, error)
        link = request.build_absolute_uri(reverse("export", args=[token]))
        shown = {"title": _("One-time link"), "opts": self.opts, "case": export.case, "export": export, "link": link}
        response = render_page(request, "memories/case_link.html", **shown)
        response.headers["Cache-Control"] = "no-store"
        return response

    @address("<uuid:object_id>/download/")
    def download(self, request: HttpRequest, object_id: uuid.UUID) -> HttpResponse | StreamingHttpResponse:
        """The export itself, to be handed over by other means: it goes with this."""
        export = self._export(request, object_id)
        case = self.find(request, str(object_id), may_change=True)
        if export is None or request.method != "POST":
            return HttpResponseRedirect(f"{url_of(case)}#next")
        if asked := fresh.required(request):
            return asked
        try:
            download = downloads.take_export(export, actor_of(request), timezone.now())
        except MemoryHubError as error:
            return self._not_done(request, case, error)
        headers = {
            "Content-Disposition": f'attachment; filename="{export.profile}-{export.pk}.zip"',
            "Cache-Control": "no-store",
            "Content-Length": str(download.size),
        }
        return StreamingHttpResponse(download.parts(), content_type="application/zip", headers=headers)

    def _not_done(self, request: HttpRequest, case: PrivacyCase, error: MemoryHubError) -> HttpResponse:
        """Somebody else took it, or its week is over."""
        messages.error(request, error.detail)
        return HttpResponseRedirect(f"{url_of(case)}#next")

    def _with_receipt(self, request: HttpRequest, object_id: uuid.UUID) -> PrivacyCase:
        case: PrivacyCase = self.find(request, str(object_id), may_change=False)
        if not case.receipt or case.type != CaseType.ERASURE:
            raise Http404
        return case

    def _export(self, request: HttpRequest, object_id: uuid.UUID) -> PrivacyExport | None:
        """The one that is ready, for those who handle cases and may see what is in it."""
        case = self.find(request, str(object_id), may_change=True)
        if not request.user.has_perm("memories.view_enduser"):
            raise PermissionDenied
        found: PrivacyExport | None = case.exports.filter(state=ExportState.READY).first()
        return found


def _file(content: bytes, kind: str, name: str) -> HttpResponse:
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    return HttpResponse(content, content_type=kind, headers=headers)
