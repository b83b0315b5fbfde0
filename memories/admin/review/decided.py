"""Decisions per operator: a small table over 7, 30 and 90 days."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db.models import CharField, Count, Q
from django.db.models.functions import Cast
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import gettext

from memories.admin.site.page import RecordPage, address
from memories.models import Operator, ReviewItem

DAYS = (7, 30, 90)
# Without it operators see their own row alone.
MAY_SEE_OTHERS = "memories.view_operator"


@dataclass(frozen=True)
class Decided:
    """How many items an operator decided in each of DAYS, and the share of approvals in the longest."""

    name: str
    counts: tuple[int, ...]
    approved: float


class DecidedViews(RecordPage):
    """A page of review items with a table of who decided how many."""

    @address("decisions/")
    def decisions(self, request: HttpRequest) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method not in ("GET", "HEAD"):
            return HttpResponse(status=405, headers={"Allow": "GET, HEAD"})
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("Decisions per operator"),
            "opts": self.opts,
            "days": DAYS,
            "decided": self._decided(request),
            "own_only": not request.user.has_perm(MAY_SEE_OTHERS),
        }
        return TemplateResponse(request, "memories/review_decisions.html", context)

    def _decided(self, request: HttpRequest) -> list[Decided]:
        """Of items that the operator may see; three queries. What was undone since counts no more."""
        now = timezone.now()
        rows = self.get_queryset(request).select_related(None).order_by().exclude(decided_by="")
        rows = rows.filter(decided_at__gt=now - timedelta(days=DAYS[-1]))
        if not request.user.has_perm(MAY_SEE_OTHERS):
            rows = rows.filter(decided_by=str(request.user.pk))
        sums: dict[str, Any] = {
            f"in_{days}": Count("pk", filter=Q(decided_at__gt=now - timedelta(days=days))) for days in DAYS
        }
        sums["approved"] = Count("pk", filter=Q(state=ReviewItem.State.APPROVED))
        found = list(rows.values("decided_by").annotate(**sums).order_by(f"-in_{DAYS[-1]}", "decided_by"))
        operators = Operator.objects.annotate(text=Cast("pk", CharField()))
        names = dict(operators.filter(text__in=[row["decided_by"] for row in found]).values_list("text", "username"))
        return [
            Decided(
                names.get(row["decided_by"], gettext("An operator who was removed")),
                tuple(row[f"in_{days}"] for days in DAYS),
                row["approved"] / row[f"in_{DAYS[-1]}"],
            )
            for row in found
        ]
