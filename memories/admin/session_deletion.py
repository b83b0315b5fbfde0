"""Deleting a session: a page of its own says what goes before anything does."""

from datetime import datetime
from typing import Any, ClassVar

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse

from memories import curation
from memories.admin.page import RecordPage, VerbForm
from memories.audit import Actor
from memories.models import Session

FACTS_SHOWN = 10


class DeleteForm(VerbForm):
    needs_fresh_password = True
    # What the operator read on the page: a turn that came since must be seen first.
    turns = forms.IntegerField(widget=forms.HiddenInput)

    def __init__(self, data: Any = None, *, record: Session) -> None:
        super().__init__(data, record=record)
        self.fields["turns"].initial = record.turn_count

    def see(self, record: Session) -> None:
        super().see(record)
        self.data = {**self.data.dict(), "turns": record.turn_count}  # type: ignore[attr-defined]

    def carry_out(self, *, actor: Actor, now: datetime) -> str:
        expected = self.cleaned_data["turns"]
        given = {"session_id": self.record.pk, "tenant": None, "expected_turns": expected}
        said = f"{self.record} is deleted with its turns and what rested on them alone."
        curation.delete_session(**given, actor=actor, now=now)
        return said

    def leads_to(self) -> str:
        return reverse("admin:memories_session_changelist")


class DeletablePage(RecordPage):
    """A page of sessions with the verb delete, for those who may delete them."""

    verbs: ClassVar[dict[str, type[VerbForm]]] = {"delete": DeleteForm}

    def may_delete(self, request: HttpRequest) -> bool:
        return self.has_change_permission(request) and request.user.has_perm("memories.delete_session")

    def carry_out(self, request: HttpRequest, object_id: str, verb: str) -> HttpResponse:
        if verb != "delete":
            return super().carry_out(request, object_id, verb)
        if not self.may_delete(request):
            raise PermissionDenied
        if request.method == "POST":
            return super().carry_out(request, object_id, verb)
        return self.confirm(super().show(request, self.find(request, object_id, may_change=True)))

    def show(
        self, request: HttpRequest, record: Any, *, tried: VerbForm | None = None, status: int = 200
    ) -> TemplateResponse:
        """The conversation; after a refusal what deleting it would take along, once more."""
        page = super().show(request, record, tried=tried, status=status)
        return self.confirm(page) if isinstance(tried, DeleteForm) else page

    def confirm(self, page: TemplateResponse) -> TemplateResponse:
        """The page of a session turned into the one that says what goes with it."""
        shown = page.context_data or {}
        going, staying = curation.facts_of_session(shown["session"])
        page.template_name = "memories/session_delete.html"
        page.context_data = {
            **shown,
            "episodes_going": shown["session"].episodes.count(),
            "going": going.order_by("-created_at", "-id")[:FACTS_SHOWN],
            "going_count": going.count(),
            "staying_count": staying.count(),
        }
        return page
