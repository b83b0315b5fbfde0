"""The rows of an export as plain values: what JSON and the page that people read are both written from."""

import uuid
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from django.db.models import Model, Prefetch, QuerySet

from memories.models import CaseType
from memories.privacy import registry
from memories.privacy.exports.computed import COMPUTED, Subject
from memories.privacy.exports.profiles import Section

Told = dict[str, Any]
# Rows in memory at a time.
CHUNK = 200


def rows(section: Section, subject: Subject) -> Iterator[Told]:
    """What the export tells of this store, row by row in a lasting order, few of them in memory at a time."""
    for row in _rows_of(section, subject).iterator(chunk_size=CHUNK):
        yield _told(row, section, subject)


def names_in(section: Section, profile: str) -> tuple[str, ...]:
    """The columns that are told."""
    return section.fields if profile == CaseType.ACCESS else section.provided


def computed_in(section: Section, profile: str) -> tuple[str, ...]:
    return section.computed if profile == CaseType.ACCESS else ()


def inside(section: Section, profile: str) -> tuple[Section, ...]:
    """The lists and objects inside each row of it that this profile tells."""
    return tuple(inner for inner in section.inside if names_in(inner, profile))


def plain(value: object) -> str:
    """What JSON has no word for: moments in UTC (RFC 3339), ids and amounts as text."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, uuid.UUID | Decimal):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no place in an export")


def _told(row: Model, section: Section, subject: Subject) -> Told:
    """One row, with what stands inside of it."""
    told = {name: _value(row, name) for name in names_in(section, subject.profile)}
    for name in computed_in(section, subject.profile):
        told[name] = COMPUTED[section.store, name].of(row, subject)
    for inner in inside(section, subject.profile):
        told[inner.name] = _inner(row, inner, subject)
    return told


def _rows_of(section: Section, subject: Subject) -> QuerySet[Model]:
    store = next(store for store in registry.STORES if store.model == section.store)
    found = _narrowed(store.rows_of(subject.person), section, subject)
    # One that each row has at most once is joined; of the others, those of all rows of a chunk are read at once.
    lists = [inner for inner in inside(section, subject.profile) if inner.name not in section.with_rows]
    named = (Prefetch(one.name, _narrowed(one.model._default_manager.all(), one, subject)) for one in lists)
    return found.prefetch_related(*named)


def _narrowed(rows: QuerySet[Model], section: Section, subject: Subject) -> QuerySet[Model]:
    # None: no other row. Without any argument it would be all that a row refers to.
    joined = rows.order_by(*section.order).select_related(*(section.with_rows or (None,)))
    return joined if subject.profile == CaseType.ACCESS else joined.filter(section.only)


def _inner(row: Model, section: Section, subject: Subject) -> Any:
    found = getattr(row, section.name, None)
    if found is None or isinstance(found, Model):
        return _told(found, section, subject) if found else None
    return [_told(one, section, subject) for one in found.all()]


def _value(row: Model, name: str) -> Any:
    """A column's value; of a relation, the id of what it leads to."""
    return getattr(row, str(getattr(row._meta.get_field(name), "attname", name)))
