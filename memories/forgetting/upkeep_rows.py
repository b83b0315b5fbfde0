"""The changes of upkeep to one person's facts: removed ones are archived, merged ones superseded by the new fact.

Nothing is deleted; each change leaves a revision with its reason and the pass as its change set.
"""

import uuid
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from memories import conf, content_policy
from memories.audit import Actor
from memories.facts import policies, review_items
from memories.facts.candidate import READERS, Candidate, Citation
from memories.facts.record import record
from memories.facts.write import FactWrite
from memories.forgetting.upkeep_answers import Merge, UpkeepDecisions
from memories.forgetting.upkeep_candidates import STATED, UpkeepFact, is_stale, unprotected
from memories.llm.prompts import fact_upkeep
from memories.models import EndUser, Fact, FactEvidence, RelationType, Source, Status
from memories.reconcile import gate
from memories.reconcile.gate import Accepted, BatchEvidence
from memories.text.support import SourceTexts
from memories.trust import Trust

# No turn states it: it is as trusted as the facts that it is made of.
_NO_EVIDENCE = BatchEvidence(fed={}, tool_numbers=frozenset())


def lock_person(person: EndUser) -> bool:
    """Lock the person, as every change of facts does; False when they were erased or restricted meanwhile."""
    people = EndUser.objects.select_for_update(no_key=True).filter(pk=person.pk, generation=person.generation)
    return people.filter(restricted_at=None).first() is not None


@dataclass
class UpkeepWriter:
    """Applies decisions to one person's facts; counts what was done."""

    person: EndUser
    rules: conf.Rules
    actor: Actor
    change_set: uuid.UUID
    extractor: str
    now: datetime
    done: Counter[str] = field(default_factory=Counter)

    def apply(self, decisions: UpkeepDecisions) -> None:
        """After lock_person(). A fact that has changed since it was shown is left alone, and so are its merges."""
        # They were loaded before the model was asked.
        content_policy.in_force_now(self.person.tenant)
        write = FactWrite(self.actor, self.now, change_set=self.change_set)
        as_shown = self._locked(decisions.removed | decisions.sources)
        self._refuse(sum(decisions.refused.values()))
        for removal in decisions.removals:
            self._remove(as_shown.get(removal.shown.fact_id), write.because(removal.reason))
        for merge in decisions.merges:
            sources = [as_shown[shown.fact_id] for shown in merge.shown if shown.fact_id in as_shown]
            self._merge(merge, sources, write.because(merge.reason))
        review_items.close_answered_items(write.facts, now=self.now, change_set=self.change_set)

    def _locked(self, shown: Collection[UpkeepFact]) -> dict[uuid.UUID, Fact]:
        """Those that have not changed since the model saw them, locked in the order of their ids.

        A recall changes no version: is_stale() detects it.
        """
        facts = unprotected(self.person.tenant, self.rules, self.now).filter(end_user=self.person)
        facts = facts.filter(pk__in=[one.fact_id for one in shown]).select_related("tenant", "end_user")
        rows = facts.select_for_update(of=("self",), no_key=True)
        seen = {one.fact_id: (one.version, one.content_hash) for one in shown}
        return {row.pk: row for row in rows.order_by("pk") if seen[row.pk] == (row.version, bytes(row.content_hash))}

    def _remove(self, fact: Fact | None, write: FactWrite) -> None:
        if fact is None or not is_stale(fact, self.rules, self.now):
            self._refuse(1)
            return
        with write.changing(fact, "remove"):
            fact.status, fact.valid_to = Status.ARCHIVED, self.now
        self.done["stale"] += 1

    def _merge(self, merge: Merge, sources: Sequence[Fact], write: FactWrite) -> None:
        candidate = self._candidate(merge, sources) if len(sources) == len(merge.shown) else None
        made = record([candidate], person=self.person, write=write, policy=policies.UPKEEP) if candidate else []
        if not any(one.fact for one in made):
            self._refuse(1)
            return
        self.done["merged"] += 1

    def _candidate(self, merge: Merge, sources: Sequence[Fact]) -> Candidate | None:
        """The text if the gate admits it as it would an extracted fact's.

        None: it is refused, would lose one of two keys, or has words that no source has.
        """
        keys = {(fact.key, fact.value) for fact in sources if fact.key} or {("", "")}
        (key, value), *others = keys
        raw = {
            "content": merge.content,
            "category": sources[0].category,
            "confidence": min(merge.confidence, max(fact.confidence for fact in sources)),
            "importance": max(fact.importance for fact in sources),
            "key": key,
            "value": value,
            "tags": list(dict.fromkeys(tag for fact in sources for tag in fact.tags)),
        }
        accepted = gate.judge(raw, index=0, evidence=_NO_EVIDENCE, rules=self.rules)
        if others or not isinstance(accepted, Accepted):
            return None
        if not SourceTexts(existing=[fact.content for fact in sources]).has_all_of(merge.content):
            return None
        return self._merged(accepted, sources)

    def _merged(self, accepted: Accepted, sources: Sequence[Fact]) -> Candidate:
        """The merged fact: with their trust and visibility, and not a day fresher."""
        first, origins = sources[0], {source.source for source in sources}
        return Candidate(
            **{name: getattr(first, name) for name in READERS},
            **{
                name: getattr(accepted, name)
                for name in ("content", "category", "key", "value", "tags", "confidence", "importance", "flags")
            },
            trust=Trust(first.trust),
            source=Source(first.source) if len(origins) == 1 else Source.IMPLICIT,
            extractor=self.extractor,
            prompt_version=fact_upkeep.VERSION,
            mentions=max(source.mentions for source in sources),
            last_recalled_at=max((at for source in sources if (at := source.last_recalled_at)), default=None),
            stated_at=[at for source in sources for at in (source.first_observed_at, source.last_confirmed_at)],
            valid_from=min(source.valid_from for source in sources),
            citations=_citations(sources),
            relations=[(RelationType.DERIVED_FROM, source) for source in sources],
            merges=sources,
        )

    def _refuse(self, number: int) -> None:
        self.done["upkeep_refused"] += number


def _citations(sources: Sequence[Fact]) -> list[Citation]:
    """It rests on their evidence; on none if one was stated outright, or it would be deleted with a session."""
    if any(source.extractor in STATED for source in sources):
        return []
    rows = FactEvidence.objects.filter(fact__in=sources).order_by("created_at", "pk")
    return [Citation(row.session_id, row.turn_number, row.turn_id, row.quote, row.created_at) for row in rows]
