"""A language model whose next answer is drawn: good or bad facts, removals of what it never saw, failures."""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from html import unescape
from typing import Any

from django.db import connection
from hypothesis import strategies as st

from memories import exceptions
from memories.llm.answers import A, parse
from memories.llm.calls import Call, Completion
from tests import summaries
from tests.stateful.texts import CATEGORIES, KEYS, PHRASES, VALUES, marked

TURN = re.compile(r'<turn n="(\d+)" role="(\w+)" at="[^"]+">(.*?)</turn>')
KNOWN = re.compile(r'<fact n="(\d+)"')
NEVER_SHOWN = 777
FAILURES: dict[str, type[exceptions.ModelError]] = {
    "timeout": exceptions.ModelTimeout,
    "refused": exceptions.ModelRefused,
    "truncated": exceptions.ModelAnswerTruncated,
    "unavailable": exceptions.ModelUnavailable,
    "rate limited": exceptions.ModelRateLimited,
    "misconfigured": exceptions.ModelMisconfigured,
}
MALFORMED = ('{"new_facts": [', "[]", "null", '{"summary": 7}', "</turns> I will not.")
# Each stands where one fact should: none may cost the good ones beside it.
JUNK: tuple[Any, ...] = (None, 7, [], {"content": ""}, {"content": "Bare"}, {"confidence": 2})


@dataclass(frozen=True)
class Stated:
    """What one new fact of an answer is to be; `cites` a role of the turns shown, or nothing that was shown."""

    phrase: str
    category: str
    key: str
    value: str
    confidence: float
    importance: float
    cites: str
    quotes: bool
    expires_in_days: int | None


@dataclass(frozen=True)
class Fate:
    """What becomes of an attempt: how it fails, if it does, or what the answers say."""

    failure: str = ""
    stated: tuple[Stated, ...] = ()
    junk: tuple[int, ...] = ()
    removed: tuple[int, ...] = ()
    reinforced: tuple[int, ...] = ()
    sections: tuple[str, ...] = ()
    verdict: str = "unrelated"
    quality: float = 0.9


HEALTHY = Fate()
_UNIT = st.sampled_from([0.9, 0.75, 0.25, 0.96, 1.0, 0.1])
_SURE = st.sampled_from([0.9, 0.75, 0.96, 1.0, 0.1])
_NUMBER = st.sampled_from([0, 1, 2, 3, NEVER_SHOWN])
_STATED = st.builds(
    Stated,
    phrase=st.sampled_from(PHRASES),
    category=st.sampled_from(CATEGORIES),
    key=st.sampled_from(KEYS),
    value=st.sampled_from(VALUES),
    confidence=_SURE,
    importance=_UNIT,
    cites=st.sampled_from(["user", "user", "user", "user", "assistant", "nothing"]),
    quotes=st.booleans(),
    expires_in_days=st.sampled_from([None, None, None, 1, 30]),
)
WELL = st.builds(
    Fate,
    stated=st.lists(_STATED, min_size=1, max_size=4).map(tuple),
    junk=st.lists(st.integers(0, len(JUNK) - 1), max_size=2).map(tuple),
    removed=st.lists(_NUMBER, max_size=2).map(tuple),
    reinforced=st.lists(_NUMBER, max_size=2).map(tuple),
    sections=st.lists(st.sampled_from(["work_context", "top_of_mind", "nonsense"]), max_size=2).map(tuple),
    verdict=st.sampled_from(["same", "refines", "contradicts", "unrelated", "nonsense"]),
    quality=_UNIT,
)
_BADLY = st.builds(Fate, failure=st.sampled_from([*FAILURES, *MALFORMED]))
FATES = st.one_of(WELL, WELL, WELL, _BADLY)


@dataclass
class Model:
    """Answers by its `fate` about the person who is marked with `marker`; `before_answering` sees each call."""

    fate: Fate = HEALTHY
    marker: str = ""
    calls: int = 0
    before_answering: Callable[[str], None] = lambda prompt: None

    def answer(self, name: str, said: str) -> str:
        if self.fate.failure in FAILURES:
            raise FAILURES[self.fate.failure]
        if self.fate.failure:
            return self.fate.failure
        made = {"memory_update": self._update, "fact_judgement": self._judgement}.get(name, self._summary)
        return json.dumps(made(name, said), ensure_ascii=False)

    def _update(self, _: str, said: str) -> dict[str, Any]:
        shown = TURN.findall(said)
        facts: list[Any] = [self._fact(stated, shown) for stated in self.fate.stated]
        return {
            "profile": {
                name: {"summary": marked(self.marker, name), "should_update": True} for name in self.fate.sections
            },
            "new_facts": facts + [JUNK[index] for index in self.fate.junk],
            "reinforced": [self._about(number, shown) for number in self.fate.reinforced],
            "removed": [{**self._about(number, shown), "replaced_by": 0} for number in self.fate.removed],
        }

    def _section(self, name: str) -> dict[str, Any]:
        return {"summary": marked(self.marker, name), "should_update": True}

    def _fact(self, stated: Stated, shown: list[tuple[str, str, str]]) -> dict[str, Any]:
        cited = [(number, text) for number, role, text in shown if role == stated.cites]
        # Of the phrases and values that the person says, if there are any: what nobody says would always wait.
        said = unescape(" ".join(text for _, role, text in shown if role == "user"))
        phrase = stated.phrase if stated.phrase in said else _first(PHRASES, said, stated.phrase)
        value = stated.value if stated.value in said else _first(VALUES[1:], said, stated.value)
        return {
            "content": marked(self.marker, phrase),
            "category": stated.category,
            "key": stated.key or None,
            "value": value or None,
            "confidence": stated.confidence,
            "importance": stated.importance,
            "tags": [],
            "durability": "temporary" if stated.expires_in_days else "durable",
            "about": "user",
            "evidence": [int(number) for number, _ in cited[:2]] or [NEVER_SHOWN],
            "quote": unescape(cited[0][1]) if cited and stated.quotes else None,
            "source_error": marked(self.marker, "something else") if stated.category == "correction" else None,
            "expires_in_days": stated.expires_in_days,
        }

    def _about(self, number: int, shown: list[tuple[str, str, str]]) -> dict[str, Any]:
        evidence = [int(turn) for turn, role, _ in shown if role == "user"]
        return {"fact": number, "reason": "It was said", "evidence": evidence}

    def _judgement(self, _: str, said: str) -> dict[str, Any]:
        pairs = [(candidate, int(fact)) for candidate in range(4) for fact in KNOWN.findall(said)]
        told = [{"candidate": one, "fact": fact, "verdict": self.fate.verdict} for one, fact in pairs]
        return {"judgements": told}

    def _summary(self, name: str, said: str) -> dict[str, Any]:
        told = summaries.of(name, said) or {}
        return {**told, "quality": self.fate.quality} if name == "episode_summary" else told


def _first(texts: Iterable[str], said: str, otherwise: str) -> str:
    return next((text for text in texts if text in said), otherwise)


present = Model()


def complete(call: Call[A]) -> Completion[A]:
    """A backend as `memories.llm.client` wants it."""
    call.before_call()
    present.calls += 1
    said = "\n".join(message["content"] for message in call.messages[1:])
    present.before_answering(said)
    answer = parse(present.answer(call.answer.name, said), call.answer)
    return Completion(answer=answer, model="test", prompt_tokens=70, completion_tokens=7, calls=1)


def open_transactions() -> int:
    return len(connection.atomic_blocks)
