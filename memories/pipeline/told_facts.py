"""The facts of a context: those that are always served, then the others as the question, or confidence, ranks them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from memories import conf
from memories.llm.reranking import Candidate
from memories.models import Category, EndUser, Trust
from memories.pipeline import found_facts, reranking, served_facts
from memories.pipeline.asking import Question
from memories.pipeline.fact_units import Measured, decayed
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
    beyond: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


class _Answer(NamedTuple):
    """Facts, newest first; their places in the order of the answer; their ids as text where that is at hand; what the
    question gave them, if there was one."""

    facts: Sequence[Served | Measured]
    order: list[int]
    ids: Sequence[str] = ()
    ranked: Ranked | None = None


def tell(
    person: EndUser, asker: Asker, question: Question | None, *, limit: int, rules: conf.Rules, now: datetime
) -> Told:
    """Of the facts that may be served: standing ones, and `limit` others. Texts are read of these alone.

    What operators and the person said comes first, so that nobody else can crowd it out; standing facts of others are
    told behind it, beyond the limit.
    """
    answer = _answering(person, asker, question, rules=rules, now=now)
    standing = _standing(answer.facts, rules)
    others, parts = _others(person, question, answer, set(standing))
    chosen = _trusted_first(answer.facts, [*standing, *others[:limit]])
    written = _written(person, answer.facts, chosen)
    told = _once(chosen, written)
    day = today(now)
    lines = [
        _line(answer.ranked, at, written[at], parts.get(at, {}), place=place, rules=rules, day=day)
        for place, at in enumerate(told)
    ]
    first = sum(at in standing and answer.facts[at].trust in TRUSTED for at in told)
    return Told(lines[:first], lines[first:], _ids(answer, others[limit:]), [written[at].text.content for at in told])


def _answering(
    person: EndUser, asker: Asker, question: Question | None, *, rules: conf.Rules, now: datetime
) -> _Answer:
    if question is None:
        facts = served_facts.served(person, asker, rules=rules, now=now)
        # Ties keep their order: newest first, then the higher id.
        return _Answer(facts, sorted(range(len(facts)), key=lambda place: -facts[place].confidence))
    store = served_facts.open_store(person, asker, question.space, rules=rules, now=now)
    ranked = found_facts.rank(store, question)
    return _Answer(store.facts, ranked.best(), store.ids, ranked)


def _others(
    person: EndUser, question: Question | None, answer: _Answer, standing: set[int]
) -> tuple[list[int], Mapping[int, Mapping[str, float]]]:
    """Places of all but the standing facts in their order, and what the reranker, if there is one, gave them."""
    others = [place for place in answer.order if place not in standing]
    parts: Mapping[int, Mapping[str, float]] = {}
    if question:
        others, parts = _reranked(person, question.text, answer, others)
    return _trusted_first(answer.facts, others), parts


def _trusted_first(facts: Sequence[Served | Measured], places: Sequence[int]) -> list[int]:
    return sorted(places, key=lambda place: facts[place].trust not in TRUSTED)


def _ids(answer: _Answer, places: Sequence[int]) -> list[str]:
    return [answer.ids[place] if answer.ids else str(answer.facts[place].id) for place in places]


def _written(person: EndUser, facts: Sequence[Served | Measured], places: Sequence[int]) -> dict[int, Written]:
    """Place → the fact with its words; one that was deleted meanwhile is not there."""
    at_hand = {place: written_of(fact.row) for place in places if isinstance(fact := facts[place], Served) and fact.row}
    left = {facts[place].id: place for place in places if place not in at_hand}
    read = served_facts.written(person, list(left))
    return at_hand | {left[pk]: one for pk, one in read.items()}


def _once(places: Sequence[int], written: Mapping[int, Written]) -> list[int]:
    """Those that are still there; of what one's own fact and a public one say in the same words, the first."""
    first: dict[bytes, int] = {}
    for place in places:
        if place in written:
            first.setdefault(written[place].fact.content_hash, place)
    return list(first.values())


def _standing(facts: Sequence[Served | Measured], rules: conf.Rules) -> list[int]:
    """Places of the newest corrections, then of the surest preferences and constraints; `facts` are newest first.

    Those of less trust have a place only where the others leave one.
    """
    corrections = [place for place, fact in enumerate(facts) if fact.category == Category.CORRECTION]
    instructions = [place for place, fact in enumerate(facts) if fact.category in STANDING]
    instructions.sort(key=lambda place: -facts[place].confidence)
    first = _trusted_first(facts, corrections)[: rules.context_corrections]
    return first + _trusted_first(facts, instructions)[: rules.context_standing]


def _line(
    ranked: Ranked | None,
    at: int,
    written: Written,
    reranked: Mapping[str, float],
    *,
    place: int,
    rules: conf.Rules,
    day: datetime,
) -> Line:
    """Without a question a fact is as good as it is sure."""
    if ranked:
        parts = ranked.ranking.parts(at) | dict(reranked)
        return fact_line(written.text, place=place, score=ranked.ranking.score(at), score_parts=parts)
    sure = written.fact.confidence
    parts = {"confidence": sure, "decay": decayed(written.fact, rules, day)}
    return fact_line(written.text, place=place, score=sure, score_parts=parts)


def _reranked(
    person: EndUser, query: str, answer: _Answer, others: list[int]
) -> tuple[list[int], Mapping[int, Mapping[str, float]]]:
    """The best of `others` in the order of the reranker, if there is one: only then their texts are read."""
    best = others[: reranking.reach(0)]
    texts = _written(person, answer.facts, best)
    found = [place for place in best if place in texts]
    candidates = [_candidate(answer, place, texts[place]) for place in found]
    placed = {found[at]: part for at, part in reranking.order(query, candidates)}
    return [*placed, *others[len(best) :]], placed


def _candidate(answer: _Answer, place: int, written: Written) -> Candidate:
    score = answer.ranked.ranking.score(place) if answer.ranked else 0.0
    return Candidate(FACT, str(written.fact.id), written.text.content, score)
