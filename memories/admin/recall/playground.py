"""Why recalled? A playground: a person, an agent and a query → the ranking of each kind, and the context beside it.

Nothing is written. Facts can be corrected from here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import BooleanField, ExpressionWrapper
from django.db.models.functions import JSONObject
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memories import conf
from memories.admin.access.tenant_scope import tenants_of
from memories.admin.facts.forms import CorrectForm, LockForm, PinForm, UnlockForm, UnpinForm
from memories.admin.people.finding import find_person
from memories.admin.people.views import MEMORY, person_of_link
from memories.admin.recall.live_context import (
    LONGEST_QUERY,
    MOST_TOKENS,
    LiveContext,
    TokensField,
    live_context,
)
from memories.admin.recall.logged import compare, find_logged, newest_of
from memories.admin.recall.memories import RecalledMemory, memory_of, rows_of
from memories.admin.site.fields import AgentField, PersonField, TenantField, TextField
from memories.admin.site.page import VerbForm, render_page, require, url_of
from memories.context import recalled_turns
from memories.context.context import ContextRequest
from memories.models import EndUser, Fact, LoggedContext, Status, Turn
from memories.models.ids import parse_uuid
from memories.models.memories.visibility import Viewer, latest, served_facts
from memories.retrieval import fact_index, fact_search
from memories.retrieval import search as retrieval
from memories.retrieval.memory_index import today
from memories.retrieval.prepared_query import PreparedQuery
from memories.retrieval.search import (
    EPISODE,
    FACT,
    GROUP_FACT,
    TURN,
    Explanation,
    Finding,
    Level,
    SearchFilters,
    SearchRequest,
)
from memories.scoring.constants import DEFAULT
from memories.scoring.ranking import Query, query_texts

MAY: tuple[str, ...] = ("memories.view_enduser", *MEMORY)
BEST_FACTS = 20
# Of episodes and of turns.
BEST_OTHERS = 10
MOST_UNSERVED = 8
# Part of a score → its label, and its weight.
PARTS: Mapping[str, tuple[Promise, float]] = {
    "vector": (_("Meaning"), 1.0),
    "lexical": (_("Words"), 1.0),
    "context": (_("Nearby messages"), 1.0),
    "confidence": (_("Confidence"), DEFAULT.confidence),
    "decay": (_("Strength"), DEFAULT.decay),
    "recency": (_("Freshness"), DEFAULT.recency),
    "dates": (_("Dates"), 1.0),
}
LEVELS: Mapping[Level, Promise] = {Level.STRONG: _("strong"), Level.WEAK: _("weak"), Level.NONE: _("none")}
KINDS: Mapping[str, Promise] = {FACT: _("Facts"), EPISODE: _("Episodes"), TURN: _("Turns")}


class RecallForm(forms.Form):
    """The person, the agent and the query. All of it is posted: none of it belongs into an address."""

    tenant = TenantField(preselected=True)
    user_id = PersonField(label=_("End user"), max_length=255, help_text=_("The external id, or the name."))
    agent = AgentField(label=_("Agent"), required=False, max_length=255)
    query = TextField(label=_("User's question"), max_length=LONGEST_QUERY, rows=2)
    max_tokens = TokensField()
    # The result offers those of the person.
    context = forms.UUIDField(required=False)

    def __init__(
        self, data: Any = None, *, operator: Any, person: EndUser | None = None, logged: LoggedContext | None = None
    ) -> None:
        super().__init__(data, auto_id="recall_%s")
        self.operator, self.person, self.logged = operator, person, logged
        self.fields["tenant"].queryset = tenants_of(operator)  # type: ignore[attr-defined]
        if person:
            self.initial = {"tenant": person.tenant_id, "user_id": person.external_id}
        if logged:
            asked = {"agent": logged.agent_id, "query": logged.query, "max_tokens": min(logged.max_tokens, MOST_TOKENS)}
            self.initial = {**self.initial, **asked}

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        if "tenant" in data and "user_id" in data:
            self.person, why_not = find_person(data["tenant"], data["user_id"])
            if self.person is None:
                self.add_error("user_id", why_not)
            else:
                data["user_id"] = self.person.external_id
                # Chosen for the person who was named before, it says nothing of this one.
                found = find_logged(data.get("context"), self.operator)
                is_theirs = found and self.person.pk in (found.end_user_id, found.end_user.merged_into_id)
                self.logged = found if is_theirs else None
        return data

    def request(self) -> ContextRequest:
        data = self.cleaned_data
        return ContextRequest(
            user_id=data["user_id"],
            agent_id=data["agent"].lower(),
            query=data["query"],
            max_tokens=data["max_tokens"],
        )


@dataclass(frozen=True)
class ScorePart:
    """What a part adds to a score, and its share of the bar (0..1 of the best score; 0 if it takes something away)."""

    name: str
    label: Promise
    adds: float
    share: float

    @property
    def width(self) -> str:
        """For a style sheet: never a decimal comma."""
        return f"{self.share * 100:.2f}%"


@dataclass(frozen=True)
class RankedMemory:
    """A search hit. `outcome` is its item in the context, included or dropped; empty if the context ranks less."""

    memory: RecalledMemory
    parts: list[ScorePart]
    outcome: Mapping[str, Any]
    evidence: Promise
    reranked: float | None = None
    verbs: dict[str, VerbForm] = field(default_factory=dict)


Ranking = list[tuple[Promise, int, list[RankedMemory]]]


def urls() -> list[URLPattern]:
    return [path("recalled/", admin.site.admin_view(recalled), name="recalled")]


def recalled(request: HttpRequest) -> HttpResponse:
    """The form, filled in for the person that a link names; posted, with the answer."""
    require(request, *MAY)
    if request.method != "POST":
        logged = find_logged(parse_uuid(request.GET.get("context", "")), request.user)
        person = (logged.end_user.merged_into or logged.end_user) if logged else person_of_link(request)
        return _page(request, RecallForm(operator=request.user, person=person, logged=logged))
    form = RecallForm(request.POST, operator=request.user)
    if not form.is_valid() or form.person is None:
        return _page(request, form, status=400)
    now, asked = timezone.now(), form.request()
    live = live_context(form.person, asked, now=now)
    may_change = request.user.has_perm("memories.change_fact")
    ranking, explanation = rank(form.person, asked, live, may_change=may_change, now=now)
    near = unserved(form.person, asked, live, now=now)
    compared = compare(form.logged, live.included) if form.logged else None
    return _page(request, form, live=live, ranking=ranking, explanation=explanation, unserved=near, compared=compared)


def _page(request: HttpRequest, form: RecallForm, *, status: int = 200, **answer: Any) -> TemplateResponse:
    contexts = newest_of(form.person, request.user) if form.person else []
    if form.logged and form.logged.pk not in {one.pk for one in contexts}:
        contexts.append(form.logged)
    shown = {
        "title": gettext("Why recalled?"),
        "form": form,
        "person": form.person,
        "contexts": contexts,
        "logged": form.logged,
        **answer,
    }
    is_fragment = request.headers.get("X-Fragment") == "recalled"
    template = "memories/recalled_result.html" if is_fragment else "memories/recalled.html"
    return render_page(request, template, status=status, **shown)


def rank(
    person: EndUser, asked: ContextRequest, live: LiveContext, *, may_change: bool, now: datetime
) -> tuple[Ranking, Explanation | None]:
    """The best of each kind as a search ranks them, with how many there were, and how the query was read.

    Of facts, the agent of the request sees its own; episodes and turns are recalled from conversations with any agent.
    """
    results = []
    for kinds, agent_id in (((FACT,), asked.agent_id or None), ((EPISODE, TURN), None)):
        filters = SearchFilters(agent_id=agent_id)
        search = SearchRequest(asked.user_id, asked.query, kinds, limit=BEST_FACTS, filters=filters, explain=True)
        results.append(retrieval.search(tenant=person.tenant, search=search, now=now, noted=False))
    found = [finding for result in results for finding in result.results]
    rows = rows_of(person, ((finding.kind, finding.id) for finding in found))
    outcomes = {(item["kind"], item["id"]): item for item in (*live.context.items, *live.context.dropped)}
    is_full = any(item["reason"] == "budget" for item in live.context.dropped)
    best = max((finding.score for finding in found), default=0.0)
    hits: dict[str, list[RankedMemory]] = {kind: [] for kind in KINDS}
    for finding in found:
        row = rows.get((finding.kind, finding.id))
        # A context does not name the turns that it did not come to.
        waits = is_full and isinstance(row, Turn) and recalled_turns.may_be_recalled(row)
        is_far = finding.evidence_level != Level.STRONG
        reason = "outdated" if finding.outdated_since else "budget" if waits else "unrelated" if is_far else ""
        hits[FACT if finding.kind == GROUP_FACT else finding.kind].append(
            RankedMemory(
                memory_of(person, finding.kind, finding.id, row, score=finding.score),
                parts_of(finding, best),
                outcomes.get((finding.kind, str(finding.id)), {"reason": reason} if reason else {}),
                LEVELS[finding.evidence_level],
                finding.score_parts.get("rerank"),
                _verbs(row) if may_change and finding.kind == FACT and row is not None else {},
            )
        )
    explained = [result.explanation for result in results if result.explanation]
    searched = {kind: count for explanation in explained for kind, count in explanation.searched.items()}
    ranking = [
        (label, searched.get(kind, 0), hits[kind][: BEST_FACTS if kind == FACT else BEST_OTHERS])
        for kind, label in KINDS.items()
    ]
    return ranking, explained[0] if explained else None


def parts_of(found: Finding, best: float) -> list[ScorePart]:
    """Those that add anything or take it away, in the order of the bar."""
    weighted = [(name, label, found.score_parts.get(name, 0.0) * weight) for name, (label, weight) in PARTS.items()]
    scale = best if best > 0 else float("inf")
    return [ScorePart(name, label, adds, max(0.0, adds / scale)) for name, label, adds in weighted if adds]


def _verbs(fact: Fact) -> dict[str, VerbForm]:
    """Forms of the fact's page, with ids that are unique among those of other facts."""
    verbs: dict[str, VerbForm] = {
        **({"unpin": UnpinForm(record=fact)} if fact.pinned else {"pin": PinForm(record=fact)}),
        **({"unlock": UnlockForm(record=fact)} if fact.locked else {"lock": LockForm(record=fact)}),
        "correct": CorrectForm(record=fact),
    }
    for name, form in verbs.items():
        form.auto_id = f"{name}_{fact.pk}_%s"
    return verbs


def unserved(person: EndUser, asked: ContextRequest, live: LiveContext, *, now: datetime) -> list[RecalledMemory]:
    """Facts that share words with the query and are not served, the nearest first, each with the reason.

    None where nothing at all of the person is served.
    """
    if live.context.restricted or not live.context.serve:
        return []
    served = [item["id"] for item in (*live.context.items, *live.context.dropped) if item["kind"] == "fact"]
    others = fact_search.read_features(Fact.objects.of(person.tenant, person).exclude(pk__in=served))
    rules = conf.rules(person.tenant)
    # Without an embedding space and a stamp: the index that serves agents stays in the cache as it is.
    query = PreparedQuery(
        asked.query, [Query.of(text, asked=person.local(now)) for text in query_texts(asked.query)], None
    )
    store = fact_index.build(person, others, None, stamp=None, rules=rules, day=today(now))
    ranked = fact_search.rank(store, query)
    near = [others[place].id for place in ranked.best() if ranked.ranking.scores.lexical[place] > 0][:MOST_UNSERVED]
    viewer = Viewer(asked.agent_id, asked.roles)
    conditions = served_facts(viewer, person_id=person.pk, least_confidence=rules.served_confidence, now=now)
    if viewer.agent_id:
        shown = Fact.objects.of(person.tenant, person).filter(*conditions.values())
        conditions["latest"] = latest(viewer.agent_id, shown)
    holding = {name: ExpressionWrapper(one, BooleanField()) for name, one in conditions.items()}
    rows = Fact.objects.annotate(holding=JSONObject(**holding)).in_bulk(near)
    return [
        RecalledMemory("fact", pk, fact, fact.content, url_of(fact), reason=_why_unserved(fact))
        for pk in near
        if (fact := rows.get(pk))
    ]


def _why_unserved(fact: Any) -> str:
    """In words, the first condition that does not hold."""
    reasons = {
        "status": gettext("waits for review") if fact.status == Status.PENDING else fact.get_status_display(),
        "expiry": gettext("expired"),
        "confidence": gettext("below the confidence for serving"),
        "agent": gettext("private to the agent %(agent)s") % {"agent": fact.agent_id},
        "users": gettext("for other end users only"),
        "roles": gettext("for other roles only"),
        "latest": gettext("another value was said later"),
    }
    failing = (reason for name, reason in reasons.items() if not fact.holding.get(name, True))
    return next(failing, gettext("changed in the meantime"))
