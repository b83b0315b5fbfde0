"""Triples: the list, and the page of one with its verbs."""

import uuid
from collections.abc import Collection
from datetime import datetime
from typing import Any, ClassVar

from django.db.models import QuerySet, Value
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from memories.admin.access.tenant_scope import permitted
from memories.admin.graph import forms
from memories.admin.graph.as_of import AS_OF, AsOfFilter, end_of, parse_day
from memories.admin.lists import cells
from memories.admin.lists.columns import column, moment_column
from memories.admin.site.page import VerbForm, verbs_of
from memories.admin.site.template_tags import display_name
from memories.admin.site.undo import UndoViews
from memories.graph import naming
from memories.invisible import strip_invisible
from memories.models import ActorKind, Change, ChangeSet, EndUser, GraphEntity, GraphTriple, TripleStatus
from memories.verbs import undone_of

STATES = {"active": _("Holds"), "historical": _("No longer holds"), "future": _("Begins later")}


def state_of(triple: GraphTriple, at: datetime | None = None) -> tuple[str, str]:
    """Code and words of how it stands, now without a time: waiting or gone, else whether it holds."""
    if triple.status != TripleStatus.ACTIVE:
        return triple.status, triple.get_status_display()
    state = triple.state(at or timezone.now())
    return state, str(STATES[state])


def name_of(entity: GraphEntity, person: EndUser) -> str:
    """What the entity is called; the person themself by their name."""
    return strip_invisible(display_name(person) if naming.is_person(entity) else entity.name)


def sides_of(triple: GraphTriple) -> list[GraphEntity]:
    """Subject and object; of other names the entities that they are names of."""
    return [one.merged_into or one for one in (triple.subject, triple.object)]


def words_of(triple: GraphTriple) -> str:
    """`Max · works at · Acme`."""
    subject, object_ = (name_of(side, triple.end_user) for side in sides_of(triple))
    return f"{subject} · {strip_invisible(triple.predicate.replace('_', ' '))} · {object_}"


def with_links(rows: QuerySet[Any], request: HttpRequest) -> QuerySet[Any]:
    """The same, and whether the operator may open the graphs of their people."""
    linked: QuerySet[Any] = rows.annotate(may_draw=Value(request.user.has_perm("memories.view_enduser")))
    return linked


def graph_link(row: Any) -> SafeString:
    """Whose it is, with a link to their graph."""
    person: EndUser = row.end_user
    page = reverse("admin:memories_enduser_graph", args=[person.pk]) if row.may_draw else None
    return cells.linked(display_name(person), person.external_id if person.display_name else "", page)


class TriplePage(UndoViews):
    page_template = "memories/triple.html"
    undo_field = "end_user"
    undo_verbs = undone_of("GraphTriple")
    verbs: ClassVar[dict[str, type[VerbForm]]] = verbs_of(forms)
    list_display = ("statement", "person", "state", "began", "ended")
    list_filter = ("status", "trust", AsOfFilter, "tenant")
    list_filter_submit = True
    list_links = ((_("Entities"), "category", "admin:memories_graphentity_changelist", "memories.view_graphtriple"),)
    linked_by = ("end_user", "fact")
    list_select_related = ("end_user", "tenant", "subject__merged_into", "object__merged_into", "fact", "turn")
    search_fields = ("subject__name", "object__name", "predicate", "end_user__external_id")
    search_help_text = _("Search by entity, relation or end user")
    ordering = ("-created_at", "-id")
    empty_title = _("No triples yet")
    empty_hint = _("A fact with a key and a value makes one; agents state others with POST /api/v1/graph/triples.")
    began = moment_column(_("Valid from"), "valid_from")
    ended = moment_column(_("Valid until"), "valid_to")

    @column(_("Triple"))
    def statement(self, triple: GraphTriple) -> SafeString:
        return cells.statement(words_of(triple))

    @column(_("End user"))
    def person(self, triple: Any) -> SafeString:
        return graph_link(triple)

    @column(_("Status"), label={"active": "success", "future": "primary", "pending": "warning", "trashed": "danger"})
    def state(self, triple: GraphTriple) -> tuple[str, str]:
        return state_of(triple)

    def get_queryset(self, request: HttpRequest) -> QuerySet[GraphTriple]:
        rows: QuerySet[GraphTriple] = super().get_queryset(request)
        return with_links(rows, request)

    def gather(self, request: HttpRequest, record: GraphTriple) -> dict[str, Any]:
        day = parse_day(request.GET.get(AS_OF, ""))
        return {
            "triple": record,
            "words": words_of(record),
            "state": state_of(record),
            "day": day,
            "moment": end_of(day) if day else None,
            "state_then": state_of(record, end_of(day)) if day else None,
            "sides": [(side, name_of(side, record.end_user)) for side in sides_of(record)],
        }

    def _own_changes(self, request: HttpRequest, record: uuid.UUID) -> QuerySet[ChangeSet]:
        return own_changes(request, Change.Table.TRIPLE, record, self.undo_verbs)


def own_changes(
    request: HttpRequest, table: Change.Table, row: uuid.UUID, verbs: Collection[str]
) -> QuerySet[ChangeSet]:
    """The operator's changes of this row of the graph; change sets about it name its person alone."""
    of_row = Change.objects.filter(table=table, uuid=row).values("change_set")
    rows = permitted(request.user, ChangeSet.objects.filter(pk__in=of_row, verb__in=verbs))
    return rows.filter(actor_kind=ActorKind.OPERATOR, actor_id=str(request.user.pk)).order_by("-id")
