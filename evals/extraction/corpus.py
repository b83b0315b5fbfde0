"""The labelled dialogues: one JSON object a line in english.jsonl and chinese.jsonl.

    {"id", "language": "en"|"zh", "kind", "turns": [[role, words], …],
     "known": [{"content", "category", "key"}, …], "outdated": [numbers of known facts that no longer hold],
     "expect": [label, …], "may": [label, …], "forbid": [label, …], "secrets": [what redaction must cut]}

Only id, language, kind, turns and expect are always there. Labels: see matching.Label.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from evals.extraction.matching import Label
from memories.llm.prompts.memory_update import NumberedFact

FOLDER = Path(__file__).parent
FILES = {"en": FOLDER / "english.jsonl", "zh": FOLDER / "chinese.jsonl"}
KINDS = (
    "explicit",
    "correction",
    "implicit",
    "standing",
    "negation",
    "temporary",
    "transient",
    "one_off",
    "hypothetical",
    "quotation",
    "other_people",
    "upload",
    "secret",
    "injection",
)
# The dates in the labels are worked out from it: a Tuesday.
TODAY = date(2026, 11, 3)
SENT_AT = datetime(2026, 11, 3, 9, 12, tzinfo=UTC)
ZONES = {"en": "Europe/London", "zh": "Asia/Shanghai"}


@dataclass(frozen=True)
class Dialogue:
    """What was said and known, and what is to come of it."""

    id: str
    language: str
    kind: str
    turns: list[tuple[str, str]]
    existing: list[NumberedFact]
    outdated: frozenset[int]
    expect: list[Label]
    may: list[Label]
    forbid: list[Label]
    secrets: list[str]


def dialogues(language: str) -> Iterator[Dialogue]:
    """Those of a language, in the order of its file."""
    for line in FILES[language].read_text(encoding="utf-8").splitlines():
        yield _dialogue(json.loads(line))


def chosen(languages: Iterable[str], kinds: Iterable[str], most: int | None) -> list[Dialogue]:
    """Of each language and kind the first `most`; all when None."""
    by_kind = [[one for one in dialogues(language) if one.kind == kind] for language in languages for kind in kinds]
    return [one for group in by_kind for one in group[:most]]


def _dialogue(entry: dict[str, Any]) -> Dialogue:
    labels = {name: [Label.of(label) for label in entry.get(name, [])] for name in ("expect", "may", "forbid")}
    existing = [NumberedFact(number=n, binding=False, **fact) for n, fact in enumerate(entry.get("known", []), start=1)]
    return Dialogue(
        id=entry["id"],
        language=entry["language"],
        kind=entry["kind"],
        turns=[(role, words) for role, words in entry["turns"]],
        existing=existing,
        outdated=frozenset(entry.get("outdated", [])),
        secrets=entry.get("secrets", []),
        **labels,
    )
