"""Contexts: one sequence of lines that does not depend on the budget, and its longest rendered prefix that fits."""

import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import F

from memories import conf
from memories.llm import tokens
from memories.models import EndUser, Role, Section, Tenant, Turn
from memories.pipeline import recalled, told_facts
from memories.pipeline.asking import Question, ask
from memories.pipeline.lines import FRAME, HEADINGS, Line, profile_line, render, turn_line
from memories.pipeline.served_facts import Asker
from memories.pipeline.serving import Audience, audience
from memories.pipeline.told_facts import Told

INCLUDABLE = ("profile", "facts", "turns", "unextracted")
DEFAULT_INCLUDE = frozenset({"profile", "facts"})
# A question is answered with what was said about it, too.
DEFAULT_WITH_QUERY = DEFAULT_INCLUDE | {"turns"}
# The ranked facts stand between these two halves of the profile (rules.md, 9.3).
BEFORE_FACTS = (Section.WORK_CONTEXT, Section.PERSONAL_CONTEXT, Section.TOP_OF_MIND)
AFTER_FACTS = (Section.RECENT_MONTHS, Section.EARLIER_CONTEXT, Section.LONG_TERM_BACKGROUND)
UNEXTRACTED_TURNS = 50


@dataclass(frozen=True)
class ContextRequest:
    """What is asked for; `max_tokens` 0..8,000 bounds the rendered block, `facts_limit` the ranked facts.

    `query`: what the agent is about to answer; turns are recalled for a query alone.
    """

    user_id: str
    agent_id: str = ""
    query: str = ""
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
        return hashlib.sha256(json.dumps(vars(self), default=str, sort_keys=True).encode()).hexdigest()[:32]


def build(*, tenant: Tenant, request: ContextRequest, now: datetime) -> Context:
    """The person's context within the budget; unknown, restricted and switched-off people get an empty one."""
    meant = audience(tenant=tenant, user_id=request.user_id, with_profile="profile" in request.include)
    if meant.person is None:
        return Context("", 0, request.max_tokens, request.tokenizer, restricted=meant.restricted, serve=meant.serve)
    lines, beyond_limit = _sequence(meant.person, _profile(meant), request, now=now)
    return _fill(lines, beyond_limit, request)


def _sequence(
    person: EndUser, profile: Mapping[str, Line], request: ContextRequest, *, now: datetime
) -> tuple[list[Line], list[uuid.UUID]]:
    """All lines in the order in which they claim room, and the facts that the limit leaves out."""
    question = ask(request.query) if request.query else None
    told = _facts(person, request, question, now=now) if "facts" in request.include else Told()
    before = [profile[section] for section in BEFORE_FACTS if section in profile]
    after = [profile[section] for section in AFTER_FACTS if section in profile]
    turns = _turns(person, request, question, told.texts)
    return [*told.standing, *before, *told.ranked, *after, *turns], told.beyond


def _profile(meant: Audience) -> dict[str, Line]:
    found = meant.profile
    return {section: profile_line(row_id=pk, section=section, summary=summary) for section, pk, summary in found}


def _facts(person: EndUser, request: ContextRequest, question: Question | None, *, now: datetime) -> Told:
    rules = conf.rules(person.tenant)
    asker = Asker(request.user_id, request.agent_id, request.roles)
    return told_facts.tell(person, asker, question, limit=request.facts_limit, rules=rules, now=now)


def _turns(person: EndUser, request: ContextRequest, question: Question | None, said: Sequence[str]) -> list[Line]:
    """Turns that extraction has not read, then those that are recalled for the question, none twice."""
    unread = _unextracted(person) if "unextracted" in request.include else []
    if question is None or "turns" not in request.include:
        return unread
    shown = {line.id for line in unread}
    return unread + [line for line in recalled.lines(person, question, said=said) if line.id not in shown]


def _unextracted(person: EndUser) -> list[Line]:
    """The newest turns beyond their session's watermark; the newest claim room first, the oldest is shown first."""
    turns = Turn.objects.filter(tenant=person.tenant, end_user=person, number__gt=F("session__queue__extracted_number"))
    turns = (
        turns.exclude(content="")
        .exclude(metadata__contains={"hide_from_ui": True})
        .filter(role__in=[Role.USER, Role.ASSISTANT])
    )
    newest = turns.order_by("-created_at", "session", "-number")[:UNEXTRACTED_TURNS]
    return [turn_line(turn) for turn in newest]


def _fill(lines: Sequence[Line], beyond_limit: Sequence[uuid.UUID], request: ContextRequest) -> Context:
    """The longest prefix whose rendered text fits; the first line that does not fit ends it."""
    costs, spent = _affordable(lines, request)
    fitting, left_out = lines[: len(costs)], lines[len(costs) :]
    return Context(
        memory=render(fitting),
        token_count=spent,
        max_tokens=request.max_tokens,
        tokenizer=request.tokenizer,
        items=[_item(line, cost) for line, cost in zip(fitting, costs, strict=True)],
        dropped=[_dropped(line.kind, line.id, "budget") for line in left_out]
        + [_dropped("fact", fact, "limit") for fact in beyond_limit],
    )


def _affordable(lines: Sequence[Line], request: ContextRequest) -> tuple[list[int], int]:
    """Tokens of each line that fits, with its line break; and of the rendered text, 0 for none.

    In both encodings a token never goes on behind a line break that `-`, `<` or a letter follows, so frame,
    headings and lines add up to the count of the rendered text. Lines beyond the budget are not even counted.
    """
    costs: list[int] = []
    shown: set[int] = set()
    spent, total = 0, tokens.count_once(FRAME, request.tokenizer)
    for line in lines:
        cost = tokens.count_once(line.text + "\n", request.tokenizer)
        if line.heading not in shown:
            total += tokens.count_once(HEADINGS[line.heading] + "\n", request.tokenizer)
            shown.add(line.heading)
        total += cost
        if total > request.max_tokens:
            break
        spent = total
        costs.append(cost)
    return costs, spent


def _item(line: Line, count: int) -> dict[str, Any]:
    return {
        "kind": line.kind,
        "id": str(line.id),
        "score": line.score,
        "score_parts": line.score_parts or {},
        "tokens": count,
    }


def _dropped(kind: str, row_id: uuid.UUID, reason: str) -> dict[str, Any]:
    return {"kind": kind, "id": str(row_id), "reason": reason}
