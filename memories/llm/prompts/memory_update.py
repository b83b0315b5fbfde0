"""The call that turns new turns of a conversation into memory: instructions, data and the shape of the answer."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import accumulate
from typing import Annotated, Any, Literal, TypedDict

from pydantic import BaseModel, BeforeValidator

from memories.categories import Category
from memories.llm.answers import AnswerFormat
from memories.llm.prompts import fields
from memories.llm.prompts.framing import Message, block, escape, escape_attribute, guided, moment, shorten, today_line
from memories.llm.prompts.memory_update_text import FORBIDDEN, INSTRUCTIONS, PROFILE_FIELDS, TRIPLES
from memories.llm.prompts.schemas import FLAG, INTEGER, NUMBER, TEXT, Schema, list_of, object_of, one_of, or_null

NAME = "memory_update"
VERSION = "memory_update-5"
# With the part about triples, which is a setting of the tenant's: it costs tokens.
VERSION_WITH_TRIPLES = "memory_update-5t1"
# Behind either, where the tenant has a content policy: "memory_update-5p1".
POLICY_MARK = "p1"
# Behind that, where it has profiles by a schema of its own: "memory_update-5f1", "memory_update-5t1p1f1".
FIELDS_MARK = "f1"
# Characters of a content policy that the model is told, shared by its categories: the hub's own check knows the rest.
LONGEST_POLICY = 24_000

PROFILE_SECTIONS = (
    "work_context",
    "personal_context",
    "top_of_mind",
    "recent_months",
    "earlier_context",
    "long_term_background",
)


@dataclass(frozen=True)
class TurnInput:
    """A turn as fed: its number in the session, role, text and aware moment, in the person's zone. `is_fitted`: the text
    is as long as it may be; otherwise it is cut to length. `author`: whose words it holds, `name` of another speaker."""

    number: int
    role: str
    text: str
    at: datetime
    is_fitted: bool = False
    author: str = ""
    name: str = ""


class ForbiddenTopic(TypedDict):
    """A category of the tenant's content policy, as the model is told it."""

    name: str
    description: str
    not_allowed: list[str]
    allowed: list[str]


@dataclass(frozen=True)
class WantedField:
    """A field of a profile that the tenant defined: the key of its facts, which values it has, its title and what is
    meant."""

    key: str
    values: str
    title: str
    description: str


@dataclass(frozen=True)
class NumberedFact:
    """A fact that the model is shown under a small number; binding = an operator's word."""

    number: int
    content: str
    category: str
    key: str
    binding: bool


def _category(value: Any) -> Any:
    """An unknown category is no reason to lose a fact."""
    name = fields.folded(value)
    return name if name in Category.values else Category.OTHER.value


class CandidateFact(BaseModel):
    """One item of `new_facts`, validated alone: content, confidence, importance, durability and about must be right;
    in the other fields a bad value counts as absent."""

    model_config = fields.ITEM

    content: fields.Text
    category: Annotated[str, BeforeValidator(_category)] = "other"
    confidence: fields.Unit
    importance: fields.Unit = 0.5
    key: fields.OptionalText = None
    value: fields.OptionalText = None
    tags: fields.Texts = []
    durability: Annotated[Literal["durable", "temporary"], BeforeValidator(fields.folded)] = "durable"
    about: Annotated[Literal["user", "task", "assistant"], BeforeValidator(fields.folded)] = "user"
    evidence: fields.Integers = []
    quote: fields.OptionalText = None
    source_error: fields.OptionalText = None
    expires_in_days: fields.Days = None
    structured: fields.Parts = []
    relations: fields.RawItems = []
    triples: fields.Items = []
    forbidden: fields.OptionalText = None


class CandidateTriple(BaseModel):
    """One item of a candidate's `triples`; an object can be a number, and a bad date counts as absent."""

    model_config = fields.ITEM

    subject: fields.Text
    predicate: fields.Text
    object: Annotated[str, BeforeValidator(fields.text_or_none)]
    valid_from: fields.Date = None
    valid_to: fields.Date = None


class RelatedFact(BaseModel):
    """One item of a candidate's `relations`: to the known fact with the number `fact`, or to `new_facts[new_fact]`."""

    model_config = fields.ITEM

    type: Annotated[Literal["related_to", "contradicts", "derived_from"], BeforeValidator(fields.folded)]
    fact: fields.Integer | None = None
    new_fact: fields.Integer | None = None


class ReinforcedFact(BaseModel):
    """One item of `reinforced`: the number of a known fact that the turns confirm."""

    model_config = fields.ITEM

    fact: fields.Integer
    reason: fields.Text = ""
    evidence: fields.Integers = []


class RemovedFact(ReinforcedFact):
    """One item of `removed`; `replaced_by` is an index in `new_facts`."""

    replaced_by: fields.Integer | None = None


class SectionRewrite(BaseModel):
    """One section of `profile`."""

    model_config = fields.ITEM

    summary: fields.Text
    should_update: fields.Flag


class MemoryUpdate(BaseModel):
    """The answer. Items stay as they came; whoever uses one validates it alone, so that a bad one loses no other."""

    model_config = fields.ITEM

    profile: fields.RawMapping = {}
    new_facts: list[Any]
    reinforced: fields.RawItems = []
    removed: fields.RawItems = []


_PLAIN: Schema = {"type": ["string", "number", "boolean"]}
_REASONED = {"fact": INTEGER, "reason": TEXT, "evidence": list_of(INTEGER)}
_FACT = {
    "content": TEXT,
    "category": one_of(*Category.values),
    "confidence": NUMBER,
    "importance": NUMBER,
    "key": or_null(TEXT),
    "value": or_null(TEXT),
    "tags": list_of(TEXT),
    "durability": one_of("durable", "temporary"),
    "about": one_of("user", "task", "assistant"),
    "evidence": list_of(INTEGER),
    "quote": or_null(TEXT),
    "source_error": or_null(TEXT),
    "expires_in_days": or_null(INTEGER),
    "structured": list_of(object_of(name=TEXT, value={"anyOf": [_PLAIN, list_of(_PLAIN)]})),
    "relations": list_of(
        object_of(
            type=one_of("related_to", "contradicts", "derived_from"), fact=or_null(INTEGER), new_fact=or_null(INTEGER)
        )
    ),
}
_TRIPLE = object_of(subject=TEXT, predicate=TEXT, object=TEXT, valid_from=or_null(TEXT), valid_to=or_null(TEXT))


def _answer(**more: Schema) -> AnswerFormat[MemoryUpdate]:
    """The form of the answer; `more` are further fields of a fact."""
    return AnswerFormat(
        name=NAME,
        model=MemoryUpdate,
        empty='{"profile": {}, "new_facts": [], "reinforced": [], "removed": []}',
        schema=object_of(
            profile=object_of(**dict.fromkeys(PROFILE_SECTIONS, object_of(summary=TEXT, should_update=FLAG))),
            new_facts=list_of(object_of(**_FACT, **more)),
            reinforced=list_of(object_of(**_REASONED)),
            removed=list_of(object_of(**_REASONED, replaced_by=or_null(INTEGER))),
        ),
    )


ANSWER = _answer()
ANSWER_WITH_TRIPLES = _answer(triples=list_of(_TRIPLE))
_OF_POLICY = {"forbidden": or_null(TEXT)}
_FORMS = {
    (False, False): ANSWER,
    (True, False): ANSWER_WITH_TRIPLES,
    (False, True): _answer(**_OF_POLICY),
    (True, True): _answer(triples=list_of(_TRIPLE), **_OF_POLICY),
}


def version(*, with_triples: bool, with_policy: bool, with_fields: bool = False) -> str:
    """What everything that the prompt produces stores."""
    marks = (POLICY_MARK if with_policy else "") + (FIELDS_MARK if with_fields else "")
    return (VERSION_WITH_TRIPLES if with_triples else VERSION) + marks


def answer_form(*, with_triples: bool, with_policy: bool) -> AnswerFormat[MemoryUpdate]:
    """The form of the answer to what build() makes of these."""
    return _FORMS[with_triples, with_policy]


def build(
    *,
    turns: Sequence[TurnInput],
    existing_facts: Sequence[NumberedFact],
    sections: Mapping[str, str],
    today: date,
    time_zone: str,
    signals: Sequence[str],
    guidance: str,
    with_triples: bool = False,
    forbidden: Sequence[ForbiddenTopic] = (),
    fields: Sequence[WantedField] = (),
) -> list[Message]:
    """The instructions with the tenant's guidance, then one message with everything that people wrote, escaped.

    `today` is the date in `time_zone`, the person's. The six sections are always shown, missing ones empty.
    `forbidden`: what the tenant's content policy does not allow. `fields`: those of its own profiles. The answer is to
    have answer_form().
    """
    parts = [INSTRUCTIONS, *([TRIPLES] if with_triples else []), *([_wanted(fields)] if fields else [])]
    parts += [_policy(forbidden)] if forbidden else []
    instructions = "\n\n".join(parts)
    data = [
        today_line(today, time_zone),
        f"Signals found in the turns: {escape(', '.join(signals)) or 'none'}",
        block(
            "profile",
            (f'<section name="{name}">{escape(sections.get(name, ""))}</section>' for name in PROFILE_SECTIONS),
        ),
        block("known_facts", map(fact_element, existing_facts)),
        block("turns", map(turn_element, turns)),
    ]
    return [
        {"role": "system", "content": guided(instructions, guidance)},
        {"role": "user", "content": "\n".join(data)},
    ]


def fact_element(fact: NumberedFact) -> str:
    """The known fact as every prompt shows it: on one line, escaped."""
    attributes = f'n="{fact.number}" category="{escape_attribute(fact.category)}" key="{escape_attribute(fact.key)}"'
    return f'<fact {attributes} binding="{str(fact.binding).lower()}">{escape(fact.content)}</fact>'


def turn_element(turn: TurnInput) -> str:
    """The turn as every prompt shows it: on one line, escaped, cut to length."""
    text = turn.text if turn.is_fitted else shorten(turn.text)
    author = f' author="{escape_attribute(turn.author)}"' if turn.author else ""
    name = f' name="{escape_attribute(shorten(turn.name))}"' if turn.name else ""
    attributes = f'n="{turn.number}" role="{escape_attribute(turn.role)}"{author}{name} at="{moment(turn.at)}"'
    return f"<turn {attributes}>{escape(text)}</turn>"


def _wanted(fields: Sequence[WantedField]) -> str:
    """What staff wrote is escaped, as all texts are."""
    lines = (
        f'- key="{escape_attribute(one.key)}", {escape(one.values)}: {escape(one.title)}. {escape(one.description)}'
        for one in fields
    )
    return "\n".join([PROFILE_FIELDS, *(" ".join(line.split()) for line in lines)])


def _policy(forbidden: Sequence[ForbiddenTopic]) -> str:
    room = LONGEST_POLICY // (3 * len(forbidden))
    return "\n".join([FORBIDDEN, *(line for one in forbidden for line in _topic(one, room))])


def _topic(one: ForbiddenTopic, room: int) -> Iterator[str]:
    """What staff wrote is escaped as well: it must not change the form of the prompt. Its description, and the examples
    of each kind, have so many characters, the first ones."""
    yield f"- {escape(one['name'])}: {escape(one['description'][:room])}".rstrip(": ")
    for said, texts in (("forbidden", one["not_allowed"]), ("allowed", one["allowed"])):
        ends = accumulate(len(text) for text in texts)
        if told := [escape(text) for text, end in zip(texts, ends, strict=True) if end <= room]:
            yield f"  {said}: {' | '.join(told)}"
