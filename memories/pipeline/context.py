"""Contexts: one sequence of lines that does not depend on the budget, and its longest rendered prefix that fits."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import F

from memories import conf
from memories.llm import tokens
from memories.models import Category, EndUser, Fact, ProfileSection, Role, Section, Tenant, Turn
from memories.pipeline.lines import FRAME, HEADINGS, Line, fact_line, profile_line, render, turn_line

INCLUDABLE = ("profile", "facts", "unextracted")
DEFAULT_INCLUDE = frozenset({"profile", "facts"})
STANDING = (Category.PREFERENCE, Category.CONSTRAINT)
# The ranked facts stand between these two halves of the profile (rules.md, 9.3).
BEFORE_FACTS = (Section.WORK_CONTEXT, Section.PERSONAL_CONTEXT, Section.TOP_OF_MIND)
AFTER_FACTS = (Section.RECENT_MONTHS, Section.EARLIER_CONTEXT, Section.LONG_TERM_BACKGROUND)
UNEXTRACTED_TURNS = 50


@dataclass(frozen=True)
class ContextRequest:
    """What is asked for; `max_tokens` 0..8,000 bounds the rendered block, `facts_limit` the ranked facts."""

    user_id: str
    agent_id: str = ""
    max_tokens: int = 2000
    include: frozenset[str] = DEFAULT_INCLUDE
    tokenizer: str = "o200k_base"
    roles: tuple[str, ...] = ()
    facts_limit: int = 20


@dataclass(frozen=True)
class Context:
    """The rendered block with what it holds and what it had no room for."""

    memory: str
    token_count: int
    max_tokens: int
    tokenizer: str
    items: list[dict[str, Any]] = field(default_factory=list)
    dropped: list[dict[str, Any]] = field(default_factory=list)
    restricted: bool = False
    serve: bool = True

    @property
    def revision(self) -> str:
        """The same for the same answer: a hash of all that is in it."""
        return hashlib.sha256(json.dumps(asdict(self), default=str, sort_keys=True).encode()).hexdigest()[:32]


def build(*, tenant: Tenant, request: ContextRequest, now: datetime) -> Context:
    """The person's context within the budget; unknown, restricted and switched-off people get an empty one."""
    person = EndUser.objects.of(tenant).filter(external_id=request.user_id).first()
    if person is None:
        return _empty(request)
    if person.restricted_at:
        return _empty(request, restricted=True)
    if not (tenant.serve and person.serve):
        return _empty(request, serve=False)
    lines, beyond_limit = _sequence(tenant, person, request, now=now)
    return _fill(lines, beyond_limit, request)


def _empty(request: ContextRequest, *, restricted: bool = False, serve: bool = True) -> Context:
    return Context("", 0, request.max_tokens, request.tokenizer, restricted=restricted, serve=serve)


def _sequence(
    tenant: Tenant, person: EndUser, request: ContextRequest, *, now: datetime
) -> tuple[list[Line], list[Line]]:
    """All lines in the order in which they claim room, and the facts that the limit leaves out."""
    rules = conf.rules(tenant)
    profile = _profile(tenant, person) if "profile" in request.include else {}
    standing: list[Line] = []
    ranked: list[Line] = []
    if "facts" in request.include:
        standing, ranked = _facts(tenant, person, request, rules, now=now)
    turns = _unextracted(tenant, person) if "unextracted" in request.include else []
    before = [profile[section] for section in BEFORE_FACTS if section in profile]
    after = [profile[section] for section in AFTER_FACTS if section in profile]
    return [*standing, *before, *ranked[: request.facts_limit], *after, *turns], ranked[request.facts_limit :]


def _profile(tenant: Tenant, person: EndUser) -> dict[str, Line]:
    rows = ProfileSection.objects.filter(tenant=tenant, end_user=person).values_list("section", "pk", "summary")
    return {section: profile_line(row_id=pk, section=section, summary=summary) for section, pk, summary in rows}


def _facts(
    tenant: Tenant, person: EndUser, request: ContextRequest, rules: conf.Rules, *, now: datetime
) -> tuple[list[Line], list[Line]]:
    """Facts that are always served, then the others by confidence (ties: newest, then id)."""
    facts = Fact.objects.of(tenant, person).active(now=now).filter(confidence__gte=rules.served_confidence)
    facts = facts.visible_to(user_id=request.user_id, agent_id=request.agent_id, roles=list(request.roles))
    served = list(
        facts.only("category", "confidence", "content", "source_error", "decay_score", "created_at").order_by(
            "-confidence", "-created_at", "-id"
        )
    )
    corrections = sorted(
        (fact for fact in served if fact.category == Category.CORRECTION),
        key=lambda fact: fact.created_at,
        reverse=True,
    )
    instructions = [fact for fact in served if fact.category in STANDING]
    first = corrections[: rules.context_corrections] + instructions[: rules.context_standing]
    chosen = {fact.pk for fact in first}
    ordered = first + [fact for fact in served if fact.pk not in chosen]
    lines = [fact_line(fact, place=place) for place, fact in enumerate(ordered)]
    return lines[: len(first)], lines[len(first) :]


def _unextracted(tenant: Tenant, person: EndUser) -> list[Line]:
    """The newest turns beyond their session's watermark; the newest claim room first, the oldest is shown first."""
    turns = Turn.objects.filter(tenant=tenant, end_user=person, number__gt=F("session__queue__extracted_number"))
    turns = (
        turns.exclude(content="")
        .exclude(metadata__contains={"hide_from_ui": True})
        .filter(role__in=[Role.USER, Role.ASSISTANT])
    )
    newest = turns.order_by("-created_at", "session", "-number")[:UNEXTRACTED_TURNS]
    return [turn_line(turn, place=-place) for place, turn in enumerate(newest)]


def _fill(lines: Sequence[Line], beyond_limit: Sequence[Line], request: ContextRequest) -> Context:
    """The longest prefix whose rendered text fits; the first line that does not fit ends it."""
    costs = _affordable(lines, request)
    fitting, left_out = lines[: len(costs)], lines[len(costs) :]
    memory = render(fitting)
    return Context(
        memory=memory,
        token_count=tokens.count(memory, request.tokenizer),
        max_tokens=request.max_tokens,
        tokenizer=request.tokenizer,
        items=[_item(line, cost) for line, cost in zip(fitting, costs, strict=True)],
        dropped=[_dropped(line, "budget") for line in left_out] + [_dropped(line, "limit") for line in beyond_limit],
    )


def _affordable(lines: Sequence[Line], request: ContextRequest) -> list[int]:
    """Tokens of each line that fits, with its line break.

    In both encodings a token never goes on behind a line break that `-`, `<` or a letter follows, so frame,
    headings and lines add up to the count of the rendered text. Lines beyond the budget are not even counted.
    """
    costs: list[int] = []
    shown: set[int] = set()
    left = request.max_tokens - tokens.count(FRAME, request.tokenizer)
    for line in lines:
        cost = tokens.count(line.text + "\n", request.tokenizer)
        if line.heading not in shown:
            left -= tokens.count(HEADINGS[line.heading] + "\n", request.tokenizer)
            shown.add(line.heading)
        left -= cost
        if left < 0:
            break
        costs.append(cost)
    return costs


def _item(line: Line, count: int) -> dict[str, Any]:
    return {
        "kind": line.kind,
        "id": str(line.id),
        "score": line.score,
        "score_parts": line.score_parts or {},
        "tokens": count,
    }


def _dropped(line: Line, reason: str) -> dict[str, Any]:
    return {"kind": line.kind, "id": str(line.id), "reason": reason}
