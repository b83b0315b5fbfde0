"""What was ranked for a question, kind by kind, with what each score consists of and what became of it."""

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from memories.admin.facts import FactPage
from memories.admin.page import VerbForm
from memories.admin.seen import Look
from memories.admin.told import Memory, address_of, rows_of, text_of
from memories.models import EndUser, Fact
from memories.pipeline import recalled, retrieval
from memories.pipeline.context import ContextRequest
from memories.pipeline.retrieval import EPISODE, FACT, TURN, Explanation, Filters, Finding, Search
from memories.scoring.constants import DEFAULT

BEST = 20
# Of episodes and of turns.
BEST_OTHERS = 10
# Part of a score → its label, and what one of it adds to the score.
PARTS: Mapping[str, tuple[Promise, float]] = {
    "vector": (_("Meaning"), 1.0),
    "lexical": (_("Words"), 1.0),
    "context": (_("Its surroundings"), 1.0),
    "confidence": (_("Confidence"), DEFAULT.confidence),
    "decay": (_("Strength"), DEFAULT.decay),
    "recency": (_("Freshness"), DEFAULT.recency),
}
KINDS: Mapping[str, Promise] = {FACT: _("Facts"), EPISODE: _("Episodes"), TURN: _("Turns")}


@dataclass(frozen=True)
class Part:
    """A part of a score: what it adds, and how much of the bar that is (0..1 of the best score; what takes away: 0)."""

    name: str
    label: Promise
    adds: float
    share: float

    @property
    def width(self) -> str:
        """For a style sheet, whatever the language writes between the digits."""
        return f"{self.share * 100:.2f}%"


@dataclass(frozen=True)
class Hit:
    """A ranked memory; `fate`: what the context says of it, empty where the context does not look so far down."""

    memory: Memory
    parts: list[Part]
    fate: Mapping[str, Any]
    reranked: float | None = None
    verbs: dict[str, VerbForm] = field(default_factory=dict)

    @property
    def is_far_off(self) -> bool:
        """Whether it is a turn that has too little to do with the question to be recalled."""
        return self.memory.kind == TURN and (self.memory.score or 0.0) < recalled.FLOOR


@dataclass(frozen=True)
class Ranking:
    """The best of each kind with how many there were to choose from, and how the question was read."""

    kinds: list[tuple[Promise, int, list[Hit]]]
    explanation: Explanation | None


def rank(person: EndUser, asked: ContextRequest, look: Look, *, may_change: bool, now: datetime) -> Ranking:
    """As a search ranks them; facts as far as the agent may see them. Nothing is noted as recalled."""
    lots = [_searched(person, asked, (FACT,), now=now), _searched(person, asked, (EPISODE, TURN), now=now)]
    found = [finding for lot in lots for finding in lot.results]
    rows = rows_of(person, ((one.kind, one.id) for one in found))
    fates = {(one["kind"], one["id"]): one for one in (*look.context.items, *look.context.dropped)}
    best = max((one.score for one in found), default=0.0)
    hits = [_hit(person, one, rows, fates, best=best, may_change=may_change) for one in found]
    explained = [lot.explanation for lot in lots if lot.explanation]
    searched = {kind: count for one in explained for kind, count in one.searched.items()}
    kinds = [(label, searched.get(kind, 0), _of(hits, kind)) for kind, label in KINDS.items()]
    return Ranking(kinds, explained[0] if explained else None)


def _searched(person: EndUser, asked: ContextRequest, kinds: tuple[str, ...], *, now: datetime) -> retrieval.Found:
    # A context recalls what was said to any agent; of facts each agent sees its own.
    filters = Filters(agent_id=asked.agent_id or None) if FACT in kinds else Filters()
    search = Search(asked.user_id, asked.query, kinds, limit=BEST, filters=filters, explain=True)
    return retrieval.search(tenant=person.tenant, search=search, now=now, noted=False)


def _of(hits: Iterable[Hit], kind: str) -> list[Hit]:
    return [hit for hit in hits if hit.memory.kind == kind][: BEST if kind == FACT else BEST_OTHERS]


def _hit(
    person: EndUser,
    found: Finding,
    rows: Mapping[tuple[str, uuid.UUID], Any],
    fates: Mapping[tuple[str, str], Mapping[str, Any]],
    *,
    best: float,
    may_change: bool,
) -> Hit:
    key = (found.kind, found.id)
    row = rows.get(key)
    memory = Memory(*key, row, text_of(found.kind, row), address_of(person, found.kind, row), found.score)
    verbs = _verbs(row) if may_change and found.kind == FACT and row is not None else {}
    fate = fates.get((found.kind, str(found.id)), {})
    return Hit(memory, parts_of(found, best), fate, found.score_parts.get("rerank"), verbs)


def parts_of(found: Finding, best: float) -> list[Part]:
    """Those that add anything or take it away, in the order of the bar."""
    weighed = [(name, label, found.score_parts.get(name, 0.0) * weight) for name, (label, weight) in PARTS.items()]
    scale = best if best > 0 else float("inf")
    return [Part(name, label, adds, max(0.0, adds / scale)) for name, label, adds in weighed if adds]


def _verbs(fact: Fact) -> dict[str, VerbForm]:
    """Forms of the fact's page that may stand among those of other facts."""
    fitting = ("unpin" if fact.pinned else "pin", "unlock" if fact.locked else "lock", "correct")
    forms = {name: FactPage.verbs[name](record=fact) for name in fitting if name in FactPage.verbs}
    for name, form in forms.items():
        form.auto_id = f"{name}_{fact.pk}_%s"
    return forms
