"""What an agent sees now: the live context of a person, with or without a query. Nothing is written."""

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminIntegerFieldWidget, UnfoldAdminSelectWidget

from memories.admin.people.views import MEMORY, PersonViews
from memories.admin.recall.memories import RecalledMemory, memories_of
from memories.admin.site.fields import TextField
from memories.admin.site.page import address
from memories.context import context
from memories.context.context import DEFAULT_INCLUDE, Context, ContextRequest
from memories.models import EndUser, Fact

SESSIONS_SHOWN = 25
AGENTS_SHOWN = 100
MOST_TOKENS = 8_000
LONGEST_QUERY = 4_000
# Of hundreds of facts beyond the budget, the first are enough to see why.
LEFT_OUT_SHOWN = 25


@dataclass(frozen=True)
class LiveContext:
    """The context as the agent gets it, the memories in it, and the first of those that it leaves out."""

    context: Context
    included: list[RecalledMemory]
    left_out: list[RecalledMemory]

    @property
    def unshown(self) -> int:
        return len(self.context.dropped) - len(self.left_out)

    @property
    def full(self) -> float:
        """The share of the budget that is used, 0..1."""
        return self.context.token_count / max(1, self.context.max_tokens)


class TokensField(forms.IntegerField):
    """The budget of a context."""

    def __init__(self) -> None:
        super().__init__(
            label=gettext_lazy("Tokens"),
            min_value=0,
            max_value=MOST_TOKENS,
            initial=ContextRequest.max_tokens,
            widget=UnfoldAdminIntegerFieldWidget,
        )


class AskForm(forms.Form):
    """The query, the agent that asks, and perhaps one of its conversations."""

    query = TextField(
        label=gettext_lazy("User's question"),
        required=False,
        max_length=LONGEST_QUERY,
        rows=2,
        help_text=gettext_lazy("Leave empty to see the default context."),
    )
    agent = forms.ChoiceField(label=gettext_lazy("Agent"), required=False, widget=UnfoldAdminSelectWidget)
    session = forms.ChoiceField(
        label=gettext_lazy("Conversation"),
        required=False,
        widget=UnfoldAdminSelectWidget,
        help_text=gettext_lazy("Messages already in this conversation aren't repeated. Its agent is used."),
    )
    max_tokens = TokensField()

    def __init__(self, data: Any = None, *, person: EndUser) -> None:
        super().__init__(data, auto_id="ask_%s")
        self.person = person
        self._sessions = {str(one.pk): one for one in person.sessions.order_by("-last_turn_at")[:SESSIONS_SHOWN]}
        sessions = [
            (pk, " · ".join(filter(None, (one.agent_id, one.external_id)))) for pk, one in self._sessions.items()
        ]
        agents = [(agent, agent) for agent in agents_of(person)]
        self.fields["agent"].choices = [("", _("No agent in particular")), *agents]  # type: ignore[attr-defined]
        self.fields["session"].choices = [("", _("None")), *sessions]  # type: ignore[attr-defined]

    def request(self) -> ContextRequest:
        data = self.cleaned_data
        session = self._sessions.get(data["session"])
        return ContextRequest(
            user_id=self.person.external_id,
            agent_id=session.agent_id if session else data["agent"],
            session_id=session.external_id if session else "",
            query=data["query"],
            max_tokens=data["max_tokens"],
            include=DEFAULT_INCLUDE | {"working_memory"} if session else DEFAULT_INCLUDE,
        )


class LiveContextViews(PersonViews):
    """A page of people with the live context of each."""

    @address("<uuid:object_id>/seen/", "seen")
    def seen_view(self, request: HttpRequest, object_id: uuid.UUID) -> HttpResponse:
        """The context without a query; posted, with one. A query is never part of an address."""
        person = self.find(request, str(object_id), may_change=False)
        if not request.user.has_perms(MEMORY):
            raise PermissionDenied
        form = AskForm(request.POST if request.method == "POST" else None, person=person)
        shown: dict[str, Any] = {"tab": "seen", "ask": form}
        if not form.is_bound:
            shown["live"] = live_context(person, ContextRequest(user_id=person.external_id), now=timezone.now())
        elif form.is_valid():
            shown["live"] = live_context(person, form.request(), now=timezone.now())
        is_fragment = request.headers.get("X-Fragment") == "seen"
        template = "memories/seen_result.html" if is_fragment else "memories/person_seen.html"
        return self.render_tab(request, person, template, shown, status=200 if "live" in shown else 400)


def live_context(person: EndUser, request: ContextRequest, *, now: datetime) -> LiveContext:
    """What the agent would get now. It does not count as a recall."""
    built = context.build(tenant=person.tenant, request=request, now=now, noted=False)
    memories = memories_of(person, [*built.items, *built.dropped[:LEFT_OUT_SHOWN]])
    return LiveContext(built, memories[: len(built.items)], memories[len(built.items) :])


def next_context(fact: Fact) -> str:
    """What the fact's agent, or any, is served of its person next, without a query. It does not count as a recall."""
    asked = ContextRequest(user_id=fact.end_user.external_id, agent_id=fact.agent_id)
    return context.build(tenant=fact.tenant, request=asked, now=timezone.now(), noted=False).memory


def agents_of(person: EndUser) -> list[str]:
    """The agents that the person has talked to, by name."""
    named = person.sessions.exclude(agent_id="").order_by("agent_id").values_list("agent_id", flat=True)
    return list(named.distinct()[:AGENTS_SHOWN])
