"""Twenty kinds of task with planted lessons, and a scripted agent that follows what it is given.

A task succeeds if the agent takes the steps that its kind needs and keeps off its trap. Left to itself the agent knows
the usual step of every task, and takes each other tool by chance. With a skill it does what the skill says, and of the
rest what it would do anyway. Nothing here knows how skills are found.
"""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from tests.skills.acting import Call

_NAMES = (
    "release service", "refund order", "book flight", "onboard customer", "rotate logs", "migrate table",
    "close ticket", "publish article", "renew licence", "import catalogue", "reset device", "audit invoice",
    "schedule visit", "deploy model", "merge branch", "translate page", "restore backup", "plan route",
    "screen candidate", "order parts",
)  # fmt: skip
# Of each kind: what everybody does, what it takes beside that, what ruins it.
_VERBS = ("check", "load", "compare", "lock", "confirm", "drain", "freeze", "warm", "mark", "split")
_RUIN = ("skip", "force", "guess", "overwrite", "rush")
_USED = re.compile(r"`([a-z_]+)`")
# By chance the agent takes a step that it does not know to be needed, or falls into the trap.
_TAKES, _FALLS = 0.75, 0.3


@dataclass(frozen=True)
class Kind:
    """A kind of task."""

    name: str
    usual: str
    needed: tuple[str, str]
    trap: str
    others: tuple[str, ...]

    def succeeds(self, calls: Sequence[Call]) -> bool:
        tools = [tool for tool, _arguments in calls]
        return all(one in tools for one in self.needed) and self.trap not in tools


def kinds() -> list[Kind]:
    found = []
    for at, name in enumerate(_NAMES):
        noun = name.split()[-1]
        first, second = _VERBS[at % 10], _VERBS[(at * 3 + 5) % 10]
        second = second if second != first else "settle"
        found.append(
            Kind(
                name,
                f"open_{noun}",
                (f"{first}_{noun}", f"{second}_{noun}_again"),
                f"{_RUIN[at % 5]}_{noun}",
                (f"read_{noun}", f"list_{noun}", f"note_{noun}"),
            )
        )
    return found


def act(kind: Kind, chance: random.Random, *, skill: str = "", case: int = 0) -> list[Call]:
    """What the agent does for a task of this kind; `skill`: the text of the file that it has read."""
    told, warned = _told(skill)
    calls: list[Call] = [(kind.usual, {"case": f"no {case}"})]
    wanted = [one for one in kind.needed if one in told or chance.random() < _TAKES]
    wanted += [one for one in kind.others if chance.random() < _TAKES]
    if kind.trap not in warned and chance.random() < _FALLS:
        wanted.append(kind.trap)
    chance.shuffle(wanted)
    return calls + [(tool, {"case": f"no {case}"}) for tool in wanted]


def _told(skill: str) -> tuple[set[str], set[str]]:
    """The tools that the text says to use, and those that it says to avoid."""
    body, _, pitfalls = skill.partition("## Pitfalls")
    return set(_USED.findall(body)), set(_USED.findall(pitfalls))
