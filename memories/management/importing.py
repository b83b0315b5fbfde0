"""Imports memories of other systems as facts and sections of profiles, each once, as `PUT /memory` does with
`stated_by: import`: they replace nothing, and what speaks to a model waits for an operator."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

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
from memories.curation.statements.voices import WriteTrust
from memories.exceptions import MemoryHubError
from memories.management.memory_stores import StoredMemory, Whose
from memories.management.raw_documents import RefusedDocumentError, checked
from memories.models import ActorKind, EndUser, Fact, Tenant
from memories.text.secrets import effort

# Facts in one transaction: a break loses no more than these.
AT_ONCE = 200
COMMAND = Actor(kind=ActorKind.COMMAND)
IMPORTED = WriteTrust(imports=True)


class Import:
    """An import under way; `done` counts by outcome, `left_out` and `refused` by reason."""

    def __init__(self, tenant: Tenant, *, user_id: str, dry_run: bool) -> None:
        self._tenant, self._user_id, self._dry_run = tenant, user_id, dry_run
        self._waiting: dict[Whose, list[DocumentFact]] = defaultdict(list)
        self.done, self.left_out, self.refused = Counter[str](), Counter[str](), Counter[str]()

    def take(self, memories: Iterable[StoredMemory]) -> None:
        for memory in memories:
            self.done["memories"] += 1
            if memory.left_out:
                self.left_out[memory.left_out] += 1
                continue
            try:
                self._take(memory)
            except RefusedDocumentError as error:
                self.refused[str(error)] += 1
        for whose, facts in self._waiting.items():
            self._state(whose, facts)
        self._waiting.clear()

    def _take(self, memory: StoredMemory) -> None:
        """Errors: RefusedDocumentError."""
        named = {"user_id": self._user_id or memory.whose.user_id}
        named |= {"agent_id": memory.whose.agent_id} if memory.whose.agent_id else {}
        given = checked(MemoryQuery, named)
        whose = Whose(given["user_id"], given.get("agent_id") or "")
        if memory.sections:
            self._state(whose, (), sections_of(checked(DocumentSerializer, memory.sections)))
            return
        waiting = self._waiting[whose]
        waiting += facts_of({"facts": [checked(DocumentFactSerializer, memory.fact)]})
        if len(waiting) >= AT_ONCE:
            self._state(whose, self._waiting.pop(whose))

    def _state(
        self, whose: Whose, facts: Sequence[DocumentFact], sections: dict[str, DocumentSection] | None = None
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

    def _import(self, whose: Whose, facts: Sequence[DocumentFact], sections: dict[str, DocumentSection]) -> None:
        person = self._person(whose.user_id)
        # In whatever state they are: what somebody changed or forgot since does not come back.
        existing = set(_facts_called(self._tenant, person, facts))
        new = [fact for fact in facts if not fact.external_id or fact.external_id not in existing]
        if self._dry_run or person is None:
            stored, waiting = len(new), 0
        else:
            held = import_document(
                end_user=person,
                sections=sections,
                facts=new,
                actor=COMMAND,
                now=timezone.now(),
                agent_id=whose.agent_id,
                voice=IMPORTED,
            )
            stored = len(set(_facts_called(self._tenant, person, new)))
            waiting = held.facts + held.sections
        self.done.update(
            {
                "facts": stored,
                "waiting": waiting,
                "sections": sum(bool(section.summary) for section in sections.values()),
                "duplicates": len(facts) - stored,
            }
        )

    def _person(self, user_id: str) -> EndUser | None:
        """Made on first sight; a dry run makes nobody."""
        if not self._dry_run:
            return person_for_writing(tenant=self._tenant, user_id=user_id, now=timezone.now())
        named = EndUser.objects.called(self._tenant, user_id).first()
        return (named.merged_into or named) if named else None


def _facts_called(tenant: Tenant, person: EndUser | None, facts: Sequence[DocumentFact]) -> Iterable[str]:
    ids = [fact.external_id for fact in facts if fact.external_id]
    if person is None or not ids:
        return []
    return Fact.objects.of(tenant, person).filter(external_id__in=ids).values_list("external_id", flat=True)
