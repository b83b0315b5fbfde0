"""What a model says of a fact in parts, for the graph: what of it may be kept.

A triple stands or falls with its fact: it has the fact's evidence, trust and readers, and waits where the fact waits.
So it may say nothing that the fact's own words would not be allowed to say.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from pydantic import ValidationError

from memories.graph import naming
from memories.llm.prompts.memory_update import CandidateTriple
from memories.llm.prompts.memory_update_text import MOST_TRIPLES, is_example
from memories.models.folding import fold
from memories.text import uploads
from memories.text.cleaning import clean
from memories.text.injection import detection

# A name is a few words, and so is a relation.
LONGEST_NAME, LONGEST_PREDICATE = 200, 60


@dataclass(frozen=True)
class StatedTriple:
    """A subject, a predicate and an object as the graph names them, with the days from and until which it holds."""

    subject: str
    predicate: str
    object: str
    valid_from: date | None = None
    valid_to: date | None = None

    @property
    def words(self) -> str:
        return f"{self.subject} {self.predicate.replace('_', ' ')} {self.object}"

    @property
    def between(self) -> tuple[bytes, bytes]:
        """The entities that it is between."""
        return naming.digest_of(self.subject), naming.digest_of(self.object)


@dataclass(frozen=True)
class TripleGrounds:
    """What the triples of a fact rest on: its text, and how its evidence judges names and relations.

    `supports` tells whether a name has the trust of the fact, `allows` whether a relation has no words of others alone;
    `is_own`: the person said all of it.
    """

    content: str
    supports: Callable[[str], bool]
    allows: Callable[[str], bool]
    is_own: bool


def judge(items: Sequence[Any], grounds: TripleGrounds) -> tuple[tuple[StatedTriple, ...], Counter[str]]:
    """Those of the items that may be kept, and counts of the others by reason."""
    kept: list[StatedTriple] = []
    refused: Counter[str] = Counter(too_many_triples=max(0, len(items) - MOST_TRIPLES))
    for raw in items[:MOST_TRIPLES]:
        triple = _read(raw)
        reason = _reason_against(triple, grounds) if triple else "malformed_triple"
        if triple is None or reason:
            refused[reason] += 1
        else:
            kept.append(triple)
    return tuple(kept), refused


def texts_of(items: Iterable[Any]) -> tuple[list[str], dict[str, str]]:
    """All names that the items have, as they came, and each object by its predicate: "password" announces a secret."""
    texts: list[str] = []
    announced: dict[str, str] = {}
    for item in items:
        given = [item.get(name) for name in ("subject", "predicate", "object")] if isinstance(item, dict) else []
        names = [text[: LONGEST_NAME + 1] if isinstance(text, str) else str(text) for text in given]
        texts += names
        announced |= {names[1]: names[2]} if names else {}
    return texts, announced


def of_person(triples: Iterable[StatedTriple], called: Callable[[str], str]) -> list[dict[str, Any]]:
    """As a fact keeps them, each once: `called` names the person as the graph does. Nothing stands in a relation to
    itself."""
    named = [replace(one, subject=called(one.subject), object=called(one.object)) for one in triples]
    distinct = {(*one.between, one.predicate): one for one in named if one.between[0] != one.between[1]}
    return [
        {
            "subject": one.subject,
            "predicate": one.predicate,
            "object": one.object,
            "valid_from": one.valid_from.isoformat() if one.valid_from else None,
            "valid_to": one.valid_to.isoformat() if one.valid_to else None,
        }
        for one in distinct.values()
    ]


def _read(raw: Any) -> StatedTriple | None:
    try:
        given = CandidateTriple.model_validate(raw)
    except ValidationError:
        return None
    triple = StatedTriple(
        subject=" ".join(clean(given.subject).split()),
        predicate=naming.predicate_of(clean(given.predicate)),
        object=" ".join(clean(given.object).split()),
        valid_from=given.valid_from,
        valid_to=given.valid_to,
    )
    names = (triple.subject, triple.object)
    fits = all(0 < len(name) <= LONGEST_NAME for name in names) and 0 < len(triple.predicate) <= LONGEST_PREDICATE
    is_inverted = triple.valid_from and triple.valid_to and triple.valid_to <= triple.valid_from
    return triple if fits and not is_inverted else None


def _reason_against(triple: StatedTriple, grounds: TripleGrounds) -> str:
    """Why it is left out; empty when it is not. The meaning of its words is asked last, because that takes longest."""
    names = [name for name in (triple.subject, triple.object) if not naming.is_self(name)]
    content = fold(grounds.content)
    if not all(fold(name) in content or grounds.supports(name) for name in names):
        return "unsupported_triple"
    if not grounds.allows(triple.predicate.replace("_", " ")) or any(map(is_example, names)):
        return "unsupported_triple"
    if uploads.mentioned(triple.words):
        return "unsupported_triple"
    texts = (triple.subject, triple.predicate.replace("_", " "), triple.object)
    if any(map(detection.speaks_to_model, texts)) or detection.flags(triple.words, "", "", is_own=grounds.is_own):
        return "flagged_triple"
    return ""
