"""Agents: the list with what each did in the last days, and the page of each with its figures, roll back and switches.

The roll back is that of memories/admin/tenants/rollback.py: the page sends the agent and a period to its preview.
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memories.admin.lists.change_list import HubChangeList
from memories.admin.lists.columns import column, moment_column
from memories.admin.site.page import LOOK_AGAIN, HubModelAdmin, actor_of, show_again
from memories.admin.site.template_tags import percent
from memories.admin.site.wording import CUT_OUT
from memories.admin.tenants import rollback
from memories.admin.tenants.agent_figures import SPANS, figures_of, rate_of
from memories.curation.marks import mark_of
from memories.curation.tenants.agents import change_agent
from memories.models import Agent

# Fields of the form that somebody else may have changed meanwhile.
EXPECTED = ("extraction", "recall", "guidance")
# Parameter of the list: the days that its figures cover.
DAYS = "days"
DAYS_AT_FIRST = 30


class AgentForm(forms.ModelForm[Agent]):
    expected = forms.CharField(required=False, widget=forms.HiddenInput)

    class Meta:
        model = Agent
        fields = ("extraction", "recall", "guidance")
        help_texts = {
            "extraction": _(
                "If off: turns of its sessions are stored and wait. They are extracted once it is on again."
            ),
            "recall": _("If off: its contexts and searches are empty."),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial["expected"] = mark_of(self.instance, EXPECTED)

    def clean(self) -> dict[str, Any] | None:
        data = super().clean() or self.cleaned_data
        # The lock lasts until the end of the request: nobody can change the row between this check and the save.
        current = Agent.objects.select_for_update().filter(pk=self.instance.pk).first()
        if data.get("expected") and current and mark_of(current, EXPECTED) != data["expected"]:
            self.add_error(None, LOOK_AGAIN)
            self.initial["expected"] = mark_of(current, EXPECTED)
            show_again(self)
        return data


class AgentChangeList(HubChangeList):
    """With figures for the agents on the page, read at once: four queries."""

    result_list: Iterable[Agent]

    def get_filters_params(self, params: Any = None) -> dict[str, Any]:
        return {name: value for name, value in super().get_filters_params(params).items() if name != DAYS}

    @property
    def days(self) -> int:
        asked = str(self.params.get(DAYS, ""))
        return next((days for days in SPANS if str(days) == asked), DAYS_AT_FIRST)

    @property
    def periods(self) -> list[tuple[int, str]]:
        """The days that can be chosen, with the address of each."""
        return [(days, self.get_query_string({DAYS: days})) for days in SPANS]

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        agents: list[Any] = list(self.result_list)
        figures = figures_of(agents, [self.days], now=timezone.now())
        for agent in agents:
            agent.figures = figures[agent.tenant_id, agent.agent_id][self.days]
        self.result_list = agents


class AgentPage(HubModelAdmin):
    form = AgentForm
    change_form_template = "memories/agent.html"
    list_before_template = "memories/agent_periods.html"
    csv_columns = ("id", "tenant__slug", "agent_id", "extraction", "recall", "created_at")
    list_display = ("agent_id", "tenant", "extraction", "recall", "people", "turns", "facts", "pending", "rejected",
                    "corrections", "seen_first")  # fmt: skip
    list_filter = ("tenant", "extraction", "recall")
    list_select_related = ("tenant",)
    search_fields = ("agent_id",)
    search_help_text = _("Search by the agent's id")
    ordering = ("agent_id", "tenant")
    readonly_fields = ("agent_id", "tenant")
    fieldsets = ((None, {"fields": ("agent_id", "tenant", ("extraction", "recall"), "guidance", "expected")}),)
    seen_first = moment_column(_("First seen"), "created_at")
    empty_title = _("No agents yet")
    empty_hint = _("An agent is listed when an application first posts turns with its agent_id.")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[HubChangeList]:
        return AgentChangeList

    @column(_("End users"))
    def people(self, agent: Any) -> int:
        return int(agent.figures["people"])

    @column(_("Turns"))
    def turns(self, agent: Any) -> int:
        return int(agent.figures["turns"])

    @column(_("Facts made"))
    def facts(self, agent: Any) -> int:
        return int(agent.figures["facts"])

    @column(_("Pending"))
    def pending(self, agent: Any) -> int:
        return int(agent.figures["pending"])

    @column(_("Rejected"))
    def rejected(self, agent: Any) -> str:
        share = rate_of(agent.figures)
        return "–" if share is None else percent(share)

    @column(_("Corrections"))
    def corrections(self, agent: Any) -> int:
        return int(agent.figures["corrections"])

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **more: Any
    ) -> HttpResponse:
        agent: Agent = context["original"]
        now = timezone.now()
        spans = figures_of([agent], SPANS, now=now)[agent.tenant_id, agent.agent_id]
        context["spans"] = [(days, figures, rate_of(figures)) for days, figures in spans.items()]
        if request.user.has_perms(rollback.MAY):
            # In the operator's zone, as its form reads them.
            since = {days: timezone.localtime(now - timedelta(days=days)) for days in (1, *SPANS)}
            context["roll_back"] = [(days, f"{moment:%Y-%m-%dT%H:%M}") for days, moment in since.items()]
        return super().render_change_form(request, context, *args, **more)  # type: ignore[no-any-return]

    def save_model(self, request: HttpRequest, obj: Agent, form: Any, change: bool) -> None:
        changes = {name: form.cleaned_data[name] for name in EXPECTED}
        saved = change_agent(agent=obj, changes=changes, actor=actor_of(request), now=timezone.now())
        if form.cleaned_data["guidance"] != saved.guidance:
            messages.warning(request, CUT_OUT.strip())
