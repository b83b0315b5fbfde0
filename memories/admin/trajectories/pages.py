"""Trajectories: the list, and one of them with its outcome and its steps. Nobody changes one here."""

from typing import Any

from django.db.models import QuerySet
from django.db.models.functions import Left
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memories.admin.lists import cells
from memories.admin.lists.columns import column, moment_column
from memories.admin.site.page import RecordPage
from memories.models import Session, Trajectory

BEGINNING = 120
# Steps of one page.
SHOWN = 200
COLOURS = {
    Trajectory.Outcome.SUCCEEDED: "success",
    Trajectory.Outcome.FAILED: "danger",
    Trajectory.Outcome.UNKNOWN: "",
}


class TrajectoryPage(RecordPage):
    page_template = "memories/trajectory.html"
    list_display = ("name", "person", "agent", "came_out", "steps_held", "stored")
    list_filter = ("tenant", "outcome", "road")
    linked_by = ("end_user",)
    list_select_related = ("end_user", "tenant")
    search_fields = ("family", "agent_id", "end_user__external_id")
    search_help_text = _("Search by kind of task, agent or end user")
    ordering = ("-created_at", "-id")
    empty_title = _("No trajectories yet")
    empty_hint = _("Applications and coding agents tell how they did a task with POST /api/v1/trajectories.")
    stored = moment_column(_("Stored"), "created_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Trajectory]:
        rows: QuerySet[Trajectory] = super().get_queryset(request)
        is_list = request.resolver_match is not None and not request.resolver_match.kwargs
        return rows.annotate(start=Left("task", BEGINNING)).defer("task", "outcome_reason") if is_list else rows

    @column(_("Task"))
    def name(self, row: Trajectory) -> SafeString:
        return cells.two_lines(" ".join(row.start.split()), row.family or gettext("without a kind"))  # type: ignore[attr-defined]

    @column(_("End user"))
    def person(self, row: Trajectory) -> SafeString:
        return cells.person(row.end_user)

    @column(_("Agent"), ordering="agent_id")
    def agent(self, row: Trajectory) -> str:
        return row.agent_id or gettext("without an agent")

    @column(_("Outcome"), label={one.value: colour for one, colour in COLOURS.items() if colour})
    def came_out(self, row: Trajectory) -> tuple[str, str]:
        return row.outcome, row.get_outcome_display()

    @column(_("Steps"))
    def steps_held(self, row: Trajectory) -> int:
        return row.step_count

    def gather(self, request: HttpRequest, record: Trajectory) -> dict[str, Any]:
        steps = list(record.steps.order_by("position")[: SHOWN + 1])
        named = {"agent_id": record.agent_id, "external_id": record.session_id}
        sessions = Session.objects.filter(tenant=record.tenant_id, end_user=record.end_user_id, **named)
        return {
            "trajectory": record,
            "steps": steps[:SHOWN],
            "more": max(0, record.step_count - SHOWN),
            "colour": COLOURS[Trajectory.Outcome(record.outcome)],
            "session": sessions.first() if record.session_id else None,
        }


PAGES = ((Trajectory, TrajectoryPage),)
