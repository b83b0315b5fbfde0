"""What a change set did to triples and entities, and how it is undone."""

import uuid
from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from memories.curation.change_sets import Changes
from memories.exceptions import Conflict
from memories.models import Change, ChangeSet, GraphEntity, GraphTriple, GraphTripleQuerySet, TripleStatus

Table, Action = Change.Table, Change.Action
# What a change of a triple can change; a reference is kept as its id.
FIELDS = ("predicate", "confidence", "status", "flags", "trust", "extractor", "actor_kind", "actor_id")
REFERENCES = ("subject_id", "object_id")
MOMENTS = ("valid_from", "valid_to", "dated_at", "trashed_at")


def snapshot(triple: GraphTriple) -> dict[str, Any]:
    """The triple as it is now, for JSON."""
    state: dict[str, Any] = {name: getattr(triple, name) for name in FIELDS}
    state |= {name: str(getattr(triple, name)) for name in REFERENCES}
    moments = {name: getattr(triple, name) for name in MOMENTS}
    return state | {name: moment.isoformat() if moment else None for name, moment in moments.items()}


def save(triple: GraphTriple, before: dict[str, Any], changes: Changes) -> None:
    """Save a locked triple as its next version, and note what it was."""
    after = snapshot(triple)
    triple.version, triple.updated_at = triple.version + 1, changes.now
    triple.save()
    changed = {name: value for name, value in before.items() if after[name] != value}
    changes.record_row_change(Table.TRIPLE, Action.CHANGED, triple.pk, version=triple.version, before=changed)


def trash(triples: GraphTripleQuerySet, changes: Changes) -> int:
    """Move these stated triples of a locked person to the trash; returns how many."""
    found = list(triples.order_by("pk"))
    for triple in found:
        before = snapshot(triple)
        triple.status, triple.trashed_at = TripleStatus.TRASHED, changes.now
        save(triple, before, changes)
    return len(found)


def reopen(triple: GraphTriple, changes: Changes) -> bool:
    """Let a triple of a locked person hold on; False where an open one says the same by now."""
    if not _has_room(triple, {"valid_to": None}):
        return False
    before = snapshot(triple)
    triple.valid_to = None
    save(triple, before, changes)
    return True


def put_triples_back(
    done: ChangeSet, changes: Changes, is_at: Callable[[int, int, Any], bool], *, keeps_later: bool
) -> None:
    """Make what it changed what it was; the person is locked. Errors: Conflict (changed since) unless `keeps_later`."""
    history = Change.objects.filter(table=Table.TRIPLE)
    for row in done.changes.filter(table=Table.TRIPLE, action=Action.CHANGED).order_by("uuid"):
        triple = GraphTriple.objects.filter(pk__in=[row.uuid]).first()
        same = triple is not None and is_at(row.version or 0, triple.version, history.filter(uuid=row.uuid))
        if triple is not None and same and _has_room(triple, row.before):
            before = snapshot(triple)
            _set(triple, row.before)
            save(triple, before, changes)
        elif keeps_later:
            changes.counts["kept"] += 1
        else:
            raise Conflict(_("This can no longer be undone, because the triple has changed since."))
    for row in done.changes.filter(table=Table.ENTITY, action=Action.CHANGED):
        entity = GraphEntity.objects.filter(pk__in=[row.uuid]).first()
        if entity is None or str(entity.merged_into_id or "") != row.before["left"]:
            raise Conflict(_("This can no longer be undone, because the entity has changed since."))
        entity.merged_into_id = uuid.UUID(row.before["merged_into"]) if row.before["merged_into"] else None
        entity.save(update_fields=["merged_into"])


def _has_room(triple: GraphTriple, before: dict[str, Any]) -> bool:
    """Whether what it was about is there still, and no other open triple says the same as this one would again."""
    was = snapshot(triple) | before
    about = {was[name] for name in REFERENCES}
    if GraphEntity.objects.filter(end_user=triple.end_user_id, pk__in=about).count() < len(about):
        return False
    if was["status"] == TripleStatus.TRASHED or was["valid_to"]:
        return True
    rows = GraphTriple.objects.filter(end_user=triple.end_user_id, agent_id=triple.agent_id, fact=None)
    rows = rows.exclude(status=TripleStatus.TRASHED).exclude(pk=triple.pk).open()
    same = {"subject": was["subject_id"], "predicate": was["predicate"], "object": was["object_id"]}
    return not rows.filter(**same).exists()


def _set(triple: GraphTriple, state: dict[str, Any]) -> None:
    for name, value in state.items():
        if name in MOMENTS:
            setattr(triple, name, datetime.fromisoformat(value) if value else None)
        else:
            setattr(triple, name, uuid.UUID(value) if name in REFERENCES else value)
