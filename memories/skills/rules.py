"""What trajectories of one kind of task have in common, found without a model; pure.

An action belongs to the procedure if nearly all that succeeded took it. It is a lesson if those that failed mostly did
not. What mostly those that failed did is a pitfall.
"""

import re
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from memories.skills.attempts import Action, Attempt

SECTION_STEP, SECTION_CHECK, SECTION_PITFALL = "step", "check", "pitfall"
# Of those that succeeded, so many took a step; of those that failed, so many less did if it is a lesson.
_NEARLY_ALL = 0.75
_APART = 0.4
# A pitfall: of those that failed at least so many did it, of those that succeeded at most so many.
_MOSTLY, _SELDOM = 0.4, 0.15
MOST_STEPS = 12
MOST_PITFALLS = 4
# Words by which a tool, or a command, says that it looks whether something is so.
_CHECKING = frozenset(
    {"test", "tests", "pytest", "check", "checks", "verify", "lint", "validate", "validation", "assert", "confirm"}
    | {"测试", "检查", "验证", "确认"}
)
_WORD = re.compile(r"[a-z]+|[\u4e00-\u9fff]{2}")


@dataclass(frozen=True)
class Line:
    """A text for a section of a skill, and the trajectories that it rests on."""

    section: str
    text: str
    rests_on: tuple[uuid.UUID, ...]
    # What of the text is the trajectories' own, where the rest is the program's; empty: all of it.
    said: str = ""


@dataclass(frozen=True)
class _Found:
    action: Action
    place: float
    taken_by: tuple[uuid.UUID, ...]
    is_lesson: bool


def lines(attempts: Sequence[Attempt]) -> list[Line]:
    """The steps, checks and pitfalls of these trajectories; nothing where no action tells success from failure.

    Without a failure among them all that the successes share is the procedure.
    """
    succeeded = [one for one in attempts if one.succeeded]
    failed = [one for one in attempts if not one.succeeded]
    if len(succeeded) < 2:
        return []
    steps = _shared_by_successes(succeeded, failed)
    pitfalls = _pitfalls(succeeded, failed)
    if failed and not pitfalls and not any(one.is_lesson for one in steps):
        return []
    chosen = sorted(sorted(steps, key=lambda one: not one.is_lesson)[:MOST_STEPS], key=lambda one: one.place)
    found = []
    for step in chosen:
        action = str(step.action)
        if _CHECKING.isdisjoint(_WORD.findall(action.casefold())):
            found.append(Line(SECTION_STEP, f"Use {action}.", step.taken_by, action))
        else:
            found.append(Line(SECTION_CHECK, f"{action} must succeed before you go on.", step.taken_by, action))
    return found + pitfalls[:MOST_PITFALLS]


def _shared_by_successes(succeeded: Sequence[Attempt], failed: Sequence[Attempt]) -> list[_Found]:
    """The actions of nearly all that succeeded, each in its most particular form that they share."""
    places: dict[Action, dict[uuid.UUID, float]] = {}
    for one in succeeded:
        for place, forms in enumerate(one.actions):
            for form in forms:
                places.setdefault(form, {}).setdefault(one.id, place / max(1, len(one.actions) - 1))
    least = _NEARLY_ALL * len(succeeded)
    shared = {form: taken for form, taken in places.items() if len(taken) >= least}
    found = []
    for form, taken in shared.items():
        if any(_is_more_particular(other, form) and len(shared[other]) >= len(taken) * _NEARLY_ALL for other in shared):
            continue
        share, among_failed = len(taken) / len(succeeded), _share(form, failed)
        is_lesson = bool(failed) and share - among_failed >= _APART
        found.append(_Found(form, sum(taken.values()) / len(taken), tuple(taken), is_lesson))
    return found


def _pitfalls(succeeded: Sequence[Attempt], failed: Sequence[Attempt]) -> list[Line]:
    if len(failed) < 2:
        return []
    taken = Counter(form for one in failed for form in one.forms)
    least = max(2, _MOSTLY * len(failed))
    forms = [form for form, count in taken.items() if count >= least and _share(form, succeeded) <= _SELDOM]
    found = [(form, [one for one in failed if form in one.forms]) for form in forms]
    # What a more particular or a plainer form says, too, is said once, by the plainest.
    plainest = [one for one in found if not any(_is_more_particular(one[0], other) for other, _having in found)]
    ranked = sorted(plainest, key=lambda one: (-len(one[1]), str(one[0])))
    return [
        Line(
            SECTION_PITFALL,
            f"Avoid {form}: mostly attempts that failed used it.",
            tuple(attempt.id for attempt in having),
            str(form),
        )
        for form, having in ranked
    ]


def _share(form: Action, attempts: Sequence[Attempt]) -> float:
    return sum(form in one.forms for one in attempts) / len(attempts) if attempts else 0.0


def _is_more_particular(one: Action, other: Action) -> bool:
    """Whether `one` says all that the other says, and more: an argument more, or more words of a command."""
    if one == other or one.tool != other.tool:
        return False
    mine = dict(one.arguments)
    # Word by word: "make" does not begin "maker".
    return all(name in mine and f"{mine[name]} ".startswith(f"{value} ") for name, value in other.arguments)
