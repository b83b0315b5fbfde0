"""Facts: the list with what is done to many at once, the page of one, and its verbs."""

from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from memories.admin import cells, fact_adding, fact_bulk, fact_forms, fact_keeping, fact_merging
from memories.admin.columns import column
from memories.admin.fact_fading import curve_of
from memories.admin.fact_page import citations, fading, newest_revisions, purged_on, revisions
from memories.admin.fact_relations import related
from memories.admin.page import RecordPage, VerbForm
from memories.admin.wording import KINDS
from memories.curation.splitting import is_merged
from memories.models import Fact, ReviewItem, Status

LIVE = (Status.ACTIVE, Status.PENDING)


class FactPage(RecordPage):
    page_template = "memories/fact.html"
    verbs: ClassVar[dict[str, type[VerbForm]]] = {
        "approve": fact_forms.ApproveForm,
        "reject": fact_forms.RejectForm,
        "reconsider": fact_forms.ReconsiderForm,
        "correct": fact_forms.CorrectForm,
        "pin": fact_keeping.PinForm,
        "unpin": fact_keeping.UnpinForm,
        "lock": fact_keeping.LockForm,
        "unlock": fact_keeping.UnlockForm,
        "expire": fact_keeping.ExpireForm,
        "publish": fact_forms.PublishForm,
        "withdraw": fact_forms.WithdrawForm,
        "forget": fact_forms.ForgetForm,
        "restore": fact_forms.RestoreForm,
        "split": fact_keeping.SplitForm,
        "undo_merge": fact_keeping.UndoMergeForm,
    }
    list_display = ("statement", "person", "category", "state", "confidence_shown", "origin", "created")
    list_filter = ("status", "trust", "category", "tenant")
    list_select_related = ("end_user", "tenant", "extraction", "superseded_by")
    search_fields = ("content", "key")
    search_help_text = _("Search content or key")
    ordering = ("-created_at", "-id")
    actions = ("forget_many", "pin_many", "expire_many")  # type: ignore[assignment]  # elsewhere there are none
    empty_title = _("No facts yet")
    empty_hint = _("Facts are drawn from posted turns, written with POST /facts, or added here by hand.")

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

    @column(_("Learned"), ordering="created_at")
    def created(self, fact: Fact) -> SafeString | str:
        return cells.moment(fact.created_at)

    @admin.action(description=_("Forget…"), permissions=["change"])
    def forget_many(self, request: HttpRequest, facts: QuerySet[Fact]) -> HttpResponse | None:
        return fact_bulk.preview(self, request, "forget", facts)

    @admin.action(description=_("Pin…"), permissions=["change"])
    def pin_many(self, request: HttpRequest, facts: QuerySet[Fact]) -> HttpResponse | None:
        return fact_bulk.preview(self, request, "pin", facts)

    @admin.action(description=_("Let expire…"), permissions=["change"])
    def expire_many(self, request: HttpRequest, facts: QuerySet[Fact]) -> HttpResponse | None:
        return fact_bulk.preview(self, request, "expire", facts)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Whoever may set facts right may state them, too."""
        return bool(self.has_change_permission(request))

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        return fact_adding.add(self, request)

    def gather(self, request: HttpRequest, record: Fact) -> dict[str, Any]:
        rows = newest_revisions(record)
        return {
            "fact": record,
            "live": record.status in LIVE,
            "trashed": record.status == Status.TRASHED,
            "citations": citations(record),
            "revisions": revisions(record, rows),
            "fading": fading(record),
            "curve": curve_of(record, rows, now=timezone.now()),
            "purged_on": purged_on(record),
            "related": related(record),
            "merged": is_merged(record),
            "merge": record.merges.filter(undone_at=None).first(),
            "waiting": ReviewItem.objects.waiting().filter(Q(fact=record) | Q(known=record)),
        }

    def get_urls(self) -> list[URLPattern]:
        def merge(request: HttpRequest, object_id: Any) -> HttpResponse:
            return fact_merging.merge(self, request, str(object_id))

        view = self.admin_site.admin_view
        own = [path("<uuid:object_id>/merge/", view(merge), name="memories_fact_merge"), *fact_bulk.urls(self)]
        return [*own, *super().get_urls()]
