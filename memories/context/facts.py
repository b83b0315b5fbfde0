"""The facts of a context: what stands in every context, then the others as the query, or confidence, ranks them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from memories import conf
from memories.categories import CORRECTIVE, IN_EACH_CONTEXT
from memories.context.rendering import MemoryLine, fact_line
from memories.llm.reranking import Candidate
from memories.models import TRUSTED, EndUser
from memories.models.memories.visibility import Viewer
from memories.retrieval import fact_search, reranking, visible_facts
from memories.retrieval.fact_index import FactFeatures, decayed
from memories.retrieval.fact_search import RankedFacts
from memories.retrieval.hits import FACT
from memories.retrieval.memory_index import today
from memories.retrieval.prepared_query import PreparedQuery
from memories.retrieval.visible_facts import FactWithText, VisibleFact, fact_of_row

# Facts of other sources come after these, however many there are.
_Parts = Mapping[int, Mapping[str, float]]


@dataclass(frozen=True)
class FactLines:
    """Lines of standing instructions and of the ranked facts; ids of facts beyond the limit; the text of each line."""

    instructions: list[MemoryLine] = field(default_factory=list)
    ranked: list[MemoryLine] = field(default_factory=list)
    beyond: list[str] = field(default_factory=list)
    texts: dict[UUID, str] = field(default_factory=dict)

    def without(self, told: Collection[UUID]) -> "FactLines":
        """The same without facts that are told elsewhere."""
        if not told:
            return self
        names = set(map(str, told))
        instructions, ranked = (
            [line for line in lines if line.id not in told] for lines in (self.instructions, self.ranked)
        )
        return FactLines(instructions, ranked, [one for one in self.beyond if one not in names], self.texts)


class _FactOrder(NamedTuple):
    """Facts, newest first, and their places in the order of the answer; `ids` are their ids as text, with a query."""

    facts: Sequence[VisibleFact | FactFeatures]
    order: list[int]
    ids: Sequence[str] = ()
    ranked: RankedFacts | None = None


def fact_lines(
    person: EndUser,
    viewer: Viewer,
    query: PreparedQuery | None,
    *,
    limit: int,
    rules: conf.Rules,
    now: datetime,
    confident: bool = False,
) -> FactLines:
    """The standing instructions and `limit` other facts. Only their texts are read.

    Facts stated by operators and by the user come first, so that nobody else can crowd them out. Instructions of other
    sources come after them, beyond the limit. `confident`: with the confidence of each.
    """
    found = _ordered(person, viewer, query, rules=rules, now=now)
    instructions = _instructions(found.facts, rules)
    standing = set(instructions)
    others, reranked = _others(person, query, found, standing)
    chosen = _trusted_first(found.facts, [*instructions, *others[:limit]])
    texts = _with_texts(person, found.facts, chosen)
    # A public fact may have the same text as the person's own: the first one stays. No query takes the place of what
    # stands in every context.
    first_with: dict[bytes, int] = {}
    for at in sorted(chosen, key=lambda at: at not in standing):
        if at in texts:
            first_with.setdefault(texts[at].fact.content_hash, at)
    kept = set(first_with.values())
    shown = [at for at in chosen if at in kept]
    day = today(now)
    lines = []
    for place, at in enumerate(shown):
        fact = texts[at]
        if query:
            parts = dict(reranked.get(at, {}))
        else:
            parts = {"confidence": fact.fact.confidence, "decay": decayed(fact.fact, rules, day)}
        lines.append(_line(found, at, fact, parts, place=place, confident=confident, stands=at in standing))
    first = sum(at in standing and found.facts[at].trust in TRUSTED for at in shown)
    beyond = [found.ids[place] if found.ids else str(found.facts[place].id) for place in others[limit:]]
    return FactLines(lines[:first], lines[first:], beyond, {texts[at].text.id: texts[at].text.content for at in shown})


def _ordered(
    person: EndUser, viewer: Viewer, query: PreparedQuery | None, *, rules: conf.Rules, now: datetime
) -> _FactOrder:
    if query is None:
        facts = visible_facts.served(person, viewer, rules=rules, now=now)
        # Ties keep their order: newest first, then the higher id.
        return _FactOrder(facts, sorted(range(len(facts)), key=lambda place: -facts[place].confidence))
    index = visible_facts.open_index(person, viewer, query.space, rules=rules, now=now)
    ranked = fact_search.rank(index, query)
    return _FactOrder(index.facts, ranked.best(), index.ids, ranked)


def _instructions(facts: Sequence[VisibleFact | FactFeatures], rules: conf.Rules) -> list[int]:
    """Places of the newest corrections, then of the most confident preferences and constraints, then of what an
    operator protected besides.

    `facts` are newest first. Those of less trust get what the trusted ones leave of each limit.
    """
    corrections = [place for place, fact in enumerate(facts) if fact.category in CORRECTIVE]
    others = [place for place, fact in enumerate(facts) if fact.category in IN_EACH_CONTEXT]
    others.sort(key=lambda place: -facts[place].confidence)
    chosen = _trusted_first(facts, corrections)[: rules.context_corrections]
    chosen += _trusted_first(facts, others)[: rules.context_standing]
    protected = [place for place, fact in enumerate(facts) if fact.protected and place not in chosen]
    return chosen + _trusted_first(facts, protected)[: rules.context_standing]


def _trusted_first(facts: Sequence[VisibleFact | FactFeatures], places: Sequence[int]) -> list[int]:
    return sorted(places, key=lambda place: facts[place].trust not in TRUSTED)


def _others(
    person: EndUser, query: PreparedQuery | None, found: _FactOrder, instructions: set[int]
) -> tuple[list[int], _Parts]:
    """Places of all other facts in their order, and the reranker's part of their scores, if there is one."""
    others = [place for place in found.order if place not in instructions]
    reranked: _Parts = {}
    if query and found.ranked is not None:
        # Without a reranker these are none, and no text is read.
        best = others[: reranking.candidates_for(0)]
        texts = _with_texts(person, found.facts, best)
        stored = [place for place in best if place in texts]
        candidates = [
            Candidate(FACT, str(texts[at].fact.id), texts[at].text.content, found.ranked.ranking.score(at))
            for at in stored
        ]
        reranked = {stored[at]: part for at, part in reranking.order(query.text, candidates)}
        others = [*reranked, *others[len(best) :]]
    return _trusted_first(found.facts, others), reranked


def _with_texts(
    person: EndUser, facts: Sequence[VisibleFact | FactFeatures], places: Sequence[int]
) -> dict[int, FactWithText]:
    """The facts at these places with their texts, without those that were deleted meanwhile."""
    at_hand = {
        place: fact_of_row(fact.row) for place in places if isinstance(fact := facts[place], VisibleFact) and fact.row
    }
    missing = {facts[place].id: place for place in places if place not in at_hand}
    read = visible_facts.with_texts(person, list(missing))
    return at_hand | {missing[pk]: one for pk, one in read.items()}


def _line(found: _FactOrder, at: int, fact: FactWithText, score_parts: dict[str, float], **shown: Any) -> MemoryLine:
    """Without a query the score of a fact is its confidence."""
    if found.ranked is None:
        return fact_line(fact.text, score=fact.fact.confidence, score_parts=score_parts, **shown)
    ranking = found.ranked.ranking
    level = found.ranked.evidence.levels[at]
    return fact_line(
        fact.text, score=ranking.score(at), score_parts=ranking.parts(at) | score_parts, level=level, **shown
    )
