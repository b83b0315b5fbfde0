"""Many items at once: what would change, typed confirmation of many, and one undo for all of it."""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminTextInputWidget

from memories import curation
from memories.admin import fresh, reach, review_queue, review_wording
from memories.admin.page import RecordPage, actor_of
from memories.admin.review_forms import ReasonField
from memories.admin.review_queue import Filters
from memories.curation import Choice, Seen
from memories.curation.batches import MOST, TYPED_ABOVE
from memories.exceptions import MemoryHubError
from memories.models import Batch, BatchEntry, ReviewItem
from memories.models.ids import new_id

VERBS = (Choice.APPROVE, Choice.REJECT)


class SeenField(forms.CharField):
    """Which items are meant, and the versions that were shown of them: a line each."""

    def __init__(self) -> None:
        super().__init__(widget=forms.HiddenInput)

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(map(_line_of, value)) if isinstance(value, list) else value

    def to_python(self, value: Any) -> Any:
        try:
            return dict(_read(line) for line in (super().to_python(value) or "").splitlines())
        except ValueError as error:
            raise forms.ValidationError(_("Choose again: this list cannot be read."), code="seen") from error

    def run_validators(self, value: Any) -> None:
        """A mapping has none of the validators of text."""


class BulkForm(forms.Form):
    """What is confirmed; `count` is how many items it is about."""

    batch = forms.UUIDField(widget=forms.HiddenInput)
    verb = forms.ChoiceField(choices=[(verb.value, verb.value) for verb in VERBS], widget=forms.HiddenInput)
    seen = SeenField()
    reason = ReasonField()
    typed = forms.IntegerField(
        label=gettext_lazy("How many are these?"),
        help_text=gettext_lazy("Type the number to confirm."),
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off", "inputmode": "numeric"}),
    )

    def __init__(self, data: Any = None, *, verb: str, count: int, **given: Any) -> None:
        super().__init__(data, **given)
        self.count = count
        self.fields["reason"].required = verb == Choice.REJECT
        if count <= TYPED_ABOVE:
            del self.fields["typed"]

    def clean_typed(self) -> int:
        typed: int = self.cleaned_data["typed"]
        if typed != self.count:
            raise forms.ValidationError(_("It is another number: nothing was done."), code="typed")
        return typed


@dataclass(frozen=True)
class Lot:
    """The chosen items to which the decision does the same."""

    effect: str
    items: list[tuple[ReviewItem, str]]


class BulkViews(RecordPage):
    """What the page of the review items adds for many at once."""

    def get_urls(self) -> list[URLPattern]:
        view: Callable[..., Any] = self.admin_site.admin_view
        bulk = path("queue/bulk/", view(self.bulk), name="memories_reviewitem_bulk")
        batch = path("queue/bulk/<uuid:batch_id>/", view(self.batch), name="memories_reviewitem_batch")
        return [bulk, batch, *super().get_urls()]

    def bulk(self, request: HttpRequest) -> HttpResponse:
        """Posted by the list: what would change. Confirmed: it is done, and told on the page of the batch."""
        self._check(request)
        verb = request.POST.get("verb", "")
        if request.method != "POST" or verb not in VERBS:
            return HttpResponseRedirect(reverse("admin:memories_reviewitem_queue"))
        if "seen" in request.POST:
            return self._confirm(request, verb)
        items = self._chosen(request)
        if not items:
            messages.info(request, _("Nothing was chosen: tick the items first."))
            return HttpResponseRedirect(reverse("admin:memories_reviewitem_queue") + Filters.of(request.GET).query())
        given = {"batch": new_id(), "verb": verb, "seen": items}
        form = BulkForm(verb=verb, count=len(items), initial=given)
        return self._preview(request, form, items, verb)

    def batch(self, request: HttpRequest, batch_id: uuid.UUID) -> HttpResponse:
        """What was done to how many; posted, it is undone."""
        self._check(request)
        batch = self._batch(request, batch_id)
        if request.method == "POST":
            curation.undo_items(batch_id=batch.pk, actor=actor_of(request), now=timezone.now())
            return HttpResponseRedirect(request.path)
        context = {
            **self.admin_site.each_context(request),
            "title": _("Many at once"),
            "batch": batch,
            "by": batch.operator,
            "left": batch.entries.filter(undone=False).count(),
        }
        return TemplateResponse(request, "memories/review_batch.html", context)

    def _confirm(self, request: HttpRequest, verb: str) -> HttpResponse:
        form = BulkForm(request.POST, verb=verb, count=_lines(request.POST))
        allowed = self.get_queryset(request).filter(pk__in=_ids(request.POST))
        items = list(allowed.order_by("created_at", "pk"))
        if not form.is_valid():
            return self._preview(request, form, items, verb, status=400)
        if len(items) > TYPED_ABOVE and (asked := fresh.required(request)):
            return asked
        given: dict[str, Any] = {"batch_id": form.cleaned_data["batch"], "reason": form.cleaned_data["reason"]}
        given["seen"] = {item.pk: form.cleaned_data["seen"][item.pk] for item in items}
        act = curation.approve_items if verb == Choice.APPROVE else curation.reject_items
        try:
            batch = act(**given, actor=actor_of(request), now=timezone.now())
        except MemoryHubError as error:
            form.add_error(None, error.detail)
            return self._preview(request, form, items, verb, status=error.status)
        return HttpResponseRedirect(reverse("admin:memories_reviewitem_batch", args=[batch.pk]))

    def _chosen(self, request: HttpRequest) -> list[ReviewItem]:
        """What was ticked and waits, or all that fits the filters; the oldest first, and no more than the cap."""
        rows = self.get_queryset(request).filter(state=ReviewItem.State.OPEN).order_by("created_at", "pk")
        if "all" in request.POST:
            rows = Filters.of(request.GET).narrow(rows)
        else:
            ticked = map(review_queue.id_of, request.POST.getlist("item"))
            rows = rows.filter(pk__in=[pk for pk in ticked if pk])
        return [item for item in rows[:MOST] if curation.choices_of(item)]

    def _preview(
        self, request: HttpRequest, form: BulkForm, items: list[ReviewItem], verb: str, *, status: int = 200
    ) -> TemplateResponse:
        context = {
            **self.admin_site.each_context(request),
            "title": _("Many at once"),
            "form": form,
            "verb": verb,
            "lots": lots(items, verb),
            "count": len(items),
            "most": MOST,
        }
        return TemplateResponse(request, "memories/review_bulk.html", context, status=status)

    def _batch(self, request: HttpRequest, batch_id: uuid.UUID) -> Batch:
        """Of decisions, all within the operator's reach. Errors: Http404."""
        batch = Batch.objects.select_related("operator").filter(pk=batch_id, entries__fact=None).first()
        if batch is None:
            raise Http404
        entries = BatchEntry.objects.filter(batch=batch)
        if reach.within(request.user, entries, "item__tenant").count() != entries.count():
            raise Http404
        return batch

    def _check(self, request: HttpRequest) -> None:
        if not self.has_change_permission(request):
            raise PermissionDenied


def lots(items: list[ReviewItem], verb: str) -> list[Lot]:
    """The items by what the decision does to them, the most first."""
    told = [(review_wording.effects_of(item)[verb], item, review_wording.headline(item)) for item in items]
    told.sort(key=lambda one: one[0])
    groups = groupby(told, key=lambda one: one[0])
    found = [Lot(effect, [(item, text) for _effect, item, text in group]) for effect, group in groups]
    return sorted(found, key=lambda lot: -len(lot.items))


def _line_of(item: ReviewItem) -> str:
    about = (item.fact, item.known, item.episode)
    return " ".join([f"{item.pk}={item.version}", *(f"{one.pk}={one.version}" for one in about if one)])


def _read(line: str) -> tuple[uuid.UUID, Seen]:
    """Errors: ValueError."""
    (item, version), *others = [_pair(word) for word in line.split()]
    return item, Seen(version, dict(others))


def _pair(word: str) -> tuple[uuid.UUID, int]:
    pk, _is, version = word.partition("=")
    return uuid.UUID(pk), int(version)


def _lines(data: Mapping[str, str]) -> int:
    return len(data.get("seen", "").splitlines())


def _ids(data: Mapping[str, str]) -> list[uuid.UUID]:
    heads = [line.partition("=")[0] for line in data.get("seen", "").splitlines()]
    return [pk for pk in map(review_queue.id_of, heads) if pk]
