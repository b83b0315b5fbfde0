"""Imports memories of other systems as facts and sections of profiles, each once, as `PUT /memory` does with
`stated_by: import`: they replace nothing, and what speaks to a model waits for an operator."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from memories.api.v1.memory.serializers import (
    DocumentFactSerializer,
    DocumentSerializer,
    MemoryQuery,
    facts_of,
    sections_of,
)
from memories.audit import Actor
from memories.curation.people.records import person_for_writing
from memories.curation.statements.documents import DocumentFact, DocumentSection, import_document
from memories.curation.statements.write_trust import WriteTrust
from memories.exceptions import MemoryHubError
from memories.imports.raw_documents import RefusedDocumentError, checked
from memories.imports.records import NOBODY, Note, Owner, StoredMemory, ignore_rows
from memories.models import ActorKind, EndUser, Fact, ImportedRow, ProfileSection, Tenant
from memories.models.folding import text_digest
from memories.text.secrets import effort

# Facts in one transaction: a break loses no more than these.
AT_ONCE = 200
COMMAND = Actor(kind=ActorKind.COMMAND)
IMPORTED = WriteTrust(imports=True)


class FactImport:
    """An import under way; `done` counts by outcome, `left_out` and `refused` by reason. `user_id`: whose the memories
    are that name nobody."""

    def __init__(self, tenant: Tenant, *, user_id: str, dry_run: bool, note: Note = ignore_rows) -> None:
        self._tenant, self._user_id, self._dry_run, self._note = tenant, user_id, dry_run, note
        self._waiting: dict[Owner, list[DocumentFact]] = defaultdict(list)
        self._seen: set[tuple[Owner, str]] = set()
        self.done, self.left_out, self.refused = Counter[str](), Counter[str](), Counter[str]()

    def take(self, memory: StoredMemory) -> None:
        """It may wait for others of its person, until there are enough or flush() is called."""
        self.done["memories"] += 1
        if not (memory.whose.user_id or self._user_id or memory.is_own):
            self.left_out[NOBODY] += 1
            return
        try:
            self._take(memory)
        except RefusedDocumentError as error:
            self._refuse(error)

    def flush(self) -> None:
        for whose, facts in self._waiting.items():
            self._state(whose, facts)
        self._waiting.clear()

    def _take(self, memory: StoredMemory) -> None:
        """Errors: RefusedDocumentError."""
        named = {"user_id": memory.whose.user_id or self._user_id}
        named |= {"agent_id": memory.whose.agent_id} if memory.whose.agent_id else {}
        try:
            given = checked(MemoryQuery, named)
        except RefusedDocumentError:
            if memory.is_own:
                raise
            # Nobody here can be called so, and nobody can mend it there.
            self.left_out[NOBODY] += 1
            return
        whose = Owner(given["user_id"], given.get("agent_id") or "")
        if memory.sections:
            self._take_sections(whose, memory.sections)
            return
        [fact] = facts_of({"facts": [checked(DocumentFactSerializer, memory.fact)]})
        waiting = self._waiting[whose]
        waiting.append(replace(fact, expires_at=memory.ends) if memory.ends else fact)
        if len(waiting) >= AT_ONCE:
            self._state(whose, self._waiting.pop(whose))

    def _take_sections(self, whose: Owner, sections: Mapping[str, Any]) -> None:
        """At once; where one is not as it should be, each of the others by itself."""
        try:
            self._state(whose, (), sections_of(checked(DocumentSerializer, sections)))
        except RefusedDocumentError as error:
            several = [{group: {name: one}} for group, held in sections.items() for name, one in held.items()]
            if several == [sections]:
                self._refuse(error)
                return
            for one in several:
                self._take_sections(whose, one)

    def _refuse(self, error: RefusedDocumentError) -> None:
        (self.left_out if error.is_letters else self.refused)[error.code if error.is_letters else str(error)] += 1

    def _state(
        self, whose: Owner, facts: Sequence[DocumentFact], sections: dict[str, DocumentSection] | None = None
    ) -> None:
        """One transaction; where the hub refuses it, each fact by itself."""
        try:
            with effort.bounded():
                self._import(whose, facts, sections or {})
        except MemoryHubError as error:
            if len(facts) > 1:
                for fact in facts:
                    self._state(whose, [fact])
            else:
                self.refused[error.code] += 1

    def _import(self, whose: Owner, facts: Sequence[DocumentFact], sections: dict[str, DocumentSection]) -> None:
        """A dry run does the same, and keeps nothing of it."""
        with transaction.atomic():
            person = person_for_writing(tenant=self._tenant, user_id=whose.user_id, now=timezone.now())
            # In whatever state they are: what somebody changed or forgot since does not come back.
            existing = {name for name, _fact in _facts_called(self._tenant, person, facts)}
            before = _versions(person, whose.agent_id, sections)
            # A dry run keeps nothing, and remembers what it would have stored.
            first = [fact for fact in facts if self._seen.isdisjoint((whose, text) for text in _marks(fact))]
            new = [fact for fact in first if fact.external_id not in existing]
            held = import_document(
                end_user=person,
                sections=sections,
                facts=new,
                actor=COMMAND,
                now=timezone.now(),
                agent_id=whose.agent_id,
                write_trust=IMPORTED,
            )
            made = _facts_called(self._tenant, person, new)
            stored = len({name for name, _fact in made})
            written = _versions(person, whose.agent_id, sections).items() - before.items()
            of = {"tenant_id": self._tenant.pk, "end_user_id": person.pk}
            rows = [ImportedRow(**of, kind=ImportedRow.Kind.FACT, row=fact) for _name, fact in made]
            rows += [ImportedRow(**of, kind=ImportedRow.Kind.SECTION, row=row, last=at) for row, at in written]
            rows += [ImportedRow(**of, kind=ImportedRow.Kind.ASKED, row=asked) for asked in held.asked]
            self._note(rows)
            transaction.set_rollback(self._dry_run)
        self._seen |= {(whose, text) for fact in facts for text in _marks(fact)} if self._dry_run else set()
        self.done.update(
            {
                "facts": stored,
                "waiting": held.facts + held.sections,
                "sections": sum(bool(section.summary) for section in sections.values()),
                "duplicates": len(facts) - stored,
            }
        )


def _marks(fact: DocumentFact) -> tuple[str, str]:
    return fact.external_id, text_digest(fact.content).hex()


def _facts_called(tenant: Tenant, person: EndUser, facts: Sequence[DocumentFact]) -> list[tuple[str, UUID]]:
    """Those of the person with the ids of these: the id, and the hub's."""
    ids = [fact.external_id for fact in facts if fact.external_id]
    if not ids:
        return []
    return list(Fact.objects.of(tenant, person).filter(external_id__in=ids).values_list("external_id", "pk"))


def _versions(person: EndUser, agent_id: str, sections: Mapping[str, DocumentSection]) -> dict[UUID, int]:
    """The sections that are there of these, with their versions."""
    if not sections:
        return {}
    rows = ProfileSection.objects.filter(tenant=person.tenant_id, end_user=person, agent_id=agent_id)
    return dict(rows.filter(section__in=sections).values_list("pk", "version"))
