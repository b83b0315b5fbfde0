"""Imports what stays as it is: files of deepagents become memory files, items of LangGraph's store items of the store.

Each is stored once and replaces nothing: a path or a key that the hub has, or had, keeps what is there. So a second run
stores nothing more, brings nothing back, and goes on after a break.
"""

import base64
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from memories.api.v1.memory.serializers import MemoryQuery
from memories.api.v1.store.serializers import PutItemSerializer, write_of
from memories.curation.files import FileWriter, NewContent, write_file
from memories.curation.people.records import person_for_writing
from memories.exceptions import FileTooLarge, MemoryHubError, PreconditionFailed
from memories.files import paths
from memories.management.importing import COMMAND, IMPORTED
from memories.management.memory_stores import (
    HIDDEN,
    StoreLocation,
    Whose,
    has_table,
    is_hidden,
    shared,
    table_rows,
    whose_namespace,
)
from memories.management.raw_documents import RefusedDocumentError, checked, documents_in
from memories.models import FileVersion, MemoryFile, Tenant
from memories.store import writing
from memories.store.viewers import StoreViewer
from memories.store.writing import Write
from memories.text.secrets import effort

# Items in one transaction: a break loses no more than these.
AT_ONCE = 200
# The reason of a version that an import made.
REASON = "import"
# What deepagents' command line reads before each conversation; older ones wrote it in small letters.
_NOTES = ("AGENTS.md", "agent.md")
_NO_MEMORY = "skills"
_COLUMNS = """
    SELECT string_to_array(prefix, '.') AS namespace, key, value, to_jsonb(s) ->> 'created_at' AS created_at,
        to_jsonb(s) ->> 'updated_at' AS updated_at, to_jsonb(s) ->> 'expires_at' AS expires_at,
        (to_jsonb(s) ->> 'ttl_minutes')::float8 AS ttl_minutes%s
    FROM {} s ORDER BY prefix, key
"""
# PostgresStore has a vector of each text that it embedded, with its path in the value.
_EMBEDDED = """,
        ARRAY(SELECT field_name FROM {beside} v WHERE v.prefix = s.prefix AND v.key = s.key) AS embedded"""
_VECTORS = "{}_vectors"
# It numbers the texts of a path that has several.
_NUMBERED = re.compile(r"\.\d+\Z")


class KeptFile(NamedTuple):
    """A file as deepagents keeps it, or the reason why it is left out."""

    whose: Whose = Whose()
    path: str = ""
    data: bytes = b""
    created_at: datetime | None = None
    modified_at: datetime | None = None
    left_out: str = ""


@dataclass(frozen=True)
class StoredItem:
    """An item as LangGraph's store keeps it, or the reason why it is left out."""

    namespace: Sequence[str]
    key: str
    value: Any
    created_at: Any = None
    updated_at: Any = None
    expires_at: Any = None
    ttl_minutes: float | None = None
    # The paths that were embedded; None: nobody knows.
    index: Sequence[str] | None = None
    left_out: str = ""


class Kept:
    """An import under way: `done` counts by outcome, `left_out` and `refused` by reason."""

    def __init__(self, tenant: Tenant, *, dry_run: bool) -> None:
        self._tenant, self._dry_run, self._now = tenant, dry_run, timezone.now()
        self.done, self.left_out, self.refused = Counter[str](), Counter[str](), Counter[str]()


class FileImport(Kept):
    """Files become memory files of their person and agent, each with its dates, as one version. `agents` counts those
    that are there by whose they are."""

    def __init__(self, tenant: Tenant, *, dry_run: bool) -> None:
        super().__init__(tenant, dry_run=dry_run)
        self.agents = Counter[str]()

    def take(self, files: Iterable[KeptFile], *, user_id: str) -> None:
        for file in files:
            self.done["found"] += 1
            if file.left_out:
                self.left_out[file.left_out] += 1
                continue
            try:
                with effort.bounded(), transaction.atomic():
                    self._store(file, user_id or file.whose.user_id)
                    # Everything was checked as it would be; nothing stays.
                    transaction.set_rollback(self._dry_run)
            except PreconditionFailed:
                # An agent wrote it at this moment.
                self.done["duplicates"] += 1
            except MemoryHubError as error:
                self.refused[error.code] += 1
            except RefusedDocumentError as error:
                self.refused[str(error)] += 1

    def _store(self, file: KeptFile, user_id: str) -> None:
        """Errors: RefusedDocumentError, those of write_file()."""
        agent = {"agent_id": file.whose.agent_id} if file.whose.agent_id else {}
        given = checked(MemoryQuery, {"user_id": user_id, **agent})
        agent_id = given.get("agent_id") or ""
        if paths.fault_of_file(file.path):
            raise RefusedDocumentError("/path invalid_path")
        person = person_for_writing(tenant=self._tenant, user_id=given["user_id"], now=self._now)
        # Deleted ones, too: what somebody forgot since does not come back.
        if MemoryFile.objects.of(self._tenant, person).filter(agent_id=agent_id, path=file.path).exists():
            self.done["duplicates"] += 1
            self.agents[agent_id] += 1
            return
        written = write_file(
            end_user=person,
            agent_id=agent_id,
            path=file.path,
            content=NewContent.of(file.data, base64.b64encode(file.data).decode()),
            writer=FileWriter(COMMAND, self._now, IMPORTED, REASON),
            expected_version=0,
        )
        modified = min(file.modified_at or self._now, self._now)
        created = min(file.created_at or modified, modified)
        MemoryFile.objects.filter(pk=written.file.pk).update(created_at=created, updated_at=modified)
        FileVersion.objects.filter(file=written.file, version=1).update(created_at=modified)
        self.done.update({"stored": 1, "redactions": written.redactions})
        self.agents[agent_id] += 1


class ItemImport(Kept):
    """Items keep their namespace, key, value, dates and what is left of their time to live."""

    def take(self, items: Iterable[StoredItem]) -> None:
        waiting: list[Write] = []
        for item in items:
            self.done["found"] += 1
            if item.left_out:
                self.left_out[item.left_out] += 1
                continue
            try:
                waiting.append(_write(item, self._now))
            except RefusedDocumentError as error:
                self.refused[str(error)] += 1
            if len(waiting) == AT_ONCE:
                self._store(waiting)
                waiting = []
        self._store(waiting)

    def _store(self, writes: Sequence[Write]) -> None:
        """One transaction; where the hub refuses it, each item by itself."""
        if not writes:
            return
        try:
            with effort.bounded(), transaction.atomic():
                viewer = StoreViewer(self._tenant)
                stored = writing.write(writes, tenant=self._tenant, viewer=viewer, now=self._now, only_new=True)
                transaction.set_rollback(self._dry_run)
        except MemoryHubError as error:
            if len(writes) == 1:
                self.refused[error.code] += 1
            for one in writes if len(writes) > 1 else ():
                self._store([one])
        else:
            self.done.update({"stored": stored, "duplicates": len(writes) - stored})


def is_folder(place: StoreLocation) -> bool:
    """Whether files are read from a folder, which says by its name whose they are."""
    return not place.is_database and Path(place.at).is_dir()


def read_files(
    place: StoreLocation, refused: Counter[str], *, folder: str, agent: str | None = None
) -> Iterator[KeptFile]:
    """The folder of deepagents' command line, the table of a PostgresStore under its StoreBackend, or a JSON list of
    that store's items. What is not below `folder` already goes there; what is too much is counted in `refused`.
    `agent`: whose all of them are, "" for none; a folder is that agent's then, whatever its name.

    Errors: OSError, ValueError, psycopg.Error.
    """
    if is_folder(place):
        yield from _command_line_files(Path(place.at), refused, folder, agent)
        return
    for item in _items(place, refused):
        whose = whose_namespace(item.namespace, place.namespace)
        value = item.value if isinstance(item.value, dict) else {}
        if whose is None:
            yield KeptFile(left_out="other_namespace")
        elif "content" not in value or "modified_at" not in value:
            yield KeptFile(left_out="no_file")
        elif is_hidden(item.key.removeprefix(paths.folder(folder))):
            yield KeptFile(left_out=HIDDEN)
        elif (path := _below(folder, item.key)).startswith(paths.SCRATCH):
            yield KeptFile(left_out="scratch")
        else:
            data = _data(value)
            if data is None:
                yield KeptFile(left_out="unreadable")
            else:
                whose = whose if agent is None else whose._replace(agent_id=agent)
                yield KeptFile(whose, path, data, _moment(value.get("created_at")), _moment(value["modified_at"]))


def read_items(place: StoreLocation, refused: Counter[str]) -> Iterator[StoredItem]:
    """The table of a PostgresStore, or a JSON list of what `Item.dict()` gives. Errors: as read_files()."""
    for item in _items(place, refused):
        expires = _moment(item.expires_at)
        if whose_namespace(item.namespace, place.namespace) is None:
            yield StoredItem((), "", None, left_out="other_namespace")
        elif expires and expires <= timezone.now():
            yield StoredItem((), "", None, left_out="expired")
        elif _is_path(item) and is_hidden(item.key):
            yield StoredItem((), "", None, left_out=HIDDEN)
        else:
            yield item


def _is_path(item: StoredItem) -> bool:
    """Whether the key names a file, as deepagents keeps them; other keys may begin with a dot."""
    is_file = isinstance(item.value, dict) and {"content", "modified_at"} <= item.value.keys()
    return is_file or "/" in item.key


def _items(place: StoreLocation, refused: Counter[str]) -> Iterator[StoredItem]:
    rows = _rows(place) if place.is_database else documents_in(Path(place.at), refused, lists=("items",))
    for row in rows:
        labels, embedded = row.get("namespace"), row.get("embedded")
        yield StoredItem(
            [str(label) for label in labels] if isinstance(labels, list) else [],
            str(row.get("key")),
            row.get("value"),
            created_at=row.get("created_at"),
            updated_at=row.get("updated_at"),
            expires_at=row.get("expires_at"),
            ttl_minutes=row.get("ttl_minutes"),
            index=_paths_of(embedded) if isinstance(embedded, list) and place.is_database else None,
        )


def _rows(place: StoreLocation) -> Iterator[dict[str, Any]]:
    table = place.table or "store"
    vectors = _VECTORS.format(table)
    has_vectors = has_table(place, vectors)
    query = _COLUMNS % (_EMBEDDED if has_vectors else "")
    return table_rows(place, query, table=table, beside=vectors if has_vectors else "")


def _paths_of(names: Sequence[str]) -> list[str]:
    """The paths of the vectors of an item: of `tags.0` and `tags.1` it is `tags`."""
    stems = Counter(_NUMBERED.sub("", name) for name in names)
    several = {stem for stem, count in stems.items() if count > 1}
    return sorted({stem if (stem := _NUMBERED.sub("", name)) in several else name for name in names})


def _write(item: StoredItem, now: datetime) -> Write:
    """Errors: RefusedDocumentError."""
    ttl: dict[str, Any] = {} if item.ttl_minutes is None else {"ttl": item.ttl_minutes}
    index = {} if item.index is None else {"index": list(item.index) or False}
    document = {"namespace": list(item.namespace), "key": item.key, "value": item.value, **ttl, **index}
    given = write_of(checked(PutItemSerializer, document))
    updated = min(_moment(item.updated_at) or now, now)
    return replace(given, created_at=min(_moment(item.created_at) or updated, updated), updated_at=updated)


def _command_line_files(base: Path, refused: Counter[str], folder: str, own: str | None) -> Iterator[KeptFile]:
    """`~/.deepagents`, with a folder for each agent, or one of these folders: notes, and what the agent keeps beside
    them. Skills and hidden files are left out; the folder that was named may have a dot itself. With an `own` name it
    is the folder of that agent."""
    agents = [base] if _has_notes(base) or own is not None else sorted(one for one in base.iterdir() if one.is_dir())
    for agent in agents:
        # A project's own notes are in a folder with a dot, and no agent's.
        named = "" if agent.name.startswith(".") else agent.resolve().name
        name = named if own is None else own
        for path in sorted(one for one in agent.rglob("*") if one.is_file()):
            parts = path.relative_to(agent).parts
            if _leads_to_hidden(path, base):
                yield KeptFile(left_out=HIDDEN)
                continue
            if parts[0] == _NO_MEMORY:
                yield KeptFile(left_out="no_memory")
                continue
            if path.stat().st_size > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
                refused[FileTooLarge.code] += 1
                continue
            inside = _NOTES[0] if len(parts) == 1 and parts[0] in _NOTES else "/".join(parts)
            changed = datetime.fromtimestamp(path.stat().st_mtime, UTC)
            yield KeptFile(Whose(agent_id=name), _below(folder, inside), path.read_bytes(), None, changed)


def _leads_to_hidden(path: Path, base: Path) -> bool:
    """Whether the path below `base` is hidden, or that to which it links. Folders above `base` do not count."""
    target, root = path.resolve().parts, base.resolve().parts
    return is_hidden(path.relative_to(base).parts) or is_hidden(target[shared(target, root) :])


def _has_notes(folder: Path) -> bool:
    return any((folder / name).is_file() for name in _NOTES)


def _below(folder: str, key: str) -> str:
    path, base = f"/{key.removeprefix('/')}", paths.folder(folder)
    # A CompositeBackend takes its route away, and a backend of everything does not.
    return path if path.startswith((base, paths.SCRATCH)) else f"{base}{path[1:]}"


def _data(value: Mapping[str, Any]) -> bytes | None:
    """The bytes of a file: a list of lines in the first format, a text or base64 in the second."""
    content = value["content"]
    if isinstance(content, list) and all(isinstance(line, str) for line in content):
        content = "\n".join(content)
    try:
        if isinstance(content, str) and value.get("encoding") == "base64":
            return base64.b64decode(content, validate=True)
        return content.encode() if isinstance(content, str) else None
    except ValueError:
        return None


def _moment(value: Any) -> datetime | None:
    """A time without a zone is UTC; what is none counts as missing."""
    try:
        found = parse_datetime(value) if isinstance(value, str) else value
    except ValueError:
        return None
    return found.replace(tzinfo=found.tzinfo or UTC) if isinstance(found, datetime) else None
