"""Stores that no foreign key leads to: queues, sign-ins, Django's own log, files, and pointers of the workers.

Each is small, so it is read and decoded row by row. They go first: what they hold are ids of rows that go later.
"""

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib.sessions.backends.db import SessionStore
from django.db.models import Model, Q, QuerySet
from django_q.signing import BadSignature, SignedPackage

from memories.models import DecayPass, EndUser, PrivacyCase, Session
from memories.pipeline import decay, lone_units, stores
from memories.privacy.stores.keeping import STEP, ids_behind, told
from memories.privacy.stores.queue_remains import SOMEBODY
from memories.privacy.stores.traces import Traces

Read = Callable[[Any], Any]
# What processes keep of a person's memories to search them, as hashes and vectors: after that without use it goes.
IN_MEMORY_FOR = timedelta(seconds=max(stores.IDLE_SECONDS, lone_units.IDLE_SECONDS))


@dataclass(frozen=True)
class Packed:
    """Rows of `model` whose value, as `read` unpacks it, leads to a person; each goes as a whole."""

    model: str
    fields: tuple[str, ...]
    read: Read

    def rows_of(self, person: EndUser) -> list[Any]:
        traces = Traces(person)
        rows = apps.get_model(self.model)._default_manager.order_by("pk")
        return [row for row in rows.iterator(chunk_size=STEP) if traces.are_in(self.read(row))]

    def count(self, person: EndUser) -> int:
        return len(self.rows_of(person))

    def export_rows(self, person: EndUser) -> Iterator[dict[str, Any]]:
        for row in self.rows_of(person):
            yield {"pk": told(row.pk), "holds": _written(self.read(row))}

    def erase(self, person: EndUser, limit: int = STEP) -> int:
        found = [row.pk for row in self.rows_of(person)[:limit]]
        rows: QuerySet[Model] = apps.get_model(self.model)._default_manager.filter(pk__in=found)
        return rows.delete()[0]

    def verify(self, person: EndUser) -> int:
        return self.count(person)


class Queue(Packed):
    """Tasks that wait. One that plans anew when a tenant's memories fade may stand at the person: it begins again."""

    def erase(self, person: EndUser, limit: int = STEP) -> int:
        if any(row.task.get("func") == decay.REPLAN_TASK for row in self.rows_of(person)[:limit]):
            decay.replan(tenant_id=person.tenant_id)
        return super().erase(person, limit)


def _payload(row: Any) -> Any:
    """A queued task as it was put there; one that was signed by another secret key is run by nobody."""
    try:
        task = SignedPackage.loads(row.payload)
    except BadSignature:
        return row.payload
    return [task.get("args"), task.get("kwargs")]


def _task(row: Any) -> Any:
    return [row.name, row.group, row.args, row.kwargs, row.result]


def _schedule(row: Any) -> Any:
    return [row.name, row.args, row.kwargs]


def _session(row: Any) -> Any:
    """What a browser's session keeps, messages that wait to be shown included."""
    kept = SessionStore().decode(row.session_data)
    return {name: value for name, value in kept.items() if not name.startswith("_auth")}


def _log_entry(row: Any) -> Any:
    return [row.object_id, row.object_repr, row.change_message]


def _attempt(row: Any) -> Any:
    return [row.username, row.path_info, row.get_data, row.post_data]


def _written(value: Any) -> Any:
    """As JSON can say it."""
    if isinstance(value, dict):
        return {str(key): _written(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_written(one) for one in value]
    return told(value) if isinstance(value, str | int | float | bytes | type(None)) else str(value)


@dataclass(frozen=True)
class Pointers:
    """A column of ours in which work that is over left the id of a person or of their session; `leaves` takes its
    place."""

    model: str
    column: str
    leaves: uuid.UUID | None = None
    fields: tuple[str, ...] = ()

    def rows_of(self, person: EndUser) -> QuerySet[Any]:
        rows: QuerySet[Any] = apps.get_model(self.model)._default_manager.exclude(**{self.column: None})
        # Of a pass that runs it says how far it is; the end of the pass empties it.
        rows = rows.exclude(state=DecayPass.State.RUNNING) if self.model == "memories.DecayPass" else rows
        people = ids_behind(person)
        sessions = Session.objects.filter(end_user__in=people).values("pk")
        return rows.filter(Q(**{f"{self.column}__in": people}) | Q(**{f"{self.column}__in": sessions}))

    def count(self, person: EndUser) -> int:
        return self.rows_of(person).count()

    def export_rows(self, person: EndUser) -> Iterator[dict[str, Any]]:
        for pk, value in self.rows_of(person).values_list("pk", self.column):
            yield {"pk": told(pk), self.column: told(value)}

    def erase(self, person: EndUser, limit: int = STEP) -> int:
        found = list(self.rows_of(person).values_list("pk", flat=True)[:limit])
        rows: QuerySet[Any] = apps.get_model(self.model)._default_manager.filter(pk__in=found)
        return rows.update(**{self.column: self.leaves})

    def verify(self, person: EndUser) -> int:
        return self.count(person)


@dataclass(frozen=True)
class Files:
    """Files in a folder of the hub's home, by the ids that their names begin with: those of a person or of a case."""

    model: str
    folder: str
    fields: tuple[str, ...] = ()

    def rows_of(self, person: EndUser) -> list[Path]:
        folder = Path(settings.HOME) / self.folder
        people = ids_behind(person)
        cases = PrivacyCase.objects.filter(end_user__in=people).values_list("pk", flat=True)
        ids = tuple(str(pk) for pk in (*people, *cases))
        found = folder.iterdir() if folder.is_dir() else ()
        return sorted(path for path in found if path.name.startswith(ids))

    def count(self, person: EndUser) -> int:
        return len(self.rows_of(person))

    def export_rows(self, person: EndUser) -> Iterator[dict[str, Any]]:
        for path in self.rows_of(person):
            yield {"file": path.name, "bytes": path.stat().st_size}

    def erase(self, person: EndUser, limit: int = STEP) -> int:
        found = self.rows_of(person)[:limit]
        for path in found:
            path.unlink(missing_ok=True)
        return len(found)

    def verify(self, person: EndUser) -> int:
        return self.count(person)


ELSEWHERE = (
    Queue("django_q.OrmQ", ("payload",), _payload),
    Packed("django_q.Task", ("name", "group", "args", "kwargs", "result"), _task),
    Packed("django_q.Schedule", ("name", "args", "kwargs"), _schedule),
    Packed("sessions.Session", ("session_data",), _session),
    Packed("admin.LogEntry", ("object_id", "object_repr", "change_message"), _log_entry),
    Packed("axes.AccessAttempt", ("username", "path_info", "get_data", "post_data"), _attempt),
    # None would mean that several sessions failed.
    Pointers("memories.EndpointState", "last_session", SOMEBODY),
    Pointers("memories.DecayPass", "reached"),
    Files("files", "exports"),
)
