"""The page of the review queue: the waiting items on the left, one of them on the right, the next after a decision.

A request with the header X-Fragment is answered with the changed part of the page alone. Without a script the same
buttons and links lead to whole pages.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memories.admin.review import queue as review_queue
from memories.admin.review import waits, wording
from memories.admin.review.detail import decision_of, evidence_of
from memories.admin.review.queue import QueueFilters, Rows
from memories.admin.site.page import RecordPage, VerbForm, address, attempt
from memories.curation.facts.approving import asked_too_late
from memories.curation.review.deciding import Choice, choices_of
from memories.models import ReviewItem
from memories.models.ids import parse_uuid

FRAGMENT = "X-Fragment"
# What decides nothing: the item stays on the right.
STAYS = ("undo", "take", "give_back", "note", "delete_note")
# What an operator does at the desk: who has the item, and what is noted on it.
DESK = ("take", "give_back", "note", "delete_note")
# Choice → its key, its label, and for those that open a form the label of the button in it.
BUTTONS: Mapping[str, tuple[str, Promise, Promise | str]] = {
    Choice.APPROVE: ("a", _("Approve"), ""),
    Choice.EDIT: ("e", _("Edit"), _("Approve with this text")),
    Choice.KEEP_BOTH: ("b", _("Keep both"), ""),
    Choice.MERGE: ("m", _("Merge"), _("Merge")),
    Choice.REJECT: ("r", _("Reject"), _("Reject it")),
}


@dataclass(frozen=True)
class DecisionButton:
    """A decision that fits the item: `effect` says what it would do."""

    name: Choice
    key: str
    label: str
    submit: str
    effect: str
    form: VerbForm
    url: str

    @property
    def opens(self) -> bool:
        """Whether it opens a form, because the decision needs words."""
        return bool(self.submit)

    @property
    def primary(self) -> bool:
        return self.name == Choice.APPROVE

    @property
    def danger(self) -> bool:
        return self.name == Choice.REJECT


class QueueViews(RecordPage):
    """A page of review items with the queue beside the list."""

    @address("queue/")
    def queue(self, request: HttpRequest) -> HttpResponse:
        """The list, and the item that the address names or else the first that waits."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method not in ("GET", "HEAD"):
            return HttpResponse(status=405, headers={"Allow": "GET, HEAD"})
        item_id = parse_uuid(request.GET.get("item", ""))
        return self._show_queue(request, self._item(request, item_id) if item_id else None)

    @address("queue/<uuid:object_id>/<slug:verb>/")
    def decide(self, request: HttpRequest, object_id: uuid.UUID, verb: str) -> HttpResponse:
        """One decision, or its undo; then the next item. A refused one shows the same item with what was typed."""
        record = self.find(request, str(object_id), may_change=True)
        filters = QueueFilters.of(request.GET)
        if request.method != "POST" or verb not in self.verbs:
            return HttpResponseRedirect(_address(filters, item=record))
        form = self.verbs[verb](request.POST, record=record)
        done, status = attempt(request, form)
        if not done:
            record = self.find(request, str(object_id), may_change=True)
            form.see(record)
            return self._show_queue(request, record, tried=form, status=status)
        if verb in STAYS:
            chosen = self._item(request, record.pk)
        else:
            chosen = review_queue.next_of(self._waiting(request, filters), record)
        if FRAGMENT in request.headers:
            return self._show_queue(request, chosen, done=done)
        messages.success(request, done)
        return HttpResponseRedirect(_address(filters, item=chosen, start=request.GET.get("start", "")))

    def _item(self, request: HttpRequest, item_id: uuid.UUID) -> ReviewItem | None:
        found: ReviewItem | None = self.get_queryset(request).filter(pk=item_id).first()
        return found

    def _waiting(self, request: HttpRequest, filters: QueueFilters) -> Rows:
        rows: Rows = self.get_queryset(request).filter(state=ReviewItem.State.OPEN)
        return filters.narrow(rows, request.user)  # type: ignore[arg-type]

    def _show_queue(
        self,
        request: HttpRequest,
        chosen: ReviewItem | None,
        *,
        done: str = "",
        tried: VerbForm | None = None,
        status: int = 200,
    ) -> TemplateResponse:
        """The page, or the changed part; `done` says what was just done, `tried` is a form that was refused."""
        is_fragment = FRAGMENT in request.headers
        context = {
            **({} if is_fragment else self.admin_site.each_context(request)),
            "title": gettext("Review queue"),
            "done": done,
            "tried": tried,
            **self._left_side(request, chosen),
        }
        context |= self._right_side(request, context, tried)
        name = "memories/review_queue_body.html" if is_fragment else "memories/review_queue.html"
        response = TemplateResponse(request, name, context, status=status)
        response.headers[FRAGMENT] = "queue" if is_fragment else "page"
        return response

    def _left_side(self, request: HttpRequest, chosen: ReviewItem | None) -> dict[str, Any]:
        filters, rows = QueueFilters.of(request.GET), self.get_queryset(request)
        waiting = self._waiting(request, filters)
        counts = review_queue.counts(rows, request.user)  # type: ignore[arg-type]
        start_id = parse_uuid(request.GET.get("start", ""))
        window = review_queue.window(waiting, rows.filter(pk=start_id).first() if start_id else None)
        if chosen and chosen.state == ReviewItem.State.OPEN and chosen not in window.items:
            window = review_queue.window(waiting, chosen)
        # The window keeps its start when its first item is decided; the very first window has none.
        start = str(window.items[0].pk) if window.earlier and window.items else ""
        now = timezone.now()
        latest = review_queue.latest_decision(rows, request.user, now=now)  # type: ignore[arg-type]
        if chosen is None and window.items:
            # Rows of the list have only the columns that the list shows.
            chosen = self._item(request, window.items[0].pk)
        targets = waits.targets_of(window.items)
        return {
            "chosen": chosen,
            "window": window,
            "rows": [
                {
                    "item": item,
                    "text": wording.headline(item),
                    "share": wording.share(item),
                    "is_late": waits.is_late(item, targets[item.tenant_id], now=now),
                    "is_mine": item.taken_by == str(request.user.pk),
                    "query": filters.query(item=item.pk, start=start),
                }
                for item in window.items
            ],
            "earlier": filters.query(start=window.earlier.pk) if window.earlier else "",
            "later": filters.query(start=window.later.pk) if window.later else "",
            "filters": filters,
            "facets": counts.facets(filters),
            "waiting": counts.everything,
            "left": counts.left(filters),
            "start": start,
            "latest": latest,
            "undo_latest": _verb_url(latest.item, "undo") + filters.query(start=start) if latest else "",
        }

    def _right_side(self, request: HttpRequest, shown: dict[str, Any], tried: VerbForm | None) -> dict[str, Any]:
        """The chosen item, its decisions, and the addresses of its neighbours."""
        item, filters, start = shown["chosen"], shown["filters"], shown["start"]
        if item is None:
            return {"here": filters.query()}
        waiting = self._waiting(request, filters).select_related(None).only("pk", "created_at")
        previous, following = review_queue.previous(waiting, item), review_queue.following(waiting, item)
        forms: dict[str, VerbForm] = {}
        if self.has_change_permission(request, item):
            for name, form in self.verbs.items():
                forms[name] = tried if tried is not None and isinstance(tried, form) else form(record=item)
        return {
            **decision_of(item, request.user),
            **evidence_of(item, request.user),
            "may_decide": bool(forms),
            "desk": {name: _verb_url(item, name) + filters.query(start=start) for name in DESK},
            "forms": forms,
            "verbs": _buttons(item, forms, filters.query(start=start)),
            "share": wording.share(item),
            "previous": previous,
            "following": following,
            "here": filters.query(item=item.pk, start=start),
            "to_previous": filters.query(item=previous.pk, start=start) if previous else "",
            "to_following": filters.query(item=following.pk, start=start) if following else "",
            "to_undo": _verb_url(item, "undo") + filters.query(start=start),
        }


def _address(filters: QueueFilters, *, item: ReviewItem | None, start: str = "") -> str:
    """The queue with this item, and the list filtered and scrolled as it is."""
    return reverse("admin:memories_reviewitem_queue") + filters.query(item=item.pk if item else "", start=start)


def _verb_url(item: ReviewItem, verb: str) -> str:
    return reverse("admin:memories_reviewitem_decide", args=[item.pk, verb])


def _buttons(item: ReviewItem, forms: Mapping[str, VerbForm], query: str) -> list[DecisionButton]:
    """The decisions that fit the item and have a form; `query` keeps the list as it is filtered and scrolled."""
    is_late = bool(asked_too_late([item], now=timezone.now()))
    effects = wording.effects_of(item, is_late=is_late)
    buttons = []
    for choice in choices_of(item):
        if choice in forms:
            key, label, submit = BUTTONS[choice]
            url = _verb_url(item, choice) + query
            own = wording.label_of(item, choice, is_late=is_late)
            words = (own or str(label), (own or str(submit)) if submit else "")
            buttons.append(DecisionButton(choice, key, *words, effects[choice], forms[choice], url))
    return buttons
