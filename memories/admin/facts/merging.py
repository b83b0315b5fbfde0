"""Merging facts: a page that offers similar facts, a preview of what would stay, and the merge."""

import uuid
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from pgvector.django import CosineDistance
from unfold.widgets import UnfoldAdminRadioSelectWidget

from memories.admin.facts.forms import LONGEST_TEXT
from memories.admin.site import reasons
from memories.admin.site.fields import TextField, VersionsField
from memories.admin.site.mentions import mention
from memories.admin.site.naming import named
from memories.admin.site.page import RecordPage, actor_of, address, message_of, render_page, show_again, url_of
from memories.admin.site.reasons import ReasonField
from memories.admin.site.segments import Segment, diff
from memories.admin.site.wording import CUT_OUT
from memories.curation.facts.merging import FactMergePreview, merge_facts, preview_fact_merge
from memories.exceptions import InvalidInput, MemoryHubError, NotFound
from memories.facts.candidate import READERS
from memories.models import EmbeddingSpace, Fact, FactVector, Status
from memories.scoring import terms

MOST_COMPARED = 1000
MOST_OFFERED = 30


@dataclass(frozen=True)
class MergeCandidate:
    """A fact and its similarity (0..1): of meaning where both facts have a vector, else of the words they share."""

    fact: Fact
    likeness: float
    same_key: bool


class MergeFactsForm(forms.Form):
    expected = VersionsField()
    survivor = forms.ChoiceField(label=_("Fact to keep"), widget=UnfoldAdminRadioSelectWidget)
    content = TextField(label=_("Text from now on"), max_length=LONGEST_TEXT, rows=3)
    reason = ReasonField(*reasons.MERGE)

    def __init__(self, data: Any = None, *, facts: list[Fact]) -> None:
        initial = {"expected": [[fact] for fact in facts], "survivor": str(facts[0].pk), "content": facts[0].content}
        super().__init__(data, initial=initial, auto_id="merge_%s")
        self.fields["survivor"].choices = [(str(fact.pk), fact.content) for fact in facts]  # type: ignore[attr-defined]


class FactMergingViews(RecordPage):
    """A page of facts that can be merged."""

    @address("<uuid:object_id>/merge/")
    def merge(self, request: HttpRequest, object_id: uuid.UUID) -> HttpResponse:
        """Facts to choose from; posted with `other`, the preview; confirmed, the merge."""
        record: Fact = self.find(request, str(object_id), may_change=True)
        if request.method != "POST":
            return self._choose(request, record)
        try:
            others = [pk for pk in _posted_ids(request, "other") if pk != record.pk]
            self._check_visible(request, others)
            preview = preview_fact_merge(survivor=record.pk, others=others)
        except MemoryHubError as error:
            return self._choose(request, record, refused=error)
        facts = [preview.survivor, *preview.others]
        if "confirmed" not in request.POST:
            return self._preview_merge(request, MergeFactsForm(facts=facts), preview)
        return self._merge(request, MergeFactsForm(request.POST, facts=facts), preview)

    def _choose(self, request: HttpRequest, record: Fact, *, refused: MemoryHubError | None = None) -> HttpResponse:
        shown = {
            "offered": merge_candidates(record),
            "chosen": request.POST.getlist("other"),
            "typed": request.POST.get("content", ""),
            "refused": refused,
        }
        return self._page(request, "fact_merge", record, shown, status=refused.status if refused else 200)

    def _check_visible(self, request: HttpRequest, ids: list[uuid.UUID]) -> None:
        """Of facts that the operator may not see, nothing is revealed, not even that they exist. Errors: NotFound."""
        if self.get_queryset(request).filter(pk__in=ids).count() < len(ids):
            raise NotFound

    def _preview_merge(
        self, request: HttpRequest, form: MergeFactsForm, preview: FactMergePreview, *, status: int = 200
    ) -> HttpResponse:
        record = preview.survivor
        if form.is_bound:
            show_again(form)
        sides = []
        for fact in (record, *preview.others):
            segments = diff(record.content, fact.content)
            in_common = any(not piece.mark for piece in segments)
            sides.append({"fact": fact, "segments": segments if in_common else [Segment(fact.content)]})
        shown = {"form": form, "preview": preview, "sides": sides}
        return self._page(request, "fact_merge_preview", record, shown, status=status)

    def _merge(self, request: HttpRequest, form: MergeFactsForm, preview: FactMergePreview) -> HttpResponse:
        if not form.is_valid():
            return self._preview_merge(request, form, preview, status=400)
        survivor, content = uuid.UUID(form.cleaned_data["survivor"]), form.cleaned_data["content"]
        given: dict[str, Any] = {"survivor": survivor, "content": content, "reason": form.cleaned_data["reason"]}
        try:
            expected = {pk: version for row in form.cleaned_data["expected"] for pk, version in row.items()}
            self._check_visible(request, list(expected))
            kept = merge_facts(expected=expected, **given, actor=actor_of(request), now=timezone.now())
        except MemoryHubError as error:
            form.add_error(None, message_of(error))
            return self._preview_merge(request, form, preview, status=error.status)
        done = gettext("The facts are merged into %(fact)s. You can undo this below.")
        cut = kept.content != content.strip()
        messages.success(request, f"{done % {'fact': mention(kept)}}{CUT_OUT if cut else ''}")
        return HttpResponseRedirect(url_of(kept))

    def _page(
        self, request: HttpRequest, template: str, record: Fact, shown: dict[str, Any], *, status: int
    ) -> HttpResponse:
        title = gettext("Merge %(fact)s") % {"fact": named(record, request.user)}
        context = {"title": title, "opts": self.opts, "original": record, "fact": record, **shown}
        return render_page(request, f"memories/{template}.html", status=status, **context)


def _posted_ids(request: HttpRequest, name: str) -> list[uuid.UUID]:
    """The posted ids of this name, each once. Errors: InvalidInput."""
    try:
        return list(dict.fromkeys(uuid.UUID(given) for given in request.POST.getlist(name)))
    except ValueError as error:
        raise InvalidInput.at(name, gettext("This is not an id.")) from error


def merge_candidates(fact: Fact) -> list[MergeCandidate]:
    """Facts with the same readers: those with the same key first, then the most similar ones; three queries."""
    same_readers = {name: getattr(fact, name) for name in READERS}
    rows = Fact.objects.of(fact.tenant, fact.end_user).filter(status=Status.ACTIVE, **same_readers).exclude(pk=fact.pk)
    by_meaning = _similarities(fact)
    words = _words(fact)
    found = []
    for other in rows[:MOST_COMPARED]:
        likeness = by_meaning.get(other.pk)
        if likeness is None:
            other_words = _words(other)
            union = other_words | words
            likeness = len(other_words & words) / len(union) if union else 0.0
        found.append(MergeCandidate(other, likeness, bool(fact.key) and other.key == fact.key))
    return sorted(found, key=lambda one: (one.same_key, one.likeness), reverse=True)[:MOST_OFFERED]


def _similarities(fact: Fact) -> dict[uuid.UUID, float]:
    """Of the person's facts that have a vector in the serving space; empty while this one has none."""
    space = EmbeddingSpace.objects.serving().first()
    own = FactVector.objects.filter(fact=fact, space=space, text_digest=fact.content_hash).first()
    if own is None:
        return {}
    vectors = FactVector.objects.filter(space=space, tenant=fact.tenant_id, end_user=fact.end_user_id)
    distances = vectors.annotate(distance=CosineDistance("vector", own.vector)).values_list("fact", "distance")
    return {pk: max(0.0, 1 - distance) for pk, distance in distances}


def _words(fact: Fact) -> frozenset[int]:
    return frozenset(terms.count(fact.content).ids.tolist())
