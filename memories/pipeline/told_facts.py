"""The facts of a context: those that are always served, then the others as the question, or confidence, ranks them."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from memories import conf
from memories.llm.reranking import Candidate
from memories.models import Category, EndUser, Trust
from memories.pipeline import found_facts, reranking, served_facts
from memories.pipeline.asking import Question
from memories.pipeline.fact_units import Measured
from memories.pipeline.findings import FACT
from memories.pipeline.found_facts import Ranked
from memories.pipeline.lines import Line, fact_line
from memories.pipeline.lone_units import today
from memories.pipeline.served_facts import Asker, Served, Written, written_of

STANDING = (Category.PREFERENCE, Category.CONSTRAINT)
# Whatever others said stands behind it, however much that is.
TRUSTED = (Trust.OPERATOR, Trust.USER)


@dataclass(frozen=True)
class Told:
    """Lines of the standing facts and of the ranked ones; ids of those beyond the limit; the texts of all lines."""

    standing: list[Line] = field(default_factory=list)
    ranked: list[Line] = field(default_factory=list)
    beyond: list[uuid.UUID] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


class _Answer(NamedTuple):
    """All facts by id in their order, with what the question gave them; those that stand; those that merely the
    assistant or a tool said; the rows of all with their words, or of none yet."""

    ordered: dict[uuid.UUID, Ranked | None]
    standing: list[uuid.UUID]
    doubted: set[uuid.UUID]
    rows: dict[uuid.UUID, Sequence[Any]]


def tell(
    person: EndUser, asker: Asker, question: Question | None, *, limit: int, rules: conf.Rules, now: datetime
) -> Told:
    """Of the facts that may be served: standing ones, and `limit` others. Texts are read of these alone.

    What operators and the person said comes first, so that nobody else can crowd it out; standing facts of others are
    told behind it, beyond the limit.
    """
    ordered, standing, doubted, known = _answering(person, asker, question, rules=rules, now=now)
    stands = set(standing)
    others = [fact for fact in ordered if fact not in stands]
    if question:
        others = _reranked(person, question.text, ordered, others)
    others.sort(key=lambda fact: fact in doubted)
    chosen = sorted([*standing, *others[:limit]], key=lambda fact: fact in doubted)
    written = {fact: written_of(known[fact]) for fact in chosen} if known else served_facts.written(person, chosen)
    scored = [(written[fact], ordered[fact]) for fact in chosen if fact in written]
    day = today(now)
    lines = [_line(one, ranked, place, rules=rules, day=day) for place, (one, ranked) in enumerate(scored)]
    first = stands - doubted
    number = sum(line.id in first for line in lines)
    return Told(lines[:number], lines[number:], others[limit:], [one.text.content for one, _ in scored])


def _answering(
    person: EndUser, asker: Asker, question: Question | None, *, rules: conf.Rules, now: datetime
) -> _Answer:
    facts: Sequence[Served | Measured]
    ordered: dict[uuid.UUID, Ranked | None]
    rows: dict[uuid.UUID, Sequence[Any]] = {}
    if question is None:
        facts = found = served_facts.served(person, asker, rules=rules, now=now)
        # Ties keep their order: newest first, then the higher id.
        ordered = dict.fromkeys(fact.id for fact in sorted(facts, key=lambda fact: -fact.confidence))
        rows = {fact.id: fact.row for fact in found if fact.row}
    else:
        facts = measured = served_facts.measured(person, asker, rules=rules, now=now)
        ordered = {one.fact.id: one for one in found_facts.rank(person, measured, question, now=now)}
    doubted = {fact.id for fact in facts if fact.trust not in TRUSTED}
    return _Answer(ordered, _standing(facts, rules), doubted, rows)


def _standing(facts: Sequence[Served | Measured], rules: conf.Rules) -> list[uuid.UUID]:
    """The newest corrections, then the surest preferences and constraints; `facts` are given newest first.

    Those of less trust have a place only where the others leave one.
    """
    facts = sorted(facts, key=lambda fact: fact.trust not in TRUSTED)
    corrections = [fact for fact in facts if fact.category == Category.CORRECTION]
    instructions = [fact for fact in facts if fact.category in STANDING]
    instructions.sort(key=lambda fact: (fact.trust not in TRUSTED, -fact.confidence))
    first = corrections[: rules.context_corrections] + instructions[: rules.context_standing]
    return [fact.id for fact in first]


def _line(written: Written, ranked: Ranked | None, place: int, *, rules: conf.Rules, day: datetime) -> Line:
    """Without a question a fact is as good as it is sure."""
    if ranked:
        return fact_line(written.text, place=place, score=ranked.score, score_parts=ranked.parts)
    sure = written.fact.confidence
    parts = {"confidence": sure, "decay": found_facts.decayed(written.fact, rules, day)}
    return fact_line(written.text, place=place, score=sure, score_parts=parts)


def _reranked(
    person: EndUser, query: str, ordered: dict[uuid.UUID, Ranked | None], others: list[uuid.UUID]
) -> list[uuid.UUID]:
    """The best of `others` in the order of the reranker, if there is one: only then their texts are read.

    What it gave them is added to their parts in `ordered`.
    """
    best = others[: reranking.reach(0)]
    texts = served_facts.written(person, best)
    found = [ranked for fact in best if fact in texts and (ranked := ordered[fact])]
    candidates = [Candidate(FACT, str(one.fact.id), texts[one.fact.id].text.content, one.score) for one in found]
    placed: list[uuid.UUID] = []
    for place, part in reranking.order(query, candidates):
        one = found[place]
        ordered[one.fact.id] = one._replace(reranked=part)
        placed.append(one.fact.id)
    return [*placed, *others[len(best) :]]
