"""The changes of upkeep to one person's facts: removed ones are archived, merged ones superseded by the new fact.

Nothing is deleted; each change leaves a revision with its reason and the pass as its change set.
"""

import uuid
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from memories import audit, conf
from memories.audit import Actor
from memories.facts import review_items
from memories.forgetting.upkeep_answers import Merge, Removal, UpkeepDecisions
from memories.forgetting.upkeep_candidates import STATED, UpkeepFact, is_stale, unprotected
from memories.llm.prompts import fact_upkeep
from memories.models import (
    EndUser,
    Fact,
    FactEvidence,
    FactRefusal,
    FactRelation,
    RelationType,
    Source,
    Status,
)
from memories.models.memories.refusals import mark_of_text
from memories.reconcile import gate
from memories.reconcile.gate import Accepted, BatchEvidence, Refused
from memories.text.support import SourceTexts

_LIVE = (Status.ACTIVE, Status.PENDING)
# No turn states it: it is as trusted as the facts that it is made of.
_NO_EVIDENCE = BatchEvidence(fed={}, tool_numbers=frozenset())


def hold(person: EndUser) -> bool:
    """Lock the person, as every change of facts does; False when they were erased or restricted meanwhile."""
    people = EndUser.objects.select_for_update(no_key=True).filter(pk=person.pk, generation=person.generation)
    return people.filter(restricted_at=None).first() is not None


@dataclass
class Keeper:
    """Applies decisions to one person's facts; counts what was done."""

    person: EndUser
    rules: conf.Rules
    actor: Actor
    change_set: uuid.UUID
    extractor: str
    now: datetime
    done: Counter[str] = field(default_factory=Counter)
    touched: list[uuid.UUID] = field(default_factory=list)

    def apply(self, decisions: UpkeepDecisions) -> None:
        """After hold(). A fact that has changed since it was shown is left alone, and so are its merges."""
        as_shown = self._locked(decisions.removed | decisions.sources)
        self._refuse(sum(decisions.refused.values()))
        for removal in decisions.removals:
            self._remove(removal, as_shown.get(removal.shown.fact_id))
        for merge in decisions.merges:
            self._merge(merge, [as_shown[shown.fact_id] for shown in merge.shown if shown.fact_id in as_shown])
        review_items.settle(self.touched, now=self.now, change_set=self.change_set)

    def _locked(self, shown: Collection[UpkeepFact]) -> dict[uuid.UUID, Fact]:
        """Those that have not changed since the model saw them, locked in the order of their ids.

        A recall changes no version: is_stale() detects it.
        """
        facts = unprotected(self.person.tenant, self.rules, self.now).filter(end_user=self.person)
        rows = facts.filter(pk__in=[one.fact_id for one in shown]).select_for_update(of=("self",), no_key=True)
        seen = {one.fact_id: (one.version, one.content_hash) for one in shown}
        return {row.pk: row for row in rows.order_by("pk") if seen[row.pk] == (row.version, bytes(row.content_hash))}

    def _remove(self, removal: Removal, fact: Fact | None) -> None:
        if fact is None or not is_stale(fact, self.rules, self.now):
            self._refuse(1)
            return
        before = audit.snapshot(fact)
        fact.status, fact.valid_to = Status.ARCHIVED, self.now
        self._save(fact, "remove", before, removal.reason)
        self.done["stale"] += 1

    def _merge(self, merge: Merge, sources: Sequence[Fact]) -> None:
        accepted = self._accepted(merge, sources) if len(sources) == len(merge.shown) else None
        if accepted is None:
            self._refuse(1)
            return
        fact = self._made(accepted, sources)
        fact.save(force_insert=True)
        self._revise(fact, "merge", {}, merge.reason)
        self._cite(fact, sources)
        for source in sources:
            before = audit.snapshot(source)
            source.status, source.valid_to, source.superseded_by = Status.SUPERSEDED, self.now, fact
            self._save(source, "merge", before, merge.reason)
        self.done["merged"] += 1

    def _accepted(self, merge: Merge, sources: Sequence[Fact]) -> Accepted | None:
        """The text if the gate admits it as it would an extracted fact.

        None: it is refused or held, exists already, would lose one of two keys, or has words that no source has.
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
        if others or isinstance(accepted, Refused) or accepted.flags or self._is_taken(accepted):
            return None
        if not SourceTexts(existing=[fact.content for fact in sources]).has_all_of(merge.content):
            return None
        return accepted

    def _is_taken(self, accepted: Accepted) -> bool:
        """Whether a live fact has this text already, or it was refused for good."""
        live = Fact.objects.of(self.person.tenant, self.person).filter(status__in=_LIVE)
        refused = FactRefusal.objects.refused(self.person, [mark_of_text(accepted.content)])
        return live.filter(content_hash=accepted.content_hash).exists() or bool(refused)

    def _made(self, accepted: Accepted, sources: Sequence[Fact]) -> Fact:
        """The merged fact: with their trust and visibility, and not a day fresher."""
        first, origins = sources[0], {source.source for source in sources}
        fact = Fact(
            tenant=self.person.tenant,
            end_user=self.person,
            **{name: getattr(first, name) for name in ("trust", "agent_id", "scope", "allowed_users", "allowed_roles")},
            **{name: getattr(accepted, name) for name in ("category", "key", "value", "tags", "importance")},
            confidence=accepted.confidence,
            stated_confidence=accepted.confidence,
            source=first.source if len(origins) == 1 else Source.IMPLICIT,
            extractor=self.extractor,
            prompt_version=fact_upkeep.VERSION,
            mentions=max(source.mentions for source in sources),
        )
        fact.say(accepted.content)
        fact.last_recalled_at = max((at for source in sources if (at := source.last_recalled_at)), default=None)
        stated_at = [at for source in sources for at in (source.first_observed_at, source.last_confirmed_at)]
        fact.begin(
            now=self.now, rules=self.rules, stated_at=stated_at, valid_from=min(source.valid_from for source in sources)
        )
        return fact

    def _cite(self, fact: Fact, sources: Sequence[Fact]) -> None:
        """It rests on their evidence; on none if one was stated outright, or it would be deleted with a session."""
        relations = [
            FactRelation(
                tenant_id=fact.tenant_id,
                fact=fact,
                target=source,
                type=RelationType.DERIVED_FROM,
                created_at=self.now,
            )
            for source in sources
        ]
        FactRelation.objects.bulk_create(relations)
        if any(source.extractor in STATED for source in sources):
            return
        rows = list(FactEvidence.objects.filter(fact__in=sources).order_by("created_at", "pk"))
        for row in rows:
            row.pk, row.fact = None, fact
        FactEvidence.objects.bulk_create(rows, ignore_conflicts=True)

    def _save(self, fact: Fact, verb: str, before: dict[str, object], reason: str) -> None:
        fact.version += 1
        fact.updated_at = self.now
        fact.refresh_decay(now=self.now, rules=self.rules)
        fact.save()
        self._revise(fact, verb, before, reason)

    def _revise(self, fact: Fact, verb: str, before: dict[str, object], reason: str) -> None:
        self.touched.append(fact.pk)
        audit.revise(
            fact=fact,
            verb=verb,
            actor=self.actor,
            before=before,
            reason=reason,
            now=self.now,
            change_set=self.change_set,
        )

    def _refuse(self, number: int) -> None:
        self.done["upkeep_refused"] += number
