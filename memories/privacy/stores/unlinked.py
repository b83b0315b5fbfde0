"""Stores that no foreign key leads to: queues, sign-ins, Django's own log, files, ids in rows of workers, and API keys.

Each is small, so it is read and decoded row by row. They go first: the ids that they hold are of rows that go later.
"""

import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib.sessions.backends.db import SessionStore
from django.db.models import Exists, Model, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce, Now
from django.utils import timezone
from django_q.models import Task
from django_q.signing import BadSignature, SignedPackage

from memories.forgetting import decay
from memories.models import (
    Agent,
    APIKey,
    DecayPass,
    EndpointState,
    EndUser,
    Episode,
    ExtractionRun,
    Fact,
    Import,
    ImportPiece,
    PrivacyCase,
    ProfileSection,
    ReviewItem,
    Session,
    Tenant,
)
from memories.models.people.people import NOBODY
from memories.privacy.stores.store import STEP, CountsRows, as_json, external_ids_of, ids_behind, names_of
from memories.retrieval import turn_files

# The id of no session: it says that some session failed, where None would mean that several did.
SOME_SESSION = uuid.UUID(int=0)
SESSION_TASKS = ("memories.tasks.consolidate_session", "memories.tasks.compact_session")
# The sweep looks at the last results; it runs twice a minute.
_RESULTS_SWEPT = 200
_UUID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
# Shorter names are part of other words: they count only as a whole value.
_SHORT = 6
# Models whose ids stand in tasks, or in addresses of pages; turns have neither, and may be many.
_OWNED: tuple[Any, ...] = (Session, Fact, Episode, ProfileSection, ReviewItem, ExtractionRun)


@dataclass(frozen=True)
class Traces:
    """What leads to one person in texts and packed values: their ids and names, while they are still there."""

    person: EndUser

    @cached_property
    def names(self) -> set[str]:
        return names_of(self.person)

    @cached_property
    def ids(self) -> set[uuid.UUID]:
        """Of the person and of what is theirs."""
        people = ids_behind(self.person)
        rows = (model._default_manager.filter(end_user__in=people) for model in _OWNED)
        return {*people, *(pk for found in rows for pk in found.order_by().values_list("pk", flat=True))}

    def are_in(self, value: Any) -> bool:
        """Whether a value, however nested, leads to the person."""
        for text in texts_in(value):
            if text.strip().casefold() in self.names or (self._long_names and self._long_names.search(text)):
                return True
            if any(uuid.UUID(found) in self.ids for found in _UUID.findall(text)):
                return True
        return False

    @cached_property
    def _long_names(self) -> re.Pattern[str] | None:
        long = [re.escape(name) for name in sorted(self.names) if len(name) >= _SHORT]
        return re.compile(rf"(?<!\w)(?:{'|'.join(long)})(?!\w)", re.IGNORECASE) if long else None


def texts_in(value: Any) -> Iterator[str]:
    """Every text of a value, keys included; of what is neither text nor a collection, how it is written."""
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from texts_in(key)
            yield from texts_in(one)
    elif isinstance(value, list | tuple | set | frozenset):
        for one in value:
            yield from texts_in(one)
    elif isinstance(value, bytes):
        yield value.decode("utf-8", "replace")
    else:
        yield str(value)


@dataclass(frozen=True)
class PackedRows(CountsRows):
    """Rows of `model` whose value, as `read` unpacks it, leads to a person; each goes as a whole."""

    model: str
    fields: tuple[str, ...]
    read: Callable[[Any], Any]

    def rows_of(self, person: EndUser) -> list[Any]:
        traces = Traces(person)
        rows = apps.get_model(self.model)._default_manager.order_by("pk")
        return [row for row in rows.iterator(chunk_size=STEP) if traces.are_in(self.read(row))]

    def export_rows(self, person: EndUser) -> Iterator[dict[str, Any]]:
        for row in self.rows_of(person):
            yield {"pk": as_json(row.pk), "holds": _nested_as_json(self.read(row))}

    def erase(self, person: EndUser, limit: int = STEP) -> int:
        found = [row.pk for row in self.rows_of(person)[:limit]]
        rows: QuerySet[Model] = apps.get_model(self.model)._default_manager.filter(pk__in=found)
        return rows.delete()[0]


class WaitingTasks(PackedRows):
    """Tasks that wait. A task that plans when a tenant's memories fade may be at the person: it is begun again."""

    def erase(self, person: EndUser, limit: int = STEP) -> int:
        if any(row.task.get("func") == decay.REPLAN_TASK for row in self.rows_of(person)[:limit]):
            decay.replan(tenant_id=person.tenant_id)
        return super().erase(person, limit)


def _nested_as_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _nested_as_json(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_nested_as_json(one) for one in value]
    return as_json(value) if isinstance(value, str | int | float | bytes | type(None)) else str(value)


def _waiting_task(row: Any) -> Any:
    """The arguments of a queued task; one that was signed by another secret key is never run."""
    try:
        task = SignedPackage.loads(row.payload)
    except BadSignature:
        return row.payload
    return [task.get("args"), task.get("kwargs")]


def _browser_session(row: Any) -> Any:
    """The content of a browser's session, with messages that wait to be shown."""
    kept = SessionStore().decode(row.session_data)
    return {name: value for name, value in kept.items() if not name.startswith("_auth")}


@dataclass(frozen=True)
class LeftIds(CountsRows):
    """A column in which a finished job left the id of a person or of their session; `leaves` replaces it."""

    model: str
    column: str
    leaves: uuid.UUID | None = None
    fields: tuple[str, ...] = ()

    def rows_of(self, person: EndUser) -> QuerySet[Any]:
        rows: QuerySet[Any] = apps.get_model(self.model)._default_manager.exclude(**{self.column: None})
        # The id is the position of a pass that runs; the end of the pass empties it.
        rows = rows.exclude(state=DecayPass.PassState.RUNNING) if self.model == "memories.DecayPass" else rows
        people = ids_behind(person)
        sessions = Session.objects.filter(end_user__in=people).values("pk")
        return rows.filter(Q(**{f"{self.column}__in": people}) | Q(**{f"{self.column}__in": sessions}))

    def export_rows(self, person: EndUser) -> Iterator[dict[str, Any]]:
        for pk, value in self.rows_of(person).values_list("pk", self.column):
            yield {"pk": as_json(pk), self.column: as_json(value)}

    def erase(self, person: EndUser, limit: int = STEP) -> int:
        found = list(self.rows_of(person).values_list("pk", flat=True)[:limit])
        rows: QuerySet[Any] = apps.get_model(self.model)._default_manager.filter(pk__in=found)
        return rows.update(**{self.column: self.leaves})


@dataclass(frozen=True)
class Files(CountsRows):
    """Files in folders of the hub's home whose names begin with the id of a person or of a case."""

    model: str
    folders: tuple[str, ...]
    fields: tuple[str, ...] = ()

    def rows_of(self, person: EndUser) -> list[Path]:
        people = ids_behind(person)
        cases = PrivacyCase.objects.filter(end_user__in=people).values_list("pk", flat=True)
        ids = tuple(str(pk) for pk in (*people, *cases))
        folders = [folder for name in self.folders if (folder := Path(settings.HOME) / name).is_dir()]
        return sorted(path for folder in folders for path in folder.iterdir() if path.name.startswith(ids))

    def export_rows(self, person: EndUser) -> Iterator[dict[str, Any]]:
        for path in self.rows_of(person):
            yield {"file": path.name, "bytes": path.stat().st_size}

    def erase(self, person: EndUser, limit: int = STEP) -> int:
        found = self.rows_of(person)[:limit]
        for path in found:
            path.unlink(missing_ok=True)
        return len(found)


@dataclass(frozen=True)
class BoundKeys(CountsRows):
    """API keys bound to one of the person's ids: they are revoked for good, and the id goes."""

    model: str = "memories.APIKey"
    fields: tuple[str, ...] = APIKey.columns.erased

    def rows_of(self, person: EndUser) -> QuerySet[APIKey]:
        return APIKey.objects.filter(tenant=person.tenant_id, user_id__in=external_ids_of(person)).exclude(user_id="")

    def export_rows(self, person: EndUser) -> Iterator[dict[str, Any]]:
        shown = ("id", "user_id", "agent_id", "created_at", "expires_at", "revoked_at")
        for row in self.rows_of(person).order_by("pk").values(*shown):
            yield {name: as_json(value) for name, value in row.items()}

    def erase(self, person: EndUser, limit: int = STEP) -> int:
        # Making or rotating a key locks its tenant: the lock waits for that, so the new key is seen.
        Tenant.objects.select_for_update(no_key=True).get(pk=person.tenant_id)
        found = list(self.rows_of(person).order_by("pk").values_list("pk", flat=True)[:limit])
        # Bound to nobody, not to everybody: should the revocation be lost, the key still opens nothing.
        gone = {"user_id": NOBODY, "revoked_with_tenant": False}
        return APIKey.objects.filter(pk__in=found).update(revoked_at=Coalesce("revoked_at", Now()), **gone)


@dataclass(frozen=True)
class OnlyTheirAgents(CountsRows):
    """Agents that spoke with nobody else: the name of one may tell whose it is. Those for which operators have set
    something stay, with their settings."""

    model: str = "memories.Agent"
    fields: tuple[str, ...] = Agent.columns.erased

    def rows_of(self, person: EndUser) -> QuerySet[Agent]:
        people = ids_behind(person)
        held = Session.objects.filter(tenant=OuterRef("tenant"), agent_id=OuterRef("agent_id"))
        agents = Agent.objects.as_made().filter(tenant=person.tenant_id)
        return agents.filter(Exists(held.filter(end_user__in=people)), ~Exists(held.exclude(end_user__in=people)))

    def export_rows(self, person: EndUser) -> Iterator[dict[str, Any]]:
        for row in self.rows_of(person).order_by("pk").values("id", "agent_id", "created_at"):
            yield {name: as_json(value) for name, value in row.items()}

    def erase(self, person: EndUser, limit: int = STEP) -> int:
        found = list(self.rows_of(person).order_by("pk").values_list("pk", flat=True)[:limit])
        return Agent.objects.filter(pk__in=found).delete()[0]


@dataclass(frozen=True)
class WaitingImports(CountsRows):
    """Uploaded files that wait to be imported, of the person's tenant: what they hold of whom, nobody knows before they
    are read. All of them end, and are uploaded again."""

    model: str = "memories.Import"
    fields: tuple[str, ...] = Import.columns.erased

    def rows_of(self, person: EndUser) -> QuerySet[Import]:
        return Import.objects.filter(tenant=person.tenant_id).with_file()

    def export_rows(self, person: EndUser) -> Iterator[dict[str, Any]]:
        for row in self.rows_of(person).order_by("pk").values("id", "size", "created_at"):
            yield {name: as_json(value) for name, value in row.items()}

    def erase(self, person: EndUser, limit: int = STEP) -> int:
        found = list(self.rows_of(person).order_by("pk").values_list("pk", flat=True)[:limit])
        return Import.objects.filter(pk__in=found).abandon("erased", now=timezone.now())


@dataclass(frozen=True)
class WaitingPieces(CountsRows):
    """The pieces of these files; they go with them."""

    model: str = "memories.ImportPiece"
    fields: tuple[str, ...] = ImportPiece.columns.erased

    def rows_of(self, person: EndUser) -> QuerySet[ImportPiece]:
        return ImportPiece.objects.filter(tenant=person.tenant_id)

    def export_rows(self, person: EndUser) -> Iterator[dict[str, Any]]:
        for row in self.rows_of(person).order_by("pk").values("id", "number"):
            yield {name: as_json(value) for name, value in row.items()}

    def erase(self, person: EndUser, limit: int = STEP) -> int:
        found = list(self.rows_of(person).order_by("pk").values_list("pk", flat=True)[:limit])
        ImportPiece.objects.filter(pk__in=found).delete()
        return len(found)


BOUND_KEYS = BoundKeys()
UNLINKED = (
    WaitingTasks("django_q.OrmQ", ("payload",), _waiting_task),
    PackedRows(
        "django_q.Task",
        ("name", "group", "args", "kwargs", "result"),
        lambda row: [row.name, row.group, row.args, row.kwargs, row.result],
    ),
    PackedRows("django_q.Schedule", ("name", "args", "kwargs"), lambda row: [row.name, row.args, row.kwargs]),
    PackedRows("sessions.Session", ("session_data",), _browser_session),
    PackedRows(
        "admin.LogEntry",
        ("object_id", "object_repr", "change_message"),
        lambda row: [row.object_id, row.object_repr, row.change_message],
    ),
    PackedRows(
        "axes.AccessAttempt",
        ("username", "path_info", "get_data", "post_data"),
        lambda row: [row.username, row.path_info, row.get_data, row.post_data],
    ),
    LeftIds("memories.EndpointState", "last_session", SOME_SESSION),
    LeftIds("memories.DecayPass", "reached"),
    Files("files", ("exports", turn_files.FOLDER)),
    WaitingPieces(),
    WaitingImports(),
    BOUND_KEYS,
    OnlyTheirAgents(),
)


def sweep_leftovers() -> int:
    """Delete results of tasks about sessions that are gone, and forget the ids of such sessions; how many results.

    Workers leave them later than any erasure can see: a worker that is killed at a task for an erased person leaves the
    arguments, and one whose model fails then leaves the session's id as that of the last failure.
    """
    failed = EndpointState.objects.exclude(last_session=None)
    present = failed.filter(Exists(Session.objects.filter(pk=OuterRef("last_session"))))
    people = failed.filter(Exists(EndUser.objects.filter(pk=OuterRef("last_session"))))
    gone = failed.exclude(pk__in=present).exclude(pk__in=people).exclude(last_session=SOME_SESSION)
    gone.update(last_session=SOME_SESSION)
    results = Task.objects.filter(func__in=SESSION_TASKS).order_by("-stopped")[:_RESULTS_SWEPT]
    sessions = {row.pk: _session_in(row.args) for row in results}
    present_ids = set(
        Session.objects.filter(pk__in=[one for one in sessions.values() if one]).values_list("pk", flat=True)
    )
    swept = [pk for pk, one in sessions.items() if one and one not in present_ids]
    return Task.objects.filter(pk__in=swept).delete()[0] if swept else 0


def _session_in(arguments: Any) -> uuid.UUID | None:
    try:
        return uuid.UUID(arguments[0])
    except (TypeError, ValueError, IndexError, AttributeError):
        return None
