"""Facts: the list, the page of one, and its verbs."""

from typing import Any, ClassVar

from django.db.models import Q
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from memories import conf
from memories.admin.facts import forms
from memories.admin.facts.adding import FactAddingViews
from memories.admin.facts.bulk import FactBulkViews
from memories.admin.facts.decay_curve import curve_of
from memories.admin.facts.detail import citations, newest_revisions, purged_on, related, revisions
from memories.admin.facts.merging import FactMergingViews
from memories.admin.facts.old_claims import OldClaimViews
from memories.admin.lists import cells
from memories.admin.lists.columns import column, moment_column
from memories.admin.lists.export import OF_PERSON
from memories.admin.site import sidebar
from memories.admin.site.page import VerbForm, verbs_of
from memories.admin.site.wording import KINDS, why_it_stays
from memories.curation.facts.splitting import is_merged
from memories.curation.old_claims import claim_of
from memories.models import Fact, ReviewItem, Status
from memories.verbs import undone_of


class FactPage(FactAddingViews, FactBulkViews, FactMergingViews, OldClaimViews):
    page_template = "memories/fact.html"
    undo_field = "fact"
    # Merges have an undo on the page. The undo of a withdrawal would publish, which needs a fresh password.
    undo_verbs = undone_of("Fact") - {"withdraw"}
    verbs: ClassVar[dict[str, type[VerbForm]]] = {**verbs_of(forms), "undo_merge": forms.UndoMergeForm}
    csv_columns = (
        *OF_PERSON, "agent_id", "content", "category", "status", "confidence", "importance", "trust", "tags", "pinned",
        "locked", "binding", "scope", "mentions", "created_at", "expires_at", "forget_at",
    )  # fmt: skip
    list_display = ("statement", "person", "category", "state", "confidence_shown", "origin", "created")
    list_filter = ("status", "trust", "category", "tenant")
    linked_by = ("end_user",)
    list_select_related = ("end_user", "tenant", "extraction", "superseded_by")
    search_fields = ("content", "key")
    search_help_text = _("Search content or key")
    ordering = ("-created_at", "-id")
    empty_title = _("No facts yet")
    empty_hint = _("Facts are extracted from posted turns, written with POST /facts, or added here.")

    def get_list_display(self, request: HttpRequest) -> list[str]:
        """With the tenant, for who sees several; it is last, because saved filters sort by the number of a column."""
        shown = super().get_list_display(request)
        return [*shown, "tenant"] if sidebar.counts_of(request).tenants > 1 else shown

    @column(_("Fact"))
    def statement(self, fact: Fact) -> SafeString:
        return cells.statement(fact.content)

    @column(_("End user"))
    def person(self, fact: Fact) -> SafeString:
        return cells.person(fact.end_user)

    @column(_("Status"), label=KINDS, ordering="status")
    def state(self, fact: Fact) -> tuple[str, str]:
        return fact.status, fact.get_status_display()

    @column(_("Confidence"), ordering="confidence")
    def confidence_shown(self, fact: Fact) -> SafeString:
        return cells.meter(fact.confidence)

    @column(_("Trust"), ordering="trust")
    def origin(self, fact: Fact) -> str:
        return fact.get_trust_display()

    expires = moment_column(_("Expires"), "expires_at")
    fades = moment_column(_("Fades"), "forget_at")

    @column(_("Learned"), ordering="created_at")
    def created(self, fact: Fact) -> SafeString | str:
        return cells.moment(fact.created_at)

    def show(
        self, request: HttpRequest, record: Any, *, tried: VerbForm | None = None, status: int = 200
    ) -> TemplateResponse:
        """The page. A script that posted the form beside a search hit gets the refused form alone."""
        page = super().show(request, record, tried=tried, status=status)
        if tried is not None and request.headers.get("X-Fragment") == "verb":
            name = next(name for name, form in self.verbs.items() if type(tried) is form)
            tried.auto_id = f"{name}_{record.pk}_%s"
            page.context_data = {**(page.context_data or {}), "name": name, "form": tried, "fact": record}
            page.template_name = "memories/recalled_verb.html"
        return page

    def gather(self, request: HttpRequest, record: Fact) -> dict[str, Any]:
        rows = newest_revisions(record)
        return {
            "fact": record,
            "live": record.status in Status.LIVE,
            "citations": citations(record, request.user),
            "revisions": revisions(record, rows, request.user),
            "because": why_it_stays(record, conf.rules(record.tenant)),
            "curve": curve_of(record, rows, now=timezone.now()),
            "purged_on": purged_on(record),
            "related": related(record),
            "merged": is_merged(record),
            "has_old_claim": claim_of(record) is not None,
            "merge": record.change_sets.filter(verb="merge", undone_at=None).first(),
            "waiting": ReviewItem.objects.waiting().filter(Q(fact=record) | Q(known=record)),
        }
