"""Entities: the list, and the page of one with its triples."""

import uuid
from typing import Any, ClassVar

from django.db.models import Count, IntegerField, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from memories.admin.graph import forms
from memories.admin.graph.as_of import AS_OF, end_of, parse_day
from memories.admin.graph.pages import graph_link, name_of, own_changes, state_of, with_links, words_of
from memories.admin.lists import cells
from memories.admin.lists.columns import column, moment_column
from memories.admin.site.page import VerbForm
from memories.admin.site.undo import UndoViews
from memories.graph import naming, reading
from memories.models import Change, ChangeSet, GraphEntity, GraphTriple, TripleStatus
from memories.verbs import undone_of

LISTED = 100


class EntityPage(UndoViews):
    page_template = "memories/entity.html"
    undo_field = "end_user"
    undo_verbs = undone_of("GraphEntity")
    verbs: ClassVar[dict[str, type[VerbForm]]] = {"join": forms.JoinEntitiesForm}
    list_display = ("called", "person", "triples", "another_name", "created")
    list_filter = ("tenant",)
    linked_by = ("end_user",)
    list_select_related = ("end_user", "tenant", "merged_into")
    list_links = ((_("Triples"), "hub", "admin:memories_graphtriple_changelist", "memories.view_graphtriple"),)
    search_fields = ("name", "type", "end_user__external_id")
    search_help_text = _("Search by name, type or end user")
    ordering = ("-created_at", "-id")
    empty_title = _("No entities yet")
    empty_hint = _("A triple makes the entities that it names.")
    created = moment_column(_("Created"), "created_at")

    # An entity is seen and changed by whom its triples are.
    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("memories.view_graphtriple")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("memories.change_graphtriple")

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def get_queryset(self, request: HttpRequest) -> QuerySet[GraphEntity]:
        rows: QuerySet[GraphEntity] = super().get_queryset(request)
        return with_links(rows.annotate(as_subject=_count("subject"), as_object=_count("object")), request)

    @column(_("Entity"))
    def called(self, entity: GraphEntity) -> SafeString:
        return cells.two_lines(name_of(entity, entity.end_user), entity.type)

    @column(_("End user"))
    def person(self, entity: Any) -> SafeString:
        return graph_link(entity)

    @column(_("Triples"))
    def triples(self, entity: Any) -> int:
        return int(entity.as_subject + entity.as_object)

    @column(_("Another name of"))
    def another_name(self, entity: GraphEntity) -> str:
        return name_of(entity.merged_into, entity.end_user) if entity.merged_into else ""

    def gather(self, request: HttpRequest, record: GraphEntity) -> dict[str, Any]:
        root = record.merged_into or record
        aliases = list(GraphEntity.objects.filter(merged_into=record).order_by("name", "pk"))
        rows = reading.of_person(record.end_user).exclude(status=TripleStatus.TRASHED)
        rows = reading.touching(rows, [record.pk, *(one.pk for one in aliases)])
        day = parse_day(request.GET.get(AS_OF, ""))
        if day:
            rows = rows.held_at(end_of(day))
        found = list(reading.with_names(rows).select_related("end_user").order_by("-dated_at", "-id")[: LISTED + 1])
        return {
            "entity": record,
            "name": name_of(record, record.end_user),
            "root": root,
            "root_name": name_of(root, record.end_user),
            "aliases": aliases,
            # Of two names one is the entity: chains of names would be endless.
            "may_join": not (record.merged_into or aliases or naming.is_person(record)),
            "day": day,
            "moment": end_of(day) if day else None,
            "triples": [(one, words_of(one), state_of(one)) for one in found[:LISTED]],
            "more": len(found) > LISTED,
            "listed": LISTED,
        }

    def _own_changes(self, request: HttpRequest, record: uuid.UUID) -> QuerySet[ChangeSet]:
        return own_changes(request, Change.Table.ENTITY, record, self.undo_verbs)


def _count(side: str) -> Coalesce:
    """How many triples have the entity on this side, counted for the 25 that are shown."""
    mine = GraphTriple.objects.filter(~Q(status=TripleStatus.TRASHED), **{side: OuterRef("pk")}).order_by()
    counted = mine.values(side).annotate(number=Count("pk")).values("number")
    return Coalesce(Subquery(counted, output_field=IntegerField()), 0)
