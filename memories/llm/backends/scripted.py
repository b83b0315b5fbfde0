"""Answers from a file (MEMORYHUB_LLM_SCRIPT) instead of a model, for tests and demonstrations.

The file is a JSON list, or one JSON object a line:

    {"name": "memory_update", "match": "peanuts", "times": 1, "answer": {"new_facts": [...], ...}}

- `name`: the answer format that is asked for (memory_update, ...); absent = any.
- `match`: a regular expression to be found in the last user message; absent = any.
- `times`: how many calls the entry serves, counted in each process; absent = all.
- one of `answer` (the JSON to answer with), `raw` (the text to answer with, read as a model's would be) and
  `error` (the code of a ModelError, e.g. model_timeout; with `retry_after`, seconds).

The first entry that fits is used; when none does, the answer says nothing.
"""

import json
import re
from collections import Counter, deque
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from memories.exceptions import ModelAnswerTruncated, ModelError, ModelMisconfigured
from memories.llm import tokens
from memories.llm.answers import A, parse
from memories.llm.calls import Call, Completion

MODEL = "scripted"

# The last calls, newest last, as Django's test mail backend keeps an outbox.
outbox: deque[Call[Any]] = deque(maxlen=100)
_ERRORS = {error.code: error for error in ModelError.__subclasses__()}
_used: Counter[tuple[str, int, int]] = Counter()


class ScriptEntry(BaseModel):
    """One line of the script."""

    model_config = ConfigDict(extra="forbid")

    name: str | None = None
    match: re.Pattern[str] | None = None
    times: int | None = None
    answer: dict[str, Any] | None = None
    raw: str | None = None
    error: str | None = None
    retry_after: float | None = None


def complete(call: Call[A]) -> Completion[A]:
    """The answer of the first entry that fits; ModelMisconfigured when the file cannot be read."""
    call.before_call()
    outbox.append(call)
    text = _answer(call)
    if call.most_tokens is not None and tokens.count(text) > call.most_tokens:
        raise ModelAnswerTruncated
    return Completion(
        answer=parse(text, call.answer),
        model=MODEL,
        prompt_tokens=sum(tokens.count(message["content"]) for message in call.messages),
        completion_tokens=tokens.count(text),
        calls=1,
    )


def _answer(call: Call[A]) -> str:
    entry = _chosen(call)
    if entry is None:
        return call.answer.empty
    if entry.error is not None:
        raise _ERRORS.get(entry.error, ModelMisconfigured)(retry_after=entry.retry_after)
    return entry.raw if entry.raw is not None else json.dumps(entry.answer)


def _chosen(call: Call[A]) -> ScriptEntry | None:
    path = call.config.script
    try:
        changed = Path(path).stat().st_mtime_ns
    except OSError:
        raise ModelMisconfigured("MEMORYHUB_LLM_SCRIPT names no file that can be read.") from None
    for place, entry in enumerate(_entries(path, changed)):
        if _fits(entry, call) and (entry.times is None or _used[path, changed, place] < entry.times):
            _used[path, changed, place] += 1
            return entry
    return None


def _fits(entry: ScriptEntry, call: Call[A]) -> bool:
    prompt = call.messages[-1]["content"]
    return entry.name in (None, call.answer.name) and (entry.match is None or bool(entry.match.search(prompt)))


@lru_cache(maxsize=4)
def _entries(path: str, _changed: int) -> tuple[ScriptEntry, ...]:
    """The script as it was when it was changed last (nanoseconds), read once."""
    text = Path(path).read_text(encoding="utf-8")
    try:
        lines = json.loads(text) if text.lstrip().startswith("[") else map(json.loads, text.splitlines())
        return tuple(TypeAdapter(list[ScriptEntry]).validate_python(list(lines)))
    except (ValueError, ValidationError):
        raise ModelMisconfigured("MEMORYHUB_LLM_SCRIPT is not a JSON list, or lines, of entries.") from None
