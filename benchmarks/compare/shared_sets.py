"""What lies in a folder of evaluation sets, none of which is part of this project: lives with questions, and beliefs.

The folder is that of `make eval` (evals/corpora.py), and may have `precisionmembench/` beside them: beliefs.json and
cases.json of PrecisionMemBench.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from evals import corpora
from evals.corpora import Corpus

# Set → its name, and what it is judged by.
JUDGED_BY = {
    "locomo-turn": ("LoCoMo", "R@10"),
    "prefeval": ("PrefEval-10", "hit@5"),
    "memdaily": ("MemDaily (Chinese)", "hit@5"),
    "beam-100k": ("BEAM-100K", "R@10"),
}
ADVERSARIAL = "adversarial"


@dataclass(frozen=True)
class Belief:
    id: str
    person: str
    text: str
    category: str


@dataclass(frozen=True)
class Case:
    """A question, and the ids of all beliefs that answer it; of none, where nothing does."""

    person: str
    question: str
    right: frozenset[str]


@dataclass(frozen=True)
class SharedSets:
    lives: dict[str, list[Corpus]]
    beliefs: list[Belief]
    cases: list[Case]

    def passages(self) -> Iterator[str]:
        """All texts that are remembered."""
        yield from (unit.text for some in self.lives.values() for life in some for unit in life.units)
        yield from (one.text for one in self.beliefs)

    def questions(self) -> Iterator[str]:
        yield from (one.text for some in self.lives.values() for life in some for one in life.questions)
        yield from (one.question for one in self.cases)


NONE = SharedSets({}, [], [])


def read(folder: Path, first: int) -> SharedSets:
    """What is there: the first so many lives of each set."""
    lives = {name: list(islice(corpora.SETS[name](folder), first)) for name in JUDGED_BY if _is_there(folder, name)}
    bench = folder / "precisionmembench"
    if not bench.is_dir():
        return SharedSets(lives, [], [])
    beliefs = [_belief(one) for one in json.loads((bench / "beliefs.json").read_text("utf-8"))]
    cases = [
        Case(_whose(one.get("userId", "test-user")), one["query"], frozenset(right["shouldOnlyInclude"]))
        for one in json.loads((bench / "cases.json").read_text("utf-8"))
        if "shouldOnlyInclude" in (right := one["expect"].get("relevantBeliefs") or {}) and one["query"].strip()
    ]
    return SharedSets(lives, beliefs, cases)


def asked_about(life: Corpus) -> list[str]:
    """The questions that something in that life answers."""
    return [one.text for one in life.questions if one.gold and one.category != ADVERSARIAL]


def _is_there(folder: Path, name: str) -> bool:
    part = {"locomo-turn": "locomo", "memdaily": "memdaily_zh", "beam-100k": "beam/100K"}.get(name, name)
    return (folder / part).is_dir()


def _belief(given: dict[str, str]) -> Belief:
    also = f": {', '.join(given['aliases'])}" if given.get("aliases") else ""
    text = f"{given['content']} ({given['canonical_name'].replace('_', ' ')}{also})"
    category = "preference" if given["type"] == "preference" else "knowledge"
    return Belief(given["_id"], _whose(given["user_id"]), text[:900], category)


def _whose(name: str) -> str:
    return f"beliefs-{name}"
