"""What an agent sees, now or at a moment: the context of a person, with or without a query. Nothing is written.

At a moment, it is what today's memories say held then. What was served then is in the log of contexts, and stands
beside it.
"""

import uuid
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminIntegerFieldWidget, UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from memories.admin.graph.as_of import AS_OF, end_of, parse_day
from memories.admin.people.views import MEMORY, PersonViews
from memories.admin.recall import logged
from memories.admin.recall.memories import RecalledMemory, memories_of
from memories.admin.site.fields import TextField
from memories.admin.site.page import address
from memories.context import context
from memories.context.context import AFTER_FACTS, BEFORE_FACTS, Context, ContextRequest
from memories.context.parts import DEFAULT_INCLUDE
from memories.models import EndUser, Fact, ProfileRevision

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


class _MomentInput(UnfoldAdminTextInputWidget):  # type: ignore[misc]  # Unfold has no types
    """The browser's own field of day and time."""

    input_type = "datetime-local"

    def format_value(self, value: Any) -> Any:
        if isinstance(value, datetime):
            return timezone.localtime(value).strftime("%Y-%m-%dT%H:%M")
        # A day that an address names is its last minute.
        return f"{value}T23:59" if value and parse_day(str(value)) else value


class MomentField(forms.DateTimeField):
    """A day and time in the operator's time zone; a day alone is its last moment."""

    widget = _MomentInput

    def to_python(self, value: Any) -> Any:
        text = str(value or "").strip()
        if day := parse_day(text):
            return end_of(day)
        found = super().to_python(text)
        # The first and the last year have moments that are none in every time zone.
        if found and not date.min.year < found.year < date.max.year:
            raise forms.ValidationError(self.error_messages["invalid"], code="invalid")
        return found


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
    # A moment such as 2026-11-26T14:30, or a day; also in an address.
    as_of = MomentField(
        label=gettext_lazy("At"),
        required=False,
        help_text=gettext_lazy("Empty: now. A day and time: what held then."),
    )

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

    def clean_as_of(self) -> datetime | None:
        at: datetime | None = self.cleaned_data["as_of"]
        if at and at > timezone.now():
            raise forms.ValidationError(_("This time is yet to come."))
        return at

    def request(self) -> ContextRequest:
        data = self.cleaned_data
        session = self._sessions.get(data["session"])
        return ContextRequest(
            user_id=self.person.external_id,
            agent_id=session.agent_id if session else data["agent"],
            session_id=session.external_id if session else "",
            query=data["query"],
            max_tokens=data["max_tokens"],
            # The window of a conversation is that of now.
            include=DEFAULT_INCLUDE | {"working_memory"} if session and not data["as_of"] else DEFAULT_INCLUDE,
            as_of=data["as_of"],
        )


class LiveContextViews(PersonViews):
    """A page of people with the live context of each."""

    @address("<uuid:object_id>/seen/", "seen")
    def seen_view(self, request: HttpRequest, object_id: uuid.UUID) -> HttpResponse:
        """The context without a query, now or at `?as_of=`; posted, with one. A query is never part of an address."""
        person = self.find(request, str(object_id), may_change=False)
        if not request.user.has_perms(MEMORY):
            raise PermissionDenied
        posted: Any = request.POST if request.method == "POST" else None
        if posted is None and AS_OF in request.GET:
            posted = {"max_tokens": str(ContextRequest.max_tokens), AS_OF: request.GET[AS_OF]}
        form = AskForm(posted, person=person)
        shown: dict[str, Any] = {"tab": "seen", "ask": form}
        asked = ContextRequest(user_id=person.external_id)
        if not form.is_bound or form.is_valid():
            asked = form.request() if form.is_bound else asked
            shown["live"] = live_context(person, asked, now=timezone.now())
        if "live" in shown and asked.as_of:
            shown |= _then(person, request.user, asked, asked.as_of)
        is_fragment = request.headers.get("X-Fragment") == "seen"
        template = "memories/seen_result.html" if is_fragment else "memories/person_seen.html"
        return self.render_tab(request, person, template, shown, status=200 if "live" in shown else 400)


def live_context(person: EndUser, request: ContextRequest, *, now: datetime) -> LiveContext:
    """What the agent would get now. It does not count as a recall."""
    built = context.build(tenant=person.tenant, request=request, now=now, noted=False)
    memories = memories_of(person, [*built.items, *built.dropped[:LEFT_OUT_SHOWN]])
    return LiveContext(built, memories[: len(built.items)], memories[len(built.items) :])


def _then(person: EndUser, operator: Any, request: ContextRequest, at: datetime) -> dict[str, Any]:
    """What the hub kept of the moment: the profile as it stood, and the last context that was served up to it."""
    rows = ProfileRevision.objects.filter(end_user=person, agent_id__in={"", request.agent_id}, created_at__lte=at)
    rows = rows.filter(version__isnull=False).order_by("agent_id", "section", "-created_at", "-pk")
    sections = [row for row in rows.distinct("agent_id", "section") if row.after]
    # In the order of a profile.
    order: dict[str, int] = {section: place for place, section in enumerate((*BEFORE_FACTS, *AFTER_FACTS))}
    sections.sort(key=lambda row: (row.agent_id, order.get(row.section, 0)))
    shown = {"seen_at": at, "sections": sections, "may_see_log": False}
    if operator.has_perm(logged.VIEW):
        last = logged.last_up_to(person, at, agent_id=request.agent_id)
        shown |= {"may_see_log": True, "logged": last, "served": logged.served(last) if last else []}
    return shown


def next_context(fact: Fact) -> str:
    """What the fact's agent, or any, is served of its person next, without a query. It does not count as a recall."""
    asked = ContextRequest(user_id=fact.end_user.external_id, agent_id=fact.agent_id)
    return context.build(tenant=fact.tenant, request=asked, now=timezone.now(), noted=False).memory


def agents_of(person: EndUser) -> list[str]:
    """The agents that the person has talked to, by name."""
    named = person.sessions.exclude(agent_id="").order_by("agent_id").values_list("agent_id", flat=True)
    return list(named.distinct()[:AGENTS_SHOWN])
