"""The audit trail: a list and JSON lines. Nobody can change it here, not even superusers."""

from collections import defaultdict
from typing import Any

from django.apps import apps
from django.db.models import CharField, Model, OuterRef, QuerySet, Subquery
from django.db.models.functions import Cast
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memories.admin.lists import cells, export
from memories.admin.lists.change_list import HubChangeList
from memories.admin.lists.columns import column
from memories.admin.site.page import HubModelAdmin, actor_of, address
from memories.admin.site.wording import exact
from memories.admin.trail.filters import CaseFilter, EventTenantFilter, ObjectFilter, VerbFilter, WhenFilter
from memories.admin.trail.sentences import sentence_of
from memories.audit import kept_request_id
from memories.curation.exports import note_export
from memories.models import ActorKind, AuditEvent, EndUser, Operator, PrivacyCase, Tenant
from memories.privacy.trail import sealing, trail_export

LINES = "memories_auditevent_lines"


class TrailList(HubChangeList):
    """The list, with attributes per event: whether it is sealed, the address of its object, and whose it is."""

    result_list: Any

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        # Events of all tenants are sealed in the order of their ids.
        sealed_up_to = sealing.sealed_up_to()
        events: list[Any] = list(self.result_list)
        note_objects(self.model_admin.admin_site, request, events)
        for event in events:
            event.is_sealed = event.pk <= sealed_up_to
        self.result_list = events


def note_objects(site: Any, request: HttpRequest, events: list[Any]) -> None:
    """Set `page` and `person` of each event: the address of its object, and whose it is.

    Both are empty unless the object still exists and the operator may see it. One query per type.
    """
    ids_by_type = defaultdict(set)
    for event in events:
        ids_by_type[event.object_type].add(event.object_id)
    objects: dict[tuple[str, Any], tuple[str, str]] = {}
    may_see_people = request.user.has_perm("memories.view_enduser")
    for object_type, ids in ids_by_type.items():
        model = apps.get_app_config("memories").models.get(object_type.lower())
        page: HubModelAdmin | None = site._registry.get(model)
        if model is not None and page is not None and page.has_view_permission(request):
            name = f"admin:memories_{page.opts.model_name}_change"
            path = _path_to_name(model) if may_see_people else None
            columns = [f"{path}{column}" for column in ("display_name", "external_id")] if path is not None else []
            visible = page.get_queryset(request).filter(pk__in=ids).order_by().values_list("pk", *columns)
            for pk, *names in visible:
                person = next((one for one in names if one), "")
                objects[object_type, pk] = (reverse(name, args=[pk]), person)
    for event in events:
        event.page, event.person = objects.get((event.object_type, event.object_id), ("", ""))


def _path_to_name(model: type[Model]) -> str | None:
    """The path from a row to the name of its person; None if it is nobody's."""
    if model is EndUser:
        return ""
    return "end_user__" if any(field.name == "end_user" for field in model._meta.fields) else None


class TrailPage(HubModelAdmin):
    tenant_path = "tenant_uuid"
    csv_columns = (
        "id", "created_at", "tenant_uuid", "actor_kind", "actor_id", "verb", "object_type", "object_id", "request_id",
        "counts",
    )  # fmt: skip
    list_display = ("when", "sentence", "tenant", "seal")
    list_display_links = None
    # Of one event's page.
    fields = readonly_fields = (
        "told",
        "at",
        "tenant",
        "verb",
        "object_shown",
        "by",
        "request_shown",
        "case_shown",
        "counted",
    )
    list_filter = ("actor_kind", VerbFilter, ObjectFilter, EventTenantFilter, CaseFilter, WhenFilter)
    list_links = ((_("Seals"), "lock", "admin:audit_chains", "memories.view_auditevent"),)
    search_fields = ("verb", "object_type", "object_id", "request_id", "case_uuid")
    search_help_text = _("Search by operator, verb, object or request")
    ordering = ("-id",)
    empty_title = _("No events yet")
    empty_hint = _("Every change by a person or a key is listed here.")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[HubChangeList]:
        return TrailList

    def get_queryset(self, request: HttpRequest) -> QuerySet[AuditEvent]:
        events: QuerySet[AuditEvent] = super().get_queryset(request)
        operators = Operator.objects.annotate(text=Cast("pk", CharField())).filter(text=OuterRef("actor_id"))
        return events.annotate(
            operator_name=Subquery(operators.values("username")),
            tenant_slug=Subquery(Tenant.objects.filter(pk=OuterRef("tenant_uuid")).values("slug")),
        )

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        event = super().get_object(request, object_id, from_field)
        if event:
            note_objects(self.admin_site, request, [event])
        return event

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> tuple[Any, bool]:
        """Also by the name of the operator, and by the id that a caller gave to a request."""
        found, may_have_duplicates = super().get_search_results(request, queryset, search_term)
        words = search_term.strip()
        if operators := Operator.objects.filter(username__icontains=words) if words else ():
            found |= queryset.filter(actor_kind=ActorKind.OPERATOR, actor_id__in=[str(one.pk) for one in operators])
        if request_id := kept_request_id(words):
            found |= queryset.filter(request_id=request_id)
        return found, may_have_duplicates

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        return super().changelist_view(request, {"lines_address": reverse(f"admin:{LINES}"), **(extra_context or {})})

    @address("lines/")
    def lines(self, request: HttpRequest) -> HttpResponseBase:
        """The filtered list as JSON lines without a limit, oldest first. The export is audited and streamed."""
        found = export.requested_list(self, request)
        if isinstance(found, HttpResponse):
            return found
        now = timezone.now()
        # created_at leaves out the event of this export.
        events = AuditEvent.objects.filter(pk__in=found.queryset.order_by().values("pk"), created_at__lt=now)
        tenant, actor = export.sole_tenant(request.user), actor_of(request)
        export_id = note_export(model=AuditEvent, rows=events.count(), tenant=tenant, actor=actor, now=now)
        body, name = trail_export.lines(events), f"audit-{export_id}.jsonl"
        return export.download(body, name=name, content_type="application/jsonl; charset=utf-8")

    @column(_("When"))
    def when(self, event: AuditEvent) -> Any:
        return cells.moment(event.created_at)

    @column(_("What"))
    def sentence(self, event: Any) -> SafeString:
        """The sentence, and the raw fields behind "Details"."""
        raw = [
            (gettext("Verb"), event.verb, ""),
            (gettext("Object"), f"{event.object_type} {event.object_id}", event.page),
            (gettext("By"), self.by(event), ""),
            (gettext("Request"), event.request_id, ""),
            (gettext("Privacy case"), event.case_uuid, ""),
            (gettext("Counts"), self.counted(event), ""),
        ]
        return cells.folded(self.told(event), gettext("Details"), [row for row in raw if row[1]])

    @column(_("What"))
    def told(self, event: Any) -> str:
        # A case is carried out by a run of its own, which is no extraction.
        is_case_run = event.actor_kind == ActorKind.RUN and event.object_type == PrivacyCase.__name__
        kind = gettext("The worker") if is_case_run else event.get_actor_kind_display()
        if event.actor_kind == ActorKind.LINK:
            kind = gettext("Somebody with the one-time link")
        name = event.operator_name or kind
        return sentence_of(who=name, verb=event.verb, object_type=event.object_type, person=event.person)

    @column(_("When"))
    def at(self, event: AuditEvent) -> str:
        return exact(event.created_at)

    @column(_("Object"))
    def object_shown(self, event: Any) -> str | SafeString:
        text = f"{event.object_type} {event.object_id}"
        return (
            format_html('<a class="text-primary-600 dark:text-primary-500" href="{}">{}</a>', event.page, text)
            if event.page
            else text
        )

    @column(_("By"))
    def by(self, event: AuditEvent) -> str:
        return f"{event.get_actor_kind_display()} {event.actor_id}".strip()

    @column(_("Request"))
    def request_shown(self, event: AuditEvent) -> str:
        return event.request_id

    @column(_("Privacy case"))
    def case_shown(self, event: AuditEvent) -> Any:
        return event.case_uuid

    @column(_("Counts"))
    def counted(self, event: AuditEvent) -> str:
        return ", ".join(f"{key}: {number}" for key, number in (event.counts or {}).items())

    @column(_("Tenant"))
    def tenant(self, event: Any) -> str:
        return event.tenant_slug or "–"

    @column(_("Sealed"))
    def seal(self, event: Any) -> str:
        return gettext("Yes") if event.is_sealed else gettext("Not yet")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False
