"""A change in progress, and how it is kept: the revisions that it writes share the id of its ChangeSet."""

import uuid
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from memories import audit
from memories.curation.statements import guarding
from memories.exceptions import ConfirmationNeeded, ContentForbidden, DuplicateFact
from memories.facts.write import FactWrite
from memories.models import (
    ActorKind,
    Change,
    ChangeSet,
    EndUser,
    Episode,
    Fact,
    FactRefusal,
    MemoryScope,
    ProfileSection,
    ReviewItem,
    Status,
    Tenant,
)
from memories.models.ids import new_id
from memories.models.memories.refusals import RefusalKey, refusal_keys
from memories.text.secrets.redaction import redact_text

# Verbs that bring back only what was public before, and was looked at then.
PUT_BACK = ("undo", "roll_back", "undo_roll_back")
Table, Action = Change.Table, Change.Action
# Rows of one statement.
STEP = 500
# What keys do to many memories of a person at once: one undo takes it back.
CLEAR, FORGET = "clear", "forget"
KEPT_OF_KEYS = (CLEAR, FORGET)
T = TypeVar("T")
# What a change set is about, and the name of its reference to that.
REFERENCES: dict[type[Any], str] = {ReviewItem: "item", Fact: "fact", Episode: "episode", EndUser: "end_user"}
About = ReviewItem | Fact | Episode | EndUser


def steps(ids: Sequence[T]) -> Iterator[Sequence[T]]:
    """Some hundred at a time, however many there are."""
    return (ids[start : start + STEP] for start in range(0, len(ids), STEP))


def still_ahead(moment: datetime | None, *, now: datetime) -> datetime | None:
    """The expiry date of a restored memory; a date in the past is dropped, else the next decay pass would trash it."""
    return moment if moment and moment > now else None


@dataclass
class Changes(FactWrite):
    """One change in progress: who makes it, when and why, and what it has written so far.

    `save()` keeps it as a ChangeSet, by which reverting.revert() takes it back. `facts` are the ids of those that it
    changed or was about; `rows` is what it did to rows without revisions; `counts` says how much, by code. `confirmed`
    are the flags of a text for everybody that the operator has seen, and overrules for a reason; `overruled` is how
    many of them it had.
    """

    id: uuid.UUID = field(default_factory=new_id)
    rows: list[Change] = field(default_factory=list)
    confirmed: Collection[str] = ()
    overruled: int = 0
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.change_set = self.id
        self.reason = redact_text(self.reason)[0]

    def record(self, verb: str, about: About, *, counts: dict[str, int] | None = None) -> None:
        """Keep the change set, and write the audit event."""
        self.save(verb, about)
        if self.overruled:
            counts = {**(counts or {}), "overruled_flags": self.overruled}
        audit.record(actor=self.actor, verb=verb, target=about, now=self.now, counts=counts)

    def save(
        self,
        verb: str,
        about: About | Tenant,
        *,
        merged: EndUser | None = None,
        selected: dict[str, str] | None = None,
    ) -> None:
        """Keep the change set; of a key only what many memories went by. What it states a roll back takes back.

        `merged`: who became the person that it is about. `selected`: what a roll back was asked for.
        """
        if self.actor.kind == ActorKind.KEY and not (isinstance(about, EndUser) and verb in KEPT_OF_KEYS):
            return
        reference = REFERENCES.get(type(about))
        made = ChangeSet.objects.create(
            pk=self.id,
            tenant=about if isinstance(about, Tenant) else about.tenant,
            **{reference: about} if reference else {},
            merged=merged,
            verb=verb,
            actor_kind=self.actor.kind,
            actor_id=self.actor.id,
            # No erasure of a person would find it where it is about several; the revisions have it.
            reason=self.reason if reference else "",
            counts=dict(self.counts) or {"facts": len(self.facts)},
            selected=selected,
            created_at=self.now,
        )
        for row in self.rows:
            row.change_set, row.tenant_id = made, made.tenant_id
        Change.objects.bulk_create(self.rows, STEP)

    def record_row_change(self, table: str, action: Change.Action, row: uuid.UUID | int, **what: Any) -> None:
        """What happened to one row that has no revisions."""
        name = "number" if isinstance(row, int) else "uuid"
        self.rows.append(Change(table=table, action=action, **{name: row}, **what))

    def move(self, table: str, rows: Sequence[uuid.UUID | int]) -> int:
        """These rows became another person's; returns how many."""
        for row in rows:
            self.record_row_change(table, Action.MOVED, row)
        return len(rows)

    def record_unchanged(self, fact: Fact) -> None:
        """The change was about this fact, too: if it did not change it, nobody may have when it is reverted."""
        if fact.pk not in self.facts:
            self.facts.add(fact.pk)
            self.record_row_change(Table.FACT, Action.LEFT, fact.pk, version=fact.version)

    def check(self, fact: Fact, verb: str, before: dict[str, Any]) -> None:
        """Errors: ConfirmationNeeded when everybody of the tenant would be served a new text with flags."""
        if fact.scope != MemoryScope.PUBLIC or verb in PUT_BACK:
            return
        texts = guarding.texts_of(fact)
        if before["scope"] == MemoryScope.PUBLIC and all(before[name] == text for name, text in texts.items()):
            return
        flags = guarding.flags_for_everybody(fact)
        if not set(flags) <= set(self.confirmed if self.reason.strip() else ()):
            raise ConfirmationNeeded(flags=flags)
        self.overruled += len(flags)

    def restore(self, fact: Fact, verb: str, state: dict[str, Any]) -> bool:
        """Give a locked fact these fields of a snapshot; False when another live fact of the person has its
        text, or when the content policy forbids what it said."""
        was, version = audit.snapshot(fact), fact.version
        try:
            with self.changing(fact, verb):
                audit.restore_state(fact, state)
        except (ContentForbidden, DuplicateFact):
            audit.restore_state(fact, was)
            fact.version = version
            return False
        return True

    def refuse_all(self, end_user: EndUser, facts: Sequence[Fact]) -> None:
        """Refuse what each of these facts of the person says, as refusals_against() has it; they are in the trash."""
        keys = {fact.key for fact in facts if fact.key}
        others = Fact.objects.of(end_user.tenant, end_user).filter(status=Status.ACTIVE, key__in=keys)
        taken = set(others.values_list("category", "key"))
        marks = {
            mark: fact
            for fact in facts
            for mark in (refusals_of(fact)[:1] if (fact.category, fact.key) in taken else refusals_of(fact))
        }
        refused = FactRefusal.objects.refused(end_user, marks)
        by = {
            "tenant_id": end_user.tenant_id,
            "end_user": end_user,
            "actor_kind": self.actor.kind,
            "actor_id": self.actor.id,
            "created_at": self.now,
        }
        made = [
            FactRefusal(kind=mark.kind, digest=mark.digest, fact=fact, **by)
            for mark, fact in marks.items()
            if mark not in refused
        ]
        for row in FactRefusal.objects.bulk_create(made):
            self.record_row_change(Table.REFUSAL, Action.MADE, row.pk)

    def revise_section(self, row: ProfileSection, verb: str, before: ProfileSection) -> None:
        """Save a locked section as its next version, with a revision; `before` is a copy of the row as it was."""
        row.version, row.updated_at = row.version + 1, self.now
        row.save()
        audit.revise_section(
            row=row,
            verb=verb,
            actor=self.actor,
            before=before,
            now=self.now,
            reason=self.reason,
            change_set=self.id,
        )

    def refuse(self, fact: Fact, marks: Sequence[RefusalKey]) -> None:
        """Refuse these marks, on behalf of the fact. What a key refused before, an operator binds."""
        # First, because this rewrites rows that were made under an older secret key: else they would be made twice.
        found = FactRefusal.objects.found(fact.end_user, marks)
        if self.actor.kind != ActorKind.KEY:
            self.remove_refusals(fact.end_user, [mark for row, mark in found.items() if row.by_key])
        for mark in marks:
            made_now = {"fact": fact, "actor_kind": self.actor.kind, "actor_id": self.actor.id, "created_at": self.now}
            row, made = FactRefusal.objects.get_or_create(
                tenant_id=fact.tenant_id,
                end_user=fact.end_user,
                kind=mark.kind,
                digest=mark.digest,
                defaults=made_now,
            )
            if made:
                self.record_row_change(Table.REFUSAL, Action.MADE, row.pk)


def refusals_of(fact: Fact) -> list[RefusalKey]:
    """The marks of the fact's text and, when it has one, its key."""
    return refusal_keys(fact.content, category=fact.category, key=fact.key)


def refusals_against(fact: Fact) -> list[RefusalKey]:
    """The marks that refusing the fact refuses.

    The key is not among them while another active fact has it: that one could not be confirmed any more.
    """
    same_key = Fact.objects.of(fact.tenant, fact.end_user).filter(category=fact.category, key=fact.key)
    others = same_key.filter(status=Status.ACTIVE).exclude(pk=fact.pk)
    refusals = refusals_of(fact)
    return refusals[:1] if others.exists() else refusals
