"""One decision on many items, chosen in the queue."""

import uuid
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memories.admin.review import wording
from memories.admin.review.forms import FOR_COLLEAGUES
from memories.admin.review.queue import QueueFilters
from memories.admin.site import reasons
from memories.admin.site.bulk import BulkForm, BulkViews, RowVersions
from memories.admin.site.page import address
from memories.admin.site.reasons import ReasonField
from memories.audit import Actor
from memories.curation.batches import MOST
from memories.curation.facts.approving import asked_too_late
from memories.curation.review.batches import approve_items, reject_items
from memories.curation.review.deciding import Choice, ExpectedVersions, choices_of
from memories.models import Batch, ReviewItem
from memories.models.ids import parse_uuid

VERBS: dict[str, Callable[..., Batch]] = {Choice.APPROVE: approve_items, Choice.REJECT: reject_items}
REASONS: dict[str, tuple[Promise, ...]] = {Choice.APPROVE: reasons.APPROVE, Choice.REJECT: reasons.REJECT}


class BulkItemsForm(BulkForm):
    verb = forms.ChoiceField(choices=[(verb, verb) for verb in VERBS], widget=forms.HiddenInput)
    reason = ReasonField()
    field_order = ("reason",)

    def __init__(self, data: Any = None, *, verb: str, rows: Sequence[Sequence[Model]] = ()) -> None:
        super().__init__(data, verb=verb, rows=rows)
        self.fields["verb"].initial = verb
        self.fields["reason"] = ReasonField(*REASONS[verb], help_text=FOR_COLLEAGUES)

    def carry_out(self, expected: RowVersions, *, actor: Actor, now: datetime) -> Batch:
        versions = {
            pk: ExpectedVersions(row[pk], {one: row[one] for one in row if one != pk}) for pk, row in expected.items()
        }
        data = self.cleaned_data
        return VERBS[self.verb_name](
            batch_id=data["batch"], expected=versions, reason=data["reason"], actor=actor, now=now
        )


class ReviewBulkViews(BulkViews):
    """A page of review items with decisions on many at once."""

    bulk_title, bulk_verbs, bulk_form, step = gettext_lazy("Bulk review"), VERBS, BulkItemsForm, "item"
    bulk_template, batch_template = "memories/review_bulk.html", "memories/review_batch.html"

    @address("queue/bulk/")
    def bulk(self, request: HttpRequest) -> HttpResponse:
        """Posted by the queue: the preview. Confirmed: it is done."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        verb = request.POST.get("verb", "")
        if request.method != "POST" or verb not in VERBS:
            return HttpResponseRedirect(reverse("admin:memories_reviewitem_queue"))
        if "expected" in request.POST:
            return self.confirm(request, verb)
        rows = self.get_queryset(request).filter(state=ReviewItem.State.OPEN).order_by("created_at", "pk")
        if "all" in request.POST:
            rows = QueueFilters.of(request.GET).narrow(rows, request.user)  # type: ignore[arg-type]
        else:
            rows = rows.filter(pk__in=[pk for text in request.POST.getlist("item") if (pk := parse_uuid(text))])
        # The oldest first, MOST of them at most.
        if items := [item for item in rows[:MOST] if choices_of(item)]:
            return self.preview(request, verb, items)
        messages.info(request, _("Nothing selected. Tick the items first."))
        query = QueueFilters.of(request.GET).query()
        return HttpResponseRedirect(reverse("admin:memories_reviewitem_queue") + query)

    def records_of(self, row: ReviewItem) -> list[Model]:
        return [record for record in (row, row.fact, row.known, row.episode) if record]

    def effects(self, verb: str, rows: Sequence[ReviewItem]) -> dict[str, Any]:
        """The items with their headlines, grouped by the effect of the decision; the largest group first."""
        groups: defaultdict[str, list[tuple[ReviewItem, str]]] = defaultdict(list)
        late = asked_too_late(rows, now=timezone.now())
        for item in rows:
            groups[wording.effects_of(item, is_late=item.pk in late)[verb]].append((item, wording.headline(item)))
        ordered = sorted(sorted(groups.items()), key=lambda group: -len(group[1]))
        return {"groups": ordered, "count": len(rows), "most": MOST}

    @address("queue/bulk/<uuid:batch_id>/")
    def batch(self, request: HttpRequest, batch_id: uuid.UUID) -> HttpResponse:
        return self.show_batch(request, batch_id)
