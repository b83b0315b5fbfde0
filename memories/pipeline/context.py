"""Contexts: one sequence of lines that does not depend on the budget, and its longest rendered prefix that fits."""

import hashlib
import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import F

from memories import conf
from memories.llm import tokens
from memories.models import EndUser, Role, Section, Tenant, Turn
from memories.pipeline import recalled, recalls, told_episodes, told_facts
from memories.pipeline.asking import Question, ask
from memories.pipeline.lines import FRAME, HEADINGS, Line, profile_line, render, turn_line
from memories.pipeline.open_window import Window, open_window
from memories.pipeline.served_facts import Asker
from memories.pipeline.serving import Audience, audience
from memories.pipeline.told_facts import Told

INCLUDABLE = ("profile", "facts", "episodes", "working_memory", "turns", "unextracted")
DEFAULT_INCLUDE = frozenset({"profile", "facts", "episodes"})
# A question is answered with what was said about it, too.
DEFAULT_WITH_QUERY = DEFAULT_INCLUDE | {"turns"}
# The ranked facts stand between these two halves of the profile (rules.md, 9.3).
BEFORE_FACTS = (Section.WORK_CONTEXT, Section.PERSONAL_CONTEXT, Section.TOP_OF_MIND)
AFTER_FACTS = (Section.RECENT_MONTHS, Section.EARLIER_CONTEXT, Section.LONG_TERM_BACKGROUND)
UNEXTRACTED_TURNS = 50


@dataclass(frozen=True)
class ContextRequest:
    """What is asked for; `max_tokens` 0..8,000 bounds the rendered block, the limits ranked facts and episodes (None:
    as many as the tenant's rules say).

    `query`: what the agent is about to answer; turns are recalled for a query alone. `session_id`: the conversation
    that the agent is in, told when the working memory is asked for.
    """

    user_id: str
    agent_id: str = ""
    session_id: str = ""
    query: str = ""
    max_tokens: int = 2000
    include: frozenset[str] = DEFAULT_INCLUDE
    tokenizer: str = "o200k_base"
    roles: tuple[str, ...] = ()
    facts_limit: int | None = None
    episodes_limit: int | None = None


@dataclass(frozen=True)
class Context:
    """The rendered block with what it holds and what it had no room for; messages where working memory is asked for."""

    memory: str
    token_count: int
    max_tokens: int
    tokenizer: str
    items: list[dict[str, Any]] = field(default_factory=list)
    dropped: list[dict[str, Any]] = field(default_factory=list)
    restricted: bool = False
    serve: bool = True
    messages: list[dict[str, Any]] | None = None

    @property
    def revision(self) -> str:
        """The same for the same answer: a hash of all that is in it."""
        return hashlib.sha256(json.dumps(vars(self), default=str, sort_keys=True).encode()).hexdigest()[:32]


class _Asked(NamedTuple):
    """A request about somebody whose memories may be served, with all that answers it."""

    meant: Audience
    person: EndUser
    request: ContextRequest
    question: Question | None
    window: Window
    rules: conf.Rules
    now: datetime


class _Sequence(NamedTuple):
    """Lines in the order in which they claim room; what the limits leave out, by kind and id; the ids of the facts and
    episodes that the question, if there is one, ranked among them."""

    lines: list[Line]
    beyond: list[tuple[str, str]]
    ranked: set[uuid.UUID]


def build(*, tenant: Tenant, request: ContextRequest, now: datetime, noted: bool = True) -> Context:
    """The person's context within the budget; unknown, restricted and switched-off people get an empty one.

    `noted`: what the question recalls fades later; not when somebody merely looks.
    """
    meant = audience(tenant=tenant, user_id=request.user_id, with_profile="profile" in request.include)
    tells_messages = "working_memory" in request.include
    if meant.person is None:
        nothing = Context("", 0, request.max_tokens, request.tokenizer, messages=[] if tells_messages else None)
        return replace(nothing, restricted=meant.restricted, serve=meant.serve)
    rules = conf.rules(tenant)
    window = _window(meant.person, request, rules)
    question = ask(request.query) if request.query else None
    sequence = _sequence(_Asked(meant, meant.person, request, question, window, rules, now))
    built = _fill(sequence.lines, sequence.beyond, request)
    if question and noted:
        _note_recalls(sequence, told=len(built.items), now=now)
    return replace(built, messages=window.messages(built.memory)) if tells_messages else built


def _window(person: EndUser, request: ContextRequest, rules: conf.Rules) -> Window:
    if "working_memory" not in request.include or not request.session_id:
        return Window()
    return open_window(person, agent_id=request.agent_id, session_id=request.session_id, rules=rules)


def _sequence(asked: _Asked) -> _Sequence:
    """Everything that there is to tell; of turns and episodes what the window does not show."""
    profile, facts, episodes = _profile(asked.meant), _facts(asked), _episodes(asked)
    before = [profile[section] for section in BEFORE_FACTS if section in profile]
    after = [profile[section] for section in AFTER_FACTS if section in profile]
    turns = _turns(asked, facts.texts + episodes.texts)
    return _Sequence(
        [*facts.standing, *before, *facts.ranked, *episodes.lines, *after, *turns],
        [("fact", fact) for fact in facts.beyond] + [("episode", episode) for episode in episodes.beyond],
        {line.id for line in (*facts.ranked, *episodes.lines)},
    )


def _note_recalls(sequence: _Sequence, *, told: int, now: datetime) -> None:
    """What was ranked into the block; what stands in it whatever is asked is not needed for that."""
    for line in sequence.lines[:told]:
        if line.id in sequence.ranked:
            recalls.note(line.kind, [line.id], now=now)


def _profile(meant: Audience) -> dict[str, Line]:
    found = meant.profile
    return {section: profile_line(row_id=pk, section=section, summary=summary) for section, pk, summary in found}


def _facts(asked: _Asked) -> Told:
    _, person, request, question, _, rules, now = asked
    if "facts" not in request.include:
        return Told()
    asker = Asker(request.user_id, request.agent_id, request.roles)
    limit = rules.context_facts if request.facts_limit is None else request.facts_limit
    return told_facts.tell(person, asker, question, limit=limit, rules=rules, now=now)


def _episodes(asked: _Asked) -> told_episodes.Told:
    meant, person, request, question, window, rules, now = asked
    if not meant.has_episodes or "episodes" not in request.include:
        return told_episodes.Told()
    limit = rules.context_episodes if request.episodes_limit is None else request.episodes_limit
    return told_episodes.tell(person, question, window, limit=limit, rules=rules, now=now)


def _turns(asked: _Asked, said: Sequence[str]) -> list[Line]:
    """Turns that extraction has not read, then those that are recalled for the question, none twice."""
    _, person, request, question, window, _, _ = asked
    unread = _unextracted(person, window) if "unextracted" in request.include else []
    if question is None or "turns" not in request.include:
        return unread
    shown = {line.id for line in unread}
    return unread + [line for line in recalled.lines(person, question, window, said=said) if line.id not in shown]


def _unextracted(person: EndUser, window: Window) -> list[Line]:
    """The newest turns beyond their session's watermark; the newest claim room first, the oldest is shown first."""
    turns = Turn.objects.filter(tenant=person.tenant, end_user=person, number__gt=F("session__queue__extracted_number"))
    turns = (
        turns.exclude(content="")
        .exclude(metadata__contains={"hide_from_ui": True})
        .exclude(session=window.session, number__in=window.numbers)
        .filter(role__in=[Role.USER, Role.ASSISTANT])
    )
    newest = turns.order_by("-created_at", "session", "-number")[:UNEXTRACTED_TURNS]
    return [turn_line(turn) for turn in newest]


def _fill(lines: Sequence[Line], beyond: Sequence[tuple[str, str]], request: ContextRequest) -> Context:
    """The longest prefix whose rendered text fits; the first line that does not fit ends it."""
    costs, spent = _affordable(lines, request)
    fitting, left_out = lines[: len(costs)], lines[len(costs) :]
    return Context(
        memory=render(fitting),
        token_count=spent,
        max_tokens=request.max_tokens,
        tokenizer=request.tokenizer,
        items=[_item(line, cost) for line, cost in zip(fitting, costs, strict=True)],
        dropped=[_dropped(line.kind, str(line.id), "budget") for line in left_out]
        + [_dropped(kind, row_id, "limit") for kind, row_id in beyond],
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


def _dropped(kind: str, row_id: str, reason: str) -> dict[str, Any]:
    return {"kind": kind, "id": row_id, "reason": reason}
