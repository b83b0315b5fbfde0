"""What a context can have: a row for each part. The order of its lines is context.py's."""

from collections.abc import Mapping
from dataclasses import dataclass

from memories.kinds import PLAIN


@dataclass(frozen=True)
class Limit:
    """How many of a part a request asks for at most, and what the API says of it. `rule`: the tenant's number where it
    asks for none; without one as many as fit."""

    most: int
    text: str
    rule: str = ""


@dataclass(frozen=True)
class Part:
    """`by_default`: requests that name no parts have it. `as_of`: it can be told as of an earlier moment."""

    name: str
    by_default: bool = False
    as_of: bool = True
    limit: Limit | None = None


PARTS = (
    Part("profile", by_default=True, as_of=False),
    Part(
        "facts",
        by_default=True,
        limit=Limit(500, "Ranked facts, by default 20; standing ones come on top.", "context_facts"),
    ),
    Part("graph"),
    Part("groups", by_default=True, as_of=False),
    Part("files", as_of=False),
    *(Part(kind.plural, as_of=False) for kind in PLAIN),
    Part("documents"),
    Part("episodes", by_default=True, limit=Limit(100, "By default 3.", "context_episodes")),
    Part("working_memory"),
    Part("turns", by_default=True, limit=Limit(1000, "Recalled turns, by default as many as fit.")),
    Part("unextracted"),
)
INCLUDABLE = tuple(part.name for part in PARTS)
DEFAULT_INCLUDE = frozenset(part.name for part in PARTS if part.by_default)
# Of today alone.
NOT_AS_OF = frozenset(part.name for part in PARTS if not part.as_of)
LIMITS: Mapping[str, Limit] = {part.name: part.limit for part in PARTS if part.limit}
