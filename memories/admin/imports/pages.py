"""The list of imports, the page that uploads a file, and the page of one."""

from typing import Any, ClassVar

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.defaultfilters import filesizeformat
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memories import upload_heads
from memories.admin.imports.forms import PauseForm, ResumeForm, StartForm, UndoForm, UploadForm, people_in
from memories.admin.imports.wording import FAILURES, OUTCOMES, REASONS, sentences, told
from memories.admin.lists.columns import column, moment_column
from memories.admin.people.adding import add_refusal
from memories.admin.site.mentions import mention
from memories.admin.site.page import RecordPage, VerbForm, actor_of, render_page, url_of
from memories.admin.trail.authors import names_of
from memories.curation.imports.verbs import most_bytes, upload
from memories.exceptions import MemoryHubError
from memories.models import ActorKind, Import, ImportSource

State = Import.State
COLOURS = {
    State.CHECKED: "warning",
    State.RUNNING: "info",
    State.CHECKING: "info",
    State.DONE: "success",
    State.FAILED: "danger",
}
WORKING = (State.CHECKING, State.RUNNING, State.UNDOING)


class ImportPage(RecordPage):
    page_template = "memories/import.html"
    verbs: ClassVar[dict[str, type[VerbForm]]] = {
        "start": StartForm,
        "pause": PauseForm,
        "resume": ResumeForm,
        "undo": UndoForm,
    }
    list_display = ("uploaded", "source_shown", "state_shown", "stored", "tenant")
    list_filter = ("state", "tenant")
    list_select_related = ("tenant",)
    ordering = ("-created_at", "-id")
    uploaded = moment_column(gettext_lazy("Uploaded"), "created_at")
    empty_title = gettext_lazy("No imports yet")
    empty_hint = gettext_lazy(
        "Upload what people already have elsewhere: an export of a chat service, memories, files."
    )

    @column(gettext_lazy("Source"), ordering="source")
    def source_shown(self, row: Import) -> str:
        return source_of(row)

    @column(gettext_lazy("Status"), label={str(state): colour for state, colour in COLOURS.items()}, ordering="state")
    def state_shown(self, row: Import) -> tuple[str, str]:
        return row.state, str(row.get_state_display())

    @column(gettext_lazy("Stored"))
    def stored(self, row: Import) -> int:
        if not row.started_at:
            # A dry run counts what it would store, also one whose workers were lost.
            return 0
        names = ("messages", "facts", "sections", "files", "items")
        return sum(max(0, row.counts.get(name, 0) - row.counts.get(f"{name}_undone", 0)) for name in names)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("memories.add_import")

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        if upload_heads.let_come(request.META):
            return HttpResponse()
        form = UploadForm(request)
        status = 400 if form.is_bound else 200
        if form.is_valid():
            given = {"tenant": form.cleaned_data["tenant"], "file": form.cleaned_data["file"]}
            try:
                row = upload(**given, options=form.options(), dry_run=True, actor=actor_of(request), now=timezone.now())
            except MemoryHubError as error:
                status = add_refusal(form, error)
            else:
                messages.success(request, _("%(import)s is being checked.") % {"import": mention(row)})
                return HttpResponseRedirect(url_of(row))
        shown = {"title": _("Import a file"), "opts": self.opts, "form": form, "most": filesizeformat(most_bytes())}
        return render_page(request, "memories/import_add.html", status=status, **shown)

    def show(
        self, request: HttpRequest, record: Any, *, tried: VerbForm | None = None, status: int = 200
    ) -> TemplateResponse:
        """Beside each author of the file the field that says whom they become."""
        page = super().show(request, record, tried=tried, status=status)
        found: dict[str, Any] = page.context_data or {}
        form = found["forms"].get("start") if found["may_start"] else None
        fields = form.authors() if form else [None] * len(found["people"])
        page.context_data = found | {"people_with_fields": list(zip(found["people"], fields, strict=True))}
        return page

    def gather(self, request: HttpRequest, record: Import) -> dict[str, Any]:
        state = record.state
        is_begun = record.started_at is not None
        has_got_on = is_begun and bool(record.position)
        return {
            "import": record,
            "source": source_of(record),
            "colour": COLOURS.get(State(state), ""),
            "is_working": state in WORKING,
            "failed": FAILURES.get(record.failure, record.failure),
            "findings": sentences(record.findings),
            "may_start": state in (State.CHECKED, State.FAILED) and record.has_file and not has_got_on,
            "may_resume": record.has_file and (state == State.PAUSED or (state == State.FAILED and has_got_on)),
            # There is something to undo: what it stored, or its file.
            "may_undo": state not in (State.UNDOING, State.UNDONE, State.CHECKING)
            and (record.has_file or state != State.FAILED or record.rows.exists()),
            "is_begun": is_begun,
            "people": [{**one, "kept": one.get("memories", 0) + one.get("files", 0)} for one in people_in(record)],
            "more": record.preview.get("more", 0),
            "samples": record.preview.get("samples", []),
            "counts": told(record.counts, OUTCOMES),
            "left_out": told(record.left_out, REASONS),
            "refused": told(record.refused, REASONS),
            "by": names_of([record]).get(record.actor_id, record.get_actor_kind_display()),
            "by_operator": record.actor_kind == ActorKind.OPERATOR,
        }


def source_of(row: Import) -> str:
    """Its name; – where it is not recognised yet."""
    return str(dict(ImportSource.choices).get(row.source, row.source)) or "–"
