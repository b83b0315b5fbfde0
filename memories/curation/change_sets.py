"""A change set: the revisions of one decision share its id, and `traces` hold what an undo needs besides them."""

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from memories import audit, conf
from memories.audit import Actor
from memories.exceptions import DuplicateFact
from memories.models import EndUser, Fact, FactEvidence, FactRefusal, FactRelation, ProfileSection, Status
from memories.models.ids import new_id
from memories.models.memories.refusals import Mark, marks_of
from memories.text.secrets.redaction import redact_text

LIVE = (Status.ACTIVE, Status.PENDING)


def still_ahead(moment: datetime | None, *, now: datetime) -> datetime | None:
    """The expiry date of a restored memory; a date in the past is dropped, else the next decay pass would trash it."""
    return moment if moment and moment > now else None


@dataclass
class ChangeSet:
    """One decision in progress: who decides, when and why, and what it has written so far.

    The lists hold ids, versions and keyed hashes. An episode has no revisions: `episode` holds its fields before.
    """

    actor: Actor
    now: datetime
    reason: str = ""
    id: uuid.UUID = field(default_factory=new_id)
    versions: dict[str, int] = field(default_factory=dict)
    refused: list[int] = field(default_factory=list)
    lifted: list[dict[str, Any]] = field(default_factory=list)
    evidence: list[int] = field(default_factory=list)
    relations: list[int] = field(default_factory=list)
    episode: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.reason = redact_text(self.reason)[0]

    @property
    def traces(self) -> dict[str, Any]:
        """What an undo needs: the versions that facts were left at, rows made and lifted, an episode before."""
        names = ("versions", "refused", "lifted", "evidence", "relations", "episode")
        return {name: getattr(self, name) for name in names}

    @contextmanager
    def changing(self, fact: Fact, verb: str) -> Iterator[None]:
        """Save what the block makes of a locked fact as its next version, with a revision. Errors: DuplicateFact."""
        before = audit.snapshot(fact)
        yield
        fact.version += 1
        fact.updated_at = self.now
        fact.refresh_decay(now=self.now, rules=conf.rules(fact.tenant))
        _save(fact)
        audit.revise(
            fact=fact,
            verb=verb,
            actor=self.actor,
            before=before,
            reason=self.reason,
            now=self.now,
            change_set=self.id,
        )
        self.versions[str(fact.pk)] = fact.version

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

    def supersede(self, fact: Fact, *, by: Fact) -> None:
        """Mark the fact as no longer true; it names its successor."""
        with self.changing(fact, "supersede"):
            fact.status, fact.valid_to, fact.superseded_by = Status.SUPERSEDED, self.now, by

    def refuse(self, fact: Fact, marks: Sequence[Mark]) -> None:
        """Refuse these marks for good, on behalf of the fact."""
        # First, because this rewrites rows that were made under an older secret key: else they would be made twice.
        FactRefusal.objects.refused(fact.end_user, marks)
        for mark in marks:
            made_now = {"fact": fact, "created_at": self.now}
            row, made = FactRefusal.objects.get_or_create(
                end_user=fact.end_user, kind=mark.kind, digest=mark.digest, defaults=made_now
            )
            self.refused += [row.pk] if made else []

    def lift_refusals(self, fact: Fact) -> None:
        """Delete what refuses the fact's text or key."""
        rows = FactRefusal.objects.against(fact.end_user, refusals_of(fact))
        self.lifted += [
            {
                "kind": row.kind,
                "digest": bytes(row.digest).hex(),
                "created_at": row.created_at.isoformat(),
                "fact": str(row.fact_id) if row.fact_id else None,
            }
            for row in rows
        ]
        rows.delete()

    def copy_evidence(self, *, of: Fact, to: Fact) -> None:
        """Let `to` rest on the turns of `of`, too."""
        # Retention sets the turns that it deletes to null, and a null in NOT IN would match nothing.
        cited = FactEvidence.objects.filter(fact=to, turn__isnull=False).values("turn")
        rows = list(FactEvidence.objects.filter(fact=of).exclude(turn__in=cited))
        for row in rows:
            row.pk, row.fact = None, to
        self.evidence += [row.pk for row in FactEvidence.objects.bulk_create(rows)]

    def relate(self, fact: Fact, target: Fact, relation: str) -> None:
        row, made = FactRelation.objects.get_or_create(
            fact=fact, target=target, type=relation, defaults={"created_at": self.now}
        )
        self.relations += [row.pk] if made else []


def take_back(end_user: EndUser, traces: dict[str, Any]) -> None:
    """Delete the rows that a decision made besides revisions, and refuse again what it lifted."""
    FactRefusal.objects.filter(pk__in=traces.get("refused", [])).delete()
    FactEvidence.objects.filter(pk__in=traces.get("evidence", [])).delete()
    FactRelation.objects.filter(pk__in=traces.get("relations", [])).delete()
    lifted = [
        FactRefusal(
            end_user=end_user,
            kind=row["kind"],
            digest=bytes.fromhex(row["digest"]),
            # None when the fact was deleted since.
            fact=Fact.objects.filter(pk=row["fact"]).first() if row["fact"] else None,
            created_at=datetime.fromisoformat(row["created_at"]),
        )
        for row in traces.get("lifted", [])
    ]
    FactRefusal.objects.bulk_create(lifted, ignore_conflicts=True)


def refusals_of(fact: Fact) -> list[Mark]:
    """The marks of the fact's text and, when it has one, its key."""
    return marks_of(fact.content, category=fact.category, key=fact.key)


def refusals_against(fact: Fact) -> list[Mark]:
    """The marks that refusing the fact refuses.

    The key is not among them while another active fact has it: that one could not be confirmed any more.
    """
    same_key = Fact.objects.of(fact.tenant, fact.end_user).filter(category=fact.category, key=fact.key)
    others = same_key.filter(status=Status.ACTIVE).exclude(pk=fact.pk)
    refusals = refusals_of(fact)
    return refusals[:1] if others.exists() else refusals


def _save(fact: Fact) -> None:
    try:
        # In a savepoint, because the query below runs after the error.
        with transaction.atomic():
            fact.save()
    except IntegrityError as error:
        # Only fact_text_once can fail here: the person has another live fact with this very text.
        live = Fact.objects.of(fact.tenant, fact.end_user).filter(status__in=LIVE).exclude(pk=fact.pk)
        same = live.filter(agent_id=fact.agent_id, content_hash=fact.content_hash)
        raise DuplicateFact(fact_id=same.values_list("pk", flat=True).first()) from error
