"""What a kind of memory is to code that treats all kinds alike. A kind declares it once, in a module of its own.

A part that is None, or False, says that the kind has nothing of it. `place` orders a list whose order outsiders know.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import models
from django.utils.functional import Promise


@dataclass(frozen=True)
class Served:
    """Contexts can serve it, so the log of contexts names it.

    `owner`: the look-up to the person with whom a row goes, whoever said it. `said_by`: the look-up to those who said
    a row that several people can say; it goes with the last of them. `of_others`: contexts have rows of other people.
    """

    place: int
    owner: str = "end_user"
    said_by: str = ""
    of_others: bool = False


@dataclass(frozen=True)
class Embedded:
    """Each row has one text, and a vector of it: the table of the vectors, its reference to the row, the columns that
    the text is made of, what an export calls the list of vectors, the attribute that has the text, and since when the
    row says so."""

    place: int
    vectors: type[models.Model]
    reference: str
    columns: tuple[str, ...]
    exported: Promise
    text: str = "text"
    since: str = "updated_at"


@dataclass(frozen=True)
class Plain:
    """Nothing about its rows is special: each is of one person and one agent, was written once by a key, and is deleted
    into the trash. So the same code clears, rolls back, merges, reverts, erases and exports them.

    They have `tenant`, `end_user`, `agent_id`, `actor_id`, `content`, `created_at`, `trashed_at` and `change_set`, and
    a query set with of(), present() and discarded(). With a stage of retention a tenant's number says how long they are
    kept: `keep_<plural>_days`.

    `listed`, `icon`: of the list in the menu. `in_trail`: a row in sentences of the audit trail, without and with its
    person. `exported`: what an export calls the list. `trashed`: the
    heading of a count of rows that go to the trash. `headings`: by language, above its lines in contexts, which begin
    with the column `topic`. `search`, `api`, `admin`: names of the modules with its hits(), its URLS and its PAGES.
    """

    listed: Promise
    icon: str
    in_trail: tuple[Promise, Promise]
    exported: Promise
    trashed: Promise
    headings: Mapping[str, str]
    search: str
    api: str
    admin: str
    topic: str


@dataclass(frozen=True)
class Kind:
    """`name`: in answers and in the log of contexts. `plural`: in counts and metrics.

    `is_purged`: the nightly pass deletes what was long enough in the trash, a row by itself.
    """

    name: str
    plural: str
    model: type[models.Model]
    served: Served | None = None
    embedded: Embedded | None = None
    is_purged: bool = False
    plain: Plain | None = None

    @property
    def rows(self) -> Any:
        """The manager of its model."""
        return self.model._default_manager


def in_order(kinds: Iterable[Kind], part: str) -> tuple[Kind, ...]:
    """Those that have this part, in the order of its places."""
    having = [kind for kind in kinds if getattr(kind, part)]
    return tuple(sorted(having, key=lambda kind: getattr(kind, part).place))
