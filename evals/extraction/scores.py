"""What is counted of one dialogue, and the figures of many."""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any

from evals.extraction.corpus import Dialogue
from evals.extraction.matching import Found, is_in, pairs


@dataclass
class Score:
    """Counts, which add up over dialogues.

    found: facts that would be served; right: those that say what a label expects; tolerated: those that are neither
    asked for nor wrong; forbidden: those that must never be; categories, keys: right ones with a fitting category, and
    with a fitting key of `keyed` whose label names one.
    """

    dialogues: int = 0
    clean: int = 0
    expected: int = 0
    found: int = 0
    right: int = 0
    tolerated: int = 0
    forbidden: int = 0
    categories: int = 0
    keys: int = 0
    keyed: int = 0
    held: int = 0
    wrongly_removed: int = 0
    echoed: int = 0

    def add(self, other: "Score") -> None:
        """Count the other's too."""
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))

    @property
    def wrong(self) -> int:
        return self.found - self.tolerated - self.right


@dataclass
class Judged:
    """A dialogue's counts, and in words what is wrong in it and what is missing."""

    score: Score
    wrong: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)


def judge(dialogue: Dialogue, found: list[Found]) -> Judged:
    """Compare the facts that would be served with the labels; what is forbidden is never right."""
    is_forbidden = [any(label.fits(one) for label in dialogue.forbid) for one in found]
    allowed = [
        one
        for one, forbidden in zip(found, is_forbidden, strict=True)
        if not forbidden and is_in(dialogue.language, one.content)
    ]
    paired = pairs(dialogue.expect, allowed)
    rest = [one for place, one in enumerate(allowed) if place not in paired.values()]
    tolerated = [one for one in rest if any(label.fits(one) for label in dialogue.may)]
    right = [allowed[place] for place in paired.values()]
    keyed = [(dialogue.expect[label], allowed[place]) for label, place in paired.items()]
    score = Score(
        dialogues=1,
        expected=len(dialogue.expect),
        found=len(found),
        right=len(right),
        tolerated=len(tolerated),
        forbidden=sum(is_forbidden),
        categories=sum(one.category in label.categories for label, one in keyed),
        keys=sum(one.key in label.keys for label, one in keyed if label.keys),
        keyed=sum(bool(label.keys) for label, _ in keyed),
    )
    score.clean = int(score.wrong == 0)
    missed = [label for place, label in enumerate(dialogue.expect) if place not in paired]
    return Judged(
        score,
        wrong=[one.content for one in found if one not in right and one not in tolerated],
        missed=[" + ".join(group[0] for group in label.all) for label in missed],
    )


def by_group(rows: Iterable[tuple[Dialogue, Score]]) -> dict[str, Score]:
    """The sums of all, of each language and of each kind."""
    groups: dict[str, Score] = {"all": Score()}
    for dialogue, score in rows:
        for name in ("all", dialogue.language, dialogue.kind):
            groups.setdefault(name, Score()).add(score)
    return groups


def figures(score: Score) -> dict[str, Any]:
    """Precision: right of those found, the tolerated left out (1 when nothing was found). Recall: right of those
    expected (1 when nothing was). Clean: the share of dialogues without a wrong fact."""
    return {
        "dialogues": score.dialogues,
        "expected": score.expected,
        "found": score.found,
        "precision": _share(score.right, score.found - score.tolerated),
        "recall": _share(score.right, score.expected),
        "clean": _share(score.clean, score.dialogues),
        "category": _share(score.categories, score.right),
        "key": _share(score.keys, score.keyed),
        "forbidden": score.forbidden,
        "held": score.held,
        "removed!": score.wrongly_removed,
        "echoed": score.echoed,
    }


def _share(part: int, whole: int) -> float:
    return round(part / whole, 3) if whole else 1.0


def table(groups: dict[str, Score]) -> str:
    """Lines of text, a group each."""
    rows = {name: figures(score) for name, score in groups.items()}
    columns = list(rows["all"])
    lines = [" " * 14 + "".join(f"{name:>11}" for name in columns)]
    lines += [f"{name:<14}" + "".join(f"{row[column]:>11g}" for column in columns) for name, row in rows.items()]
    return "\n".join(lines)
