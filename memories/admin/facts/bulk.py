"""One verb on many facts, chosen in the list."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memories.admin.facts.forms import end_of
from memories.admin.site import reasons
from memories.admin.site.bulk import BulkForm, BulkViews, RowVersions
from memories.admin.site.fields import DayInput
from memories.admin.site.page import address
from memories.admin.site.reasons import ReasonField
from memories.audit import Actor
from memories.curation.batches import MOST
from memories.curation.facts.batches import expire_facts, forget_facts, pin_facts, promote_facts
from memories.models import Batch, Fact, Status

VERBS: dict[str, Callable[..., Batch]] = {
    "forget": forget_facts,
    "pin": pin_facts,
    "expire": expire_facts,
    "promote": promote_facts,
}
TITLES: Mapping[str, Promise] = {
    "forget": _("Forget these facts"),
    "pin": _("Pin these facts"),
    "expire": _("Let these facts expire"),
    "promote": _("Share these facts with all agents"),
}

REASONS: Mapping[str, tuple[Promise, ...]] = {
    "forget": reasons.FORGET,
    "pin": reasons.KEEP,
    "expire": reasons.EXPIRE,
    "promote": reasons.PROMOTE,
}


class BulkFactsForm(BulkForm):
    last_day = forms.DateField(label=_("Last day"), widget=DayInput, help_text=_("In your time zone."))
    reason = ReasonField()
    field_order = ("last_day", "reason")

    def __init__(self, data: Any = None, *, verb: str, rows: Sequence[Sequence[Model]] = ()) -> None:
        super().__init__(data, verb=verb, rows=rows)
        self.fields["reason"] = ReasonField(*REASONS[verb])
        if verb != "expire":
            del self.fields["last_day"]

    def clean_last_day(self) -> datetime:
        end = end_of(self.cleaned_data["last_day"])
        if end <= timezone.now():
            raise forms.ValidationError(gettext("This day has passed. Choose a later day."), code="past")
        return end

    def carry_out(self, expected: RowVersions, *, actor: Actor, now: datetime) -> Batch:
        data = self.cleaned_data
        given: dict[str, Any] = {"batch_id": data["batch"], "reason": data["reason"]}
        if self.verb_name == "expire":
            given["expires_at"] = data["last_day"]
        versions = {pk: row[pk] for pk, row in expected.items()}
        return VERBS[self.verb_name](**given, expected=versions, actor=actor, now=now)


class FactBulkViews(BulkViews):
    """A list of facts with a choice of verbs for those that are ticked."""

    actions = ("forget_many", "pin_many", "expire_many", "promote_many")  # type: ignore[assignment]  # elsewhere there are none
    bulk_title, bulk_verbs, bulk_form, step = _("Facts changed at once"), VERBS, BulkFactsForm, "fact"
    bulk_template, batch_template = "memories/fact_bulk.html", "memories/fact_batch.html"

    @admin.action(description=_("Forget…"), permissions=["change"])
    def forget_many(self, request: HttpRequest, facts: QuerySet[Fact]) -> HttpResponse | None:
        return self._preview_chosen(request, "forget", facts)

    @admin.action(description=_("Pin…"), permissions=["change"])
    def pin_many(self, request: HttpRequest, facts: QuerySet[Fact]) -> HttpResponse | None:
        return self._preview_chosen(request, "pin", facts)

    @admin.action(description=_("Let expire…"), permissions=["change"])
    def expire_many(self, request: HttpRequest, facts: QuerySet[Fact]) -> HttpResponse | None:
        return self._preview_chosen(request, "expire", facts)

    @admin.action(description=_("Share with all agents…"), permissions=["change"])
    def promote_many(self, request: HttpRequest, facts: QuerySet[Fact]) -> HttpResponse | None:
        return self._preview_chosen(request, "promote", facts)

    def _preview_chosen(self, request: HttpRequest, verb: str, facts: QuerySet[Fact]) -> HttpResponse | None:
        """The preview; None, and a message, when too many are ticked."""
        chosen = list(facts.select_related("end_user", "tenant")[: MOST + 1])
        if len(chosen) > MOST:
            text = gettext("Choose at most %(most)d facts at a time. Filter the list first.")
            messages.error(request, text % {"most": MOST})
            return None
        return self.preview(request, verb, chosen)

    def effects(self, verb: str, rows: Sequence[Fact]) -> dict[str, Any]:
        reasons = [(fact, _why_not(verb, fact)) for fact in rows]
        people = len({fact.end_user_id for fact in rows})
        return {"title": TITLES[verb], "rows": reasons, "people": people, "doing": sum(not why for _, why in reasons)}

    @address("bulk/<slug:verb>/")
    def bulk(self, request: HttpRequest, verb: str) -> HttpResponse:
        """The confirmed preview."""
        if verb not in VERBS:
            raise Http404
        if not self.has_change_permission(request):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseRedirect(reverse("admin:memories_fact_changelist"))
        return self.confirm(request, verb)

    @address("batch/<uuid:batch_id>/")
    def batch(self, request: HttpRequest, batch_id: uuid.UUID) -> HttpResponse:
        return self.show_batch(request, batch_id)


def _why_not(verb: str, fact: Fact) -> str:
    """Why the verb will leave this fact as it is; empty when it will not."""
    if fact.status == Status.TRASHED:
        return gettext("in the trash already")
    if verb != "forget" and fact.status not in Status.LIVE:
        return gettext("not live")
    if verb == "promote" and not fact.agent_id:
        return gettext("the end user's own already")
    if verb == "expire" and fact.locked:
        return gettext("locked")
    return ""
