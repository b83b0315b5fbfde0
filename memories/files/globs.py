"""Patterns of paths, as agents write them: `*.md`, `notes/**/*.md`, `/top.md`, `{a,b}`, `[!a]`. Pure.

A pattern without a slash is matched against the name of a file at any depth, one with a slash against the path below
the folder that is searched; a slash at its beginning only says so. `*`, `?` and sets do not match slashes; `**` as a
whole part matches any number of folders. A name that begins with a dot matches only a part that does, too.

No pattern makes a match slow. A pattern becomes one regular expression, in which the pieces between the stars of a part
are atomic, so that none is tried twice. With `**` in several places it would try them all: then the folders are walked
by a table of positions.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

LONGEST_PATTERN = 500
# Alternatives of one pattern.
MOST_BRANCHES = 100
_GLOBSTAR = None
_NEVER = r"(?!)"
# A part of a pattern: the expression of its name, which matches no slash; None for `**`.
Part = str | None
_FOLDERS = r"(?:[^/]+/)*"
_SHOWN_FOLDERS = r"(?:(?!\.)[^/]+/)*"
_SHOWN_NAME = r"(?!\.)[^/]+"
# Behind the last of these a part is text as it is, also where a bracket is closed by none.
_SPECIAL = re.compile(r"[*?\[\]/]")


class InvalidPattern(ValueError):
    """A pattern that is refused; the text says why."""


@lru_cache(maxsize=256)
def compiled(pattern: str) -> Callable[[str], object]:
    """What is true of a path, relative to the folder that is searched, if it matches. Errors: InvalidPattern."""
    if len(pattern) > LONGEST_PATTERN:
        raise InvalidPattern(f"A pattern has at most {LONGEST_PATTERN} characters.")
    if ".." in pattern.replace("\\", "/").split("/"):
        raise InvalidPattern("A pattern has no part `..`.")
    branches = [_parts(branch) for branch in dict.fromkeys(_expanded(pattern.lstrip("/")))]
    if "/" not in pattern:
        # At any depth, also below folders whose names begin with a dot.
        return _any_of([f"{_FOLDERS}{_SHOWN_NAME if part is _GLOBSTAR else part}" for (part,) in branches])
    plain = _any_of([_whole(parts) for parts in branches if parts.count(_GLOBSTAR) < 2])
    walked = [
        [_GLOBSTAR if part is _GLOBSTAR else re.compile(rf"{part}\Z") for part in parts]
        for parts in branches
        if parts.count(_GLOBSTAR) > 1
    ]
    if not walked:
        return plain
    return lambda path: plain(path) or any(_matches(parts, path.split("/")) for parts in walked)


def _any_of(expressions: Sequence[str]) -> Callable[[str], object]:
    """Whether a path matches one of these expressions to its end: there may be ten thousand to ask about."""
    return re.compile(rf"(?:{'|'.join(expressions) or _NEVER})\Z").match


def _whole(parts: Sequence[Part]) -> str:
    """The expression of a path; at most one of the parts is `**`."""
    *folders, last = parts
    before = "".join(_SHOWN_FOLDERS if part is _GLOBSTAR else f"{part}/" for part in folders)
    return before + (f"{_SHOWN_FOLDERS}{_SHOWN_NAME}" if last is _GLOBSTAR else last)


def literal_folder(pattern: str) -> str:
    """The folders that an anchored pattern begins with as they are, each with its slash: only below them it matches."""
    if "/" not in pattern or any(sign in pattern for sign in "{\\"):
        return ""
    plain = []
    for part in pattern.lstrip("/").split("/")[:-1]:
        if any(sign in part for sign in "*?[") or not part:
            break
        plain.append(f"{part}/")
    return "".join(plain)


def literal_end(pattern: str) -> str:
    """What every path that matches ends with, as it is; empty where the end can differ."""
    if any(sign in pattern for sign in "{\\"):
        return ""
    return _SPECIAL.split(pattern)[-1]


def _matches(parts: Sequence[re.Pattern[str] | None], names: Sequence[str]) -> bool:
    """Walk the names once, with all places in the pattern that they can have reached."""
    reached = _with_empty_stars({0}, parts)
    for name in names:
        reached = _with_empty_stars({after for place in reached for after in _steps(parts, place, name)}, parts)
        if not reached:
            return False
    return len(parts) in reached


def _steps(parts: Sequence[re.Pattern[str] | None], place: int, name: str) -> Sequence[int]:
    if place == len(parts):
        return ()
    part = parts[place]
    if part is _GLOBSTAR:
        # It takes one name more, and stays; at the end it may be done with it.
        if name.startswith("."):
            return ()
        return (place, place + 1) if place == len(parts) - 1 else (place,)
    return (place + 1,) if part.match(name) else ()


def _with_empty_stars(reached: set[int], parts: Sequence[Any]) -> set[int]:
    """`**` matches no folder as well, but for one at the end: there it stands for a file."""
    more = set(reached)
    for place in reached:
        after = place
        while after < len(parts) - 1 and parts[after] is _GLOBSTAR:
            after += 1
            more.add(after)
    return more


def _parts(branch: str) -> list[Part]:
    if branch.startswith("/"):
        # Of `{,a}/b`: an absolute path is below no folder.
        return [_NEVER]
    *folders, last = branch.split("/")
    parts = [_GLOBSTAR if part == "**" else _expression(part) for part in (*filter(None, folders), last)]
    # `**` after `**` matches nothing more.
    return [part for place, part in enumerate(parts) if part is not _GLOBSTAR or parts[place + 1 : place + 2] != [part]]


def _expression(part: str) -> str:
    """A part without slashes. Each piece after a star is sought once, from the left: `(?>[^/]*?piece)`."""
    pieces, place, current = [], 0, ""
    while place < len(part):
        sign = part[place]
        if sign == "*":
            pieces.append(current)
            current = ""
            while place < len(part) and part[place] == "*":
                place += 1
            continue
        one, place = _one(part, place)
        current += one
    hidden = "" if part.startswith((".", "\\.")) else r"(?!\.)"
    if not pieces:
        return f"{hidden}{current}"
    first, *middle = pieces
    sought = "".join(f"(?>[^/]*?{piece})" for piece in middle if piece)
    return f"{hidden}{first}{sought}[^/]*{current}"


def _one(part: str, place: int) -> tuple[str, int]:
    """The expression of one character, and the place after it."""
    sign = part[place]
    if sign == "?":
        return "[^/]", place + 1
    if sign == "\\" and place + 1 < len(part):
        return re.escape(part[place + 1]), place + 2
    if sign == "[" and (found := _set(part, place)):
        return found
    return re.escape(sign), place + 1


def _set(part: str, start: int) -> tuple[str, int] | None:
    """`[abc]`, `[a-z]`, `[!a]`, `[^a]`; None where no bracket closes it. A bracket that comes first is a member."""
    place = start + 1
    is_negated = part[place : place + 1] in ("!", "^")
    place += is_negated
    end = part.find("]", place + 1)
    if end < 0 or place >= len(part):
        return None
    members = _members(part[place:end])
    if not members:
        return ("[^/]", end + 1) if is_negated else (_NEVER, end + 1)
    # A range can have the slash in it.
    return f"(?!/)[{'^' if is_negated else ''}{members}]", end + 1


def _members(text: str) -> str:
    members, place = "", 0
    while place < len(text):
        if text[place] == "\\" and place + 1 < len(text):
            place += 1
        first = text[place]
        if text[place + 1 : place + 2] == "-" and place + 2 < len(text):
            last = text[place + 2]
            # A range the wrong way round has no members.
            members += f"{re.escape(first)}-{re.escape(last)}" if first <= last else ""
            place += 3
            continue
        members += re.escape(first)
        place += 1
    return members


def _expanded(pattern: str) -> list[str]:
    """The alternatives of `{a,b}`, one pattern each. Errors: InvalidPattern for too many."""
    done, waiting = [], [pattern]
    while waiting:
        text = waiting.pop(0)
        found = _first_braces(text)
        if found is None:
            done.append(text)
        else:
            start, end, options = found
            waiting += [text[:start] + option + text[end:] for option in options]
        if len(done) + len(waiting) > MOST_BRANCHES:
            raise InvalidPattern(f"A pattern has at most {MOST_BRANCHES} alternatives.")
    return done


def _first_braces(text: str) -> tuple[int, int, list[str]] | None:
    """Start, end and options of the first braces that have a comma and are closed."""
    for start, sign in enumerate(text):
        if sign != "{" or text[start - 1 : start] == "\\":
            continue
        depth, option, options = 0, start + 1, []
        for place in range(start, len(text)):
            if text[place - 1 : place] == "\\":
                continue
            depth += (text[place] == "{") - (text[place] == "}")
            if text[place] == "," and depth == 1:
                options.append(text[option:place])
                option = place + 1
            elif depth == 0:
                if options:
                    return start, place + 1, [*options, text[option:place]]
                break
    return None
