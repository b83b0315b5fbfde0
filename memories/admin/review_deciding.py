"""The queue's page: what waits on the left, one item on the right, and after a decision the next one at once.

A request with the header X-Fragment is answered with what changes on the page alone; without a script the same
buttons and links lead to whole pages.
"""

import uuid
from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from memories.admin import review_queue, review_wording
from memories.admin.page import RecordPage, VerbForm, actor_of
from memories.admin.review_page import decided_of, resting_on
from memories.admin.review_queue import Filters, Rows
from memories.admin.review_verbs import url_of_verb, verbs_of
from memories.exceptions import MemoryHubError
from memories.models import ReviewItem

FRAGMENT = "X-Fragment"
QUEUE = "admin:memories_reviewitem_queue"


def address_of(filters: Filters, *, item: ReviewItem | None = None, start: str = "") -> str:
    """Where the queue shows this item, with the list as it is filtered and scrolled."""
    return reverse(QUEUE) + filters.query(item=item.pk if item else "", start=start)


class QueueViews(RecordPage):
    """What the page of the review items adds for the queue."""

    def get_urls(self) -> list[URLPattern]:
        view: Callable[..., Any] = self.admin_site.admin_view
        queue = path("queue/", view(self.queue), name="memories_reviewitem_queue")
        decide = path("queue/<uuid:object_id>/<slug:verb>/", view(self.decide), name="memories_reviewitem_decide")
        return [queue, decide, *super().get_urls()]

    def queue(self, request: HttpRequest) -> HttpResponse:
        """The list, and the item that the address names or else the first that waits."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method not in ("GET", "HEAD"):
            return HttpResponse(status=405, headers={"Allow": "GET, HEAD"})
        named = review_queue.id_of(request.GET.get("item", ""))
        return self.show_queue(request, self._now(request, named) if named else None)

    def decide(self, request: HttpRequest, object_id: uuid.UUID, verb: str) -> HttpResponse:
        """One decision, or its undo: then the next item; refused, the same one with what was typed."""
        record = self.find(request, str(object_id), may_change=True)
        filters = Filters.of(request.GET)
        if request.method != "POST" or verb not in self.verbs:
            return HttpResponseRedirect(address_of(filters, item=record))
        form = self.verbs[verb](request.POST, record=record)
        done, status = self._carry_out(request, form)
        if not done:
            record = self.find(request, str(object_id), may_change=True)
            form.see(record)
            return self.show_queue(request, record, tried=form, status=status)
        if verb == "undo":
            chosen = self._now(request, record.pk)
        else:
            chosen = review_queue.next_of(self._waiting(request, filters), record)
        if FRAGMENT in request.headers:
            return self.show_queue(request, chosen, done=done)
        messages.success(request, done)
        return HttpResponseRedirect(address_of(filters, item=chosen, start=request.GET.get("start", "")))

    def show_queue(
        self,
        request: HttpRequest,
        chosen: ReviewItem | None,
        *,
        done: str = "",
        tried: VerbForm | None = None,
        status: int = 200,
    ) -> TemplateResponse:
        """The page, or what changes on it; `done` says what was just done, `tried` is a form that was refused."""
        is_fragment = FRAGMENT in request.headers
        context = {
            **({} if is_fragment else self.admin_site.each_context(request)),
            "title": _("Review queue"),
            "done": done,
            "tried": tried,
            **self._list_of(request, chosen),
        }
        context |= self._item_of(request, context, tried)
        name = "memories/review_queue_body.html" if is_fragment else "memories/review_queue.html"
        response = TemplateResponse(request, name, context, status=status)
        response.headers[FRAGMENT] = "queue" if is_fragment else "page"
        return response

    def _carry_out(self, request: HttpRequest, form: VerbForm) -> tuple[str, int]:
        """What was done, or "" with the status of why not."""
        if not form.is_valid():
            return "", 400
        try:
            return form.carry_out(actor=actor_of(request), now=timezone.now()), 200
        except MemoryHubError as error:
            form.refuse(error)
            return "", error.status

    def _now(self, request: HttpRequest, item_id: uuid.UUID) -> ReviewItem | None:
        found: ReviewItem | None = self.get_queryset(request).filter(pk=item_id).first()
        return found

    def _waiting(self, request: HttpRequest, filters: Filters) -> Rows:
        rows: Rows = self.get_queryset(request).filter(state=ReviewItem.State.OPEN)
        return filters.narrow(rows)

    def _list_of(self, request: HttpRequest, chosen: ReviewItem | None) -> dict[str, Any]:
        filters, rows = Filters.of(request.GET), self.get_queryset(request)
        waiting, counts = self._waiting(request, filters), review_queue.counts(rows)
        named = review_queue.id_of(request.GET.get("start", ""))
        window = review_queue.window(waiting, rows.filter(pk=named).first() if named else None)
        if chosen and chosen.state == ReviewItem.State.OPEN and chosen not in window.items:
            window = review_queue.window(waiting, chosen)
        # Where the list goes on from, also once its first item is decided; empty at its very beginning.
        start = str(window.items[0].pk) if window.earlier and window.items else ""
        latest = review_queue.latest(rows, request.user, now=timezone.now())  # type: ignore[arg-type]
        if chosen is None and window.items:
            # Of the list's own rows only what the list shows is read.
            chosen = self._now(request, window.items[0].pk)
        return {
            "chosen": chosen,
            "window": window,
            "rows": [_row(item, filters.query(item=item.pk, start=start)) for item in window.items],
            "earlier": filters.query(start=window.earlier.pk) if window.earlier else "",
            "later": filters.query(start=window.later.pk) if window.later else "",
            "filters": filters,
            "facets": counts.facets(filters),
            "waiting": counts.everything,
            "left": counts.left(filters),
            "start": start,
            "latest": latest,
            "undo_latest": url_of_verb(latest.item, "undo") + filters.query(start=start) if latest else "",
        }

    def _item_of(self, request: HttpRequest, shown: dict[str, Any], tried: VerbForm | None) -> dict[str, Any]:
        """What the right side shows of the chosen item, with where the keys lead from it."""
        item, filters, start = shown["chosen"], shown["filters"], shown["start"]
        if item is None:
            return {"here": filters.query()}
        waiting = self._waiting(request, filters).select_related(None).only("pk", "created_at")
        previous, following = review_queue.previous(waiting, item), review_queue.following(waiting, item)
        forms = self._forms_of(request, item, tried)
        return {
            **decided_of(item),
            **resting_on(item),
            "forms": forms,
            "verbs": verbs_of(item, forms, filters.query(start=start)),
            "share": review_wording.share(item),
            "previous": previous,
            "following": following,
            "here": filters.query(item=item.pk, start=start),
            "to_previous": filters.query(item=previous.pk, start=start) if previous else "",
            "to_following": filters.query(item=following.pk, start=start) if following else "",
            "to_undo": url_of_verb(item, "undo") + filters.query(start=start),
        }

    def _forms_of(self, request: HttpRequest, item: ReviewItem, tried: VerbForm | None) -> dict[str, VerbForm]:
        if not self.has_change_permission(request, item):
            return {}
        forms = {name: form(record=item) for name, form in self.verbs.items()}
        refused = {name: tried for name, form in self.verbs.items() if tried is not None and isinstance(tried, form)}
        return {**forms, **refused}


def _row(item: ReviewItem, query: str) -> dict[str, Any]:
    return {"item": item, "text": review_wording.headline(item), "share": review_wording.share(item), "query": query}
