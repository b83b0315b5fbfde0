"""The audit trail: read only, also for those who administer everything else; as a list, and as JSON lines."""

from collections import defaultdict
from typing import Any

from django.apps import apps
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import PermissionDenied
from django.db.models import CharField, Model, OuterRef, QuerySet, Subquery
from django.db.models.functions import Cast
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memories import curation
from memories.admin import cells, export, wording
from memories.admin.columns import column
from memories.admin.lists import HubChangeList
from memories.admin.naming import kind_named
from memories.admin.page import Page, actor_of
from memories.admin.reach import tenants_of
from memories.admin.saved_filters import narrowed
from memories.admin.trail_filters import CaseFilter, ObjectFilter, TenantFilter, VerbFilter, WhenFilter
from memories.audit import kept_request_id
from memories.models import AuditEvent, Operator, Tenant
from memories.privacy.trail import sealing, trail_export

LINES = "memories_auditevent_lines"


class TrailList(HubChangeList):
    """The list with, for each event shown, whether it is sealed and where its object's page is."""

    result_list: Any

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        # Their ids say it: whatever tenant they are of, events are sealed in this order.
        sealed_up_to = sealing.sealed_up_to()
        events: list[Any] = list(self.result_list)
        open_to = self._open_to_reader(request, events)
        for event in events:
            event.is_sealed = event.pk <= sealed_up_to
            event.page = open_to.get((event.object_type, event.object_id))
        self.result_list = events

    def _open_to_reader(self, request: HttpRequest, events: list[Any]) -> dict[tuple[str, Any], str]:
        """Addresses of those objects that there are still, and that whoever reads may see: one query for each kind."""
        named = defaultdict(set)
        for event in events:
            named[event.object_type].add(event.object_id)
        found: dict[tuple[str, Any], str] = {}
        for kind, ids in named.items():
            page = self._page_of(kind)
            if page is not None and page.has_view_permission(request):
                address = f"admin:memories_{page.opts.model_name}_change"
                there = page.get_queryset(request).filter(pk__in=ids).order_by().values_list("pk", flat=True)
                found |= {(kind, key): reverse(address, args=[key]) for key in there}
        return found

    def _page_of(self, kind: str) -> Page | None:
        model = apps.get_app_config("memories").models.get(kind.lower())
        page: Page | None = self.model_admin.admin_site._registry.get(model)
        return page


class TrailPage(Page):
    tenant_path = "tenant_uuid"
    list_display = ("when", "done", "object_shown", "actor", "tenant", "request_shown", "seal")
    list_display_links = None
    list_filter = ("actor_kind", VerbFilter, ObjectFilter, TenantFilter, CaseFilter, WhenFilter)
    list_links = ((_("Seals"), "lock", "admin:audit_chains", "memories.view_auditevent"),)
    search_fields = ("verb", "object_type", "object_id", "request_id", "case_uuid")
    search_help_text = _("Search by verb, object or request")
    ordering = ("-id",)
    empty_title = _("Nothing has happened yet")
    empty_hint = _("Every change by a person or a key leaves a line here.")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[HubChangeList]:
        return TrailList

    def get_queryset(self, request: HttpRequest) -> QuerySet[AuditEvent]:
        events: QuerySet[AuditEvent] = super().get_queryset(request)
        operators = Operator.objects.annotate(text=Cast("pk", CharField())).filter(text=OuterRef("actor_id"))
        return events.annotate(
            operator_name=Subquery(operators.values("username")),
            tenant_slug=Subquery(Tenant.objects.filter(pk=OuterRef("tenant_uuid")).values("slug")),
        )

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> tuple[Any, bool]:
        """By the id that a caller gave a request, too."""
        found, doubles = super().get_search_results(request, queryset, search_term)
        given = kept_request_id(search_term.strip())
        return found | queryset.filter(request_id=given) if given else found, doubles

    def _list_urls(self) -> list[URLPattern]:
        lines = path("lines/", self.admin_site.admin_view(self.lines), name=LINES)
        return [lines, *super()._list_urls()]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        return super().changelist_view(request, {"lines_address": reverse(f"admin:{LINES}"), **(extra_context or {})})

    def lines(self, request: HttpRequest) -> HttpResponseBase:
        """What the list shows under its filters as JSON lines, all of it, the oldest first; streamed and audited."""
        if not export.may(self, request):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        try:
            chosen: QuerySet[AuditEvent] = narrowed(self, request).queryset
        except IncorrectLookupParameters:
            return HttpResponse(status=400)
        now, only = timezone.now(), tenants_of(request.user)[:2]
        one = only[0] if len(only) == 1 else None
        # Not its own event.
        events = AuditEvent.objects.filter(pk__in=chosen.order_by().values("pk"), created_at__lt=now)
        actor = actor_of(request)
        export_id = curation.note_export(model=AuditEvent, rows=events.count(), tenant=one, actor=actor, now=now)
        headers = {
            "Content-Disposition": f'attachment; filename="audit-{export_id}.jsonl"',
            "Cache-Control": "no-store",
        }
        body = trail_export.lines(events)
        return StreamingHttpResponse(body, content_type="application/jsonl; charset=utf-8", headers=headers)

    @column(_("When"))
    def when(self, event: AuditEvent) -> Any:
        return cells.moment(event.created_at)

    @column(_("What"))
    def done(self, event: AuditEvent) -> str:
        return wording.verb_of(event.verb)

    @column(_("Object"))
    def object_shown(self, event: Any) -> Any:
        return cells.linked(kind_named(event.object_type), str(event.object_id), event.page)

    @column(_("By"))
    def actor(self, event: Any) -> Any:
        return cells.two_lines(event.operator_name or event.get_actor_kind_display(), event.actor_id)

    @column(_("Tenant"))
    def tenant(self, event: Any) -> str:
        return event.tenant_slug or "–"

    @column(_("Request"))
    def request_shown(self, event: AuditEvent) -> Any:
        return cells.two_lines(event.request_id or "–", "")

    @column(_("Sealed"))
    def seal(self, event: Any) -> str:
        return gettext("Yes") if event.is_sealed else gettext("Not yet")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False
