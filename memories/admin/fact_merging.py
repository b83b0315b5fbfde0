"""Merging facts: a page that offers what lies near, one that shows what would stay, and the verb."""

import uuid
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminRadioSelectWidget

from memories import curation
from memories.admin.fact_choice import ids_of, versions_of
from memories.admin.fact_forms import OPTIONAL
from memories.admin.fact_near import near
from memories.admin.fields import LineField, TextField
from memories.admin.naming import called
from memories.admin.page import RecordPage, actor_of, said_of, url_of
from memories.admin.segments import Segment, diff
from memories.admin.wording import CUT_OUT
from memories.curation import FactMergePreview
from memories.exceptions import MemoryHubError
from memories.models import Fact


class MergeFactsForm(forms.Form):
    survivor = forms.ChoiceField(label=gettext_lazy("Which one stays"), widget=UnfoldAdminRadioSelectWidget)
    content = TextField(label=gettext_lazy("What it says from now on"), max_length=2000, rows=3)
    reason = LineField(label=gettext_lazy("Reason"), required=False, max_length=2000, help_text=OPTIONAL)

    def __init__(self, data: Any = None, *, facts: list[Fact]) -> None:
        super().__init__(data, auto_id="merge_%s")
        choices = [(str(fact.pk), fact.content) for fact in facts]
        self.fields["survivor"].choices = choices  # type: ignore[attr-defined]
        self.fields["survivor"].initial = choices[0][0]
        self.fields["content"].initial = facts[0].content


def merge(page: RecordPage, request: HttpRequest, object_id: str) -> HttpResponse:
    """What lies near the fact; posted with `other`, what would stay; confirmed, they are merged."""
    record: Fact = page.find(request, object_id, may_change=True)
    if request.method != "POST":
        return _choose(page, request, record)
    try:
        others = [pk for pk in ids_of(request, "other") if pk != record.pk]
        preview = curation.preview_fact_merge(survivor=record.pk, others=others)
    except MemoryHubError as error:
        return _choose(page, request, record, refused=error)
    facts = [preview.survivor, *preview.others]
    if "confirmed" not in request.POST:
        return _preview(page, request, MergeFactsForm(facts=facts), preview)
    return _carry_out(page, request, MergeFactsForm(request.POST, facts=facts), preview)


def _choose(
    page: RecordPage, request: HttpRequest, record: Fact, *, refused: MemoryHubError | None = None
) -> HttpResponse:
    shown = {"offered": near(record), "chosen": request.POST.getlist("other"), "typed": request.POST.get("content", "")}
    if refused is None:
        return _answer(page, request, "fact_merge", {"fact": record, **shown})
    return _answer(page, request, "fact_merge", {"fact": record, "refused": refused, **shown}, status=refused.status)


def _carry_out(page: RecordPage, request: HttpRequest, form: MergeFactsForm, preview: FactMergePreview) -> HttpResponse:
    if not form.is_valid():
        return _preview(page, request, form, preview, status=400)
    survivor = uuid.UUID(form.cleaned_data["survivor"])
    said = {name: form.cleaned_data[name] for name in ("content", "reason")}
    try:
        seen = versions_of(request)
        made = curation.merge_facts(survivor=survivor, seen=seen, **said, actor=actor_of(request), now=timezone.now())
    except MemoryHubError as error:
        form.add_error(None, said_of(error))
        return _preview(page, request, form, preview, status=error.status)
    done = _("%(fact)s has taken in what was merged with it. Undo it below if that was wrong.") % {
        "fact": called(made.survivor)
    }
    cut = made.survivor.content != said["content"].strip()
    messages.success(request, f"{done}{CUT_OUT if cut else ''}")
    return HttpResponseRedirect(url_of(made.survivor))


def _preview(
    page: RecordPage, request: HttpRequest, form: MergeFactsForm, preview: FactMergePreview, *, status: int = 200
) -> HttpResponse:
    record = preview.survivor
    sides = [{"fact": one, "segments": _beside(record.content, one.content)} for one in (record, *preview.others)]
    shown = {"fact": record, "form": form, "preview": preview, "sides": sides}
    return _answer(page, request, "fact_merge_preview", shown, status=status)


def _beside(text: str, other: str) -> list[Segment]:
    """How the other differs; simply what it says, where they have nothing in common."""
    segments = diff(text, other)
    return segments if any(not piece.mark for piece in segments) else [Segment(other)]


def _answer(
    page: RecordPage, request: HttpRequest, template: str, shown: dict[str, Any], *, status: int = 200
) -> HttpResponse:
    context = {
        **page.admin_site.each_context(request),
        "title": _("Merge %(fact)s") % {"fact": called(shown["fact"])},
        "opts": page.opts,
        "original": shown["fact"],
        **shown,
    }
    return TemplateResponse(request, f"memories/{template}.html", context, status=status)
