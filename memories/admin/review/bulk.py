"""One decision on many items: a preview of what would change, a confirmation, the result, and one undo for all."""

import uuid
from collections import defaultdict
from collections.abc import Callable
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

from memories.admin.access import fresh, reach
from memories.admin.review import wording
from memories.admin.review.forms import ReasonField
from memories.admin.review.queue import QueueFilters
from memories.admin.site.page import RecordPage, actor_of
from memories.curation.batches import MOST, TYPED_ABOVE, undo_batch
from memories.curation.review.batches import approve_items, reject_items
from memories.curation.review.deciding import Choice, Seen, choices_of
from memories.exceptions import MemoryHubError
from memories.models import Batch, ReviewItem
from memories.models.ids import new_id, parse_uuid

VERBS = (Choice.APPROVE, Choice.REJECT)


class SeenField(forms.CharField):
    """The items of the preview with the versions that it showed: a line each, `id=version`, the item first."""

    def __init__(self) -> None:
        super().__init__(widget=forms.HiddenInput)

    def prepare_value(self, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        shown = [[one for one in (item, item.fact, item.known, item.episode) if one] for item in value]
        return "\n".join(" ".join(f"{one.pk}={one.version}" for one in line) for line in shown)

    def to_python(self, value: Any) -> Any:
        seen: dict[uuid.UUID, Seen] = {}
        try:
            for line in (super().to_python(value) or "").splitlines():
                pairs = [word.partition("=") for word in line.split()]
                (item, version), *others = [(uuid.UUID(pk), int(version)) for pk, _is, version in pairs]
                seen[item] = Seen(version, dict(others))
            return seen
        except ValueError as error:
            raise forms.ValidationError(_("The selection could not be read. Choose again."), code="seen") from error

    def run_validators(self, value: Any) -> None:
        """A mapping has none of the validators of text."""


class BulkItemsForm(forms.Form):
    batch = forms.UUIDField(widget=forms.HiddenInput)
    verb = forms.ChoiceField(choices=[(verb.value, verb.value) for verb in VERBS], widget=forms.HiddenInput)
    seen = SeenField()
    reason = ReasonField()
    typed = forms.IntegerField(
        label=gettext_lazy("How many items are these?"),
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
            raise forms.ValidationError(_("The number does not match. Nothing changed."), code="typed")
        return typed


class ReviewBulkViews(RecordPage):
    """A page of review items with decisions on many at once."""

    def get_urls(self) -> list[URLPattern]:
        view: Callable[..., Any] = self.admin_site.admin_view
        bulk = path("queue/bulk/", view(self.bulk), name="memories_reviewitem_bulk")
        batch = path("queue/bulk/<uuid:batch_id>/", view(self.batch), name="memories_reviewitem_batch")
        return [bulk, batch, *super().get_urls()]

    def bulk(self, request: HttpRequest) -> HttpResponse:
        """Posted by the list: the preview. Confirmed: it is done, and the page of the batch shows the result."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        verb = request.POST.get("verb", "")
        if request.method != "POST" or verb not in VERBS:
            return HttpResponseRedirect(reverse("admin:memories_reviewitem_queue"))
        if "seen" in request.POST:
            return self._confirm(request, verb)
        items = self._chosen(request)
        if not items:
            messages.info(request, _("Nothing selected. Tick the items first."))
            query = QueueFilters.of(request.GET).query()
            return HttpResponseRedirect(reverse("admin:memories_reviewitem_queue") + query)
        initial = {"batch": new_id(), "verb": verb, "seen": items}
        form = BulkItemsForm(verb=verb, count=len(items), initial=initial)
        return self._preview(request, form, items, verb)

    def _chosen(self, request: HttpRequest) -> list[ReviewItem]:
        """The waiting items that are ticked, or all that fit the filters; the oldest first, MOST of them at most."""
        rows = self.get_queryset(request).filter(state=ReviewItem.State.OPEN).order_by("created_at", "pk")
        if "all" in request.POST:
            rows = QueueFilters.of(request.GET).narrow(rows)
        else:
            rows = rows.filter(pk__in=[pk for text in request.POST.getlist("item") if (pk := parse_uuid(text))])
        return [item for item in rows[:MOST] if choices_of(item)]

    def _preview(
        self, request: HttpRequest, form: BulkItemsForm, items: list[ReviewItem], verb: str, *, status: int = 200
    ) -> TemplateResponse:
        context = {
            **self.admin_site.each_context(request),
            "title": _("Bulk review"),
            "form": form,
            "verb": verb,
            "groups": _by_effect(items, verb),
            "count": len(items),
            "most": MOST,
        }
        return TemplateResponse(request, "memories/review_bulk.html", context, status=status)

    def _confirm(self, request: HttpRequest, verb: str) -> HttpResponse:
        lines = request.POST.get("seen", "").splitlines()
        form = BulkItemsForm(request.POST, verb=verb, count=len(lines))
        ids = [pk for line in lines if (pk := parse_uuid(line.partition("=")[0]))]
        items = list(self.get_queryset(request).filter(pk__in=ids).order_by("created_at", "pk"))
        if not form.is_valid():
            return self._preview(request, form, items, verb, status=400)
        if len(items) > TYPED_ABOVE and (asked := fresh.required(request)):
            return asked
        data = form.cleaned_data
        given = {"batch_id": data["batch"], "reason": data["reason"]}
        given["seen"] = {item.pk: data["seen"][item.pk] for item in items}
        act = approve_items if verb == Choice.APPROVE else reject_items
        try:
            batch = act(**given, actor=actor_of(request), now=timezone.now())
        except MemoryHubError as error:
            form.add_error(None, error.detail)
            return self._preview(request, form, items, verb, status=error.status)
        return HttpResponseRedirect(reverse("admin:memories_reviewitem_batch", args=[batch.pk]))

    def batch(self, request: HttpRequest, batch_id: uuid.UUID) -> HttpResponse:
        """The result of a bulk decision; posted, it is undone."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        batch = Batch.objects.select_related("operator").filter(pk=batch_id, steps__fact=None).first()
        if batch is None:
            raise Http404
        # All of its items must be within the operator's reach.
        if reach.within(request.user, batch.steps.all()).count() != batch.steps.count():
            raise Http404
        if request.method == "POST":
            undo_batch(batch_id=batch.pk, actor=actor_of(request), now=timezone.now())
            return HttpResponseRedirect(request.path)
        context = {
            **self.admin_site.each_context(request),
            "title": _("Bulk review"),
            "batch": batch,
            "by": batch.operator,
            "left": batch.steps.filter(undone_at=None).count(),
        }
        return TemplateResponse(request, "memories/review_batch.html", context)


def _by_effect(items: list[ReviewItem], verb: str) -> list[tuple[str, list[tuple[ReviewItem, str]]]]:
    """The items with their headlines, grouped by the effect of the decision; the largest group first."""
    groups: defaultdict[str, list[tuple[ReviewItem, str]]] = defaultdict(list)
    for item in items:
        groups[wording.effects_of(item)[verb]].append((item, wording.headline(item)))
    return sorted(sorted(groups.items()), key=lambda group: -len(group[1]))
