"""The protocol of a store of personal data, the store of one model, and the ids and names that lead to a person."""

import uuid
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Protocol

from django.apps import apps
from django.db.models import Model, QuerySet
from pgvector import HalfVector

from memories.models import Dream, EndUser, Episode, ExtractionRun, Fact
from memories.models.columns import columns_of

# Rows of one transaction: a tenth of a second, or two of facts, whose foreign keys take longest to check.
STEP = 1_000
_BY_A_MODEL = "llm:"


class PersonalDataStore(Protocol):
    """One place where personal data can be; `model` is its label."""

    @property
    def model(self) -> str: ...
    @property
    def fields(self) -> tuple[str, ...]: ...

    def count(self, person: EndUser) -> int:
        """Count the rows about the person and the aliases that lead to them."""

    def export_rows(self, person: EndUser) -> Iterator[dict[str, Any]]:
        """Yield these rows as JSON values."""

    def erase(self, person: EndUser, limit: int = STEP) -> int:
        """Erase at most `limit` of them, inside the caller's transaction; return how many. 0: nothing is left."""

    def verify(self, person: EndUser) -> int:
        """Count what erase() has left."""


class CountsRows:
    """A store that counts and verifies by its rows."""

    def rows_of(self, person: EndUser) -> Any:
        """The rows about this person, and about the aliases that lead to them: a QuerySet or a list."""
        raise NotImplementedError

    def count(self, person: EndUser) -> int:
        rows = self.rows_of(person)
        return rows.count() if isinstance(rows, QuerySet) else len(rows)

    def verify(self, person: EndUser) -> int:
        return self.count(person)


@dataclass(frozen=True)
class Store(CountsRows):
    """A model with personal data: `path` is the look-up from it to the person.

    `also`: further look-ups; a row goes when any of them leads to the person. `loosens`: (model, name of a reference)
    of rows that stay and refer to rows of this store.
    """

    model: str
    path: str
    also: tuple[str, ...] = ()
    loosens: tuple[tuple[str, str], ...] = ()

    @property
    def table(self) -> type[Model]:
        return apps.get_model(self.model)

    @property
    def fields(self) -> tuple[str, ...]:
        """Those that hold the data, as the model declares."""
        return columns_of(self.table).erased

    def rows_of(self, person: EndUser) -> QuerySet[Model]:
        people = ids_behind(person)
        first, *others = [self._keys(path, people) for path in (self.path, *self.also)]
        # A union, for a row may match several look-ups, and the planner answers an OR by reading all of the table.
        return self.table._default_manager.filter(pk__in=first.union(*others) if others else first)

    def export_rows(self, person: EndUser) -> Iterator[dict[str, Any]]:
        for row in self.rows_of(person).order_by("pk").values().iterator(chunk_size=STEP):
            yield {name: as_json(value) for name, value in row.items()}

    def erase(self, person: EndUser, limit: int = STEP) -> int:
        people = ids_behind(person)
        for label, reference in self.loosens:
            # All at once: few rows have such a reference.
            referring = apps.get_model(label)._default_manager.filter(**{f"{reference}__{self.path}__in": people})
            referring.update(**{reference: None})
        for path in (self.path, *self.also):
            rows = self.table._default_manager.filter(pk__in=self._keys(path, people)[:limit])
            # One statement: what refers to these rows went before, and the database refuses to leave any.
            gone: int = rows._raw_delete(rows.db)
            if gone:
                return gone
        return 0

    def _keys(self, path: str, people: list[uuid.UUID]) -> QuerySet[Model, Any]:
        return self.table._default_manager.filter(**{f"{path}__in": people}).order_by().values("pk")


def as_json(value: Any) -> Any:
    """A column's value for JSON: moments as ISO 8601, bytes as Base64, vectors as lists."""
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, uuid.UUID | Decimal):
        return str(value)
    if isinstance(value, HalfVector):
        return value.to_list()
    if isinstance(value, bytes | memoryview):
        return b64encode(bytes(value)).decode()
    if isinstance(value, list):
        return [as_json(one) for one in value]
    return value


def ids_behind(person: EndUser) -> list[uuid.UUID]:
    """Ids of the person and of the aliases that lead to them."""
    return list(EndUser.objects.with_aliases(person).order_by("pk").values_list("pk", flat=True))


def external_ids_of(person: EndUser) -> list[str]:
    """The external ids that lead to the person, their own among them."""
    return list(EndUser.objects.with_aliases(person).order_by("pk").values_list("external_id", flat=True))


def names_of(person: EndUser) -> set[str]:
    """External ids and display names of the person, case-folded."""
    rows = EndUser.objects.with_aliases(person).values_list("external_id", "display_name")
    return {word.strip().casefold() for row in rows for word in row if word.strip()}


def models_used(person: EndUser) -> list[str]:
    """Names of the language models that received the person's texts, as runs and memories have them; also of those
    that no setting names any more."""
    rows = (
        model._default_manager.filter(end_user__in=ids_behind(person))
        for model in (ExtractionRun, Fact, Episode, Dream)
    )
    by = (found.filter(extractor__startswith=_BY_A_MODEL).values_list("extractor", flat=True) for found in rows)
    names = {name for extractors in by for name in extractors.order_by().distinct()}
    return sorted(name.removeprefix(_BY_A_MODEL) for name in names)
