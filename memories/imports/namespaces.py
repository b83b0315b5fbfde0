"""Whose a namespace is, and which names are hidden."""

from collections.abc import Sequence
from itertools import takewhile

from memories.imports.records import Owner

USER, AGENT, ANYTHING, REST = "{user}", "{agent}", "*", "**"


def is_hidden(path: str | Sequence[str]) -> bool:
    """Whether a part of the path begins with a dot; `.` and `..` are no names. The root that was named is no part."""
    parts = path.replace("\\", "/").split("/") if isinstance(path, str) else path
    return any(part.startswith(".") and part not in (".", "..") for part in parts)


def shared(one: Sequence[str], other: Sequence[str]) -> int:
    """How many parts two paths have in common, from their beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def whose_namespace(namespace: Sequence[str], pattern: str) -> Owner | None:
    """Whose a namespace is by a pattern like `memories,{user}`; None where it has another form. `**` at its end are
    any number of parts."""
    parts = [part.strip() for part in (pattern or REST).split(",")]
    if parts[-1] == REST:
        parts[-1:] = [ANYTHING] * (len(namespace) - len(parts) + 1)
    found = Owner()
    if len(parts) != len(namespace):
        return None
    for part, name in zip(parts, namespace, strict=True):
        if part in (USER, AGENT):
            found = found._replace(**{"user_id" if part == USER else "agent_id": name})
        elif part not in (ANYTHING, name):
            return None
    return found
