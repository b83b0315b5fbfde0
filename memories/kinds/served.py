"""The kinds of memories that a context can serve.

Whatever reads the log of contexts goes by this table: its writer, erasures, exports, the pages of the admin, and the
triggers that empty logged texts (a test compares them). A context with a kind that is not here is not logged.
"""

import uuid
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from django.db import models

from memories.kinds import KINDS


class ServedKind(NamedTuple):
    """The table of a kind, and what memories/kinds/kind.py says of how contexts serve it."""

    model: type[models.Model]
    owner: str
    said_by: str
    of_others: bool


# By its name in answers and in the log.
SERVED: Mapping[str, ServedKind] = {
    kind.name: ServedKind(kind.model, served.owner, served.said_by, served.of_others)
    for kind, served in sorted(((kind, kind.served) for kind in KINDS if kind.served), key=lambda pair: pair[1].place)
}
NAMES = tuple(SERVED)


class PeopleBehind(NamedTuple):
    """Whom a memory goes with: its `owner`, and the last of those who `said` it, where several people can."""

    owner: uuid.UUID | None
    said: frozenset[uuid.UUID] | None = None

    @property
    def all(self) -> frozenset[uuid.UUID]:
        return (self.said or frozenset()) | ({self.owner} if self.owner else frozenset())

    def may_be_named(self, usable: Collection[uuid.UUID]) -> bool:
        """Whether the memory stays if only the data of these people may be used."""
        return (self.owner is None or self.owner in usable) and (self.said is None or bool(self.said & set(usable)))


def people_behind(kind: str, ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, PeopleBehind]:
    """Id → the people behind it, of those that are there; one query. Errors: KeyError for an unknown kind."""
    served, wanted = SERVED[kind], list(ids)
    if not wanted:
        return {}
    looked_up = ["pk", served.owner, *([served.said_by] if served.said_by else [])]
    rows: Any = served.model._default_manager.filter(pk__in=wanted).order_by().values_list(*looked_up)
    found: dict[uuid.UUID, PeopleBehind] = {}
    for pk, owner, *said in rows:
        others = (found[pk].said if pk in found else None) or frozenset()
        found[pk] = PeopleBehind(owner, others | {one for one in said if one} if served.said_by else None)
    return found
