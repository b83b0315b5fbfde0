"""Patterns of paths, as agents write them: `*.md`, `notes/**/*.md`, `/top.md`, `{a,b}`, `[!a]`. Pure.

A pattern without a slash is matched against the name of a file at any depth, one with a slash against the path below
the folder that is searched; a slash at its beginning only says so. `*`, `?` and sets do not match slashes; `**` as a
whole part matches any number of folders. A name that begins with a dot matches only a part that does, too.

No pattern makes a match slow. A part becomes a regular expression whose pieces between stars are atomic, so that none
is tried twice, and folders of `**` are walked by a table of positions.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

LONGEST_PATTERN = 500
# Alternatives of one pattern.
MOST_BRANCHES = 100
_GLOBSTAR = None
_NEVER = re.compile(r"(?!)")
# A part of a pattern: what its name must match; None for `**`.
Part = re.Pattern[str] | None


class InvalidPattern(ValueError):
    """A pattern that is refused; the text says why."""


@lru_cache(maxsize=256)
def compiled(pattern: str) -> Callable[[str], bool]:
    """Whether a path, relative to the folder that is searched, matches. Errors: InvalidPattern."""
    if len(pattern) > LONGEST_PATTERN:
        raise InvalidPattern(f"A pattern has at most {LONGEST_PATTERN} characters.")
    if ".." in pattern.replace("\\", "/").split("/"):
        raise InvalidPattern("A pattern has no part `..`.")
    is_anchored = "/" in pattern
    branches = [_parts(branch) for branch in dict.fromkeys(_expanded(pattern.lstrip("/")))]
    if is_anchored:
        return lambda path: any(_matches(parts, path.split("/")) for parts in branches)
    # Each branch is one part; that of a name alone is compared most often, and without the table.
    names = [part.match if part else _is_shown for (part,) in branches]
    return lambda path: any(fits(path[path.rfind("/") + 1 :]) for fits in names)


def _is_shown(name: str) -> bool:
    """What `**` alone matches."""
    return not name.startswith(".")


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


def _matches(parts: Sequence[Part], names: Sequence[str]) -> bool:
    """Walk the names once, with all places in the pattern that they can have reached."""
    reached = _with_empty_stars({0}, parts)
    for name in names:
        reached = _with_empty_stars({after for place in reached for after in _steps(parts, place, name)}, parts)
        if not reached:
            return False
    return len(parts) in reached


def _steps(parts: Sequence[Part], place: int, name: str) -> Sequence[int]:
    if place == len(parts):
        return ()
    part = parts[place]
    if part is _GLOBSTAR:
        # It takes one name more, and stays; at the end it may be done with it.
        if name.startswith("."):
            return ()
        return (place, place + 1) if place == len(parts) - 1 else (place,)
    return (place + 1,) if part.match(name) else ()


def _with_empty_stars(reached: set[int], parts: Sequence[Part]) -> set[int]:
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
    return [_GLOBSTAR if part == "**" else _expression(part) for part in (*filter(None, folders), last)]


def _expression(part: str) -> re.Pattern[str]:
    """A part without slashes. Each piece after a star is sought once, from the left: `(?>.*?piece)`."""
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
    hidden = "" if _begins_with_dot(part) else r"(?!\.)"
    if not pieces:
        return re.compile(rf"{hidden}{current}\Z", re.DOTALL)
    first, *middle = pieces
    sought = "".join(f"(?>.*?{piece})" for piece in middle if piece)
    return re.compile(rf"{hidden}{first}{sought}.*{current}\Z", re.DOTALL)


def _begins_with_dot(part: str) -> bool:
    return part.startswith((".", "\\."))


def _one(part: str, place: int) -> tuple[str, int]:
    """The expression of one character, and the place after it."""
    sign = part[place]
    if sign == "?":
        return ".", place + 1
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
        return (".", end + 1) if is_negated else (r"(?!)", end + 1)
    return f"[{'^' if is_negated else ''}{members}]", end + 1


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
