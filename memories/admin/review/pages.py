"""Review: the list of items that wait for a decision, and a page for each with its decisions and their undo."""

from collections.abc import Iterator
from typing import Any, ClassVar

from django.contrib.admin import SimpleListFilter
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memories.admin.access.tenant_scope import within
from memories.admin.lists import cells
from memories.admin.lists.columns import column
from memories.admin.review.bulk import ReviewBulkViews
from memories.admin.review.decided import DecidedViews
from memories.admin.review.detail import shown_of
from memories.admin.review.forms import (
    ApproveItemForm,
    DeleteNoteForm,
    EditItemForm,
    GiveBackForm,
    KeepBothForm,
    MergeForm,
    NoteForm,
    RejectItemForm,
    TakeForm,
    UndoForm,
)
from memories.admin.review.queue_page import QueueViews
from memories.admin.review.wording import KIND_COLOURS, STATE_COLOURS, about, headline
from memories.admin.site.page import VerbForm
from memories.models import ReviewItem

ALL = "all"


class StateFilter(SimpleListFilter):
    """Waiting items, unless the address names another state."""

    title = gettext_lazy("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        decided = [(state.value, str(state.label)) for state in ReviewItem.State if state != ReviewItem.State.OPEN]
        return [*decided, (ALL, _("All"))]

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        first, *others = super().choices(changelist)
        yield {**first, "display": ReviewItem.State.OPEN.label}
        yield from others

    def queryset(self, request: HttpRequest, queryset: QuerySet[ReviewItem]) -> QuerySet[ReviewItem]:
        if self.value() == ALL:
            return queryset
        return queryset.filter(state=self.value() or ReviewItem.State.OPEN)


class ReviewPage(QueueViews, DecidedViews, ReviewBulkViews):
    page_template = "memories/review_item.html"
    verbs: ClassVar[dict[str, type[VerbForm]]] = {
        "approve": ApproveItemForm,
        "edit": EditItemForm,
        "keep_both": KeepBothForm,
        "merge": MergeForm,
        "reject": RejectItemForm,
        "undo": UndoForm,
        "take": TakeForm,
        "give_back": GiveBackForm,
        "note": NoteForm,
        "delete_note": DeleteNoteForm,
    }
    list_display = ("statement", "kind_shown", "why", "about", "person", "state_shown", "waits_since")
    list_filter = ("kind", StateFilter, "tenant")
    linked_by = ("end_user",)
    list_select_related = ("fact", "known", "proposed_section", "episode__session", "end_user", "tenant", "extraction")
    ordering = ("created_at", "id")
    empty_title = gettext_lazy("Nothing is pending")
    empty_hint = gettext_lazy(
        "This list contains facts that only an assistant or a tool stated, contradictions to an operator, possible "
        "duplicates, texts that look like a secret or an instruction, and poor episodes. Filter by state to see "
        "decided items."
    )

    @column(gettext_lazy("Proposal"))
    def statement(self, item: ReviewItem) -> SafeString:
        return cells.statement(headline(item))

    @column(gettext_lazy("Kind"), label=KIND_COLOURS, ordering="kind")
    def kind_shown(self, item: ReviewItem) -> tuple[str, str]:
        return item.kind, item.get_kind_display()

    @column(gettext_lazy("Reason"))
    def why(self, item: ReviewItem) -> SafeString:
        return cells.wrapped(item.get_reason_display())

    @column(gettext_lazy("About"))
    def about(self, item: ReviewItem) -> SafeString:
        return cells.two_lines(about(item), item.tenant.slug)

    @column(gettext_lazy("End user"))
    def person(self, item: ReviewItem) -> SafeString:
        return cells.person(item.end_user)

    @column(gettext_lazy("State"), label=STATE_COLOURS)
    def state_shown(self, item: ReviewItem) -> tuple[str, str]:
        return item.state, item.get_state_display()

    @column(gettext_lazy("Pending since"), ordering="created_at")
    def waits_since(self, item: ReviewItem) -> SafeString | str:
        return cells.moment(item.created_at)

    def gather(self, request: HttpRequest, record: ReviewItem) -> dict[str, Any]:
        return shown_of(record, within(request.user, ReviewItem.objects.waiting()), request.user)
