"""Search over one person's facts, episodes, turns and whole sessions, by meaning and by words (docs/retrieval.md)."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain, zip_longest

from memories import conf
from memories.llm.reranking import Candidate
from memories.models import EndUser, Tenant
from memories.pipeline import (
    found_episodes,
    found_facts,
    found_turns,
    recalls,
    reranking,
    served_episodes,
    served_facts,
)
from memories.pipeline.asking import Question, ask
from memories.pipeline.findings import EPISODE, FACT, KINDS, SESSION, TURN, Filters, Finding
from memories.pipeline.found_facts import Ranked
from memories.pipeline.served_episodes import Served
from memories.pipeline.served_facts import Asker
from memories.pipeline.serving import Audience, audience
from memories.pipeline.stores import open_store

__all__ = [
    "EPISODE",
    "FACT",
    "KINDS",
    "SESSION",
    "TURN",
    "Explanation",
    "Filters",
    "Finding",
    "Found",
    "Search",
    "search",
]


@dataclass(frozen=True)
class Search:
    """What is looked for among one person's memories; `limit` 1..100 bounds the results of all kinds together."""

    user_id: str
    query: str
    kinds: Sequence[str] = (FACT, TURN)
    limit: int = 20
    filters: Filters = field(default_factory=Filters)
    roles: tuple[str, ...] = ()
    explain: bool = False


# The best of each kind, and how many there were to choose from.
_Lots = tuple[dict[str, list[Finding]], dict[str, int]]


@dataclass(frozen=True)
class Explanation:
    """How the query was read, and how many memories of each kind it was compared with."""

    terms: list[str]
    language: str
    embedding_model: str | None
    searched: dict[str, int]


@dataclass(frozen=True)
class Found:
    """The best first."""

    results: list[Finding] = field(default_factory=list)
    explanation: Explanation | None = None
    restricted: bool = False
    serve: bool = True


def search(*, tenant: Tenant, search: Search, now: datetime, noted: bool = True) -> Found:
    """The person's memories that answer the query best; nothing of unknown, restricted and switched-off people.

    Reads only: about eight statements, whatever is stored; which facts and episodes it recalled is written later. Works
    without vectors, by words alone. `noted`: what it recalls fades later; not when somebody merely looks.
    """
    meant = audience(tenant=tenant, user_id=search.user_id)
    if meant.person is None:
        return Found(restricted=meant.restricted, serve=meant.serve)
    question = ask(search.query)
    wide = replace(search, limit=reranking.reach(search.limit))
    found, searched = _by_kind(meant, meant.person, question, wide, now=now)
    results = _reranked(search.query, _merged(found, wide.limit))[: search.limit]
    for one in results if noted else ():
        recalls.note(one.kind, [one.id], now=now)
    return Found(results, _explanation(question, searched) if search.explain else None)


def _explanation(question: Question, searched: dict[str, int]) -> Explanation:
    return Explanation(question.terms, question.language, question.embedding_model, searched)


def _by_kind(
    meant: Audience, person: EndUser, question: Question, search: Search, *, now: datetime
) -> tuple[list[list[Finding]], dict[str, int]]:
    """The best of each kind, and how many there were to choose from."""
    memories, memories_searched = _memories(meant, person, question, search, now=now)
    said, said_searched = _said(person, question, search)
    found, searched = memories | said, memories_searched | said_searched
    return [found[kind] for kind in search.kinds], {kind: searched[kind] for kind in search.kinds}


def _memories(meant: Audience, person: EndUser, question: Question, search: Search, *, now: datetime) -> _Lots:
    """The best facts and episodes, as far as they are asked for."""
    found: dict[str, list[Finding]] = {}
    searched: dict[str, int] = {}
    if FACT in search.kinds:
        facts = _facts(person, question, search, now=now)
        found[FACT], searched[FACT] = found_facts.shown(person, facts, facts.best(search.limit)), len(facts)
    if EPISODE in search.kinds:
        episodes = found_episodes.rank(person, _episodes(meant, person, question, search, now=now), question, now=now)
        found[EPISODE], searched[EPISODE] = found_episodes.shown(episodes[: search.limit]), len(episodes)
    return found, searched


def _said(person: EndUser, question: Question, search: Search) -> _Lots:
    """The best turns and sessions, as far as they are asked for."""
    found: dict[str, list[Finding]] = {}
    if not {TURN, SESSION} & set(search.kinds):
        return found, {}
    if search.filters.only_facts_fit:
        return {TURN: [], SESSION: []}, {TURN: 0, SESSION: 0}
    store = open_store(person, question.space)
    ranked = found_turns.rank(person, store, question, search.filters)
    if TURN in search.kinds:
        found[TURN] = found_turns.turns(ranked, limit=search.limit)
    if SESSION in search.kinds:
        found[SESSION] = found_turns.sessions(ranked, limit=search.limit)
    return found, {TURN: len(store), SESSION: len(store.stretches)}


def _episodes(meant: Audience, person: EndUser, question: Question, search: Search, *, now: datetime) -> list[Served]:
    """Episodes that may be served (rules.md, 8.2), as far as the filters leave them; all agents see them alike."""
    if not meant.has_episodes or search.filters.only_facts_fit:
        return []
    rules = conf.rules(person.tenant)
    served = served_episodes.served(person, question.space, rules=rules, now=now)
    return [one for one in served if one.fits(search.filters)]


def _facts(person: EndUser, question: Question, search: Search, *, now: datetime) -> Ranked:
    """Facts that may be served to who asks (rules.md, 8.2), as far as the filters leave them."""
    asker = Asker(search.user_id, search.filters.agent_id or "", search.roles)
    store = served_facts.open_store(person, asker, question.space, rules=conf.rules(person.tenant), now=now)
    ranked = found_facts.rank(store, question)
    return found_facts.narrowed(person, ranked, search.filters) if search.filters.narrows_facts else ranked


def _reranked(query: str, found: Sequence[Finding]) -> list[Finding]:
    candidates = [Candidate(one.kind, str(one.id), one.text, one.score) for one in found]
    placed = reranking.order(query, candidates)
    return [_with_part(found[place], part) for place, part in placed]


def _with_part(finding: Finding, part: dict[str, float]) -> Finding:
    return replace(finding, score_parts=finding.score_parts | part) if part else finding


def _merged(found: Sequence[Sequence[Finding]], limit: int) -> list[Finding]:
    """Kinds are scored apart: each gives its best in turn until there are enough; the higher score is shown first."""
    in_turn = [one for one in chain.from_iterable(zip_longest(*found)) if one is not None]
    return sorted(in_turn[:limit], key=lambda one: -one.score)
