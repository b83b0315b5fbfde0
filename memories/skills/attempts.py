"""What trajectories tell: their words person by person, and their steps as actions that can be compared; pure but for
the rows that it reads."""

import json
import re
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from memories.models import Trajectory, TrajectoryStep
from memories.text.words import SpokenWords

# Of one trajectory: characters that are compared, and steps that are read.
MOST_CHARACTERS = 20_000
MOST_STEPS = 200
# Of each step so much is always compared; no more of it is shown to a model.
BEGINNING = 500
_ESCAPE = re.compile(r"\\(?:u((?![dD][89a-fA-F])[0-9a-fA-F]{4})|([nrtbf]))")
# A longer value of an argument says too much of one case to be a part of a procedure.
LONGEST_VALUE = 80
_ARGUMENTS = 12
# Names of arguments that hold a command of a shell.
_COMMANDS = ("command", "cmd", "script")


@dataclass(frozen=True)
class Action:
    """A call of a tool: all of it, or with one argument, or the tool alone."""

    tool: str
    arguments: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        given = ", ".join(f"`{name}`: `{value}`" for name, value in self.arguments)
        return f"`{self.tool}` ({given})" if given else f"`{self.tool}`"


@dataclass(frozen=True)
class Attempt:
    """One trajectory with its steps."""

    id: uuid.UUID
    person: uuid.UUID
    agent_id: str
    family: str
    task: str
    succeeded: bool
    steps: tuple[TrajectoryStep, ...] = field(repr=False)

    @cached_property
    def actions(self) -> list[tuple[Action, ...]]:
        """For each call its forms, from the most particular to the tool alone."""
        return [_forms(step) for step in self.steps if step.kind == TrajectoryStep.Kind.TOOL_CALL and step.tool]

    @cached_property
    def forms(self) -> frozenset[Action]:
        """What it did, in any form."""
        return frozenset(form for forms in self.actions for form in forms)

    @cached_property
    def text(self) -> str:
        """Its words, to compare others with."""
        said = [_unescaped("\n".join([step.tool, *_strings(step.arguments), step.content])) for step in self.steps]
        # A long result must not hide what later steps say: a model is shown the beginning of each.
        begun = "\n".join([self.family, self.task[:BEGINNING], *(one[:BEGINNING] for one in said)])
        rest = "\n".join([self.task, *said])[: max(0, MOST_CHARACTERS - len(begun))]
        return f"{begun}\n{rest}"

    @cached_property
    def errors(self) -> list[str]:
        """First lines of what failed."""
        failed = [step for step in self.steps if step.is_error or step.exit_code]
        lines = (next(iter(step.content.strip().splitlines()), "") for step in failed)
        return list(dict.fromkeys(line.strip() for line in lines if line.strip()))


class SaidWords:
    """The words of several trajectories: who of the people has a word."""

    def __init__(self, attempts: Iterable[Attempt]) -> None:
        texts: dict[uuid.UUID, list[str]] = {}
        self._of: dict[uuid.UUID, SpokenWords] = {}
        for one in attempts:
            texts.setdefault(one.person, []).append(one.text)
            self._of[one.id] = SpokenWords([one.text])
        self._people = {person: SpokenWords(said) for person, said in texts.items()}

    @property
    def people(self) -> Sequence[SpokenWords]:
        return list(self._people.values())

    def of(self, trajectories: Iterable[uuid.UUID]) -> list[SpokenWords]:
        return [self._of[one] for one in trajectories if one in self._of]


def read(rows: Iterable[Trajectory]) -> list[Attempt]:
    """These trajectories with their first steps. Two statements whatever their number."""
    found = list(rows)
    steps: dict[uuid.UUID, list[TrajectoryStep]] = {}
    wanted = TrajectoryStep.objects.filter(trajectory__in=[one.pk for one in found], position__lte=MOST_STEPS)
    for step in wanted.order_by("trajectory", "position"):
        steps.setdefault(step.trajectory_id, []).append(step)
    return [
        Attempt(
            one.pk,
            one.end_user_id,
            one.agent_id,
            one.family,
            one.task,
            one.outcome == Trajectory.Outcome.SUCCEEDED,
            tuple(steps.get(one.pk, ())),
        )
        for one in found
    ]


def _forms(step: TrajectoryStep) -> tuple[Action, ...]:
    """All arguments, each of them alone, the first word of a command, the tool."""
    given = step.arguments if isinstance(step.arguments, dict) else {}
    plain = [(str(name), _plain(value)) for name, value in list(given.items())[:_ARGUMENTS]]
    known = tuple(sorted((name, value) for name, value in plain if value))
    forms = [Action(step.tool, known)] if len(known) > 1 and len(known) == len(plain) else []
    forms += [Action(step.tool, (one,)) for one in known]
    commands = ((name, str(given.get(name) or "").split()) for name in _COMMANDS)
    forms += [Action(step.tool, ((name, words[0]),)) for name, words in commands if words]
    short = [one for one in forms if all(len(value) <= LONGEST_VALUE for _name, value in one.arguments)]
    return tuple(dict.fromkeys([*short, Action(step.tool)]))


def _strings(value: Any) -> Iterator[str]:
    """The names and plain values in a JSON value, as people would read them: not as JSON writes them."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting += [inner for pair in reversed(one.items()) for inner in reversed(pair)]
        elif isinstance(one, list):
            waiting += reversed(one)
        elif one is not None:
            yield one if isinstance(one, str) else json.dumps(one)


def _unescaped(text: str) -> str:
    """The text without the escapes of JSON within it, behind which words would hide: `\\nKim` is a line with Kim."""
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else " ", text) if "\\" in text else text


def _plain(value: Any) -> str:
    """A text, number or switch on one line; empty for what is nested."""
    if isinstance(value, str):
        return " ".join(value.split())
    return json.dumps(value) if isinstance(value, bool | int | float) else ""
