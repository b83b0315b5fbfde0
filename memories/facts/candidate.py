"""A candidate: a statement about a person before it is decided what becomes of it, whoever states it."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Any

from memories import conf
from memories.graph import naming
from memories.models import EndUser, ExtractionRun, Fact, MemoryScope, Status
from memories.models.folding import text_digest
from memories.trust import Source, Trust

# Who is served a fact. Two facts with other readers are two, also where they say the same.
READERS = ("agent_id", "scope", "allowed_users", "allowed_roles")


def has_readers_of(one: "Candidate | Fact", other: "Candidate | Fact") -> bool:
    """Whether both are served to the same."""
    return _readers(one) == _readers(other)


def _readers(of: "Candidate | Fact") -> tuple[object, ...]:
    return of.agent_id, of.scope, list(of.allowed_users), list(of.allowed_roles)


@dataclass(frozen=True)
class Citation:
    """A turn that a statement rests on; without `turn_id` where it was, since its words are gone. `since`: from when
    on the evidence is there, None for now."""

    session_id: uuid.UUID
    turn_number: int
    turn_id: uuid.UUID | None = None
    quote: str = ""
    since: datetime | None = None

    @property
    def place(self) -> dict[str, Any]:
        """As a row of evidence has it."""
        return {
            "turn_id": self.turn_id,
            "session_id": self.session_id,
            "turn_number": self.turn_number,
            "quote": self.quote,
        }


class Verdict(StrEnum):
    """What a statement is to an existing fact; not_judged: no model gave a verdict."""

    SAME = "same"
    REFINES = "refines"
    CONTRADICTS = "contradicts"
    UNRELATED = "unrelated"
    NOT_JUDGED = "not_judged"


@dataclass(frozen=True)
class NearbyFact:
    """An existing fact near a statement: `content_hash` of the compared text, cosine, verdict, and whether its text was
    refused (rejected or forgotten; such a fact is never judged)."""

    fact_id: uuid.UUID
    content_hash: bytes
    similarity: float
    verdict: Verdict = Verdict.NOT_JUDGED
    refused: bool = False


@dataclass(frozen=True)
class Candidate:
    """A statement, with who states it and what it rests on; confidence and importance are 0..1, empty text means none.

    `stated_at` are the moments at which it was said; empty: now. `key_id` is the API key that states it. `beside` is
    the existing fact that it would change. `proposed_as` is the ReviewItem.Reason of a proposal: an operator decides
    about it, whoever makes it. `merges` are facts that it is made of, and takes the place of. `near` are facts near it,
    the nearest first. `is_decisive`: the person corrects or decides it. `triples` are what it says in parts.
    """

    content: str
    category: str
    confidence: float
    trust: Trust
    source: Source
    extractor: str
    importance: float = 0.5
    key: str = ""
    value: str = ""
    tags: Sequence[str] = ()
    raw: str = ""
    structured: dict[str, Any] | None = None
    source_error: str = ""
    external_id: str = ""
    document: dict[str, Any] | None = None
    agent_id: str = ""
    scope: str = MemoryScope.PRIVATE
    allowed_users: Sequence[str] = ()
    allowed_roles: Sequence[str] = ()
    flags: Sequence[str] = ()
    binding: bool = False
    is_import: bool = False
    key_id: str = ""
    stated_at: Sequence[datetime] = ()
    valid_from: datetime | None = None
    expires_at: datetime | None = None
    mentions: int = 1
    last_recalled_at: datetime | None = None
    prompt_version: str = ""
    extraction: ExtractionRun | None = None
    citations: Sequence[Citation] = ()
    # Facts that it is related to, by RelationType.
    relations: Sequence[tuple[str, Fact]] = ()
    beside: Fact | None = None
    proposed_as: str = ""
    merges: Sequence[Fact] = ()
    near: Sequence[NearbyFact] = ()
    is_decisive: bool = False
    triples: Sequence[dict[str, Any]] = ()

    @classmethod
    def of(cls, fact: Fact) -> "Candidate":
        """A fact that exists, as it would be stated."""
        return cls(
            content=fact.content,
            category=fact.category,
            confidence=fact.confidence,
            trust=Trust(fact.trust),
            source=Source(fact.source),
            extractor=fact.extractor,
            key=fact.key,
            value=fact.value,
            agent_id=fact.agent_id,
        )

    @cached_property
    def content_hash(self) -> bytes:
        """Equal for equal texts."""
        return text_digest(self.content)

    def moments(self, now: datetime) -> list[datetime]:
        """When it was said, in order; nothing is said after it arrives."""
        return sorted(min(moment, now) for moment in self.stated_at) or [now]

    def triples_beside(self, key: str, value: str) -> list[dict[str, Any]] | None:
        """As a fact with this key and value keeps them: these say for themselves what is between the person and the
        value."""
        implied = (naming.digest_of(naming.SELF), naming.digest_of(value)) if key and value else None
        kept = (one for one in self.triples if implied != tuple(map(naming.digest_of, (one["subject"], one["object"]))))
        return list(kept) or None

    def fact(self, person: EndUser, *, status: Status, now: datetime) -> Fact:
        """The new fact, unsaved: no other code makes facts of statements."""
        fact = Fact(
            tenant=person.tenant,
            end_user=person,
            agent_id=self.agent_id,
            scope=self.scope,
            allowed_users=list(self.allowed_users),
            allowed_roles=list(self.allowed_roles),
            category=self.category,
            key=self.key,
            value=self.value,
            raw=self.raw,
            structured=self.structured,
            triples=self.triples_beside(self.key, self.value),
            tags=list(self.tags),
            confidence=self.confidence,
            stated_confidence=self.confidence,
            importance=self.importance,
            source=self.source,
            source_error=self.source_error,
            trust=self.trust,
            binding=self.binding,
            status=status,
            flags=list(self.flags),
            extractor=self.extractor,
            prompt_version=self.prompt_version,
            extraction=self.extraction,
            external_id=self.external_id,
            document=self.document,
            mentions=self.mentions,
            last_recalled_at=self.last_recalled_at,
            expires_at=self.expires_at,
        )
        fact.set_text(self.content)
        rules = conf.rules(person.tenant)
        fact.set_times(now=now, rules=rules, stated_at=self.stated_at, valid_from=self.valid_from)
        return fact
