"""The audit trail: read only, also for those who administer everything else."""

from typing import Any

from django.db.models import CharField, Model, OuterRef, QuerySet, Subquery
from django.db.models.functions import Cast
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from memories.admin import cells, wording
from memories.admin.columns import column
from memories.admin.page import Page
from memories.models import AuditEvent, Operator, Tenant


class TrailPage(Page):
    tenant_path = "tenant_uuid"
    list_display = ("when", "done", "object_shown", "actor", "tenant", "request_shown")
    list_display_links = None
    list_filter = ("actor_kind",)
    search_fields = ("verb", "object_type", "object_id", "request_id")
    search_help_text = _("Search by verb, object or request")
    ordering = ("-id",)
    empty_title = _("Nothing has happened yet")
    empty_hint = _("Every change by a person or a key leaves a line here.")

    def get_queryset(self, request: HttpRequest) -> QuerySet[AuditEvent]:
        events: QuerySet[AuditEvent] = super().get_queryset(request)
        operators = Operator.objects.annotate(text=Cast("pk", CharField())).filter(text=OuterRef("actor_id"))
        return events.annotate(
            operator_name=Subquery(operators.values("username")),
            tenant_slug=Subquery(Tenant.objects.filter(pk=OuterRef("tenant_uuid")).values("slug")),
        )

    @column(_("When"))
    def when(self, event: AuditEvent) -> Any:
        return cells.moment(event.created_at)

    @column(_("What"))
    def done(self, event: AuditEvent) -> str:
        return wording.verb_of(event.verb)

    @column(_("Object"))
    def object_shown(self, event: AuditEvent) -> Any:
        return cells.two_lines(event.object_type, str(event.object_id))

    @column(_("By"))
    def actor(self, event: Any) -> Any:
        return cells.two_lines(event.operator_name or event.get_actor_kind_display(), event.actor_id)

    @column(_("Tenant"))
    def tenant(self, event: Any) -> str:
        return event.tenant_slug or "–"

    @column(_("Request"))
    def request_shown(self, event: AuditEvent) -> Any:
        return cells.two_lines(event.request_id or "–", "")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False
