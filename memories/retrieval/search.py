"""Search over one person's facts, episodes, turns, whole sessions and memory files, by meaning and by words
(docs/retrieval.md), over triples by what the query names, and over what the person's groups know by words."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from importlib import import_module
from itertools import chain, zip_longest
from time import perf_counter
from typing import Any

from memories import budgets, conf
from memories.kinds import PLAIN
from memories.llm.reranking import Candidate
from memories.models import EndUser, Tenant
from memories.models.memories.visibility import Conversations, Viewer
from memories.retrieval import (
    document_search,
    episode_search,
    fact_search,
    file_search,
    group_search,
    recalls,
    reranking,
    triple_search,
    turn_index,
    turn_search,
    visible_facts,
)  # fmt: skip
from memories.retrieval.evidence import Level, strongest
from memories.retrieval.fact_search import RankedFacts
from memories.retrieval.hits import (
    DOCUMENT,
    EPISODE,
    FACT,
    FILE,
    GROUP_FACT,
    INDEX,
    KINDS,
    SESSION,
    TRIPLE,
    TURN,
    Finding,
    SearchFilters,
)
from memories.retrieval.outdated import Outdated
from memories.retrieval.prepared_query import PreparedQuery, prepare_in
from memories.retrieval.serving import Audience, audience
from memories.telemetry import traces
from memories.telemetry.families import SEARCH_SECONDS

__all__ = [
    "DOCUMENT",
    "EPISODE",
    "FACT",
    "FILE",
    "GROUP_FACT",
    "KINDS",
    "SESSION",
    "TRIPLE",
    "TURN",
    "Explanation",
    "Finding",
    "Level",
    "SearchFilters",
    "SearchRequest",
    "SearchResult",
    "search",
]


@dataclass(frozen=True)
class SearchRequest:
    """A search of one person's memories; `limit` 1..100 bounds the results of all kinds together. `as_of`: what was
    true, and said, by then."""

    user_id: str
    query: str
    kinds: Sequence[str] = (FACT, TURN)
    limit: int = 20
    filters: SearchFilters = field(default_factory=SearchFilters)
    roles: tuple[str, ...] = ()
    explain: bool = False
    as_of: datetime | None = None
    # What scores lower, and what is weaker as evidence, is left out.
    min_score: float | None = None
    min_evidence: Level = Level.NONE
    # All tell, as in a context, only what of them still holds.
    for_agent: bool = False

    @property
    def leaves_out(self) -> bool:
        """Whether what was found can be too little."""
        return self.min_score is not None or self.min_evidence != Level.NONE

    def accepts(self, found: Finding) -> bool:
        is_enough = self.min_score is None or found.score >= self.min_score
        return is_enough and found.evidence_level.rank >= self.min_evidence.rank


# Of each kind, where some are left out: what is strong as evidence need not score best.
LOOKED_AT = 100
# The best of each kind, and how many were ranked.
_HitsByKind = tuple[dict[str, list[Finding]], dict[str, int]]


@dataclass(frozen=True)
class Explanation:
    """How the query was read, and how many memories of each kind it was compared with."""

    terms: list[str]
    language: str
    embedding_model: str | None
    searched: dict[str, int]


@dataclass(frozen=True)
class SearchResult:
    """The best first. `zone`: that of the person's days. `degraded`: what was not whole ("index": only the newest turns
    were compared, because the index of all is being made)."""

    results: list[Finding] = field(default_factory=list)
    explanation: Explanation | None = None
    restricted: bool = False
    serve: bool = True
    zone: tzinfo = UTC
    degraded: str | None = None

    @property
    def evidence(self) -> Level:
        """How strong the strongest of them is; `none` for nothing."""
        return strongest([one.evidence_level for one in self.results])


def search(*, tenant: Tenant, search: SearchRequest, now: datetime, noted: bool = True) -> SearchResult:
    """The person's memories that answer the query best; nothing of unknown, restricted and switched-off people.

    It reads only, in about seven statements whatever is stored, eight of a member of groups; recalls are written later.
    Without vectors it finds memories by their words. `noted=False`: an operator looks, so what it finds does not fade
    later. Errors: RequestTooCostly.
    """
    began = perf_counter()
    found = audience(tenant=tenant, user_id=search.user_id, agent_id=search.filters.agent_id or "")
    if found.person is None:
        return SearchResult(restricted=found.restricted, serve=found.serve)
    query = prepare_in(found.space, search.query, asked=found.person.local(search.as_of or now))
    # A reranker sees more than the limit.
    most = reranking.candidates_for(search.limit)
    wide = replace(search, limit=max(most, LOOKED_AT) if search.leaves_out else most)
    outdated = Outdated(found.person, as_of=search.as_of, has_ended=found.has_ended)
    hits, searched = _memories(found, found.person, query, wide, now=now)
    hits = {kind: _marked(found_hits, outdated, for_agent=search.for_agent) for kind, found_hits in hits.items()}
    (turn_hits, turns_searched), degraded = _turns(found.person, query, wide, outdated)
    hits, searched = hits | turn_hits, searched | turns_searched
    best = _merged([list(filter(search.accepts, hits[kind])) for kind in search.kinds], most)
    results = _reranked(search.query, best)[: search.limit]
    budgets.spend(rows=len(results), size=sum(len(one.text) for one in results))
    if noted and not search.as_of:
        recalls.note_all([(one.kind, one.id) for one in results], tenant_id=tenant.pk, now=now)
    if noted:
        took = perf_counter() - began
        SEARCH_SECONDS.observe(took)
        traces.record("search", took, results=len(results), tenant=tenant.slug)
    counts = {kind: searched[kind] for kind in search.kinds}
    explanation = Explanation(query.terms, query.language, query.embedding_model, counts)
    explained = explanation if search.explain else None
    return SearchResult(results, explained, zone=found.person.clock, degraded=degraded)


def _memories(
    found: Audience, person: EndUser, query: PreparedQuery, search: SearchRequest, *, now: datetime
) -> _HitsByKind:
    """The best memories of each kind that is asked for, but for turns and sessions."""
    hits: dict[str, list[Finding]] = {}
    searched: dict[str, int] = {}
    if FACT in search.kinds:
        facts = _facts(person, query, search, now=now)
        own = fact_search.hits(person, facts, facts.best(search.limit))
        shared, looked_at = _shared(found, person, query, search, now=now)
        # Both are scored alike, so they are one kind when the kinds take turns.
        hits[FACT] = sorted([*own, *shared], key=lambda one: -one.score)[: search.limit]
        searched[FACT] = len(facts) + looked_at
    if EPISODE in search.kinds:
        hits[EPISODE], searched[EPISODE] = _episodes(found, person, query, search, now=now)
    if TRIPLE in search.kinds:
        hits[TRIPLE], searched[TRIPLE] = _triples(person, search, now=now)
    for kind in PLAIN:
        if kind.plain and kind.name in search.kinds:
            found_by = import_module(kind.plain.search)
            hits[kind.name], searched[kind.name] = _of_agent(found_by, person, query, search, now=now)
    if DOCUMENT in search.kinds:
        hits[DOCUMENT], searched[DOCUMENT] = _documents(person, query, search, now=now)
    if FILE in search.kinds:
        hits[FILE], searched[FILE] = _of_agent(file_search, person, query, search, now=now)
    return hits, searched


def _facts(person: EndUser, query: PreparedQuery, search: SearchRequest, *, now: datetime) -> RankedFacts:
    """Facts that may be served to the viewer (rules.md, 8.2) and pass the filters."""
    viewer = Viewer(search.filters.agent_id or "", search.roles, search.as_of)
    index = visible_facts.open_index(person, viewer, query.space, rules=conf.rules(person.tenant), now=now)
    ranked = fact_search.rank(index, query)
    return fact_search.narrowed(person, ranked, search.filters) if search.filters.narrows_facts else ranked


def _shared(
    found: Audience, person: EndUser, query: PreparedQuery, search: SearchRequest, *, now: datetime
) -> tuple[list[Finding], int]:
    """What the person's groups know: as in contexts of today alone, and without what only a person's facts have."""
    filters = search.filters
    if not found.has_groups or search.as_of or filters.only_facts_fit or filters.session_id is not None:
        return [], 0
    return group_search.hits(person, query, filters, limit=search.limit, now=now)


def _triples(person: EndUser, search: SearchRequest, *, now: datetime) -> tuple[list[Finding], int]:
    viewer = Viewer(search.filters.agent_id or "", search.roles, search.as_of)
    rows = triple_search.triples(person, viewer, search.query, rules=conf.rules(person.tenant), now=now)
    rows = triple_search.narrowed(rows, search.filters)
    # Counted only for who asks: the best are found without the rest.
    return triple_search.hits(triple_search.read(rows, search.limit)), rows.count() if search.explain else 0


def _of_agent(
    kept: Any, person: EndUser, query: PreparedQuery, search: SearchRequest, *, now: datetime
) -> tuple[list[Finding], int]:
    """What is the agent's that asks, of today: without an agent those of requests that name none."""
    if search.as_of or search.filters.only_facts_fit or search.filters.session_id is not None:
        return [], 0
    found: tuple[list[Finding], int] = kept.hits(person, query, search.filters, limit=search.limit, now=now)
    return found


def _episodes(
    found: Audience, person: EndUser, query: PreparedQuery, search: SearchRequest, *, now: datetime
) -> tuple[list[Finding], int]:
    """The best episodes that may be served (rules.md, 8.2) and pass the filters, and of how many."""
    if not found.has_episodes or search.filters.only_facts_fit:
        return [], 0
    index = episode_search.open_index(person, query.space, rules=conf.rules(person.tenant), now=now)
    allowed = index.seen(_conversations(person, search)) & index.fitting(search.filters)
    return episode_search.rank(index, query, allowed).hits(person, search.limit), int(allowed.sum())


def _documents(
    person: EndUser, query: PreparedQuery, search: SearchRequest, *, now: datetime
) -> tuple[list[Finding], int]:
    """Passages of files; the conversations that they came in say who sees them."""
    if search.filters.only_facts_fit:
        return [], 0
    seen = _conversations(person, search)
    return document_search.hits(person, query, search.filters, seen, limit=search.limit, now=now)


def _marked(hits: list[Finding], outdated: Outdated, *, for_agent: bool) -> list[Finding]:
    """These with the moment since when something of them does not hold; for an agent without it."""
    marked = []
    for one in hits:
        since = outdated.since(one.written) if one.written else None
        if one.written is None or since is None:
            marked.append(one)
        elif text := outdated.told(one.written) if for_agent else one.text:
            marked.append(replace(one, text=text, outdated_since=since))
    return marked


def _turns(
    person: EndUser, query: PreparedQuery, search: SearchRequest, outdated: Outdated
) -> tuple[_HitsByKind, str | None]:
    """The best turns and sessions, as far as they are asked for, and what was not whole."""
    if not {TURN, SESSION} & set(search.kinds):
        return ({}, {}), None
    if search.filters.only_facts_fit:
        return ({TURN: [], SESSION: []}, {TURN: 0, SESSION: 0}), None
    index, is_whole = turn_index.open_or_newest(person, query.space)
    wanted: dict[str, Any] = {"most": search.limit, "sessions": SESSION in search.kinds}
    ranked = turn_search.rank(person, index, query, search.filters, _conversations(person, search), **wanted)
    hits = {}
    if TURN in search.kinds:
        hits[TURN] = turn_search.turns(ranked, outdated, told=search.for_agent, limit=search.limit)
    if SESSION in search.kinds:
        hits[SESSION] = turn_search.sessions(ranked, outdated, limit=search.limit)
    return (hits, {TURN: len(index), SESSION: len(index.known)}), None if is_whole else INDEX


def _conversations(person: EndUser, search: SearchRequest) -> Conversations:
    return Conversations.of(person.tenant, agent_id=search.filters.agent_id or "", as_of=search.as_of)


def _merged(found: Sequence[Sequence[Finding]], limit: int) -> list[Finding]:
    """Scores of kinds do not compare: each gives its best in turn until there are enough. Sorted by score."""
    in_turn = [one for one in chain.from_iterable(zip_longest(*found)) if one is not None]
    return sorted(in_turn[:limit], key=lambda one: -one.score)


def _reranked(query: str, hits: Sequence[Finding]) -> list[Finding]:
    candidates = [Candidate(one.kind, str(one.id), one.text, one.score) for one in hits]
    return [
        replace(hits[place], score_parts=hits[place].score_parts | part) if part else hits[place]
        for place, part in reranking.order(query, candidates)
    ]
