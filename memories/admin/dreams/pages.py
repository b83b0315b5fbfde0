"""Dreams: the list, and the page of one, which shows each edit beside what it replaces."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy, ngettext
from django.utils.translation import gettext_lazy as _

from memories.admin.dreams import forms
from memories.admin.files.comparing import VersionComparison, compare
from memories.admin.lists import cells
from memories.admin.lists.columns import column, moment_column
from memories.admin.site.page import RecordPage, VerbForm
from memories.admin.site.wording import KINDS
from memories.dream.deciding import DONE, is_acceptable
from memories.models import ActorKind, Dream, DreamEdit, Fact, FactRevision, MemoryFile

State, EditState = Dream.State, DreamEdit.State
COLOURS = KINDS | {"waiting": "warning", "applied": "success", "declined": "danger", "restored": "info"}
# Why an edit was refused.
REFUSALS = {
    "malformed": gettext_lazy("It is no edit."),
    "foreign_path": gettext_lazy("It names a file that dreams may not change."),
    "too_long": gettext_lazy("It is longer than an edit may be."),
    "no_change": gettext_lazy("It changes nothing."),
    "text_not_found": gettext_lazy("The file does not contain the text that it replaces."),
    "text_not_unique": gettext_lazy("The file contains the text that it replaces more than once."),
    "file_not_found": gettext_lazy("There is no such file."),
    "file_too_large": gettext_lazy("The file would become too long."),
    "too_many_files": gettext_lazy("The end user has as many files as the tenant allows."),
    "binary_file": gettext_lazy("The file is no text."),
    "is_directory": gettext_lazy("The path is that of a folder."),
    "not_a_directory": gettext_lazy("A part of the path is a file."),
    "operator_word": gettext_lazy("An operator locked the file."),
    "review_needed": gettext_lazy("It speaks to a model: only an operator can write such a text."),
}
# Why a dream failed, beside the failures of models.
FAILED = {
    "person_changed": gettext_lazy("The end user was erased, merged, cleared or restricted meanwhile."),
    "episodes_changed": gettext_lazy("An episode that it read was changed or forgotten meanwhile."),
}


@dataclass(frozen=True)
class ShownEdit:
    """An edit with its texts side by side, and what an operator can do with it now."""

    edit: DreamEdit
    comparison: VersionComparison
    refusal: str
    file: MemoryFile | None
    may_undo: bool
    may_accept: bool


class DreamPage(RecordPage):
    page_template = "memories/dream.html"
    verbs: ClassVar[dict[str, type[VerbForm]]] = {
        "approve": forms.ApproveEditsForm,
        "decline": forms.DeclineForm,
        "undo": forms.UndoEditForm,
        "accept": forms.AcceptEditForm,
        "restore": forms.RestoreVersionForm,
        "keep": forms.KeepForm,
    }
    list_display = ("started", "person", "state_shown", "changed", "episodes", "tokens")
    list_filter = ("state", "kind", "tenant")
    linked_by = ("end_user",)
    list_select_related = ("end_user", "tenant")
    search_fields = ("agent_id", "end_user__external_id")
    search_help_text = _("Search by agent or end user")
    ordering = ("-started_at", "-id")
    started = moment_column(_("Started"), "started_at")
    empty_title = _("No dreams yet")
    empty_hint = _("Switch dreams on in the settings of a tenant, or begin one on the page of an end user’s files.")

    @column(_("End user"))
    def person(self, dream: Dream) -> SafeString:
        return cells.person(dream.end_user)

    @column(_("Status"), label=COLOURS, ordering="state")
    def state_shown(self, dream: Dream) -> tuple[str, str]:
        return dream.state, _state(dream)

    @column(_("Changes"))
    def changed(self, dream: Dream) -> SafeString:
        text = dream.summary or "–"
        if dream.kind == Dream.Kind.REFLECTION:
            pattern = ngettext("Reflection: %(number)d fact", "Reflection: %(number)d facts", dream.proposed)
            text = pattern % {"number": dream.proposed}
        return cells.two_lines(text, dream.agent_id or gettext("without an agent"))

    @column(_("Tokens"))
    def tokens(self, dream: Dream) -> int:
        return dream.prompt_tokens + dream.completion_tokens

    def gather(self, request: HttpRequest, record: Dream) -> dict[str, Any]:
        edits = list(record.edits.order_by("number"))
        return {
            "dream": record,
            "edits": _shown(record, edits),
            "waits": record.state == State.WAITING,
            "state": _state(record),
            "found": _found(record) if record.proposed else [],
            "may_restore": record.state in DONE and record.kind == Dream.Kind.FILES,
            "colour": COLOURS.get(record.state, ""),
            "failed": FAILED.get(record.failure, ""),
            "read": [one.episode for one in record.read.select_related("episode").order_by("episode__ended_at", "pk")],
        }


def _state(dream: Dream) -> str:
    is_proposal = dream.kind == Dream.Kind.REFLECTION and dream.state == State.APPLIED
    return gettext("Proposed") if is_proposal else str(dream.get_state_display())


def _found(dream: Dream) -> list[Fact]:
    """The facts that a reflection proposed, as far as they are there."""
    made = FactRevision.objects.filter(actor_kind=ActorKind.DREAM, actor_id=str(dream.pk), version=1)
    return list(Fact.objects.of(dream.tenant, dream.end_user).filter(pk__in=made.values("fact")).order_by("pk"))


def _shown(dream: Dream, edits: Sequence[DreamEdit]) -> list[ShownEdit]:
    files = MemoryFile.objects.of(dream.tenant, dream.end_user).filter(agent_id=dream.agent_id).defer("content")
    found = {file.path: file for file in files.filter(path__in={edit.path for edit in edits})}
    may_accept = dream.state not in (State.RUNNING, State.WAITING, State.RESTORED)
    return [
        ShownEdit(
            edit,
            compare(edit.old_text, edit.new_text),
            str(REFUSALS.get(edit.code, edit.code)),
            found.get(edit.path),
            may_undo=edit.state == EditState.APPLIED and dream.state == State.APPLIED,
            may_accept=may_accept and is_acceptable(edit),
        )
        for edit in edits
    ]
