"""Memory files: the list, the page of one with its versions and verbs, and two versions side by side."""

import uuid
from typing import Any, ClassVar

from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memories import conf
from memories.admin.files import forms
from memories.admin.files.comparing import compare
from memories.admin.lists import cells
from memories.admin.lists.columns import column, moment_column
from memories.admin.site.page import RecordPage, VerbForm, address, verbs_of
from memories.admin.trail.authors import names_of
from memories.files.paths import SCRATCH
from memories.models import FileVersion, MemoryFile

VERSIONS_SHOWN = 20
_NUMBER_DIGITS = 9


class MemoryFilePage(RecordPage):
    page_template = "memories/file.html"
    verbs: ClassVar[dict[str, type[VerbForm]]] = {**verbs_of(forms), "restore": forms.RestoreFileForm}
    list_display = ("name", "person", "state", "author", "version", "updated")
    list_filter = ("actor_kind", "tenant")
    linked_by = ("end_user",)
    list_select_related = ("end_user", "tenant")
    search_fields = ("path", "agent_id", "end_user__external_id")
    search_help_text = _("Search by path, agent or end user")
    ordering = ("-updated_at", "-id")
    empty_title = _("No memory files yet")
    empty_hint = _("Agents that keep their notes as files write them with PUT /api/v1/files.")
    updated = moment_column(_("Changed"), "updated_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[MemoryFile]:
        rows: QuerySet[MemoryFile] = super().get_queryset(request)
        is_list = request.resolver_match is not None and not request.resolver_match.kwargs
        return rows.defer("content") if is_list else rows

    @column(_("File"), ordering="path")
    def name(self, file: MemoryFile) -> SafeString:
        return cells.two_lines(file.path, file.agent_id or gettext("without an agent"))

    @column(_("End user"))
    def person(self, file: MemoryFile) -> SafeString:
        return cells.person(file.end_user)

    @column(_("Status"), label={"active": "success", "locked": "primary", "expired": "warning", "trashed": "danger"})
    def state(self, file: MemoryFile) -> tuple[str, str]:
        return state_of(file)

    @column(_("Written by"), ordering="actor_kind")
    def author(self, file: MemoryFile) -> str:
        return file.get_actor_kind_display()

    def gather(self, request: HttpRequest, record: MemoryFile) -> dict[str, Any]:
        rows = FileVersion.objects.filter(file=record).defer("content").order_by("-version")
        page = Paginator(rows, VERSIONS_SHOWN).get_page(request.GET.get("page"))
        versions = list(page)
        names = names_of(versions)
        return {
            "file": record,
            "state": state_of(record),
            "live": state_of(record)[0] in ("active", "locked"),
            "is_scratch": record.path.startswith(SCRATCH),
            "trash_days": conf.rules(record.tenant).trash_days,
            "page": page,
            "versions": [
                (
                    row,
                    names.get(row.actor_id, row.get_actor_kind_display()),
                    # It can be restored if it has a content, and another than the file has now.
                    row.verb != FileVersion.Verb.DELETE and row.version != record.version,
                )
                for row in versions
            ],
        }

    @address("<uuid:object_id>/compare/", "compare")
    def compare_view(self, request: HttpRequest, object_id: uuid.UUID) -> HttpResponse:
        """Two versions side by side: those of the address, else the newest and the one before it."""
        file = self.find(request, str(object_id), may_change=False)
        new = _number(request.GET.get("to", ""), file.version)
        old = _number(request.GET.get("from", ""), max(1, new - 1))
        rows = {row.version: row for row in FileVersion.objects.filter(file=file, version__in=[old, new])}
        if old not in rows or new not in rows:
            raise Http404
        names = names_of(rows.values())
        sides = [(row, names.get(row.actor_id, row.get_actor_kind_display())) for row in (rows[old], rows[new])]
        are_texts = all(row.is_text for row, _name in sides)
        page = self.show(request, file)
        page.template_name = "memories/file_compare.html"
        page.context_data = {
            **(page.context_data or {}),
            "sides": sides,
            "old": rows[old],
            "new": rows[new],
            "are_texts": are_texts,
            "comparison": compare(rows[old].content, rows[new].content) if are_texts else None,
            "is_same": rows[old].content == rows[new].content,
        }
        return page


def state_of(file: MemoryFile) -> tuple[str, str]:
    """A code and a word: whether agents read the file, and whether they can change it."""
    if file.trashed_at:
        return "trashed", gettext("Deleted")
    if file.expires_at and file.expires_at <= timezone.now():
        return "expired", gettext("Expired")
    return ("locked", gettext("Locked")) if file.locked else ("active", gettext("Active"))


def _number(text: str, otherwise: int) -> int:
    """The version that an address names. Errors: Http404 for what is no number."""
    if not text:
        return otherwise
    if not text.isdecimal() or len(text) > _NUMBER_DIGITS:
        raise Http404
    return int(text)
