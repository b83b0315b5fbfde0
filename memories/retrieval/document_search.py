"""Documents: passages of files that came with turns, found by meaning and by words. They are nobody's own word.

Passages are scored as facts are. They neither decay nor are more or less sure. An index of a person's passages is kept
while none comes or goes, and no vector of theirs.
"""

import uuid
from collections.abc import Hashable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memories.db import binary_rows
from memories.models import EmbeddingSpace, EndUser, Passage
from memories.models.memories.visibility import Conversations
from memories.retrieval import memory_index
from memories.retrieval.cache import Source, indexes
from memories.retrieval.hits import DOCUMENT, Finding, SearchFilters
from memories.retrieval.memory_index import DAY
from memories.retrieval.outdated import Written
from memories.retrieval.prepared_query import PreparedQuery
from memories.scoring.ranking import Units
from memories.scoring.weighting import Weights

# The passages that are looked at: the newest.
NEWEST = 20_000
# Of each, beside its vector: its words, and what it is filtered by.
_WEIGHT = 1_600
# Passages of turns that a search may find: as turns themselves (Turn.is_searchable), but one without a text, too.
_SHOWN = """
    FROM memories_passage p
    JOIN memories_attachment a ON a.tenant_id = %(tenant)s AND a.id = p.attachment_id
    JOIN memories_turn t ON t.tenant_id = %(tenant)s AND t.id = a.turn_id
        AND t.left_at IS NULL AND t.role <> 'system' AND NOT t.metadata @> '{"hide_from_ui": true}'::jsonb
"""
_NEWEST = f"""
    {_SHOWN} WHERE p.tenant_id = %(tenant)s AND p.end_user_id = %(person)s
    ORDER BY p.created_at DESC, p.id DESC LIMIT %(most)s
"""
# A passage is written once, so these change with each that comes, goes or gets a vector, and with whose it is.
_STAMP = f"""
    SELECT count(*), coalesce(bit_xor(uuid_hash_extended(newest.id, 0)), 0), count(v.id)
    FROM (SELECT p.id {_NEWEST}) newest LEFT JOIN memories_passagevector v
        ON v.tenant_id = %(tenant)s AND v.passage_id = newest.id AND v.space_id = coalesce(%(space)s::bigint, 0)
"""  # noqa: S608  (our own text)
_READ = f"""
    SELECT newest.id, newest.terms, newest.author, newest.created_at, s.external_id, s.agent_id, s.memory_of
    FROM (SELECT p.id, p.terms, p.author, p.created_at, a.session_id {_NEWEST}) newest
    JOIN memories_session s ON s.tenant_id = %(tenant)s AND s.id = newest.session_id
    ORDER BY newest.created_at DESC, newest.id DESC
"""  # noqa: S608  (our own text)
# Somebody may have a million: of no more than are looked at.
_VECTORS = f"""
    SELECT passage_id, language, halfvec_send(vector) FROM memories_passagevector
    WHERE tenant_id = %(tenant)s AND end_user_id = %(person)s AND space_id = %(space)s
        AND passage_id IN (SELECT p.id {_NEWEST})
"""  # noqa: S608  (our own text)


class _ScoredPassage(NamedTuple):
    id: uuid.UUID
    terms: bytes | None
    author: str
    created_at: datetime
    session_id: str
    agent_id: str
    memory_of: str


@dataclass(frozen=True, eq=False)
class _PassageIndex:
    """Passages, the newest first; a place in `passages` is a row of the arrays. `times`: seconds since 1970."""

    passages: list[_ScoredPassage]
    units: Units
    times: NDArray[np.float64]
    agents: list[tuple[str, str]]
    agent_of: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class _Passages(Source[Any, _PassageIndex]):
    """A person's passages with their vectors in `space` (None: without vectors)."""

    person: EndUser
    space: EmbeddingSpace | None
    kind = "memories"

    @property
    def key(self) -> tuple[Hashable, ...]:
        return ("documents", self.person.pk, self.space.pk if self.space else None)

    def stamp(self, _known: Any) -> Any:
        return binary_rows.fetched(_STAMP, self._given)

    def make(self, _stamp: Any, _kept: _PassageIndex | None, _seconds: float | None) -> _PassageIndex:
        passages = [_ScoredPassage(*row) for row in binary_rows.fetched(_READ, self._given)]
        vectors = binary_rows.fetched(_VECTORS, self._given) if self.space else []
        agents = list(dict.fromkeys((one.agent_id, one.memory_of) for one in passages))
        places = {agent: place for place, agent in enumerate(agents)}
        return _PassageIndex(
            passages,
            memory_index.units_of(passages, self.space, vectors),
            np.array([one.created_at.timestamp() for one in passages], np.float64),
            agents,
            np.array([places[one.agent_id, one.memory_of] for one in passages], np.int32),
        )

    def weight(self, index: _PassageIndex) -> int:
        return (_WEIGHT + 2 * (self.space.dimensions if self.space else 0)) * (1 + len(index.passages))

    @property
    def _given(self) -> dict[str, Any]:
        space = self.space.pk if self.space else None
        return {"tenant": self.person.tenant_id, "person": self.person.pk, "space": space, "most": NEWEST}


def hits(
    person: EndUser,
    query: PreparedQuery,
    filters: SearchFilters,
    conversations: Conversations,
    *,
    limit: int,
    now: datetime,
) -> tuple[list[Finding], int]:
    """The best passages of conversations that are shown to who asks, and of how many."""
    index = indexes.open(_Passages(person, query.space))
    if not index.passages:
        return [], 0
    allowed = conversations.mask(index.agents, index.agent_of, index.times) & _fitting(index, filters)
    today = memory_index.today(now)
    ranking = memory_index.rank(
        index.units,
        Weights.of((1.0, 1.0, float(max(0, (today - one.created_at) // DAY))) for one in index.passages),
        index.times[:, None],
        query.queries,
    )
    levels = ranking.evidence(allowed=allowed).levels
    best = {index.passages[place].id: place for place in ranking.best(limit, allowed=allowed)}
    rows = Passage.objects.of(person.tenant, person).select_related("attachment", "attachment__turn")
    stored = rows.defer("terms", "attachment__content").in_bulk(best)
    found = []
    for pk, place in best.items():
        # It may have been deleted meanwhile.
        if passage := stored.get(pk):
            one, file = index.passages[place], passage.attachment
            found.append(
                Finding(
                    kind=DOCUMENT,
                    id=pk,
                    text=passage.content,
                    score=ranking.score(place),
                    score_parts=ranking.parts(place),
                    created_at=one.created_at,
                    session_id=one.session_id,
                    agent_id=one.agent_id or None,
                    turn_numbers=[file.turn.number],
                    author=passage.author,
                    flagged=passage.flagged,
                    written=Written(passage.content, one.created_at),
                    evidence_level=levels[place],
                    attachment_id=file.pk,
                    name=file.name or None,
                    page=passage.page,
                    place=passage.place or None,
                )
            )
    return found, int(allowed.sum())


def _fitting(index: _PassageIndex, filters: SearchFilters) -> NDArray[np.bool_]:
    """Which of them pass the filters of time, agent, session and author."""
    fits = np.ones(len(index.passages), np.bool_)
    if filters.since:
        fits &= index.times >= filters.since.timestamp()
    if filters.until:
        fits &= index.times < filters.until.timestamp()
    for name, wanted in (("agent_id", filters.agent_id), ("session_id", filters.session_id)):
        if wanted is not None:
            fits &= np.array([getattr(one, name) == wanted for one in index.passages], np.bool_)
    if filters.authors:
        fits &= np.array([one.author in filters.authors for one in index.passages], np.bool_)
    return fits
