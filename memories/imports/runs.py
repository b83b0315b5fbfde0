"""An import from what was given to what is stored: the source is recognised and read, each record is stored once.

A run can be ended after any record, and begun again: what is there already is not stored a second time.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from django.db import connection, transaction

from memories import content_policy
from memories.imports import file_stores, memory_stores, sources
from memories.imports.conversation_import import ConversationImport
from memories.imports.fact_import import FactImport
from memories.imports.findings import Finding, Found, UnreadableError, together, unknown_source
from memories.imports.kept_import import FileImport, ItemImport
from memories.imports.own_exports.reading import SOURCE
from memories.imports.own_exports.storing import ExportImport
from memories.imports.places import Given
from memories.imports.raw_documents import CutOffError, RefusedDocumentError
from memories.imports.records import (
    OTHER_FORM,
    ExportedRows,
    KeptFile,
    LeftOut,
    Note,
    Record,
    Said,
    StoredItem,
    StoredMemory,
    ignore_rows,
)
from memories.imports.unpacking import DamagedError
from memories.models import Tenant


class UnknownSourceError(Exception):
    """Nothing in what was given is of the source; what it looks like, without any of its texts."""

    def __init__(self, source: str, found: Found) -> None:
        expects = sources.SOURCES[source].expects if source in sources.SOURCES else ""
        super().__init__(f"expected {expects}, {found}" if expects else str(found))
        self.finding = unknown_source(source, expects, found)


class UnsaidPersonError(Exception):
    """Items are in several namespaces, and nobody said which of these are the person's."""


class Run:
    """An import under way: `left_out` and `refused` count by reason, the imports of each kind what they stored.

    `is_trusted`: staff vouch for a hub's own export, so what an operator said there counts as an operator's here.
    """

    def __init__(
        self,
        tenant: Tenant,
        given: Given,
        source: str,
        *,
        as_items: bool = False,
        dry_run: bool = False,
        is_trusted: bool = False,
        tell: Callable[[str], None] = lambda _: None,
        note: Note = ignore_rows,
        read_as: Callable[[Record], Iterable[Record]] = lambda record: (record,),
    ) -> None:
        """`note` is told what is stored, in its transaction; `read_as` says what becomes of a record."""
        self.source, self.given, self._as_items, self._read_as = source, given, as_items, read_as
        # Of the documents of conversations those that were read, also the ones that were taken before.
        self.recognised = self._read = 0
        # What is told of files that are not taken as a whole.
        self.findings: list[Finding] = []
        self.left_out, self._refused = Counter[str](), Counter[str]()
        self.conversations = ConversationImport(
            tenant, user_id=given.user, agent_id=given.agent or "", dry_run=dry_run, tell=tell, note=note
        )
        self.facts = FactImport(tenant, user_id=given.user, dry_run=dry_run, note=note)
        self.files = FileImport(tenant, user_id=given.user, dry_run=dry_run, note=note)
        self.items = ItemImport(tenant, dry_run=dry_run, note=note)
        # Rows name one another: what a dry run of them would do is seen when all are there.
        self._is_rehearsal = dry_run and source == SOURCE
        self.rows = ExportImport(
            tenant,
            is_trusted=is_trusted,
            is_rehearsal=self._is_rehearsal,
            note=ignore_rows if self._is_rehearsal else note,
        )

    @property
    def is_of_conversations(self) -> bool:
        return self.source in sources.CHATS

    def steps(self, *, after: int = 0) -> Iterator[int]:
        """Import, a record at a time: yields how many have been taken; `after` so many were taken before.

        Errors: UnsaidPersonError; UnknownSourceError at the end, where nothing was recognised; Erased, NotFound,
        PersonRestricted, where all is of one person; OSError, ValueError, sqlite3.Error, psycopg.Error, where it
        cannot be read.
        """
        if self._is_unsaid():
            raise UnsaidPersonError
        if self._is_rehearsal:
            with transaction.atomic():
                taken = sum(1 for _ in self._steps())
                transaction.set_rollback(True)
            yield taken
        else:
            yield from self._steps(after)
        if not (self.recognised or after):
            raise UnknownSourceError(self.source, sources.found_instead(self.given))

    def _steps(self, after: int = 0) -> Iterator[int]:
        for taken, record in enumerate(self._records(), start=1):
            self._read += isinstance(record, Said | RefusedDocumentError)
            if taken > after:
                for one in self._read_as(record):
                    self._take(one)
                yield taken
        self.flush()
        self.rows.finish()

    def flush(self) -> None:
        """Store what waits for others of its kind."""
        self.facts.flush()
        self.items.flush()
        # Of a command, too: what its records were refused for is counted outside of their transactions.
        if not connection.in_atomic_block:
            content_policy.flush()

    def _is_unsaid(self) -> bool:
        """Whether a person would get what is in others' namespaces, too."""
        is_named = self._as_items or not self.given.user or self.given.namespace
        if is_named or self.source not in sources.NAMESPACED or self.given.folder:
            return False
        return memory_stores.are_of_several(self.given, sources.chosen(self.given, self.source)[0])

    @property
    def is_from_the_start(self) -> bool:
        """Whether each part of a run begins with the first record: what comes later rests on what came before it."""
        return self.source == SOURCE

    def expected_records(self, taken: int) -> int:
        """How many records there will be, by how many came of the documents that were read; 0 where nobody knows."""
        if not (self.expected and self._read):
            return self.expected
        return max(taken, round(self.expected * taken / self._read))

    @property
    def expected(self) -> int:
        """How many documents of files there are to take; 0 where nobody knows before they are read."""
        return sum(len(documents.places) for documents in self.given.known.values()) if self.is_of_conversations else 0

    def found(self, kind: str) -> int:
        """How many memories, files or items there are, also those that are left out where all are of that kind."""
        kinds = {"memories": self.facts.done["memories"], "files": self.files.done["found"]}
        kinds |= {"items": self.items.done["found"]}
        usual = "items" if self._as_items else "files" if self.source in sources.FILES else "memories"
        is_alone = not (self.is_of_conversations or self.conversations.done["conversations"] or self.rows.total)
        return kinds[kind] + (self.left_out.total() if is_alone and kind == usual else 0)

    def counted(self) -> tuple[Counter[str], Counter[str]]:
        """What was left out, and what was refused, by reason; of conversations each was told by itself."""
        kinds: list[Any] = [self.facts, self.files, self.items, self.rows]
        left_out = sum((one.left_out for one in [self.conversations, *kinds]), self.left_out)
        return left_out, sum((one.refused for one in kinds), self._refused)

    def _records(self) -> Iterator[Record]:
        parts, others = sources.chosen(self.given, self.source)
        read = file_stores.read_items if self._as_items else sources.SOURCES[self.source].read
        yield from self.given.faults
        try:
            yield from read(self.given, parts)
        except RefusedDocumentError as error:
            # A database's file ends early.
            yield error
        except (LookupError, TypeError, AttributeError, ArithmeticError) as error:
            # Of the reader alone: a table without a column, a number where a text should be.
            raise UnreadableError(OTHER_FORM) from error
        yield from others

    def _take(self, record: Record) -> None:
        match record:
            case LeftOut():
                self.left_out[record.reason] += record.number
                self.recognised += record.reason not in sources.UNRECOGNISED
            case RefusedDocumentError():
                self._refuse(record)
            case Said():
                self.recognised += bool(record.messages)
                self.conversations.take(record)
            case StoredMemory():
                self.recognised += 1
                self.facts.take(record)
            case ExportedRows():
                self.recognised += len(record.rows)
                self.rows.take(record)
            case KeptFile():
                self.recognised += 1
                self.files.take(record)
            case StoredItem():
                self.recognised += 1
                self.items.take(record)

    def _refuse(self, error: RefusedDocumentError) -> None:
        if error.code == OTHER_FORM and self.source not in sources.OWN:
            # Nobody can mend it in what another program wrote.
            self.left_out[OTHER_FORM] += 1
            return
        if isinstance(error, CutOffError | DamagedError):
            finding: Finding = {"code": error.code, "at": error.at}
            if isinstance(error, CutOffError):
                parts = [part for part in self.given.parts if part.path == error.path]
                number = self.given.parts.index(parts[0]) + 1 if parts else 1
                finding |= {"file": number, "begins": error.begins, "whole": error.whole}
                self.recognised += any(sources.plain_shape_of(self.given, part) == self.source for part in parts)
            else:
                finding |= {"file": error.number}
            self.findings = together(self.findings, [finding])
            self._refused[str(error)] += 1
            return
        self.recognised += 1
        if self.is_of_conversations:
            self.conversations.refuse(error)
        else:
            self._refused[str(error)] += 1
