"""The facts of a context: those that are always served, then the others as the question, or confidence, ranks them."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from memories import conf
from memories.models import Category, EndUser, Fact, FactQuerySet
from memories.pipeline import found_facts
from memories.pipeline.asking import Question
from memories.pipeline.found_facts import Measured, Ranked
from memories.pipeline.lines import Line, fact_line

STANDING = (Category.PREFERENCE, Category.CONSTRAINT)


@dataclass(frozen=True)
class Told:
    """Lines of the standing facts and of the ranked ones; ids of those beyond the limit; the texts of all lines."""

    standing: list[Line] = field(default_factory=list)
    ranked: list[Line] = field(default_factory=list)
    beyond: list[uuid.UUID] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


def tell(
    person: EndUser, facts: FactQuerySet, question: Question | None, *, limit: int, rules: conf.Rules, now: datetime
) -> Told:
    """Of the `facts` that may be served: standing ones, and `limit` others. Texts are read of these alone."""
    measured = found_facts.measured(facts)
    standing = _standing(measured, rules)
    ordered = found_facts.rank(person, measured, question, now=now) if question else _by_confidence(measured, now=now)
    scored = {one.fact.id: one for one in ordered}
    first = {fact.id for fact in standing}
    others = [one for one in ordered if one.fact.id not in first]
    chosen = [*(scored[fact.id] for fact in standing), *others[:limit]]
    texts = _texts(person, chosen)
    lines = [_line(one, texts[one.fact.id], place) for place, one in enumerate(chosen) if one.fact.id in texts]
    number = sum(line.id in first for line in lines)
    said = [fact.content for fact in texts.values()]
    return Told(lines[:number], lines[number:], [one.fact.id for one in others[limit:]], said)


def _standing(facts: Sequence[Measured], rules: conf.Rules) -> list[Measured]:
    """The newest corrections, then the surest preferences and constraints; `facts` are given newest first."""
    corrections = [fact for fact in facts if fact.category == Category.CORRECTION]
    instructions = [fact for fact in facts if fact.category in STANDING]
    instructions.sort(key=lambda fact: -fact.confidence)
    return corrections[: rules.context_corrections] + instructions[: rules.context_standing]


def _by_confidence(facts: Sequence[Measured], *, now: datetime) -> list[Ranked]:
    """Ties keep their order: newest first, then the higher id."""
    surest = sorted(facts, key=lambda fact: -fact.confidence)
    return [
        Ranked(fact, fact.confidence, {"confidence": fact.confidence, "decay": found_facts.decayed(fact, now=now)})
        for fact in surest
    ]


def _texts(person: EndUser, chosen: Sequence[Ranked]) -> dict[uuid.UUID, Fact]:
    if not chosen:
        return {}
    rows = Fact.objects.of(person.tenant, person).filter(pk__in=[one.fact.id for one in chosen])
    return rows.only("category", "confidence", "content", "source_error").in_bulk()


def _line(ranked: Ranked, fact: Fact, place: int) -> Line:
    return fact_line(fact, place=place, score=ranked.score, score_parts=ranked.parts)
