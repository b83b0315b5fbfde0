"""One verb on many facts: a preview of what it would do to each, a confirmation, the result, and one undo for all."""

import uuid
from datetime import datetime
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from memories.admin.access import fresh
from memories.admin.facts.detail import LIVE
from memories.admin.facts.forms import RequiredReasonField, end_of, seen_versions
from memories.admin.site.fields import DayInput, LineField
from memories.admin.site.page import RecordPage, actor_of, render_page
from memories.curation.batches import MOST, TYPED_ABOVE, undo_batch
from memories.curation.facts.batches import expire_facts, forget_facts, pin_facts
from memories.exceptions import MemoryHubError
from memories.models import Batch, Fact, Status
from memories.models.ids import new_id

TITLES = {
    "forget": _("Forget these facts"),
    "pin": _("Pin these facts"),
    "expire": _("Let these facts expire"),
}
VERBS = {"forget": forget_facts, "pin": pin_facts, "expire": expire_facts}


class BulkFactsForm(forms.Form):
    batch = forms.UUIDField(widget=forms.HiddenInput)
    last_day = forms.DateField(label=_("Last day"), widget=DayInput, help_text=_("In your time zone."))
    reason = RequiredReasonField()
    typed = LineField(label=_("How many facts are these?"), max_length=8)

    def __init__(self, data: Any = None, *, verb: str, count: int) -> None:
        super().__init__(data, initial={"batch": new_id()}, auto_id="bulk_%s")
        self.count = count
        if verb != "expire":
            del self.fields["last_day"]
        if count <= TYPED_ABOVE:
            del self.fields["typed"]
        else:
            text = gettext("Type %(count)d to confirm that you mean all of them.")
            self.fields["typed"].help_text = text % {"count": count}

    def clean_typed(self) -> str:
        typed: str = self.cleaned_data["typed"]
        if typed.strip() != str(self.count):
            raise forms.ValidationError(gettext("The number does not match. Nothing changed."), code="typed")
        return typed

    def clean_last_day(self) -> datetime:
        end = end_of(self.cleaned_data["last_day"])
        if end <= timezone.now():
            raise forms.ValidationError(gettext("This day has passed. Choose a later day."), code="past")
        return end

    def carry_out(self, verb: str, seen: dict[uuid.UUID, int], request: HttpRequest) -> Batch:
        """Errors: InvalidInput, Conflict."""
        data = self.cleaned_data
        more = {"expires_at": data["last_day"]} if verb == "expire" else {}
        act: Any = VERBS[verb]
        batch: Batch = act(
            batch_id=data["batch"],
            seen=seen,
            reason=data["reason"],
            **more,
            actor=actor_of(request),
            now=timezone.now(),
        )
        return batch


class FactBulkViews(RecordPage):
    """A list of facts with a choice of verbs for those that are ticked."""

    actions = ("forget_many", "pin_many", "expire_many")  # type: ignore[assignment]  # elsewhere there are none

    @admin.action(description=_("Forget…"), permissions=["change"])
    def forget_many(self, request: HttpRequest, facts: QuerySet[Fact]) -> HttpResponse | None:
        return self._preview_chosen(request, "forget", facts)

    @admin.action(description=_("Pin…"), permissions=["change"])
    def pin_many(self, request: HttpRequest, facts: QuerySet[Fact]) -> HttpResponse | None:
        return self._preview_chosen(request, "pin", facts)

    @admin.action(description=_("Let expire…"), permissions=["change"])
    def expire_many(self, request: HttpRequest, facts: QuerySet[Fact]) -> HttpResponse | None:
        return self._preview_chosen(request, "expire", facts)

    def _preview_chosen(self, request: HttpRequest, verb: str, facts: QuerySet[Fact]) -> HttpResponse | None:
        """The preview; None, and a message, when too many are ticked."""
        chosen = list(facts.select_related("end_user", "tenant")[: MOST + 1])
        if len(chosen) > MOST:
            text = gettext("Choose at most %(most)d facts at a time. Filter the list first.")
            messages.error(request, text % {"most": MOST})
            return None
        return self._preview(request, verb, chosen, BulkFactsForm(verb=verb, count=len(chosen)))

    def _preview(
        self, request: HttpRequest, verb: str, facts: list[Fact], form: BulkFactsForm, *, status: int = 200
    ) -> HttpResponse:
        rows = [(fact, _why_not(verb, fact)) for fact in facts]
        shown = {
            "title": TITLES[verb],
            "opts": self.opts,
            "verb": verb,
            "rows": rows,
            "form": form,
            "people": len({fact.end_user_id for fact in facts}),
            "doing": sum(not why for _fact, why in rows),
        }
        return render_page(request, "memories/fact_bulk.html", status=status, **shown)

    def bulk(self, request: HttpRequest, verb: str) -> HttpResponse:
        """The confirmed preview: the verb is carried out; after a mistake the preview is shown again."""
        if verb not in TITLES:
            raise Http404
        if not self.has_change_permission(request):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseRedirect(reverse("admin:memories_fact_changelist"))
        try:
            seen = seen_versions(request)
            chosen = list(self.get_queryset(request).filter(pk__in=list(seen)[: MOST + 1]))
            form = BulkFactsForm(request.POST, verb=verb, count=len(chosen))
            if not form.is_valid():
                return self._preview(request, verb, chosen, form, status=400)
            if len(chosen) > TYPED_ABOVE and (asked := fresh.required(request)):
                return asked
            batch = form.carry_out(verb, {fact.pk: seen[fact.pk] for fact in chosen}, request)
        except MemoryHubError as error:
            messages.error(request, error.detail)
            return HttpResponseRedirect(reverse("admin:memories_fact_changelist"))
        return HttpResponseRedirect(reverse("admin:memories_fact_batch", args=[batch.pk]))

    def batch(self, request: HttpRequest, batch_id: uuid.UUID) -> HttpResponse:
        """What was done; posted, it is undone. Only for operators who may see all facts of the batch."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        batch = Batch.objects.filter(pk=batch_id, verb__in=TITLES).select_related("operator").first()
        if batch is None:
            raise Http404
        facts = self.get_queryset(request).filter(pk__in=batch.steps.values("fact"))
        steps = list(batch.steps.exclude(fact=None).values_list("undone_at", flat=True))
        if len(facts) < len(steps):
            raise Http404
        if request.method == "POST":
            undone = undo_batch(batch_id=batch.pk, actor=actor_of(request), now=timezone.now())
            count = undone.counts["undone"]
            text = ngettext("%(count)d fact is what it was.", "%(count)d facts are what they were.", count)
            messages.success(request, text % {"count": count})
            return HttpResponseRedirect(request.path)
        left = steps.count(None)
        shown = {"title": gettext("Facts changed at once"), "opts": self.opts, "batch": batch, "facts": facts}
        return render_page(request, "memories/fact_batch.html", **shown, left=left)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        own = [
            path("bulk/<slug:verb>/", view(self.bulk), name="memories_fact_bulk"),
            path("batch/<uuid:batch_id>/", view(self.batch), name="memories_fact_batch"),
        ]
        return [*own, *super().get_urls()]


def _why_not(verb: str, fact: Fact) -> str:
    """Why the verb will leave this fact as it is; empty when it will not."""
    if fact.status == Status.TRASHED:
        return gettext("in the trash already")
    if verb != "forget" and fact.status not in LIVE:
        return gettext("not live")
    if verb == "expire" and fact.locked:
        return gettext("locked")
    return ""
