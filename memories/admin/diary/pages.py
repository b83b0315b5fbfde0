"""Diary entries: the list, an entry with its text, and the verbs delete and restore."""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from django.db.models import QuerySet
from django.db.models.functions import Left
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memories import conf
from memories.admin.lists import cells
from memories.admin.lists.columns import column, moment_column
from memories.admin.site.page import Button, RecordPage, VerbForm
from memories.admin.trail.authors import names_of
from memories.curation import plain
from memories.kinds.diary import DIARY
from memories.models import DiaryEntry

BEGINNING = 120


class DeleteEntryForm(VerbForm):
    button = Button(
        "delete",
        "delete",
        _("Delete"),
        _("Delete this entry"),
        _("Its agent no longer reads it. It stays in the trash for a while, and you can restore it."),
        danger=True,
    )
    calls: ClassVar[Callable[..., Any]] = partial(plain.delete, DIARY)
    done = _("%(diaryentry)s is deleted. You can restore it here.")

    def offered(self) -> Button | None:
        return None if self.record.trashed_at else self.button

    def arguments(self) -> dict[str, Any]:
        return {"row_id": self.record.pk}


class RestoreEntryForm(DeleteEntryForm):
    button = Button(
        "restore", "restore_from_trash", _("Restore"), _("Restore this entry"), _("Its agent reads it again.")
    )
    calls = partial(plain.restore, DIARY)
    done = _("%(diaryentry)s is restored. Its agent reads it again.")

    def offered(self) -> Button | None:
        return self.button if self.record.trashed_at else None


class DiaryEntryPage(RecordPage):
    page_template = "memories/diary_entry.html"
    verbs: ClassVar[dict[str, type[VerbForm]]] = {"delete": DeleteEntryForm, "restore": RestoreEntryForm}
    list_display = ("name", "person", "agent", "state", "written")
    list_filter = ("tenant",)
    linked_by = ("end_user",)
    list_select_related = ("end_user", "tenant")
    search_fields = ("topic", "agent_id", "end_user__external_id")
    search_help_text = _("Search by topic, agent or end user")
    ordering = ("-created_at", "-id")
    empty_title = _("No diary entries yet")
    empty_hint = _("Agents note things for themselves with POST /api/v1/diary.")
    written = moment_column(_("Written"), "created_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[DiaryEntry]:
        rows: QuerySet[DiaryEntry] = super().get_queryset(request)
        is_list = request.resolver_match is not None and not request.resolver_match.kwargs
        return rows.annotate(start=Left("content", BEGINNING)).defer("content") if is_list else rows

    @column(_("Entry"))
    def name(self, entry: DiaryEntry) -> SafeString:
        return cells.two_lines(" ".join(entry.start.split()), entry.topic or gettext("without a topic"))  # type: ignore[attr-defined]

    @column(_("End user"))
    def person(self, entry: DiaryEntry) -> SafeString:
        return cells.person(entry.end_user)

    @column(_("Agent"), ordering="agent_id")
    def agent(self, entry: DiaryEntry) -> str:
        return entry.agent_id or gettext("without an agent")

    @column(_("Status"), label={"active": "success", "trashed": "danger"})
    def state(self, entry: DiaryEntry) -> tuple[str, str]:
        return ("trashed", gettext("Deleted")) if entry.trashed_at else ("active", gettext("Active"))

    def gather(self, request: HttpRequest, record: DiaryEntry) -> dict[str, Any]:
        return {
            "entry": record,
            "author": names_of([record]).get(record.actor_id, record.get_actor_kind_display()),
            "trash_days": conf.rules(record.tenant).trash_days,
        }


PAGES = ((DiaryEntry, DiaryEntryPage),)
