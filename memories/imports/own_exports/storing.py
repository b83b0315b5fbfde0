"""Stores the rows of a hub's own export as they were there: whose they are, when, by whom, with which trust and tags.

Each row gets an id made of its old one and of its person, so a second run finds what the first one stored, and what
names a row finds it. Nothing here is replaced: a text, a path or a section that the person has stays.
"""

import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from django.db import DataError, IntegrityError, transaction
from django.utils import timezone

from memories import audit, content_policy
from memories.api.v1.memory.serializers import MemoryQuery
from memories.capture import get_or_create
from memories.capture.agents import note_agents
from memories.capture.ingest import LONGEST_NAME
from memories.curation.imports.people import record_row
from memories.curation.people.records import person_for_writing
from memories.curation.writing import lock_person
from memories.exceptions import NotFound, PersonRestricted
from memories.imports.fact_import import COMMAND
from memories.imports.own_exports.lists import WAYS
from memories.imports.own_exports.values import built, id_of, mapped, reference
from memories.imports.own_exports.ways import DANGLING, OTHER_NAME, TAKEN, Here, ListStrategy, Row
from memories.imports.raw_documents import RefusedDocumentError, checked
from memories.imports.records import NOBODY, OTHERS, ExportedRows, Note, ignore_rows
from memories.models import EndUser, Tenant
from memories.text.secrets import effort

# What of a person's record comes where this hub has nothing.
_RECORD = ("display_name", "time_zone", "language", "metadata")
# What is stored of nobody whose turns are not.
_CAPTURED = ("sessions", "turns", "episodes")
# A row that the database refuses, such as one with the number of another.
CONFLICT = "conflict"


class ExportImport(Here):
    """An import under way; `stored` and `there` count by list, `left_out` and `refused` by reason.

    `is_rehearsal`: its transaction is rolled back, and as long as it lasts nobody shall wait for it: it locks nobody,
    and makes nobody under an id that others use.
    """

    def __init__(
        self, tenant: Tenant, *, is_trusted: bool, is_rehearsal: bool = False, note: Note = ignore_rows
    ) -> None:
        super().__init__(tenant, timezone.now(), is_trusted=is_trusted, note=note)
        self._is_rehearsal = is_rehearsal
        self.stored, self.there, self.refused = Counter[str](), Counter[str](), Counter[str]()
        self._is_captured = self._stays_captured = True
        # By old id the row that says the same here.
        self._same: dict[uuid.UUID, uuid.UUID] = {}

    @property
    def total(self) -> int:
        return self.stored.total() + self.there.total()

    def take(self, record: ExportedRows) -> None:
        """Errors: Erased, PersonRestricted, NotFound once the person is erased."""
        if record.name == "people":
            self._read_person(record.rows)
        elif record.name in _CAPTURED and self.is_anybody and not self._is_captured:
            self.left_out["capture_off"] += len(record.rows)
        elif self.is_anybody:
            if not self._is_rehearsal:
                names = [row["agent_id"] for row in record.rows if isinstance(row.get("agent_id"), str)]
                # Another one is refused with its row.
                note_agents(self.tenant, [name for name in names if len(name) <= LONGEST_NAME and name.isprintable()])
            with effort.bounded():
                self._take(record, record.rows)
        elif not record.links:
            self.left_out[NOBODY] += len(record.rows)

    def finish(self) -> None:
        """What remains to be done of a person, once all of their rows were taken."""
        self.left_out[OTHERS] += len(self.group_facts)
        self.group_facts.clear()
        if not self.is_anybody:
            return
        if not self._stays_captured:
            with transaction.atomic():
                captured = EndUser.objects.filter(pk=self.person.pk, capture=True)
                if captured.update(capture=False, capture_off_by=COMMAND.kind):
                    self.person.refresh_from_db()
                    self.note(record_row(self.person, ["capture"]))
        if self.stored:
            counts = {"facts": self.stored["facts"], "sections": self.stored["profile_sections"]}
            audit.record(
                actor=COMMAND,
                verb="import",
                target=EndUser,
                object_id=self.person.pk,
                tenant=self.tenant,
                now=timezone.now(),
                counts=counts,
            )

    def known(self, model: Any, olds: Iterable[uuid.UUID | None]) -> dict[uuid.UUID, uuid.UUID]:
        """Old id → that of the person's row of the model here, of those that are there."""
        ids = {old: (self._same.get(old), old, mapped(self.person.pk, old)) for old in olds if old}
        wanted = [one for some in ids.values() for one in some if one]
        rows = model._default_manager.filter(pk__in=wanted, tenant=self.tenant, end_user=self.person.pk)
        there = set(rows.values_list("pk", flat=True))
        found = {old: next((one for one in some if one in there), None) for old, some in ids.items()}
        return {old: one for old, one in found.items() if one}

    def _read_person(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Whose the rows are, and what their record says that this hub does not know."""
        main = [row for row in rows if not row.get("merged_into")]
        self.left_out[OTHER_NAME] += len(rows) - len(main[:1])
        if not main:
            return
        if self.is_anybody:
            # The one before, of an archive with several.
            self.finish()
            self.is_anybody = False
        if main[0].get("restricted_at"):
            # Whoever restricted it there decides it here, too.
            raise PersonRestricted
        try:
            named = checked(MemoryQuery, {"user_id": main[0].get("external_id")})
            given = built(EndUser, main[0])
        except RefusedDocumentError as error:
            self.refused[str(error)] += 1
            return
        with transaction.atomic():
            self.person = person_for_writing(tenant=self.tenant, user_id=self._name_of(named["user_id"]), now=self.now)
            # What the export switches off was stored there before.
            self._is_captured = self.tenant.capture and self.person.capture
            is_new = self.person.created_at >= self.now
            counts = self.stored if is_new else self.there
            # Turns come first.
            self._stays_captured = given.capture
            if not self._is_rehearsal:
                self._fill(given, is_new=is_new)
        self.is_anybody = True
        counts["people"] += 1

    def _name_of(self, user_id: str) -> str:
        """The person's id, and in a rehearsal another one for somebody who is not there. Errors: Erased."""
        if not self._is_rehearsal or EndUser.objects.called(self.tenant, user_id).exists():
            return user_id
        get_or_create.refuse_erased(self.tenant, user_id)
        return f"rehearsal-{uuid.uuid4()}"

    def _fill(self, given: EndUser, *, is_new: bool) -> None:
        own = self.person
        written = [name for name in _RECORD if getattr(given, name) and not getattr(own, name)]
        for name in written:
            setattr(own, name, getattr(given, name))
        # What is off there is off here; it is switched on by whoever asks for it.
        if own.serve and not given.serve:
            own.serve, own.serve_off_by = False, COMMAND.kind
            written.append("serve")
        if is_new:
            own.created_at = min(own.created_at, given.created_at or own.created_at)
        own.save(update_fields=[*_RECORD, "serve", "serve_off_by", "created_at"])
        # The record of somebody new goes with them.
        self.note(*([record_row(own, written)] if written and not is_new else []))

    def _take(self, record: ExportedRows, rows: Sequence[Mapping[str, Any]]) -> None:
        """One transaction; where the database refuses it, each row by itself."""
        way = WAYS[record.name]
        before = dict(self._same), Counter(self.left_out), dict(self.group_facts)
        try:
            with transaction.atomic():
                self._lock()
                done = self._link(way, rows) if record.links else self._store(way, record.name, rows)
        except (IntegrityError, DataError, RefusedDocumentError) as error:
            self._same, self.left_out, self.group_facts = before
            if len(rows) > 1:
                for row in rows:
                    self._take(record, [row])
            else:
                self.refused[str(error) if isinstance(error, RefusedDocumentError) else CONFLICT] += 1
            return
        for counts, some in zip((self.stored, self.there, self.left_out, self.refused), done, strict=True):
            counts.update(some)

    def _lock(self) -> None:
        """Errors: NotFound, PersonRestricted."""
        if not self._is_rehearsal and lock_person(self.person.pk) != self.person.pk:
            raise NotFound
        if EndUser.objects.filter(pk=self.person.pk).exclude(restricted_at=None).exists():
            raise PersonRestricted
        # An export takes long: what may be remembered is asked anew.
        content_policy.in_force_now(self.tenant)

    def _link(self, way: ListStrategy, rows: Sequence[Mapping[str, Any]]) -> "Counts":
        if way.link:
            way.link(self, rows)
        return {}, {}, {}, {}

    def _store(self, way: ListStrategy, name: str, rows: Sequence[Mapping[str, Any]]) -> "Counts":
        stored, there, left_out, refused = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
        if way.store:
            stored[name], there[name], left = way.store(self, rows)
            left_out.update(left)
            return stored, there, left_out, refused
        known = self.known(way.model, (reference(row, "id") for row in rows))
        new: list[Row] = []
        parents = {column: self.known(model, (reference(row, column) for row in rows))
                   for column, model in (way.parents | way.loose).items()}  # fmt: skip
        for row in rows:
            try:
                old = id_of(row)
                if old in known:
                    there[name] += 1
                elif reason := way.left_out(self, row) or self._lacks(way, row, parents):
                    left_out[reason] += 1
                else:
                    new.append(self._made(way, old, row, parents))
            except RefusedDocumentError as error:
                refused[error.code if error.is_letters else f"{name}: {error}"] += 1
        kept = self._distinct(way, new)
        there[name] += len(new) - len(kept)
        stored[name] += len(kept)
        way.model._default_manager.bulk_create([one.made for one in kept])
        way.after(self, kept)
        self.note(*way.noted(kept))
        return stored, there, left_out, refused

    def _lacks(
        self, way: ListStrategy, row: Mapping[str, Any], parents: Mapping[str, Mapping[uuid.UUID, uuid.UUID]]
    ) -> str:
        """Why there is no place for the row: what it belongs to is not there, or is another one."""
        olds = {column: reference(row, column) for column in way.parents}
        if any(old not in parents[column] for column, old in olds.items()):
            return DANGLING
        return TAKEN if any(old in self.taken for old in olds.values()) else ""

    def _made(
        self,
        way: ListStrategy,
        old: uuid.UUID,
        row: Mapping[str, Any],
        parents: Mapping[str, Mapping[uuid.UUID, uuid.UUID]],
    ) -> Row:
        """Errors: RefusedDocumentError."""
        made = built(way.model, row)
        made.pk, made.tenant, made.end_user = mapped(self.person.pk, old), self.tenant, self.person
        for column, found in parents.items():
            setattr(made, f"{column}_id", found.get(reference(row, column) or old))
        way.complete(self, made, row)
        return Row(old, made, row)

    def _distinct(self, way: ListStrategy, rows: Sequence[Row]) -> list[Row]:
        """Without those that say what a row here says already; what names them is led to that one."""
        keys = {
            one.old: tuple(_plain(getattr(one.made, name)) for name in way.once)
            for one in rows
            if way.once and way.is_once(one.made)
        }
        seen = self._those_with(way, keys.values()) if keys else {}
        kept: list[Row] = []
        for one in rows:
            key = keys.get(one.old)
            same = seen.get(key) if key else None
            if same:
                self._same[one.old] = same
                self.taken |= {one.old} if way.is_taken_whole else set()
                continue
            if key:
                seen[key] = one.made.pk
            kept.append(one)
        return kept

    def _those_with(self, way: ListStrategy, keys: Collection[tuple[Any, ...]]) -> dict[tuple[Any, ...], uuid.UUID]:
        """The person's rows that may have one of these keys, by theirs."""
        last = {f"{way.once[-1]}__in": [key[-1] for key in keys]}
        held = way.model._default_manager.filter(way.among, end_user=self.person.pk, **last)
        return {tuple(map(_plain, key)): pk for pk, *key in held.values_list("pk", *way.once)}


Counts = tuple[Mapping[str, int], Mapping[str, int], Mapping[str, int], Mapping[str, int]]


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, memoryview) else value
