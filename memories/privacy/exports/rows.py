"""The rows of an export as plain values, columns and computed fields: data.json and the page are both made of them."""

import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from django.db.models import Model, Prefetch, QuerySet

from memories.models import ActorKind, CaseType, EndUser, Source
from memories.privacy import registry
from memories.privacy.exports.profiles import OF_VECTORS, ExportSection

ExportRow = dict[str, Any]
# Rows in memory at a time.
CHUNK = 200
_INFERRED = (Source.IMPLICIT, Source.SYSTEM)
_IDS: Mapping[str, Any] = {"type": "array", "items": {"type": "string"}}
_SNAPSHOT: Mapping[str, Any] = {"type": "object"}


@dataclass(frozen=True)
class Subject:
    """Whose export it is, under which profile; `names` are all external ids that lead to them."""

    person: EndUser
    profile: str
    names: frozenset[str]


@dataclass(frozen=True)
class Computed:
    """A field that is not a column: its description, its JSON schema, and its value of a row."""

    says: str
    schema: Mapping[str, Any]
    of: Callable[[Any, Subject], Any]


def subject_of(person: EndUser, profile: str) -> Subject:
    return Subject(
        person, profile, frozenset(EndUser.objects.with_aliases(person).values_list("external_id", flat=True))
    )


def rows(section: ExportSection, subject: Subject) -> Iterator[ExportRow]:
    """The rows of a list in a stable order, few of them in memory at a time."""
    store = next(store for store in registry.STORES if store.model == section.store)
    found = _selected(store.rows_of(subject.person), section, subject)
    # One that each row has at most once is joined; the others are read for all rows of a chunk at once.
    lists = [inner for inner in section.inside_in(subject.profile) if inner.name not in section.with_rows]
    named = (Prefetch(one.name, _selected(one.model._default_manager.all(), one, subject)) for one in lists)
    for row in found.prefetch_related(*named).iterator(chunk_size=CHUNK):
        yield _row(row, section, subject)


def _selected(rows: QuerySet[Model], section: ExportSection, subject: Subject) -> QuerySet[Model]:
    # select_related(None) joins nothing; without any argument it would join all references.
    joined = rows.order_by(*section.order).select_related(*(section.with_rows or (None,)))
    return joined if subject.profile == CaseType.ACCESS else joined.filter(section.only)


def _row(row: Model, section: ExportSection, subject: Subject) -> ExportRow:
    values: ExportRow = {}
    for name in section.columns_in(subject.profile):
        # Of a relation, the id.
        values[name] = getattr(row, str(getattr(row._meta.get_field(name), "attname", name)))
    for name in section.computed_in(subject.profile):
        values[name] = COMPUTED[section.store, name].of(row, subject)
    for inner in section.inside_in(subject.profile):
        found = getattr(row, inner.name, None)
        if found is None or isinstance(found, Model):
            values[inner.name] = _row(found, inner, subject) if found else None
        else:
            values[inner.name] = [_row(one, inner, subject) for one in found.all()]
    return values


def as_text(value: object) -> str:
    """Values that JSON does not have: moments in UTC (RFC 3339), ids and amounts as text."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, uuid.UUID | Decimal):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no place in an export")


def _own(ids: list[str], subject: Subject) -> list[str]:
    return [one for one in ids if one in subject.names]


def _others(ids: list[str], subject: Subject) -> int:
    return len(ids) - len(_own(ids, subject))


def _snapshot(state: dict[str, Any], subject: Subject) -> dict[str, Any]:
    """A snapshot of a fact (audit.snapshot) without the ids of other people."""
    if "allowed_users" not in state:
        return state
    ids = state["allowed_users"]
    return {**state, "allowed_users": _own(ids, subject), "allowed_others": _others(ids, subject)}


def _run(row: Any, _: Subject) -> str | None:
    return row.actor_id if row.actor_kind == ActorKind.RUN else None


# (store, name of the field) → the field.
COMPUTED: Mapping[tuple[str, str], Computed] = {
    ("memories.Fact", "inferred"): Computed(
        "Concluded from what was said; false: somebody said it.",
        {"type": "boolean"},
        lambda row, _: row.source in _INFERRED,
    ),
    ("memories.Fact", "allowed_users"): Computed(
        "Your own ids among those that may see it; empty with no `allowed_others`: it is not limited to anybody.",
        _IDS,
        lambda row, subject: _own(row.allowed_users, subject),
    ),
    ("memories.Fact", "allowed_others"): Computed(
        "How many other people may see it; who they are is theirs.",
        {"type": "integer"},
        lambda row, subject: _others(row.allowed_users, subject),
    ),
    ("memories.GroupFact", "about_you"): Computed(
        "Whether it is about you; false: you alone said it.",
        {"type": "boolean"},
        lambda row, _: row.about_id is not None,
    ),
    ("memories.FactEvidence", "said_by"): Computed(
        "Who said it: user is you, assistant the assistant, tool a program that it asked; application, model and other "
        "are texts that a program put into your role.",
        {"type": "string"},
        lambda row, _: row.turn.speaker,
    ),
    ("memories.FactRevision", "run"): Computed(
        "The run that made the change, if one did.", {"type": ["string", "null"]}, _run
    ),
    ("memories.FactRevision", "before"): Computed(
        "The changed fields as they were.", _SNAPSHOT, lambda row, subject: _snapshot(row.before, subject)
    ),
    ("memories.FactRevision", "after"): Computed(
        "The whole fact after the change.", _SNAPSHOT, lambda row, subject: _snapshot(row.after, subject)
    ),
    ("memories.ProfileRevision", "run"): Computed(
        "The run that made the change, if one did.", {"type": ["string", "null"]}, _run
    ),
    **{
        (store, "model"): Computed(
            "The model that made the numbers.", {"type": "string"}, lambda row, _: row.space.model
        )
        for store in OF_VECTORS
    },
}
