"""Facts: the list, the page, and the verbs approve, reject, reconsider, correct, publish, withdraw, forget, restore."""

from typing import Any, ClassVar

from django.db.models import Q
from django.http import HttpRequest
from django.utils.safestring import SafeString

from memories.admin import cells
from memories.admin.columns import column
from memories.admin.fact_forms import (
    ApproveForm,
    CorrectForm,
    ForgetForm,
    PublishForm,
    ReconsiderForm,
    RejectForm,
    RestoreForm,
    WithdrawForm,
)
from memories.admin.fact_page import citations, fading, purged_on, revisions
from memories.admin.page import RecordPage, VerbForm
from memories.admin.wording import KINDS
from memories.models import Fact, ReviewItem, Status

LIVE = (Status.ACTIVE, Status.PENDING)


class FactPage(RecordPage):
    page_template = "memories/fact.html"
    verbs: ClassVar[dict[str, type[VerbForm]]] = {
        "approve": ApproveForm,
        "reject": RejectForm,
        "reconsider": ReconsiderForm,
        "correct": CorrectForm,
        "publish": PublishForm,
        "withdraw": WithdrawForm,
        "forget": ForgetForm,
        "restore": RestoreForm,
    }
    list_display = ("statement", "person", "category", "state", "confidence_shown", "origin", "created")
    list_filter = ("status", "trust", "category", "tenant")
    list_select_related = ("end_user", "tenant", "extraction", "superseded_by")
    search_fields = ("content", "key")
    search_help_text = "Search content or key"
    ordering = ("-created_at", "-id")
    empty_title = "No facts yet"
    empty_hint = "Facts are drawn from posted turns, or written with POST /facts."

    @column("Fact")
    def statement(self, fact: Fact) -> SafeString:
        return cells.statement(fact.content)

    @column("End user")
    def person(self, fact: Fact) -> SafeString:
        return cells.person(fact.end_user)

    @column("Status", label=KINDS, ordering="status")
    def state(self, fact: Fact) -> str:
        return fact.status

    @column("Confidence", ordering="confidence")
    def confidence_shown(self, fact: Fact) -> SafeString:
        return cells.meter(fact.confidence)

    @column("Trust", ordering="trust")
    def origin(self, fact: Fact) -> str:
        return fact.get_trust_display()

    @column("Learned", ordering="created_at")
    def created(self, fact: Fact) -> SafeString | str:
        return cells.moment(fact.created_at)

    def gather(self, request: HttpRequest, record: Fact) -> dict[str, Any]:
        return {
            "fact": record,
            "live": record.status in LIVE,
            "trashed": record.status == Status.TRASHED,
            "citations": citations(record),
            "revisions": revisions(record),
            "fading": fading(record),
            "purged_on": purged_on(record),
            "waiting": ReviewItem.objects.waiting().filter(Q(fact=record) | Q(known=record)),
        }
