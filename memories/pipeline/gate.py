"""Which candidates may become facts, and with which trust: code decides, not the model (rules.md, 4)."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from memories.conf import Rules
from memories.llm.prompts.memory_update import CandidateFact
from memories.llm.prompts.memory_update_text import is_example
from memories.models import Category, Source, Status, Trust
from memories.models.folding import fold, text_digest
from memories.pipeline import signals, suspicion, uploads
from memories.pipeline.cleaning import clean
from memories.pipeline.feed import FedTurn
from memories.pipeline.redaction import redact_text
from memories.pipeline.signals import Patterns

LONGEST_CONTENT = 2_000
LONGEST_KEY = 100
LONGEST_VALUE = 500
LONGEST_TAG = 100
MOST_TAGS = 20
# A batch says far less; a model that runs wild is not to hold the person's row for minutes.
MOST_CANDIDATES = 1_000
_DECISIVE = frozenset({"correction", "decision"})

_RANKS = {Trust.TOOL: 0, Trust.ASSISTANT: 1, Trust.USER: 2, Trust.OPERATOR: 3}
_SOURCES = {Trust.USER: Source.EXPLICIT, Trust.ASSISTANT: Source.SYSTEM, Trust.TOOL: Source.EXTERNAL}


@dataclass(frozen=True)
class Evidence:
    """What a batch can testify to: the turns that were fed, by number, and the numbers of the tool turns between;
    by which patterns signs are found (None: the hub's own)."""

    fed: Mapping[int, FedTurn]
    tool_numbers: frozenset[int]
    patterns: Patterns | None = None

    @cached_property
    def decisive(self) -> frozenset[int]:
        """Numbers of the turns in which the person corrects or decides something."""
        users = [turn for turn in self.fed.values() if turn.is_user]
        return frozenset(
            turn.number for turn in users if _DECISIVE.intersection(signals.find([turn.text], self.patterns))
        )

    def cited(self, numbers: Iterable[int]) -> list[int]:
        """Those of `numbers` that are turns of the batch, in order.

        When none is, the last reply stands in: no fact is without a source, and it goes when its session goes.
        """
        known = sorted({number for number in numbers if number in self.fed or number in self.tool_numbers})
        replies = [number for number, turn in self.fed.items() if not turn.is_user]
        return known or sorted(replies or self.fed)[-1:]


@dataclass(frozen=True)
class Accepted:
    """A candidate that may be kept; `cited` are numbers of its turns, `quoted` that of the one with the quote."""

    index: int
    content: str
    category: Category
    key: str
    value: str
    tags: list[str]
    confidence: float
    importance: float
    trust: Trust
    source: Source
    cited: list[int]
    quote: str
    quoted: int | None
    source_error: str
    expires_in: timedelta | None
    # Why it waits for review although its trust would do, and whether the person corrects or decides it.
    flags: tuple[str, ...] = ()
    decisive: bool = False
    # Its trust does not do, or it is at odds with what is known.
    waits: bool = False

    @cached_property
    def content_hash(self) -> bytes:
        """What its text is compared by."""
        return text_digest(self.content)

    @property
    def status(self) -> Status:
        return Status.PENDING if self.waits or self.flags else Status.ACTIVE


@dataclass(frozen=True)
class Refused:
    """A candidate that is not kept, with the code under which the run counts it."""

    reason: str


def rank(trust: str) -> int:
    """Higher outranks lower: operator > user > assistant > tool."""
    return _RANKS[Trust(trust)]


@dataclass(frozen=True)
class Admitted:
    """Candidates with different texts, and the counts of the refused by reason."""

    candidates: list[Accepted]
    refusals: Counter[str]


def admit(
    items: Iterable[Any], *, evidence: Evidence, rules: Rules, held: Mapping[int, str] = MappingProxyType({})
) -> Admitted:
    """Judge the items of `new_facts`, whatever they are: one bad item loses no good one.

    `held` are flags of items, by place, that wait for review whatever they say.
    """
    judged = [judge(raw, index=index, evidence=evidence, rules=rules) for index, raw in enumerate(items)]
    accepted = [_held(item, held.get(item.index)) for item in judged if isinstance(item, Accepted)]
    distinct = _once(accepted)
    candidates = distinct[:MOST_CANDIDATES]
    refusals = Counter(item.reason for item in judged if isinstance(item, Refused))
    refusals.update(repeated=len(accepted) - len(distinct), too_many=len(distinct) - len(candidates))
    return Admitted(candidates, refusals)


def judge(raw: Any, *, index: int, evidence: Evidence, rules: Rules) -> Accepted | Refused:
    """Judge one item; `index` is its place in the answer."""
    try:
        candidate = CandidateFact.model_validate(raw)
    except ValidationError as error:
        return Refused(_malformed(error))
    content = clean(candidate.content)
    reason = _reason_against(candidate, content, rules)
    if reason:
        return Refused(reason)
    accepted = _accept(candidate, content, index=index, evidence=evidence, rules=rules)
    if accepted.quoted is None and any(map(is_example, (content, candidate.quote or ""))):
        # Of our own prompt, and nobody said it.
        return Refused("example_echo")
    return replace(accepted, waits=not _is_believed(accepted.trust, rules))


def trust_of(cited: Sequence[int], evidence: Evidence) -> Trust:
    """The lowest trust of the cited turns; nothing cited, or turns that the batch did not feed, count as assistant."""
    return min((_trust_of_turn(number, evidence) for number in cited), key=rank, default=Trust.ASSISTANT)


def _once(candidates: Iterable[Accepted]) -> list[Accepted]:
    """Each text once, as the candidate of the highest trust, then of the highest confidence, states it."""
    best: dict[str, Accepted] = {}
    for candidate in candidates:
        text = fold(candidate.content)
        known = best.get(text)
        if known is None or _weight(candidate) > _weight(known):
            best[text] = candidate
    return list(best.values())


def _malformed(error: ValidationError) -> str:
    """The first field at fault as a code; the names are those of CandidateFact, nothing of the item itself."""
    place = error.errors(include_input=False, include_context=False, include_url=False)[0]["loc"]
    return f"bad_{place[0]}" if place else "malformed"


def _reason_against(candidate: CandidateFact, content: str, rules: Rules) -> str:
    """Why it is refused; empty when nothing speaks against it."""
    checks = {
        "no_content": not content,
        "content_too_long": len(content) > LONGEST_CONTENT,
        "low_confidence": candidate.confidence < rules.min_confidence,
        "low_importance": candidate.importance < rules.min_importance,
        "not_about_user": candidate.about != "user",
        "transient": candidate.durability != "durable" and candidate.expires_in_days is None,
        "upload": uploads.mentioned(content[: LONGEST_CONTENT + 1]),
        "secret": _holds_secret(candidate, content),
    }
    return next((reason for reason, applies in checks.items() if applies), "")


def _accept(candidate: CandidateFact, content: str, *, index: int, evidence: Evidence, rules: Rules) -> Accepted:
    trust = trust_of(candidate.evidence, evidence)
    cited = evidence.cited(candidate.evidence)
    quote = clean(candidate.quote or "")
    quoted = _turn_quoted(quote, cited, evidence)
    key, value = _attribute(candidate)
    accepted = Accepted(
        index=index,
        content=content,
        category=Category(candidate.category),
        key=key,
        value=value,
        tags=_tags(candidate.tags),
        confidence=candidate.confidence,
        importance=candidate.importance,
        trust=trust,
        source=_SOURCES[trust],
        cited=cited,
        quote=quote if quoted else "",
        quoted=quoted,
        source_error=clean(candidate.source_error or "")[:LONGEST_CONTENT],
        expires_in=timedelta(days=candidate.expires_in_days) if candidate.expires_in_days else None,
        flags=suspicion.flags(content, value, quote if quoted else ""),
        decisive=trust == Trust.USER and not evidence.decisive.isdisjoint(cited),
    )
    if trust == Trust.USER and not quoted:
        confidence = min(accepted.confidence, rules.inferred_confidence)
        return replace(accepted, source=Source.IMPLICIT, confidence=confidence)
    return accepted


def _is_believed(trust: Trust, rules: Rules) -> bool:
    return trust == Trust.USER or (trust == Trust.ASSISTANT and rules.trust_assistant)


def _held(candidate: Accepted, flag: str | None) -> Accepted:
    return replace(candidate, flags=(*candidate.flags, flag)) if flag else candidate


def _holds_secret(candidate: CandidateFact, content: str) -> bool:
    """Whether any of its texts, as far as they would be stored, holds what is never stored."""
    texts = [content, candidate.key or "", candidate.value or "", candidate.source_error or "", *_tags(candidate.tags)]
    return any(redact_text(text[: LONGEST_CONTENT + 1])[1] for text in texts)


def _trust_of_turn(number: int, evidence: Evidence) -> Trust:
    if number in evidence.tool_numbers:
        return Trust.TOOL
    fed = evidence.fed.get(number)
    return Trust.USER if fed and fed.is_user else Trust.ASSISTANT


def _turn_quoted(quote: str, cited: Iterable[int], evidence: Evidence) -> int | None:
    """The number of the cited user turn that says the quote."""
    turns = (evidence.fed[number] for number in cited if number in evidence.fed)
    return next((turn.number for turn in turns if turn.is_user and turn.contains(quote)), None)


def _attribute(candidate: CandidateFact) -> tuple[str, str]:
    """Key and value; a key that does not fit is none at all: cut, it could equal another."""
    key = fold(clean(candidate.key or ""))
    if not key or len(key) > LONGEST_KEY:
        return "", ""
    return key, clean(candidate.value or "")[:LONGEST_VALUE]


def _tags(tags: Iterable[str]) -> list[str]:
    cleaned = dict.fromkeys(clean(tag) for tag in tags)
    return [tag for tag in cleaned if 0 < len(tag) <= LONGEST_TAG][:MOST_TAGS]


def _weight(candidate: Accepted) -> tuple[int, bool, float]:
    return rank(candidate.trust), not candidate.flags, candidate.confidence
