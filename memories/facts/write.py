"""One write of facts: each fact's next version is saved here, with its revision, and what goes with it."""

import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

from django.db import IntegrityError, transaction
from django.db.models import F

from memories import audit, conf, content_policy
from memories.audit import Actor
from memories.exceptions import DuplicateFact
from memories.models import Change, EndUser, Fact, FactEvidence, FactRefusal, FactRelation, Road, Status
from memories.models.memories.refusals import RefusalKey, refusal_keys
from memories.text import value_texts

if TYPE_CHECKING:
    from memories.facts.candidate import Candidate

Table, Action = Change.Table, Change.Action
# What a fact says, as the content policy judges it.
_SAID = ("content", "key", "value", "raw", "source_error", "tags", "structured")


def texts_of(fact: "Fact | Candidate") -> list[str]:
    """All that the content policy judges of a fact; a key by itself says less than with its value."""
    document = (fact.document or {}).get("given")
    named = f"{fact.key.replace('_', ' ')} {fact.value}"
    texts = [fact.content, named, fact.raw, fact.source_error, *fact.tags]
    return [*texts, *value_texts.strings(fact.structured), *value_texts.strings(document)]


# What decides whether a person has another live fact of the same text.
_ONCE = ("content", "agent_id", "status")


def _check_policy(fact: Fact, before: Mapping[str, Any]) -> None:
    """Judge the words that a change gives the fact; older ones stay as they are. Errors: ContentForbidden."""
    if all(getattr(fact, name) == before[name] for name in _SAID) or not content_policy.in_force(fact.tenant):
        return
    was = copy(fact)
    for name in _SAID:
        setattr(was, name, before[name])
    # The key that it had is nothing new beside another value, or none: a correction takes the value away.
    known = {*texts_of(was), f"{was.key.replace('_', ' ')} "}
    content_policy.check(fact.tenant, Road.STATEMENT, [text for text in texts_of(fact) if text not in known])


@dataclass
class FactWrite:
    """A write in progress: who writes, when and why, and what it has changed so far; inside the caller's transaction.

    Its revisions are of the `change_set`. `facts` are the ids of the facts that it changed.
    """

    actor: Actor
    now: datetime
    reason: str = ""
    change_set: uuid.UUID | None = None
    facts: set[uuid.UUID] = field(default_factory=set)

    def because(self, reason: str) -> Self:
        """The same write with another reason for what follows."""
        return replace(self, reason=reason)

    def record_row_change(self, table: Change.Table, action: Change.Action, row: uuid.UUID | int, **what: Any) -> None:
        """What happened to one row that has no revisions; kept where a change can be undone."""

    def check(self, fact: Fact, verb: str, before: dict[str, Any]) -> None:
        """Whether the fact may become what it is now; its errors end the write."""

    @contextmanager
    def changing(self, fact: Fact, verb: str) -> Iterator[None]:
        """Save what the block makes of a locked fact as its next version, with a revision. Errors: DuplicateFact;
        ContentForbidden for new words; those of check()."""
        before = audit.snapshot(fact)
        yield
        self.check(fact, verb, before)
        _check_policy(fact, before)
        fact.version += 1
        fact.updated_at = self.now
        fact.refresh_decay(now=self.now, rules=conf.rules(fact.tenant))
        if fact.status in Status.LIVE and any(before[name] != getattr(fact, name) for name in _ONCE):
            _save(fact)
        else:
            fact.save()
        self.revise([fact], verb, [before])
        self.facts.add(fact.pk)

    def insert(self, facts: Sequence[Fact], verb: str = "add") -> None:
        """Save new facts with their first revisions, in a few statements. Errors: IntegrityError, when a live one has
        the text of one of them."""
        Fact.objects.bulk_create(facts)
        self.revise(facts, verb, [{}] * len(facts))

    def revise(self, facts: Sequence[Fact], verb: str, before: Sequence[dict[str, Any]]) -> None:
        audit.revise_all(
            facts,
            verb=verb,
            actor=self.actor,
            before=before,
            reason=self.reason,
            now=self.now,
            change_set=self.change_set,
        )

    def supersede(self, fact: Fact, *, by: Fact, ended: datetime | None = None, verb: str = "supersede") -> None:
        """Mark the fact as no longer true since then, or now; it names its successor."""
        with self.changing(fact, verb):
            fact.status, fact.superseded_by = Status.SUPERSEDED, by
            fact.valid_to = max(fact.valid_from, ended) if ended else self.now

    def trash(self, facts: Sequence[Fact], verb: str) -> None:
        """Move locked facts to the trash, each as its next version with a revision, in a few statements."""
        before = [audit.snapshot(fact) for fact in facts]
        for fact in facts:
            fact.status, fact.trashed_at, fact.updated_at = Status.TRASHED, self.now, self.now
            fact.version += 1
        ids = [fact.pk for fact in facts]
        gone = {"status": Status.TRASHED, "trashed_at": self.now, "updated_at": self.now}
        Fact.objects.filter(pk__in=ids).update(**gone, version=F("version") + 1)
        self.revise(facts, verb, before)
        self.facts.update(ids)

    def sweep(self, end_user: EndUser, digests: Collection[bytes], *, agent_id: str) -> None:
        """Do the decay pass's work at once for facts with these very texts whose end has passed: they are served
        nowhere, and stand in the way of their restatement."""
        over = Fact.objects.of(end_user.tenant, end_user).expired(now=self.now).select_for_update(of=("self",))
        same = list(over.filter(agent_id=agent_id, content_hash__in=list(digests)))
        if same:
            self.trash(same, "expire")

    def remove_refusals_of(self, fact: Fact) -> None:
        """Delete what refuses the fact's text or key."""
        self.remove_refusals(fact.end_user, refusal_keys(fact.content, category=fact.category, key=fact.key))

    def remove_refusals(self, end_user: EndUser, keys: Sequence[RefusalKey]) -> None:
        """Delete what refuses any of these."""
        rows = FactRefusal.objects.against(end_user, keys) if keys else FactRefusal.objects.none()
        for row in rows:
            before = {
                "kind": row.kind,
                "digest": bytes(row.digest).hex(),
                "created_at": row.created_at.isoformat(),
                "actor_kind": row.actor_kind,
                "actor_id": row.actor_id,
                "fact": str(row.fact_id) if row.fact_id else None,
            }
            self.record_row_change(Table.REFUSAL, Action.DELETED, row.pk, before=before)
        rows.delete()

    def copy_evidence(self, *, of: Fact, to: Fact) -> None:
        """Let `to` rest on the turns of `of`, too."""
        # Retention sets the turns that it deletes to null, and a null in NOT IN would match nothing.
        cited = FactEvidence.objects.filter(fact=to, turn__isnull=False).values("turn")
        rows = list(FactEvidence.objects.filter(fact=of).exclude(turn__in=cited))
        for row in rows:
            row.pk, row.fact = None, to
        for row in FactEvidence.objects.bulk_create(rows):
            self.record_row_change(Table.EVIDENCE, Action.MADE, row.pk)

    def relate(self, fact: Fact, target: Fact, relation: str) -> None:
        """State the relation, unless it is stated already."""
        stated: dict[str, Any] = {"tenant_id": fact.tenant_id, "fact": fact, "target": target, "type": relation}
        # The caller holds the person's row, so nobody else states it meanwhile.
        if not FactRelation.objects.filter(**stated).exists():
            row = FactRelation.objects.create(**stated, created_at=self.now)
            self.record_row_change(Table.RELATION, Action.MADE, row.pk)


def _save(fact: Fact) -> None:
    try:
        # In a savepoint, because the query below runs after the error.
        with transaction.atomic():
            fact.save()
    except IntegrityError as error:
        # Only fact_text_once can fail here: the person has another live fact with this very text.
        same = Fact.objects.twins_of(fact).filter(agent_id=fact.agent_id)
        raise DuplicateFact(fact_id=same.values_list("pk", flat=True).first()) from error
