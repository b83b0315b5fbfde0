"""Extraction runs: what each attempt read, stored and cost, and retrying a failed batch. Backups that were made."""

from datetime import datetime
from typing import Any, ClassVar

from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memories.admin.lists import cells
from memories.admin.lists.columns import column, moment_column
from memories.admin.lists.export import OF_PERSON
from memories.admin.runs.waits import WaitingListPage, waits_of, when_taken
from memories.admin.site.mentions import mention
from memories.admin.site.page import RecordPage, VerbForm
from memories.admin.site.wording import KINDS
from memories.audit import Actor
from memories.curation.retries import retry_extraction
from memories.models import Backup, ExtractionRun, Fact

FACTS_SHOWN = 25
RETRIABLE = (ExtractionRun.RunStatus.FAILED, ExtractionRun.RunStatus.PARKED)


class RetryRunForm(VerbForm):
    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        retry_extraction(run=self.record, actor=actor, now=now)
        done = gettext("%(run)s: the batch is due now.") % {"run": mention(self.record)}
        return f"{done} {when_taken(self.record.tenant, now=now)}"


class RunPage(WaitingListPage):
    page_template = "memories/run.html"
    verbs: ClassVar[dict[str, type[VerbForm]]] = {"retry": RetryRunForm}
    csv_columns = (
        *OF_PERSON, "session_id", "first_number", "last_number", "status", "attempt", "extractor", "calls",
        "prompt_tokens", "completion_tokens", "cost", "failure", "started_at", "finished_at",
    )  # fmt: skip
    list_display = ("started", "person", "turns", "state", "stored", "made_by", "tokens", "cost_shown")
    list_filter = ("status", "tenant")
    linked_by = ("end_user",)
    list_select_related = ("end_user", "tenant", "session")
    ordering = ("-started_at", "-id")
    list_links = (
        (_("Parked work"), "refresh", "admin:parked", "memories.view_session"),
        (_("Try extraction"), "experiment", "admin:extraction_preview", "memories.view_extractionrun"),
    )
    started = moment_column(_("Started"), "started_at")
    empty_title = _("No extraction has run yet")
    empty_hint = _("A run starts when a session has been quiet for a while and a language model is configured.")

    @column(_("End user"))
    def person(self, run: ExtractionRun) -> SafeString:
        return cells.person(run.end_user)

    @column(_("Turns"))
    def turns(self, run: ExtractionRun) -> str:
        return f"{run.first_number}–{run.last_number}"

    @column(_("Outcome"), label=KINDS, ordering="status")
    def state(self, run: ExtractionRun) -> tuple[str, str]:
        return run.status, run.get_status_display()

    @column(_("Stored"))
    def stored(self, run: ExtractionRun) -> str:
        return str(run.outcome.get("stored", "–"))

    @column(_("Model"))
    def made_by(self, run: ExtractionRun) -> str:
        return run.extractor

    @column(_("Tokens"))
    def tokens(self, run: ExtractionRun) -> int:
        return run.prompt_tokens + run.completion_tokens

    @column(_("Cost"), ordering="cost")
    def cost_shown(self, run: ExtractionRun) -> str:
        return "–" if run.cost is None else f"${run.cost:.4f}"

    def gather(self, request: HttpRequest, record: ExtractionRun) -> dict[str, Any]:
        context: dict[str, Any] = {"run": record, "retriable": record.status in RETRIABLE}
        if context["retriable"]:
            context |= waits_of(record.tenant, now=timezone.now())
        if record.finished_at:
            context["seconds"] = (record.finished_at - record.started_at).total_seconds()
        if request.user.has_perm("memories.view_fact"):
            context["facts"] = Fact.objects.filter(extraction=record)[:FACTS_SHOWN]
        return context


class BackupPage(RecordPage):
    """Backups that were made or failed, for whoever sees to them. They are made on the server alone."""

    page_template = "memories/backup.html"
    tenant_path = None
    list_display = ("started", "kind_shown", "state", "begun_by", "size_shown")
    list_filter = ("kind", "failed")
    ordering = ("-started_at", "-id")
    started = moment_column(_("Started"), "started_at")
    empty_title = _("No backup has been made yet")
    empty_hint = _("Whoever runs the hub makes one on the server, or has it made each night: MEMORYHUB_BACKUP_NIGHTLY")

    @column(_("Kind"), ordering="kind")
    def kind_shown(self, backup: Backup) -> str:
        return backup.get_kind_display()

    @column(_("State"), label=KINDS, ordering="failed")
    def state(self, backup: Backup) -> tuple[str, str]:
        return ("failed", gettext("Failed")) if backup.failed else ("done", gettext("Done"))

    @column(_("Started by"), ordering="nightly")
    def begun_by(self, backup: Backup) -> str:
        return gettext("The schedule") if backup.nightly else gettext("A command")

    @column(_("Size"), ordering="size")
    def size_shown(self, backup: Backup) -> str:
        return filesizeformat(backup.size) if backup.size else "–"

    def gather(self, request: HttpRequest, record: Backup) -> dict[str, Any]:
        kind, label = self.state(record)
        return {"backup": record, "state": kind, "state_shown": label, "begun_by": self.begun_by(record)}
