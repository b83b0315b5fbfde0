"""People whom an import made, or whose records it filled: how they are known again, and what an undo does with them.

Somebody goes with the undo if the import made them and nothing else is there of them: no row of any table refers to
them, but what was made of what is gone, and nobody has changed their record since.
"""

import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Q

from memories.curation.marks import mark, mark_of
from memories.models import ActorKind, APIKey, EndUser, ImportedRow
from memories.models.people.people import SWITCHES, who_switched

# What an import can write in a record, in the order of the bits that say what it wrote.
_RECORD = ("display_name", "time_zone", "language", "metadata", "capture", "serve")
_STAFF_OR_CALLERS = (ActorKind.OPERATOR, ActorKind.KEY, ActorKind.PERSON)
# Rows that are nothing of somebody's own where there is nothing else: they were made of what is gone. Of the other
# tables any row counts.
_NOTHING: Mapping[str, Q] = {
    "memories.WebhookDelivery": Q(),
    "memories.GraphEntity": Q(),
    "memories.Dream": Q(),
    "memories.ExtractionRun": Q(),
    "memories.PolicyFinding": Q(),
    "memories.ProfileSection": Q(summary=""),
    "memories.ProfileRevision": ~Q(actor_kind__in=_STAFF_OR_CALLERS),
    "memories.ChangeSet": ~Q(actor_kind__in=_STAFF_OR_CALLERS),
}
Kind = ImportedRow.Kind


def person_row(person: EndUser) -> ImportedRow:
    """That the import made the person, whose record is as it is now."""
    return ImportedRow(tenant_id=person.tenant_id, end_user=person, kind=Kind.PERSON, row=_mark_of_new(person))


def record_row(person: EndUser, names: Iterable[str]) -> ImportedRow:
    """That the import wrote these fields of the record of somebody who was there."""
    bits = sum(1 << _RECORD.index(name) for name in names)
    row = uuid.UUID(mark_of(person, _names_of(bits)))
    return ImportedRow(tenant_id=person.tenant_id, end_user=person, kind=Kind.RECORD, row=row, first=bits)


def put_records_back(rows: list[ImportedRow], _now: datetime) -> Counter[str]:
    """Empty what the import wrote, where it is as the import wrote it."""
    people: dict[uuid.UUID | None, EndUser] = {one.pk: one for one in _locked([one.end_user_id for one in rows])}
    for one in rows:
        person = people.get(one.end_user_id)
        names = _names_of(one.first)
        if person is None or person.restricted_at or uuid.UUID(mark_of(person, names)) != one.row:
            continue
        for name in names:
            if name in SWITCHES:
                setattr(person, name, True)
                setattr(person, who_switched(name), "")
            else:
                setattr(person, name, {} if name == "metadata" else "")
        person.save(update_fields=[*names, *(who_switched(name) for name in names if name in SWITCHES)])
    ImportedRow.objects.filter(pk__in=[one.pk for one in rows]).delete()
    return Counter()


def take_back(rows: list[ImportedRow], _now: datetime) -> Counter[str]:
    """Delete those of whom nothing else is there. Whoever writes of them at this moment is waited for, and is seen; who
    comes later finds nobody, and makes them anew."""
    people = _locked([one.end_user_id for one in rows])
    marks = {one.end_user_id: one.row for one in rows}
    mine = [
        one.pk for one in people if not (one.restricted_at or one.merged_into_id) and _mark_of_new(one) == marks[one.pk]
    ]
    # Somebody made a key for them alone.
    pk_of = {one.external_id: one.pk for one in people}
    keys = APIKey.objects.filter(tenant__in={one.tenant_id for one in people}, user_id__in=pk_of)
    having_keys = {pk_of[user_id] for user_id in keys.values_list("user_id", flat=True)}
    kept = _with_something(mine, made_by=rows[0].made_by_id) | having_keys
    going = [pk for pk in mine if pk not in kept]
    ImportedRow.objects.filter(pk__in=[one.pk for one in rows]).delete()
    EndUser.objects.filter(pk__in=going).delete()
    return Counter(people_undone=len(going), people_kept=len(people) - len(going))


def _with_something(people: Sequence[uuid.UUID], *, made_by: uuid.UUID) -> set[uuid.UUID]:
    """Those to whom a row refers that is not nothing, whatever table it is of."""
    found: set[uuid.UUID] = set()
    for relation in EndUser._meta.related_objects:
        model: Any = relation.related_model
        path = relation.field.name
        rows = model._default_manager.filter(**{f"{path}__in": people})
        nothing = _NOTHING.get(model._meta.label)
        if nothing is not None:
            rows = rows.exclude(nothing) if nothing else rows.none()
        if model is ImportedRow:
            rows = rows.exclude(made_by=made_by)
        found |= set(rows.order_by().values_list(path, flat=True).distinct())
    return found


def _locked(ids: Iterable[uuid.UUID | None]) -> list[EndUser]:
    """Against new rows that refer to them, too."""
    people = EndUser.objects.select_for_update(of=("self",)).filter(pk__in=[one for one in ids if one])
    return list(people.order_by("pk"))


def _names_of(bits: int) -> list[str]:
    return [name for place, name in enumerate(_RECORD) if bits >> place & 1]


def _mark_of_new(person: EndUser) -> uuid.UUID:
    """Of a record as the import left it: what it switched off is as good as on."""
    values = {name: getattr(person, name) for name in ("external_id", *_RECORD)}
    for name in SWITCHES:
        values[name] = values[name] or getattr(person, who_switched(name)) == ActorKind.COMMAND
    return uuid.UUID(mark(values))
