"""How a task came out, told from what an agent did and from what the person said next; pure.

Three may say so, the strongest first: the application, the exit code of the last test run, the person's thanks or
correction. data/outcomes.toml has the test runners and the words.
"""

import json
import re
import shlex
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from itertools import dropwhile
from pathlib import Path
from typing import Any, NamedTuple

from memories.text import signals
from memories.text.signals import Patterns

DATA = Path(__file__).parent / "data" / "outcomes.toml"
SUCCEEDED, FAILED, UNKNOWN = "succeeded", "failed", "unknown"
APPLICATION, TESTS, PERSON = "application", "tests", "person"
_STRENGTH = {"": 0, PERSON: 1, TESTS: 2, APPLICATION: 3}
# The person's next words that may be about it.
MOST_REPLIES = 3
# A longer command is a program of its own.
_LONGEST_COMMAND = 4_000
_LONGEST_QUOTED = 200
# Of a result's text its ends are looked through for an exit code.
_LOOKED_AT = 2_000
# What PostgreSQL's integer holds.
_CODES = range(-(2**31), 2**31)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_VERSION = re.compile(r"(?<=[a-z])[\d.]+$")
_SUFFIX = re.compile(r"\.(?:exe|cmd|bat|ps1)$", re.IGNORECASE)
_SHELLS = frozenset({"sh", "bash", "zsh", "dash", "fish", "ksh"})
_SHELL_FLAG = re.compile(r"-[a-z]*c[a-z]*")
_ENDS = frozenset({"&&", "||", ";", "|", "|&", "&", "(", ")", ";;"})


class Outcome(NamedTuple):
    """`result` as above, and who says so; "" is nobody."""

    result: str = UNKNOWN
    source: str = ""
    reason: str = ""


class Step(NamedTuple):
    """What of a step tells an outcome: a call's tool and arguments, and an exit code, of the call or of its result."""

    is_call: bool
    tool: str = ""
    call_id: str = ""
    arguments: Any = None
    exit_code: int | None = None


def stronger(known: Outcome, found: Outcome | None) -> Outcome:
    """What holds of two: nobody weaker replaces what a stronger one said, and the same one may change its mind."""
    if found is None or _STRENGTH[found.source] < _STRENGTH[known.source]:
        return known
    return found


def of_tests(steps: Sequence[Step]) -> Outcome | None:
    """What the last test run among the steps says, None without one. A result without an id answers the call before
    it."""
    calls = {step.call_id: step for step in steps if step.is_call and step.call_id}
    for at in range(len(steps) - 1, -1, -1):
        step = steps[at]
        if step.exit_code is None:
            continue
        call: Step | None = step
        if not step.is_call:
            call = calls.get(step.call_id) if step.call_id else _call_before(steps, at)
        if call and (found := _of_run(call, step.exit_code)):
            return found
    return None


def of_replies(texts: Sequence[str], patterns: Patterns | None = None) -> Outcome | None:
    """What the person's next words say, in their order: the first that says anything counts. `patterns`: those of the
    tenant's signals."""
    for text in texts[:MOST_REPLIES]:
        kinds = {*signals.find([text], patterns), *signals.find([text], _data().replies)}
        if kinds & {"correction", "complaint"}:
            return Outcome(FAILED, PERSON)
        if kinds & {"reinforcement", "thanks"}:
            return Outcome(SUCCEEDED, PERSON)
    return None


def is_reply(texts: Sequence[str]) -> bool:
    """Whether any of the texts thanks or complains, beside the hub's signals."""
    return bool(signals.find(texts, _data().replies))


def exit_code_in(text: str) -> int | None:
    """The exit code that a result tells in its text, as some agents' shells write it."""
    looked_at = text if len(text) <= 2 * _LOOKED_AT else f"{text[:_LOOKED_AT]}\n{text[-_LOOKED_AT:]}"
    for pattern in _data().exit_codes:
        if found := pattern.search(looked_at):
            return known if (known := int(found[1])) in _CODES else None
    return None


def command_of(tool: str, arguments: Any) -> str:
    """The command that a call runs; "" for none."""
    if isinstance(arguments, str):
        given = _json(arguments)
        return arguments if given is None else command_of(tool, given)
    if isinstance(arguments, Mapping):
        found = (arguments.get(name) for name in _data().arguments)
        arguments = next((one for one in found if one), None)
    if isinstance(arguments, list) and all(isinstance(one, str) for one in arguments):
        if len(arguments) > 2 and _name(arguments[0]) in _SHELLS and _SHELL_FLAG.fullmatch(arguments[1]):
            return str(arguments[2])
        return shlex.join(arguments)
    return arguments if isinstance(arguments, str) else ""


def _of_run(call: Step, code: int) -> Outcome | None:
    command = command_of(call.tool, call.arguments)
    if call.tool.casefold() in _data().tools:
        said = code == 0
    else:
        found = _told_by(command, code)
        if found is None:
            return None
        said = found
    quoted = " ".join((command or call.tool).split())[:_LONGEST_QUOTED]
    return Outcome(SUCCEEDED if said else FAILED, TESTS, f"{quoted}: exit code {code}")


def _call_before(steps: Sequence[Step], at: int) -> Step | None:
    before = dropwhile(lambda step: not step.is_call, reversed(steps[:at]))
    return next((step for step in before if not step.call_id), None)


def _told_by(command: str, code: int) -> bool | None:
    """Whether the tests of a command passed, as its exit code tells; None where it tells nothing of them: there are
    none, or it is another's, as of `pytest | tail`."""
    commands = _commands(command)
    tests = [at for at, (words, _) in enumerate(commands) if _is_test(words)]
    if not tests:
        return None
    before, after = [end for _, end in commands[: tests[-1]]], [end for _, end in commands[tests[-1] :]]
    # The last has no end, or one that changes nothing.
    after = after[:-1] + [end for end in after[-1:] if end not in ("", ";", ")")]
    if "||" in before:
        return None
    if any("pipefail" in words for words, _ in commands):
        after = [end for end in after if end not in ("|", "|&")]
    if not after:
        return code == 0
    # What follows ran only if they passed; if it failed, it may have been that.
    return True if code == 0 and all(end == "&&" for end in after) else None


def _commands(command: str) -> list[tuple[list[str], str]]:
    """The single commands of a line, each as its words, with what ends it."""
    if not command or len(command) > _LONGEST_COMMAND:
        return []
    lexer = shlex.shlex(command.replace("\\\n", " ").replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    found: list[tuple[list[str], str]] = []
    words: list[str] = []
    try:
        for word in lexer:
            if word not in _ENDS:
                words.append(word)
                continue
            if words:
                found.append((words, word))
            words = []
    except ValueError:
        # A quotation without an end.
        return []
    return [*found, (words, "")] if words else found


def _is_test(words: Sequence[str]) -> bool:
    rest = _own(words)
    if not rest:
        return False
    names = [_name(rest[0]), *rest[1:]]
    flags = [word for word in names if word in _data().without]
    if any(flag != "-n" or names[0] in _data().dry for flag in flags):
        return False
    return any(_begins(pattern, names) for pattern in _data().tests)


def _own(words: Sequence[str]) -> list[str]:
    """The words of the program itself, without what stands before it."""
    rest = list(words)
    while rest:
        rest = list(dropwhile(lambda word: _ASSIGNMENT.match(word) is not None, rest))
        names = [_name(rest[0]), *rest[1:]] if rest else []
        found = max((len(one) for one in _data().before if _begins(one, names, plainly=True)), default=0)
        if not found:
            return rest
        rest = list(dropwhile(lambda word: word.startswith("-"), rest[found:]))
    return rest


def _begins(pattern: Sequence[str], words: Sequence[str], *, plainly: bool = False) -> bool:
    """Whether the words begin as the pattern says. Options between them mean nothing, unless it is `plainly`."""
    at = 0
    anywhere = False
    for part in pattern:
        if part == "…":
            anywhere = True
            continue
        while at < len(words) and not fnmatchcase(words[at], part):
            is_option = words[at].startswith("-") and at > 0 and not plainly
            if not (anywhere or is_option):
                return False
            at += 1
        if at == len(words):
            return False
        at, anywhere = at + 1, False
    return True


def _name(word: str) -> str:
    """A program's own name: `/usr/bin/python3.12` is python."""
    name = _SUFFIX.sub("", word.replace("\\", "/").rpartition("/")[2])
    return _VERSION.sub("", name) if name.startswith(("python", "pip", "node", "ruby", "php")) else name


def _json(text: str) -> Any:
    if not text.lstrip().startswith(("{", "[", '"')):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


@dataclass(frozen=True)
class _Data:
    arguments: tuple[str, ...]
    tools: frozenset[str]
    before: tuple[tuple[str, ...], ...]
    tests: tuple[tuple[str, ...], ...]
    without: frozenset[str]
    dry: frozenset[str]
    exit_codes: tuple[re.Pattern[str], ...]
    replies: Patterns


@cache
def _data() -> _Data:
    given = tomllib.loads(DATA.read_text(encoding="utf-8"))
    return _Data(
        tuple(given["arguments"]),
        frozenset(given["tools"]),
        _split(given["before"]),
        _split(given["tests"]),
        frozenset(given["without"]),
        frozenset(given["dry"]),
        tuple(re.compile(pattern) for pattern in given["exit_codes"]),
        signals.load({"kind": given["kind"], "guards": given["guards"]}),
    )


def _split(lines: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(line.split()) for line in lines)
