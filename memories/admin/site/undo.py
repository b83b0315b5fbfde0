"""Undo in the message after a change: operators take back what they just did to a fact, an episode or a section."""

import uuid
from typing import ClassVar

from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from memories.admin.access.tenant_scope import permitted
from memories.admin.site.page import RecordPage, VerbForm, actor_of, address, message_of, require, url_of
from memories.admin.site.template_tags import UNDO_TAG
from memories.curation.reverting import revert
from memories.exceptions import MemoryHubError
from memories.models import ActorKind, ChangeSet


def undo(request: HttpRequest, change_set: uuid.UUID) -> None:
    """Take the changes back, and say so or why not."""
    try:
        revert(change_set=change_set, actor=actor_of(request), now=timezone.now())
    except MemoryHubError as error:
        messages.error(request, message_of(error))
    else:
        messages.success(request, _("Undone."))


class UndoViews(RecordPage):
    """The page of a record some of whose verbs can be taken back with the message that says they are done."""

    # What change sets about the record name it by, and the verbs that are offered.
    undo_field: ClassVar[str]
    undo_verbs: ClassVar[frozenset[str]]
    undo_leads_to: ClassVar[str] = "change"
    # Besides the permission to change the record.
    undo_permissions: ClassVar[tuple[str, ...]] = ()

    def tag_of(self, request: HttpRequest, form: VerbForm) -> str:
        change = self._own_changes(request, form.record.pk).filter(created_at=form.carried_out_at).first()
        if change is None:
            return ""
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_undo_change"
        return f"{UNDO_TAG}{reverse(name, args=[form.record.pk, change.pk])}"

    @address("<uuid:object_id>/undo/<uuid:change_set>/", "undo_change")
    def undo_change(self, request: HttpRequest, object_id: uuid.UUID, change_set: uuid.UUID) -> HttpResponse:
        """Take back one's own change; what somebody else did is not found."""
        require(request, *self.undo_permissions)
        record = self.find(request, str(object_id), may_change=True)
        page = url_of(record, self.undo_leads_to)
        if request.method != "POST":
            return HttpResponseRedirect(page)
        if not self._own_changes(request, record.pk).filter(pk=change_set).exists():
            raise Http404
        undo(request, change_set)
        return HttpResponseRedirect(page)

    def _own_changes(self, request: HttpRequest, record: uuid.UUID) -> QuerySet[ChangeSet]:
        """The operator's changes of this record that have an undo here."""
        rows = permitted(request.user, self.changes_of(record).filter(verb__in=self.undo_verbs))
        return rows.filter(actor_kind=ActorKind.OPERATOR, actor_id=str(request.user.pk)).order_by("-id")

    def changes_of(self, record: uuid.UUID) -> QuerySet[ChangeSet]:
        """The change sets about this record."""
        return ChangeSet.objects.filter(**{self.undo_field: record})
