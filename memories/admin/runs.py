"""Extraction runs: what each attempt read, made and cost, and the retry of a batch that failed."""

from datetime import datetime
from typing import Any, ClassVar

from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memories import curation
from memories.admin import cells
from memories.admin.columns import column
from memories.admin.naming import called
from memories.admin.page import RecordPage, VerbForm
from memories.admin.wording import KINDS
from memories.audit import Actor
from memories.models import ExtractionRun, Fact

FACTS_SHOWN = 25
RETRIABLE = (ExtractionRun.Status.FAILED, ExtractionRun.Status.PARKED)


class RetryForm(VerbForm):
    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        curation.retry_extraction(run=self.record, actor=actor, now=now)
        said = gettext("%(run)s: the batch is due now; a worker takes it within two seconds.")
        return said % {"run": called(self.record)}


class RunPage(RecordPage):
    page_template = "memories/run.html"
    verbs: ClassVar[dict[str, type[VerbForm]]] = {"retry": RetryForm}
    list_display = ("started", "person", "turns", "state", "stored", "made_by", "tokens", "cost_shown")
    list_filter = ("status", "tenant")
    list_select_related = ("end_user", "tenant", "session")
    ordering = ("-started_at", "-id")
    list_links = ((_("Parked work"), "refresh", "admin:parked", "memories.view_session"),)
    empty_title = _("No extraction has run yet")
    empty_hint = _("A run starts when a session has been quiet for a while and a language model is configured.")

    @column(_("Started"), ordering="started_at")
    def started(self, run: ExtractionRun) -> SafeString | str:
        return cells.moment(run.started_at)

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
        shown: dict[str, Any] = {"run": record, "retriable": record.status in RETRIABLE}
        if record.finished_at:
            shown["seconds"] = (record.finished_at - record.started_at).total_seconds()
        if request.user.has_perm("memories.view_fact"):
            shown["facts"] = Fact.objects.filter(extraction=record)[:FACTS_SHOWN]
        return shown
