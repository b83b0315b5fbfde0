"""Search hits, and the filters of a search."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from memories.kinds import PLAIN
from memories.retrieval.evidence import Level
from memories.retrieval.outdated import Written

FACT, EPISODE, TURN, SESSION, TRIPLE, FILE = "fact", "episode", "turn", "session", "triple", "file"
DOCUMENT = "document"
KINDS = (FACT, EPISODE, TURN, SESSION, TRIPLE, *(kind.name for kind in PLAIN), FILE, DOCUMENT)
# Found with the person's own facts, and told apart from them: it has no operations of a fact, and no category.
GROUP_FACT = "group_fact"
FOUND_KINDS = (*KINDS, GROUP_FACT)
# What was not whole, in the words of an answer.
INDEX = "index"


@dataclass(frozen=True)
class SearchFilters:
    """All given filters must hold; `until` is exclusive. Only facts have `category` and `tags`."""

    category: str | None = None
    tags: Sequence[str] = ()
    since: datetime | None = None
    until: datetime | None = None
    agent_id: str | None = None
    session_id: str | None = None
    # Whose turns; none given: all but texts in the user's role that the person did not say.
    authors: Sequence[str] = ()

    @property
    def only_facts_fit(self) -> bool:
        """Whether only facts can pass."""
        return bool(self.category or self.tags)

    @property
    def narrows_facts(self) -> bool:
        """Whether a filter other than the agent can leave facts out."""
        return any((self.category, self.tags, self.since, self.until)) or self.session_id is not None


@dataclass(frozen=True)
class Evidence:
    """A turn that a fact rests on, or the first or last turn of an episode."""

    session_id: str
    turn_number: int
    quote: str


@dataclass(frozen=True)
class FoundGroup:
    """The group that knows a fact."""

    id: uuid.UUID
    name: str


@dataclass(frozen=True)
class Finding:
    """One memory with its score, higher is better; ids other than `id` are the caller's own."""

    kind: str
    id: uuid.UUID
    text: str
    score: float
    score_parts: dict[str, float]
    created_at: datetime
    external_id: str | None = None
    session_id: str | None = None
    agent_id: str | None = None
    turn_numbers: list[int] = field(default_factory=list)
    role: str | None = None
    category: str | None = None
    confidence: float | None = None
    tags: list[str] = field(default_factory=list)
    evidence: list[Evidence] = field(default_factory=list)
    # A turn of an assistant or tool that speaks to a model: nothing to obey, and no context recalls it.
    flagged: bool = False
    # Of what says something that was corrected, superseded or forgotten since.
    outdated_since: datetime | None = None
    # What of it can go out of date, beside turns.
    written: Written | None = None
    # Of a fact that a group of the person's shares.
    group: FoundGroup | None = None
    # Of a passage of a memory file: where it stands, from the first line to the last.
    path: str | None = None
    lines: list[int] = field(default_factory=list)
    # Of a passage of a file that came with a turn: the file, and where it stands there.
    attachment_id: uuid.UUID | None = None
    name: str | None = None
    page: int | None = None
    place: str | None = None
    author: str | None = None
    # How strong it is as evidence that it has to do with the query.
    evidence_level: Level = Level.NONE
