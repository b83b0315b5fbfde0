"""A store: one place where personal data can be, and how it is counted, given out, erased and looked at afterwards."""

import uuid
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Protocol

from django.apps import apps
from django.db.models import Model, Q, QuerySet
from pgvector import HalfVector

from memories.models import EndUser, Episode, ExtractionRun, Fact

# Rows of one transaction: a tenth of a second, or two of facts, whose foreign keys take longest to check.
STEP = 1_000
_BY_A_MODEL = "llm:"


class Keeping(Protocol):
    """What every store can do; `model` is its label."""

    @property
    def model(self) -> str: ...
    @property
    def fields(self) -> tuple[str, ...]: ...

    def count(self, person: EndUser) -> int:
        """How many rows tell of the person, and of the names that lead to them."""

    def export_rows(self, person: EndUser) -> Iterator[dict[str, Any]]:
        """These rows, as what JSON can say."""

    def erase(self, person: EndUser, limit: int = STEP) -> int:
        """Let go of at most `limit` of them, inside the caller's transaction; how many. 0: nothing is left."""

    def verify(self, person: EndUser) -> int:
        """How many erase() has left."""


@dataclass(frozen=True)
class Store:
    """A model with personal data: `path` is the look-up from it to the person, `fields` are those that hold it.

    `also`: further look-ups; whichever leads to the person, the row goes. `loosens`: (model, name of a reference) of
    rows that stay and merely point to rows of this one.
    """

    model: str
    path: str
    fields: tuple[str, ...]
    also: tuple[str, ...] = ()
    loosens: tuple[tuple[str, str], ...] = ()

    @property
    def table(self) -> type[Model]:
        return apps.get_model(self.model)

    def rows_of(self, person: EndUser) -> QuerySet[Model]:
        """The rows that are about this person, and about the names that lead to them."""
        people = ids_behind(person)
        first, *others = [self._by(path, people).order_by().values("pk") for path in (self.path, *self.also)]
        # A row may tell of both; and the planner takes a union by its indexes, an OR by reading all of the table.
        return self.table._default_manager.filter(pk__in=first.union(*others) if others else first)

    def count(self, person: EndUser) -> int:
        return self.rows_of(person).count()

    def export_rows(self, person: EndUser) -> Iterator[dict[str, Any]]:
        for row in self.rows_of(person).order_by("pk").values().iterator(chunk_size=STEP):
            yield {name: told(value) for name, value in row.items()}

    def erase(self, person: EndUser, limit: int = STEP) -> int:
        people = ids_behind(person)
        for label, reference in self.loosens:
            _loosen(label, reference, f"{reference}__{self.path}__in", people)
        for path in (self.path, *self.also):
            if gone := self.delete(self._by(path, people).order_by().values("pk")[:limit]):
                return gone
        return 0

    def verify(self, person: EndUser) -> int:
        return self.count(person)

    def delete(self, ids: Any) -> int:
        """In one statement, for what hangs on these rows went before; the database refuses to leave any."""
        rows = self.table._default_manager.filter(pk__in=ids)
        gone: int = rows._raw_delete(rows.db)
        return gone

    def _by(self, path: str, people: list[uuid.UUID]) -> QuerySet[Model]:
        return self.table._default_manager.filter(**{f"{path}__in": people})


def _loosen(label: str, reference: str, path: str, people: list[uuid.UUID]) -> None:
    """All at once: few rows point to others so."""
    apps.get_model(label)._default_manager.filter(**{path: people}).update(**{reference: None})


def ids_behind(person: EndUser) -> list[uuid.UUID]:
    """Ids of the person and of the names that lead to them."""
    return list(EndUser.objects.behind(person).order_by("pk").values_list("pk", flat=True))


def names_of(person: EndUser) -> list[str]:
    """The caller's ids that lead to the person, their own among them."""
    return list(EndUser.objects.behind(person).order_by("pk").values_list("external_id", flat=True))


def models_asked(person: EndUser) -> list[str]:
    """Names of the language models that were told what the person said, as runs and memories have them; also of those
    that no setting names any more."""
    rows = (model._default_manager.filter(end_user__in=ids_behind(person)) for model in (ExtractionRun, Fact, Episode))
    by = (found.filter(extractor__startswith=_BY_A_MODEL).values_list("extractor", flat=True) for found in rows)
    names = {name for extractors in by for name in extractors.order_by().distinct()}
    return sorted(name.removeprefix(_BY_A_MODEL) for name in names)


def called(person: EndUser) -> set[str]:
    """All that they are called by: ids and names, folded."""
    rows = EndUser.objects.behind(person).values_list("external_id", "display_name")
    return {word.strip().casefold() for row in rows for word in row if word.strip()}


def holds(text: str, words: set[str]) -> bool:
    """Whether a text names somebody who is called so."""
    said = text.casefold()
    return any(word in said for word in words)


def any_of(names: tuple[str, ...], *, empty: object) -> Q:
    """Rows in which one of these fields says something."""
    said = Q()
    for name in names:
        said |= ~Q(**{name: empty})
    return said


def told(value: Any) -> Any:
    """A column's value as JSON can say it: moments as ISO 8601, bytes as Base64, vectors as lists."""
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, uuid.UUID | Decimal):
        return str(value)
    if isinstance(value, HalfVector):
        return value.to_list()
    if isinstance(value, bytes | memoryview):
        return b64encode(bytes(value)).decode()
    return value
