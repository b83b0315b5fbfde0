"""Agents: the list with what each has done, and the form with its switches and guidance."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Count, Q
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memories.admin.lists.change_list import HubChangeList
from memories.admin.lists.columns import column, moment_column
from memories.admin.site.page import LOOK_AGAIN, HubModelAdmin, actor_of, show_again
from memories.admin.site.wording import CUT_OUT
from memories.curation.marks import mark_of
from memories.curation.tenants.agents import save_agent
from memories.models import Agent, Fact, Session, Status

# Fields of the form that somebody else may have changed meanwhile.
SEEN = ("extraction", "recall", "guidance")


class AgentForm(forms.ModelForm[Agent]):
    seen = forms.CharField(required=False, widget=forms.HiddenInput)

    class Meta:
        model = Agent
        fields = ("extraction", "recall", "guidance")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial["seen"] = mark_of(self.instance, SEEN)

    def clean(self) -> dict[str, Any] | None:
        data = super().clean() or self.cleaned_data
        # The lock lasts until the end of the request: nobody can change the row between this check and the save.
        current = Agent.objects.select_for_update().filter(pk=self.instance.pk).first()
        if data.get("seen") and current and mark_of(current, SEEN) != data["seen"]:
            self.add_error(None, LOOK_AGAIN)
            self.initial["seen"] = mark_of(current, SEEN)
            show_again(self)
        return data


class AgentChangeList(HubChangeList):
    """With counts for the agents on the page, read at once: two queries."""

    result_list: Iterable[Agent]

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        agents = list(self.result_list)
        _count(agents)
        self.result_list = agents


class AgentPage(HubModelAdmin):
    form = AgentForm
    list_display = ("agent_id", "tenant", "extraction", "recall", "people", "sessions", "facts", "pending", "rejected",
                    "seen_first")  # fmt: skip
    list_filter = ("tenant", "extraction", "recall")
    list_select_related = ("tenant",)
    search_fields = ("agent_id",)
    search_help_text = _("Search by the agent's id")
    ordering = ("agent_id", "tenant")
    readonly_fields = ("agent_id", "tenant")
    fieldsets = ((None, {"fields": ("agent_id", "tenant", ("extraction", "recall"), "guidance", "seen")}),)
    seen_first = moment_column(_("First seen"), "created_at")
    empty_title = _("No agents yet")
    empty_hint = _("An agent is listed when an application first posts turns with its agent_id.")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[HubChangeList]:
        return AgentChangeList

    @column(_("End users"))
    def people(self, agent: Agent) -> int:
        return _counts_of(agent)["people"]

    @column(_("Sessions"))
    def sessions(self, agent: Agent) -> int:
        return _counts_of(agent)["sessions"]

    @column(_("Facts extracted"))
    def facts(self, agent: Agent) -> int:
        return _counts_of(agent)["facts"]

    @column(_("Pending"))
    def pending(self, agent: Agent) -> int:
        return _counts_of(agent)["pending"]

    @column(_("Rejected"))
    def rejected(self, agent: Agent) -> int:
        return _counts_of(agent)["rejected"]

    def save_model(self, request: HttpRequest, obj: Agent, form: Any, change: bool) -> None:
        saved = save_agent(agent=obj, actor=actor_of(request), now=timezone.now())
        if form.cleaned_data["guidance"] != saved.guidance:
            messages.warning(request, CUT_OUT.strip())


def _counts_of(agent: Agent) -> dict[str, int]:
    counts: dict[str, Any] = getattr(agent, "counts", {})
    return {name: counts.get(name, 0) for name in ("people", "sessions", "facts", "pending", "rejected")}


def _count(agents: list[Any]) -> None:
    """Give each its counts: of its sessions, and of the facts that extraction made of them."""
    named = {"tenant__in": {one.tenant_id for one in agents}}
    ids = {one.agent_id for one in agents}
    held = Session.objects.filter(**named, agent_id__in=ids).order_by().values("tenant", "agent_id")
    sessions = held.annotate(sessions=Count("pk"), people=Count("end_user", distinct=True))
    made = Fact.objects.filter(**named, extraction__session__agent_id__in=ids).order_by()
    facts = made.values("tenant", "extraction__session__agent_id").annotate(
        facts=Count("pk"),
        pending=Count("pk", filter=Q(status=Status.PENDING)),
        rejected=Count("pk", filter=Q(status=Status.REJECTED)),
    )
    counts: dict[tuple[Any, str], dict[str, Any]] = defaultdict(dict)
    for one in sessions:
        counts[one["tenant"], one["agent_id"]] |= dict(one)
    for other in facts:
        counts[other["tenant"], other["extraction__session__agent_id"]] |= dict(other)
    for agent in agents:
        agent.counts = counts[agent.tenant_id, agent.agent_id]
