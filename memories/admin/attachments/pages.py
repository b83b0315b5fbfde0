"""Attachments: the list, a file with its passages and why it was not read, and the verb delete."""

from collections.abc import Callable
from typing import Any, ClassVar

from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memories.admin.lists import cells
from memories.admin.lists.columns import column, moment_column
from memories.admin.site.page import RecordPage, VerbForm
from memories.curation.attachments import delete_attachment
from memories.models import Attachment, Author

# Of a file its first ones; the API has all.
PASSAGES_SHOWN = 50
_LABELS = {"pending": "info", "read": "success", "failed": "danger", "refused": "warning"}


class DeleteAttachmentForm(VerbForm):
    calls: ClassVar[Callable[..., Any]] = staticmethod(delete_attachment)
    done = _("The attachment is deleted, with its passages.")

    def arguments(self) -> dict[str, Any]:
        return {"attachment_id": self.record.pk, "tenant": None}

    def leads_to(self) -> str:
        return reverse("admin:memories_attachment_changelist")


class AttachmentPage(RecordPage):
    page_template = "memories/attachment.html"
    verbs: ClassVar[dict[str, type[VerbForm]]] = {"delete": DeleteAttachmentForm}
    list_display = ("file", "person", "state_shown", "size_shown", "posted")
    list_filter = ("tenant", "state")
    linked_by = ("end_user", "session")
    list_select_related = ("end_user", "tenant")
    search_fields = ("name", "end_user__external_id")
    search_help_text = _("Search by name or end user")
    ordering = ("-created_at", "-id")
    empty_title = _("No attachments yet")
    empty_hint = _("Applications post files with their turns: attachments in POST /api/v1/turns.")
    posted = moment_column(_("Posted"), "created_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Attachment]:
        # Nobody is shown the file itself.
        rows: QuerySet[Attachment] = super().get_queryset(request)
        return rows.defer("content")

    @column(_("File"))
    def file(self, row: Attachment) -> SafeString:
        return cells.two_lines(row.name or gettext("without a name"), row.media_type)

    @column(_("End user"))
    def person(self, row: Attachment) -> SafeString:
        return cells.person(row.end_user)

    @column(_("Status"), label=_LABELS)
    def state_shown(self, row: Attachment) -> tuple[str, str]:
        return row.state, str(row.get_state_display())

    @column(_("Size"), ordering="size")
    def size_shown(self, row: Attachment) -> str:
        return filesizeformat(row.size)

    def gather(self, request: HttpRequest, record: Attachment) -> dict[str, Any]:
        passages = list(record.passages.defer("terms")[: PASSAGES_SHOWN + 1])
        return {
            "file": record,
            "label": _LABELS[record.state],
            "passages": passages[:PASSAGES_SHOWN],
            "has_more": len(passages) > PASSAGES_SHOWN,
            "shown": PASSAGES_SHOWN,
            "is_described": any(one.author == Author.MODEL for one in passages),
            "turn_number": record.turn.number,
        }


PAGES = ((Attachment, AttachmentPage),)
