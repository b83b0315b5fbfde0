"""Triples: the list, and the page of one with its verbs."""

import uuid
from typing import Any, ClassVar

from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from memories.admin.access.tenant_scope import permitted
from memories.admin.graph import forms
from memories.admin.lists import cells
from memories.admin.lists.columns import column, moment_column
from memories.admin.site.page import VerbForm
from memories.admin.site.undo import UndoViews
from memories.curation.graph import deciding
from memories.invisible import strip_invisible
from memories.models import ActorKind, Change, ChangeSet, GraphTriple, TripleStatus

STATES = {"active": _("Holds"), "historical": _("No longer holds"), "future": _("Begins later")}


def state_of(triple: GraphTriple) -> tuple[str, str]:
    """Code and words of how it stands now: waiting or gone, else whether it holds."""
    if triple.status != TripleStatus.ACTIVE:
        return triple.status, triple.get_status_display()
    state = triple.state(timezone.now())
    return state, str(STATES[state])


def words_of(triple: GraphTriple) -> str:
    """`Max · works at · Acme`."""
    names = [(one.merged_into or one).name for one in (triple.subject, triple.object)]
    return strip_invisible(f"{names[0]} · {triple.predicate.replace('_', ' ')} · {names[1]}")


class TriplePage(UndoViews):
    page_template = "memories/triple.html"
    undo_field = "end_user"
    undo_verbs = frozenset(verb for verb in deciding.VERBS if verb.endswith("_triple"))
    verbs: ClassVar[dict[str, type[VerbForm]]] = {
        "approve": forms.ApproveTripleForm,
        "end": forms.EndTripleForm,
        "correct": forms.CorrectTripleForm,
        "forget": forms.ForgetTripleForm,
    }
    list_display = ("statement", "person", "standing", "began", "ended")
    list_filter = ("status", "trust", "tenant")
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
    def person(self, triple: GraphTriple) -> SafeString:
        return cells.person(triple.end_user)

    @column(_("Status"), label={"active": "success", "future": "primary", "pending": "warning", "trashed": "danger"})
    def standing(self, triple: GraphTriple) -> tuple[str, str]:
        return state_of(triple)

    def gather(self, request: HttpRequest, record: GraphTriple) -> dict[str, Any]:
        return {
            "triple": record,
            "words": words_of(record),
            "state": state_of(record),
            "may_change": record.fact_id is None and record.status != TripleStatus.TRASHED,
            "waits": record.status == TripleStatus.PENDING,
        }

    def _own_changes(self, request: HttpRequest, record: uuid.UUID) -> QuerySet[ChangeSet]:
        of_triple = Change.objects.filter(table=Change.Table.TRIPLE, uuid=record).values("change_set")
        rows = permitted(request.user, ChangeSet.objects.filter(pk__in=of_triple, verb__in=self.undo_verbs))
        return rows.filter(actor_kind=ActorKind.OPERATOR, actor_id=str(request.user.pk)).order_by("-id")
