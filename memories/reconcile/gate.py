"""The gate: which candidates may become facts, and with which trust. Code decides, not the model (rules.md, 4)."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from memories.conf import Rules
from memories.facts.review_items import NOT_AS_SAID
from memories.llm.prompts.fields import Part, Plain
from memories.llm.prompts.memory_update import CandidateFact
from memories.llm.prompts.memory_update_text import MOST_TRIPLES, is_example
from memories.models import Category, Source, Status, Trust
from memories.models.folding import fold, text_digest
from memories.profiles import Field, ValueRefused, is_field_key
from memories.reconcile import stated_triples
from memories.reconcile.stated_triples import StatedTriple
from memories.text import signals, support, uploads
from memories.text.cleaning import clean
from memories.text.injection import detection, flagged_turns
from memories.text.reading import moods, slips
from memories.text.reading.supporting import Heard
from memories.text.secrets.redaction import redact_message, redact_text
from memories.text.signals import Patterns
from memories.text.support import Embed, SourceTexts
from memories.text.transcript import TranscriptTurn
from memories.trust import SOURCE_OF, is_believed, rank

LONGEST_CONTENT = 2_000
LONGEST_KEY = 100
LONGEST_VALUE = 500
LONGEST_TAG = 100
MOST_TAGS = 20
# Of `structured`: as many parts with names and values of these lengths; and as many relations of a fact.
MOST_PARTS = 20
LONGEST_PART_NAME = 60
LONGEST_PART = 500
MOST_RELATIONS = 10
# What the hub itself notes in `structured`: where an imported fact came from.
_OF_THE_HUB = frozenset({"imported_source"})
# A batch holds far less. A model that runs wild must not lock the person's row for minutes.
MOST_CANDIDATES = 1_000
CONTENT_POLICY = "content_policy"
# In the counts of a run: a value that a field of a profile does not take. Its statement is kept as any other.
PROFILE_VALUE = "profile_value"
_DECISIVE = frozenset({"correction", "decision"})


@dataclass(frozen=True)
class BatchEvidence:
    """The evidence of a batch: the fed turns by number, the numbers of its tool turns, and the patterns that find
    signals (None: the hub's own).

    `tools` are texts of tool turns, `known` what the person or an operator stated before, `embed` compares meanings.
    """

    fed: Mapping[int, TranscriptTurn]
    tool_numbers: frozenset[int]
    patterns: Patterns | None = None
    tools: tuple[str, ...] = ()
    existing: tuple[str, ...] = ()
    embed: Embed | None = None

    @cached_property
    def source_texts(self) -> SourceTexts:
        """Who states what, read once for all candidates of the batch."""
        turns = self.fed.values()
        # Nobody vouches for the text of a file, whoever sends it, nor for what speaks to a model in a person's turn:
        # they may have pasted it.
        files = [text for turn in turns for text in uploads.blocks(turn.turn.content)]
        others = [turn.text for turn in turns if turn.is_others]
        return SourceTexts(
            users=[(own, turn.at.date() if turn.at else None) for turn, own, _ in self._users],
            existing=self.existing,
            assistants=[turn.text for turn in turns if not (turn.is_certain or turn.is_others)],
            tools=[*self.tools, *others, *files, *(orders for _, _, orders in self._users if orders)],
            embed=self.embed,
        )

    @cached_property
    def _users(self) -> list[tuple[TranscriptTurn, str, str]]:
        """Each turn of the person's, what it says to nobody else, and what speaks to a model."""
        users = [turn for turn in self.fed.values() if turn.is_certain]
        return [
            (turn, *flagged_turns.split_instructions(support.compared_part(turn.text), is_own=True)) for turn in users
        ]

    @property
    def has_orders(self) -> bool:
        """Whether something in the person's turns speaks to a model: they may have pasted it."""
        return any(orders for _, _, orders in self._users)

    @cached_property
    def heard(self) -> Heard:
        """How the person says it: their turns without what speaks to a model, and the questions that they answer."""
        places = {turn.number: place for place, (turn, _, _) in enumerate(self._users)}
        questions: dict[int, str] = {}
        asked = ""
        for number, turn in self.fed.items():
            if number not in places:
                asked = moods.last_question(turn.text)
            elif asked and moods.is_short(turn.text):
                questions[places[number]] = asked
                asked = ""
            else:
                asked = ""
        return Heard([own for _, own, _ in self._users], self.existing, questions)

    @cached_property
    def decisive(self) -> frozenset[int]:
        """Numbers of the turns in which the person corrects or decides something."""
        users = [turn for turn in self.fed.values() if turn.is_certain]
        return frozenset(
            turn.number for turn in users if _DECISIVE.intersection(signals.find([turn.text], self.patterns))
        )

    def cited(self, numbers: Iterable[int]) -> list[int]:
        """Those of `numbers` that are turns of the batch, in order; if none is, the last reply.

        No fact is without a source, so that it is deleted with its session.
        """
        cited = sorted({number for number in numbers if number in self.fed or number in self.tool_numbers})
        replies = [number for number, turn in self.fed.items() if not turn.is_user]
        return cited or sorted(replies or self.fed)[-1:]


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
    # Parts of the fact by name, and what the answer says of its relations, unchecked.
    structured: dict[str, Part] | None = None
    relations: tuple[Any, ...] = ()
    # What it says in parts, where the tenant wants triples, and counts of those that were left out, by reason.
    triples: tuple[StatedTriple, ...] = ()
    untold: Counter[str] = field(default_factory=Counter)
    # Why it waits for review although its trust is enough, and whether the person corrects or decides it.
    flags: tuple[str, ...] = ()
    decisive: bool = False
    # The field of a profile whose value it is.
    of_field: Field | None = None
    # Its trust is not enough, or it conflicts with an existing fact.
    waits: bool = False

    @cached_property
    def content_hash(self) -> bytes:
        """Equal for equal texts."""
        return text_digest(self.content)

    @property
    def status(self) -> Status:
        return Status.PENDING if self.waits or self.flags else Status.ACTIVE


@dataclass(frozen=True)
class Refused:
    """A candidate that is not kept, with the code under which the run counts it."""

    reason: str


@dataclass(frozen=True)
class Admitted:
    """Candidates with different texts, and the counts of the refused by reason."""

    candidates: list[Accepted]
    refusals: Counter[str]


def admit(
    items: Iterable[Any],
    *,
    evidence: BatchEvidence,
    rules: Rules,
    held: Mapping[int, str] = MappingProxyType({}),
    forbidden: Collection[int] = (),
    fields: Mapping[str, Field] = MappingProxyType({}),
) -> Admitted:
    """Judge the items of `new_facts`, whatever they are: one bad item loses no good one.

    `held` are flags of items, by place, that wait for review whatever they say; `forbidden` are places of those that
    the tenant's content policy does not allow. `fields` are those of profiles, by the key of their facts.
    """
    judged = [
        Refused(CONTENT_POLICY)
        if index in forbidden
        else judge(raw, index=index, evidence=evidence, rules=rules, fields=fields)
        for index, raw in enumerate(items)
    ]
    accepted = [item for item in judged if isinstance(item, Accepted)]
    flagged = [
        replace(item, flags=tuple(dict.fromkeys((*item.flags, held[item.index])))) if item.index in held else item
        for item in accepted
    ]
    distinct = _best_by_text(_named_apart(flagged, fields))
    candidates = distinct[:MOST_CANDIDATES]
    refusals = Counter(item.reason for item in judged if isinstance(item, Refused))
    refusals.update(repeated=len(accepted) - len(distinct), too_many=len(distinct) - len(candidates))
    refusals.update(sum((candidate.untold for candidate in candidates), Counter()))
    return Admitted(candidates, refusals)


def _named_apart(candidates: Sequence[Accepted], fields: Mapping[str, Field]) -> list[Accepted]:
    """One sentence can say the values of several fields. A person has a text once, so each says which field it is of:
    where there are several profiles always, as another batch may bring the other one's."""
    are_several = len({field.profile for field in fields.values()}) > 1
    keys: dict[str, set[str]] = {}
    for one in candidates:
        if one.of_field:
            keys.setdefault(fold(one.content), set()).add(one.of_field.key)
    return [
        replace(one, content=f"{one.content} ({one.of_field.profile}: {one.of_field.label})"[:LONGEST_CONTENT])
        if one.of_field and (are_several or len(keys[fold(one.content)]) > 1)
        else one
        for one in candidates
    ]


def _best_by_text(candidates: Iterable[Accepted]) -> list[Accepted]:
    """Each text once: the candidate of the highest trust, then without flags, then a field's value, then of the highest
    confidence."""
    best: dict[str, Accepted] = {}
    for candidate in candidates:
        text = fold(candidate.content)
        other = best.get(text)
        if other is None or _weight(candidate) > _weight(other):
            best[text] = candidate
    return list(best.values())


def _weight(candidate: Accepted) -> tuple[int, bool, bool, float]:
    return rank(candidate.trust), not candidate.flags, candidate.of_field is not None, candidate.confidence


def judge(
    raw: Any,
    *,
    index: int,
    evidence: BatchEvidence,
    rules: Rules,
    fields: Mapping[str, Field] = MappingProxyType({}),
) -> Accepted | Refused:
    """Judge one item; `index` is its place in the answer."""
    try:
        candidate = CandidateFact.model_validate(raw)
    except ValidationError as error:
        # The first bad field as a code: a name of CandidateFact, nothing of the item itself.
        place = error.errors(include_input=False, include_context=False, include_url=False)[0]["loc"]
        return Refused(f"bad_{place[0]}" if place else "malformed")
    content = clean(candidate.content)
    reason = _reason_against(candidate, content, rules)
    if reason:
        return Refused(reason)
    of_field = _of_field(candidate, raw, fields)
    said = of_field.candidate.value or "" if of_field.field else ""
    accepted = _accept(of_field.candidate, content, said=said, index=index, evidence=evidence, rules=rules)
    accepted = of_field.completed(accepted)
    if accepted.quoted is None and any(map(is_example, (content, candidate.quote or ""))):
        # The model copied it from the examples of our prompt.
        return Refused("example_echo")
    if rules.triples and candidate.triples:
        triples, untold = stated_triples.judge(candidate.triples, _grounds(accepted, evidence))
        accepted = replace(accepted, triples=triples, untold=accepted.untold + untold)
    return replace(accepted, waits=not is_believed(accepted.trust, trusts_assistant=rules.trust_assistant))


@dataclass(frozen=True)
class _OfField:
    """A candidate as the other rules judge it: with the value of its field in words, and with no key if the field takes
    no such value. `value`: as a fact keeps it."""

    candidate: CandidateFact
    field: Field | None = None
    value: str = ""
    is_refused: bool = False

    def completed(self, accepted: Accepted) -> Accepted:
        if self.field is None:
            return replace(accepted, untold=Counter({PROFILE_VALUE: 1})) if self.is_refused else accepted
        category = Category(self.field.category)
        return replace(accepted, category=category, key=self.field.key, value=self.value, of_field=self.field)


def _of_field(candidate: CandidateFact, raw: Any, fields: Mapping[str, Field]) -> _OfField:
    key = fold(clean(candidate.key or ""))
    if not is_field_key(key):
        return _OfField(candidate)
    plain = candidate.model_copy(update={"key": None, "value": None})
    if (field := fields.get(key)) is None:
        return _OfField(plain, is_refused=True)
    try:
        # As it came: the form of a value is the field's, and not always a text.
        value = field.read(raw.get("value") if isinstance(raw, Mapping) else candidate.value)
    except ValueRefused:
        return _OfField(plain, is_refused=True)
    # The words of the field are the staff's: whether the person said the value is asked, and by its content what of it.
    return _OfField(candidate.model_copy(update={"key": None, "value": field.spoken(value)}), field, field.text(value))


def trust_of(cited: Sequence[int], evidence: BatchEvidence) -> Trust:
    """The lowest trust of the cited turns; nothing cited, or turns that the batch did not feed, count as assistant."""
    return min((_trust_of_turn(number, evidence) for number in cited), key=rank, default=Trust.ASSISTANT)


def _reason_against(candidate: CandidateFact, content: str, rules: Rules) -> str:
    """Why it is refused; empty when it is not."""
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


def _accept(
    candidate: CandidateFact, content: str, *, said: str, index: int, evidence: BatchEvidence, rules: Rules
) -> Accepted:
    """`said`: the value of a profile's field in words."""
    cited = evidence.cited(candidate.evidence)
    quote = clean(candidate.quote or "")
    quoted = _turn_quoted(quote, cited, evidence) if support.has_word_of(quote, content) else None
    key, value = _attribute(candidate, evidence)
    supported = _supported(content, value or said, cited, evidence)
    trust = min(trust_of(candidate.evidence, evidence), supported, key=rank)
    is_own = trust == Trust.USER and not evidence.has_orders
    accepted = Accepted(
        index=index,
        content=content,
        category=Category(candidate.category),
        key=key,
        value=value,
        tags=[tag for tag in _tags(candidate.tags) if evidence.source_texts.names_nothing_new(tag)],
        confidence=candidate.confidence,
        importance=candidate.importance,
        trust=trust,
        source=SOURCE_OF[trust],
        cited=cited,
        quote=quote if quoted else "",
        quoted=quoted,
        source_error=_source_error(candidate, evidence),
        expires_in=timedelta(days=candidate.expires_in_days) if candidate.expires_in_days else None,
        structured=_structured(candidate, evidence),
        relations=tuple(candidate.relations[:MOST_RELATIONS]),
        flags=(
            *detection.flags(content, value or said, quote if quoted else "", is_own=is_own),
            *_slips(content, trust, evidence),
        ),
        decisive=trust == Trust.USER and not evidence.decisive.isdisjoint(cited),
    )
    if trust == Trust.USER and not quoted:
        confidence = min(accepted.confidence, rules.inferred_confidence)
        return replace(accepted, source=Source.IMPLICIT, confidence=confidence)
    return accepted


def _supported(content: str, value: str, cited: Iterable[int], evidence: BatchEvidence) -> Trust:
    """The trust of the fact's own words, whichever turns the model cites."""
    source_texts = evidence.source_texts
    users = [evidence.fed[number].text for number in cited if _trust_of_turn(number, evidence) == Trust.USER]
    if source_texts.is_mere_assent(users, content):
        return Trust.ASSISTANT
    return min(source_texts.trust_of(content), source_texts.trust_of(value), key=rank)


def _slips(content: str, trust: Trust, evidence: BatchEvidence) -> tuple[str, ...]:
    """Whether the person said it like this, if it is in their words."""
    return (NOT_AS_SAID,) if trust == Trust.USER and slips.slip(content, evidence.heard) else ()


def _source_error(candidate: CandidateFact, evidence: BatchEvidence) -> str:
    """What was wrong, in the person's words: it is served with the fact, so words of others alone are left out."""
    error = clean(candidate.source_error or "")[:LONGEST_CONTENT]
    return error if evidence.source_texts.trust_of(error) == Trust.USER else ""


def _structured(candidate: CandidateFact, evidence: BatchEvidence) -> dict[str, Part] | None:
    """The parts that can be stored, in the person's words alone."""
    parts: dict[str, Part] = {}
    for given, value in candidate.structured[: 10 * MOST_PARTS]:
        name, listed = clean(given), value if isinstance(value, list) else [value]
        values = [clean(one)[:LONGEST_PART] if isinstance(one, str) else one for one in listed[:MOST_PARTS]]
        kept = [one for one in values if _may_keep(name, one, evidence)]
        if kept and len(parts) < MOST_PARTS and name not in parts:
            parts[name] = kept if isinstance(value, list) else kept[0]
    return parts or None


def _may_keep(name: str, part: Plain, evidence: BatchEvidence) -> bool:
    if not 0 < len(name) <= LONGEST_PART_NAME or part == "" or name in _OF_THE_HUB:
        return False
    words, source_texts = name.replace("_", " "), evidence.source_texts
    value = "" if isinstance(part, bool) else str(part)
    if not (source_texts.names_nothing_new(words) and source_texts.has_all_of(value)):
        return False
    return not detection.flags(words, value, "") and not uploads.mentioned(value)


def _grounds(accepted: Accepted, evidence: BatchEvidence) -> stated_triples.TripleGrounds:
    """What the triples of the candidate rest on: no name in them may have less trust than the candidate has."""
    source_texts, is_users = evidence.source_texts, accepted.trust == Trust.USER

    def supports(name: str) -> bool:
        return source_texts.has_all_of(name) if is_users else rank(source_texts.trust_of(name)) >= rank(accepted.trust)

    def allows(relation: str) -> bool:
        return not is_users or source_texts.names_nothing_new(relation)

    is_own = is_users and not evidence.has_orders
    return stated_triples.TripleGrounds(accepted.content, supports=supports, allows=allows, is_own=is_own)


def _holds_secret(candidate: CandidateFact, content: str) -> bool:
    """Whether one of its texts, as far as it would be stored, holds a secret."""
    texts = [content, candidate.key or "", candidate.value or "", candidate.source_error or "", *_tags(candidate.tags)]
    # A name such as "password" announces its value.
    parts = {name[:LONGEST_PART_NAME]: part for name, part in candidate.structured[: 10 * MOST_PARTS]}
    names, announced = stated_triples.texts_of(candidate.triples[:MOST_TRIPLES])
    texts, parts = [*texts, *names], {**announced, **parts}
    return any(redact_text(text[: LONGEST_CONTENT + 1])[1] for text in texts) or bool(
        parts and redact_message(content="", metadata=parts).count
    )


def _trust_of_turn(number: int, evidence: BatchEvidence) -> Trust:
    if number in evidence.tool_numbers:
        return Trust.TOOL
    fed = evidence.fed.get(number)
    if fed and fed.is_others:
        return Trust.TOOL
    return Trust.USER if fed and fed.is_certain else Trust.ASSISTANT


def _turn_quoted(quote: str, cited: Iterable[int], evidence: BatchEvidence) -> int | None:
    """The number of the cited user turn that contains the quote."""
    turns = (evidence.fed[number] for number in cited if number in evidence.fed)
    return next((turn.number for turn in turns if turn.is_user and turn.contains(quote)), None)


def _attribute(candidate: CandidateFact, evidence: BatchEvidence) -> tuple[str, str]:
    """Key and value; none if the key is too long (cut, it could equal another one) or in the words of others."""
    key = fold(clean(candidate.key or ""))
    if not key or len(key) > LONGEST_KEY or not evidence.source_texts.names_nothing_new(key.replace("_", " ")):
        return "", ""
    return key, clean(candidate.value or "")[:LONGEST_VALUE]


def _tags(tags: Iterable[str]) -> list[str]:
    cleaned = dict.fromkeys(clean(tag) for tag in tags)
    return [tag for tag in cleaned if 0 < len(tag) <= LONGEST_TAG][:MOST_TAGS]
