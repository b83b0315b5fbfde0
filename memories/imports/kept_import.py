"""Stores what stays as it is: memory files, and items of LangGraph's store as items of the store.

Each is stored once and replaces nothing: a path or a key that the hub has, or had, keeps what is there. So a second run
stores nothing more, brings nothing back, and goes on after a break.
"""

import base64
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from django.db import transaction
from django.utils import timezone

from memories.api.v1.memory.serializers import MemoryQuery
from memories.api.v1.store.serializers import PutItemSerializer, write_of
from memories.curation.files import FileWriter, NewContent, write_file
from memories.curation.people.records import person_for_writing
from memories.exceptions import MemoryHubError, PreconditionFailed
from memories.files import paths
from memories.imports import moments
from memories.imports.fact_import import COMMAND, IMPORTED
from memories.imports.raw_documents import RefusedDocumentError, checked, unsendable_in
from memories.imports.records import NOBODY, KeptFile, Note, StoredItem, ignore_rows
from memories.models import FileVersion, ImportedRow, MemoryFile, Tenant
from memories.store import writing
from memories.store.viewers import StoreViewer
from memories.store.writing import Write
from memories.text.secrets import effort

# Items in one transaction: a break loses no more than these.
AT_ONCE = 200
# The reason of a version that an import made.
REASON = "import"


class Kept:
    """An import under way: `done` counts by outcome, `left_out` and `refused` by reason."""

    def __init__(self, tenant: Tenant, *, dry_run: bool, note: Note = ignore_rows) -> None:
        self._tenant, self._dry_run, self._note, self._now = tenant, dry_run, note, timezone.now()
        self.done, self.left_out, self.refused = Counter[str](), Counter[str](), Counter[str]()


class FileImport(Kept):
    """Files become memory files of their person and agent, each with its dates, as one version. `agents` counts those
    that are there by whose they are."""

    def __init__(self, tenant: Tenant, *, user_id: str, dry_run: bool, note: Note = ignore_rows) -> None:
        super().__init__(tenant, dry_run=dry_run, note=note)
        self._user_id = user_id
        self.agents = Counter[str]()

    def take(self, file: KeptFile) -> None:
        self.done["found"] += 1
        user_id = file.whose.user_id or self._user_id
        if not user_id:
            self.left_out[NOBODY] += 1
            return
        if letters := unsendable_in(file.path):
            self.left_out[letters] += 1
            return
        try:
            with effort.bounded(), transaction.atomic():
                self._store(file, user_id)
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
        row = ImportedRow(
            tenant_id=person.tenant_id, end_user_id=person.pk, kind=ImportedRow.Kind.FILE, row=written.file.pk
        )
        self._note([row])
        self.done.update({"stored": 1, "redactions": written.redactions})
        self.agents[agent_id] += 1


class ItemImport(Kept):
    """Items keep their namespace, key, value, dates and what is left of their time to live."""

    def __init__(self, tenant: Tenant, *, dry_run: bool, note: Note = ignore_rows) -> None:
        super().__init__(tenant, dry_run=dry_run, note=note)
        self._waiting: list[Write] = []

    def take(self, item: StoredItem) -> None:
        """It may wait for others, until there are enough or flush() is called."""
        self.done["found"] += 1
        try:
            ttl: dict[str, Any] = {} if item.ttl_minutes is None else {"ttl": item.ttl_minutes}
            index = {} if item.index is None else {"index": list(item.index) or False}
            document = {"namespace": list(item.namespace), "key": item.key, "value": item.value, **ttl, **index}
            write = write_of(checked(PutItemSerializer, document))
            updated = min(moments.moment(item.updated_at) or self._now, self._now)
            created = min(moments.moment(item.created_at) or updated, updated)
            self._waiting.append(
                replace(write, created_at=created, updated_at=updated, expires_at=moments.moment(item.expires_at))
            )
        except RefusedDocumentError as error:
            (self.left_out if error.is_letters else self.refused)[error.code if error.is_letters else str(error)] += 1
        if len(self._waiting) == AT_ONCE:
            self.flush()

    def flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        self._store(waiting)

    def _store(self, writes: Sequence[Write]) -> None:
        """One transaction; where the hub refuses it, each item by itself."""
        if not writes:
            return
        try:
            with effort.bounded(), transaction.atomic():
                put = writing.write(
                    writes, tenant=self._tenant, viewer=StoreViewer(self._tenant), now=self._now, only_new=True
                )
                of = {"tenant_id": self._tenant.pk, "kind": ImportedRow.Kind.ITEM}
                self._note(
                    [ImportedRow(**of, end_user_id=item.end_user, row=item.id, at=item.updated_at) for item in put]
                )
                transaction.set_rollback(self._dry_run)
        except MemoryHubError as error:
            if len(writes) == 1:
                self.refused[error.code] += 1
            for one in writes if len(writes) > 1 else ():
                self._store([one])
        else:
            self.done.update({"stored": len(put), "duplicates": len(writes) - len(put)})
