"""One verb on many facts: what it would do to each, what has to be said and typed for it, what it did, and its undo."""

import uuid
from datetime import datetime
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from memories import curation
from memories.admin import fresh
from memories.admin.fact_choice import check_may_change, versions_of
from memories.admin.fact_forms import FOR_COLLEAGUES
from memories.admin.fact_keeping import end_of
from memories.admin.fields import DayInput, LineField
from memories.admin.page import RecordPage, actor_of
from memories.curation.batches import MOST, TYPED_ABOVE
from memories.exceptions import MemoryHubError
from memories.models import Batch, Fact, Status
from memories.models.ids import new_id

TITLES = {
    "forget": gettext_lazy("Forget these facts"),
    "pin": gettext_lazy("Pin these facts"),
    "expire": gettext_lazy("Let these facts expire"),
}
LIVE = (Status.ACTIVE, Status.PENDING)


class BulkForm(forms.Form):
    batch = forms.UUIDField(widget=forms.HiddenInput)
    last_day = forms.DateField(
        label=gettext_lazy("Last day"), widget=DayInput, help_text=gettext_lazy("In your time zone.")
    )
    reason = LineField(label=gettext_lazy("Reason"), max_length=2000, help_text=FOR_COLLEAGUES)
    typed = LineField(label=gettext_lazy("How many facts are these?"), max_length=8)

    def __init__(self, data: Any = None, *, verb: str, count: int) -> None:
        super().__init__(data, initial={"batch": new_id()}, auto_id="bulk_%s")
        self.count = count
        if verb != "expire":
            del self.fields["last_day"]
        if count <= TYPED_ABOVE:
            del self.fields["typed"]
        else:
            told = _("Type %(count)d to confirm that you mean all of them.") % {"count": count}
            self.fields["typed"].help_text = told

    def clean_typed(self) -> str:
        typed: str = self.cleaned_data["typed"]
        if typed.strip() != str(self.count):
            raise forms.ValidationError(_("This is not their number."), code="typed")
        return typed

    def clean_last_day(self) -> datetime:
        end = end_of(self.cleaned_data["last_day"])
        if end <= timezone.now():
            raise forms.ValidationError(_("This day is over: name a later one."), code="past")
        return end

    def carry_out(self, verb: str, seen: dict[uuid.UUID, int], request: HttpRequest) -> Batch:
        """Do it to those that were seen. Errors: InvalidInput, Conflict."""
        act: Any = getattr(curation, f"{verb}_facts")
        more = {"expires_at": self.cleaned_data["last_day"]} if verb == "expire" else {}
        said = {"reason": self.cleaned_data["reason"], **more}
        return act(  # type: ignore[no-any-return]
            batch_id=self.cleaned_data["batch"], seen=seen, **said, actor=actor_of(request), now=timezone.now()
        )


def urls(page: RecordPage) -> list[URLPattern]:
    def bulk(request: HttpRequest, verb: str) -> HttpResponse:
        return carry_out(page, request, verb)

    def batch(request: HttpRequest, batch_id: uuid.UUID) -> HttpResponse:
        return show_batch(page, request, batch_id)

    view = page.admin_site.admin_view
    return [
        path("bulk/<slug:verb>/", view(bulk), name="memories_fact_bulk"),
        path("batch/<uuid:batch_id>/", view(batch), name="memories_fact_batch"),
    ]


def preview(page: RecordPage, request: HttpRequest, verb: str, facts: QuerySet[Fact]) -> HttpResponse | None:
    """What the verb would do to the chosen facts; None, and a message, when they are too many."""
    chosen = list(facts.select_related("end_user", "tenant")[: MOST + 1])
    if len(chosen) > MOST:
        messages.error(request, _("Choose at most %(most)d facts at a time: filter the list first.") % {"most": MOST})
        return None
    return _preview(page, request, verb, chosen, BulkForm(verb=verb, count=len(chosen)))


def carry_out(page: RecordPage, request: HttpRequest, verb: str) -> HttpResponse:
    """Do it, once the form is right; else the preview again, with the facts as they are now."""
    if verb not in TITLES:
        raise Http404
    check_may_change(page, request)
    if request.method != "POST":
        return HttpResponseRedirect(reverse("admin:memories_fact_changelist"))
    try:
        seen = versions_of(request)
        chosen = list(page.get_queryset(request).filter(pk__in=list(seen)[: MOST + 1]))
        form = BulkForm(request.POST, verb=verb, count=len(chosen))
        if not form.is_valid():
            return _preview(page, request, verb, chosen, form, status=400)
        if len(chosen) > TYPED_ABOVE and (asked := fresh.required(request)):
            return asked
        batch = form.carry_out(verb, {fact.pk: seen[fact.pk] for fact in chosen}, request)
    except MemoryHubError as error:
        messages.error(request, error.detail)
        return HttpResponseRedirect(reverse("admin:memories_fact_changelist"))
    return HttpResponseRedirect(reverse("admin:memories_fact_batch", args=[batch.pk]))


def show_batch(page: RecordPage, request: HttpRequest, batch_id: uuid.UUID) -> HttpResponse:
    """What was done; posted, it is taken back. Only for whoever may see all of its facts."""
    check_may_change(page, request)
    batch = Batch.objects.filter(pk=batch_id, verb__in=TITLES).select_related("operator").first()
    if batch is None:
        raise Http404
    facts = page.get_queryset(request).filter(pk__in=batch.entries.values("fact"))
    entries = list(batch.entries.exclude(fact=None).values_list("fact", "undone"))
    if len(facts) < len(entries):
        raise Http404
    if request.method == "POST":
        undone = curation.undo_facts(batch_id=batch.pk, actor=actor_of(request), now=timezone.now())
        messages.success(request, _told(undone.counts["undone"]))
        return HttpResponseRedirect(request.path)
    left = sum(not undone for _pk, undone in entries)
    shown = {"batch": batch, "facts": facts, "left": left, "title": _("Facts changed at once")}
    return _answer(page, request, "fact_batch", shown)


def _preview(
    page: RecordPage, request: HttpRequest, verb: str, facts: list[Fact], form: BulkForm, *, status: int = 200
) -> HttpResponse:
    rows = [(fact, _why_not(verb, fact)) for fact in facts]
    shown = {
        "title": TITLES[verb],
        "verb": verb,
        "rows": rows,
        "form": form,
        "people": len({fact.end_user_id for fact in facts}),
        "doing": sum(not why for _fact, why in rows),
    }
    return _answer(page, request, "fact_bulk", shown, status=status)


def _why_not(verb: str, fact: Fact) -> str:
    """Why the verb will leave this fact as it is; empty when it will not."""
    if fact.status == Status.TRASHED:
        return _("in the trash already")
    if verb != "forget" and fact.status not in LIVE:
        return _("not live")
    if verb == "expire" and fact.locked:
        return _("locked")
    return ""


def _told(count: int) -> str:
    return ngettext("%(count)d fact is what it was.", "%(count)d facts are what they were.", count) % {"count": count}


def _answer(
    page: RecordPage, request: HttpRequest, template: str, shown: dict[str, Any], *, status: int = 200
) -> HttpResponse:
    context = {**page.admin_site.each_context(request), "opts": page.opts, **shown}
    return TemplateResponse(request, f"memories/{template}.html", context, status=status)
