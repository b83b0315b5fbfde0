"""What an agent sees now: the live context of a person, with a question or without one. A look writes nothing."""

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminIntegerFieldWidget, UnfoldAdminSelectWidget

from memories.admin.fields import TextField
from memories.admin.person_views import MEMORY, PersonViews
from memories.admin.told import Memory, memories_of
from memories.models import EndUser, Session
from memories.pipeline import context
from memories.pipeline.context import DEFAULT_INCLUDE, DEFAULT_WITH_QUERY, Context, ContextRequest

SESSIONS_SHOWN = 25
AGENTS_SHOWN = 100
MOST_TOKENS = 8_000
LONGEST_QUERY = 4_000
# Of hundreds of facts that have no place, the first are enough to see why.
LEFT_OUT_SHOWN = 25


@dataclass(frozen=True)
class Look:
    """The context as the agent gets it, what it tells, and the first of what it leaves out."""

    context: Context
    told: list[Memory]
    left_out: list[Memory]

    @property
    def unshown(self) -> int:
        """How many more it leaves out."""
        return len(self.context.dropped) - len(self.left_out)

    @property
    def full(self) -> float:
        """How much of the budget is taken, 0..1."""
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
    """Who asks, and what: an agent of the person's, perhaps in one of its conversations."""

    query = TextField(
        label=gettext_lazy("What the agent is about to answer"),
        required=False,
        max_length=LONGEST_QUERY,
        rows=2,
        help_text=gettext_lazy("Empty: what is told before anything is asked."),
    )
    agent = forms.ChoiceField(label=gettext_lazy("Agent"), required=False, widget=UnfoldAdminSelectWidget)
    session = forms.ChoiceField(
        label=gettext_lazy("Conversation"),
        required=False,
        widget=UnfoldAdminSelectWidget,
        help_text=gettext_lazy("What its window shows is told nowhere else. It brings its own agent."),
    )
    max_tokens = TokensField()

    def __init__(self, data: Any = None, *, person: EndUser) -> None:
        super().__init__(data, auto_id="ask_%s")
        self.person = person
        self._talks = {str(talk.pk): talk for talk in person.sessions.order_by("-last_turn_at")[:SESSIONS_SHOWN]}
        talks = [(key, _named(talk)) for key, talk in self._talks.items()]
        self._offer("agent", [("", _("No agent in particular")), *((agent, agent) for agent in agents_of(person))])
        self._offer("session", [("", _("None")), *talks])

    def _offer(self, name: str, choices: list[tuple[str, str]]) -> None:
        self.fields[name].choices = choices  # type: ignore[attr-defined]

    def request(self) -> ContextRequest:
        """What the valid form asks for."""
        given = self.cleaned_data
        talk = self._talks.get(given["session"])
        include = DEFAULT_WITH_QUERY if given["query"] else DEFAULT_INCLUDE
        return ContextRequest(
            user_id=self.person.external_id,
            agent_id=talk.agent_id if talk else given["agent"],
            session_id=talk.external_id if talk else "",
            query=given["query"],
            max_tokens=given["max_tokens"],
            include=include | {"working_memory"} if talk else include,
        )


class SeenPages(PersonViews):
    """A page of people with the live context of each."""

    def seen_view(self, request: HttpRequest, object_id: uuid.UUID) -> HttpResponse:
        """The context without a question; posted, with one. Words of people stay out of the address."""
        person = self.find(request, str(object_id), may_change=False)
        if not request.user.has_perms(MEMORY):
            raise PermissionDenied
        form = AskForm(request.POST if request.method == "POST" else None, person=person)
        shown: dict[str, Any] = {"tab": "seen", "ask": form}
        if not form.is_bound:
            plain = ContextRequest(user_id=person.external_id)
            shown["look"] = look(person, plain, now=timezone.now())
        elif form.is_valid():
            shown["look"] = look(person, form.request(), now=timezone.now())
        alone = request.headers.get("X-Fragment") == "seen"
        template = "memories/seen_result.html" if alone else "memories/person_seen.html"
        return self.framed(request, person, template, shown, status=200 if "look" in shown else 400)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.seen_view)
        return [path("<uuid:object_id>/seen/", view, name="memories_enduser_seen"), *super().get_urls()]


def look(person: EndUser, request: ContextRequest, *, now: datetime) -> Look:
    """What the agent would get now; nothing is noted as recalled."""
    built = context.build(tenant=person.tenant, request=request, now=now, noted=False)
    named = memories_of(person, [*built.items, *built.dropped[:LEFT_OUT_SHOWN]])
    return Look(built, named[: len(built.items)], named[len(built.items) :])


def agents_of(person: EndUser) -> list[str]:
    """The agents that the person has talked to, in the order of their names."""
    named = person.sessions.exclude(agent_id="").order_by("agent_id").values_list("agent_id", flat=True)
    return list(named.distinct()[:AGENTS_SHOWN])


def _named(talk: Session) -> str:
    return f"{talk.agent_id} · {talk.external_id}" if talk.agent_id else talk.external_id
