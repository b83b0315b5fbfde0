"""Privacy cases: the list, and a page for each with its steps."""

from typing import Any, ClassVar

from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from memories.admin.cases.board import BoardViews
from memories.admin.cases.detail import shown_of
from memories.admin.cases.files import FileViews
from memories.admin.cases.forms import FORMS
from memories.admin.cases.intake import IntakeViews
from memories.admin.cases.wording import STATE_COLOURS, days_left
from memories.admin.lists import cells
from memories.admin.lists.columns import column
from memories.admin.site.page import VerbForm
from memories.models import PrivacyCase, PrivacyCaseQuerySet


class CasePage(BoardViews, IntakeViews, FileViews):
    page_template = "memories/case.html"
    verbs: ClassVar[dict[str, type[VerbForm]]] = FORMS
    # Without the requester and the words of the request.
    csv_columns = (
        "id", "tenant__slug", "type", "state", "asked_by", "received_at", "due_at", "verified_at", "scoped_at",
        "approved_at", "held_at", "extended_at", "refusal", "started_at", "attempts", "failure", "completed_at",
    )  # fmt: skip
    list_display = ("kind", "person", "tenant", "state_shown", "left", "received")
    list_filter = ("type", "state", "tenant")
    list_select_related = ("tenant", "end_user")
    list_links = ((_("Board"), "view_kanban", "admin:memories_privacycase_board", "memories.view_privacycase"),)
    search_fields = ("reference", "id")
    search_help_text = _("Search by reference or number")
    ordering = ("due_at", "pk")
    empty_title = _("No privacy cases yet")
    empty_hint = _(
        "Open a case when somebody asks for their data or for its erasure. The case keeps the due date, the checks "
        "and the receipt."
    )

    def get_queryset(self, request: HttpRequest) -> PrivacyCaseQuerySet:
        cases: PrivacyCaseQuerySet = super().get_queryset(request)  # type: ignore[assignment]  # it is of cases
        return cases.with_handover(timezone.now())

    def get_list_display(self, request: HttpRequest) -> list[str]:
        may_view_people = request.user.has_perm("memories.view_enduser")
        return [name for name in self.list_display if may_view_people or name != "person"]

    @column(_("Type"), ordering="type")
    def kind(self, case: PrivacyCase) -> str:
        return case.get_type_display()

    @column(_("End user"))
    def person(self, case: PrivacyCase) -> SafeString | str:
        return cells.person(case.end_user) if case.end_user else "–"

    @column(_("State"), label=STATE_COLOURS, ordering="state")
    def state_shown(self, case: PrivacyCase) -> tuple[str, str]:
        return case.state, case.get_state_display()

    @column(_("Days left"), ordering="due_at")
    def left(self, case: PrivacyCase) -> SafeString | str:
        left = days_left(case, now=timezone.now())
        return cells.days_left(left) if left else "–"

    @column(_("Received on"), ordering="received_at")
    def received(self, case: PrivacyCase) -> SafeString | str:
        return cells.day(case.received_at)

    def gather(self, request: HttpRequest, record: PrivacyCase) -> dict[str, Any]:
        return shown_of(record, request.user, now=timezone.now())  # type: ignore[arg-type]  # signed in

    def show(
        self, request: HttpRequest, record: Any, *, tried: VerbForm | None = None, status: int = 200
    ) -> TemplateResponse:
        """The page with the forms that fit the case. A script fetches the progress of a run alone."""
        page = super().show(request, record, tried=tried, status=status)
        shown = page.context_data or {}
        fit = {name: form for name, form in shown["forms"].items() if name in shown["verbs"]}
        if shown["may_not_approve"]:
            fit.pop("approve", None)
        page.context_data = {**shown, "forms": fit}
        if request.headers.get("X-Fragment") == "progress":
            page.template_name = "memories/case_progress.html"
        return page
