"""What one decision changes: revisions that share an id, and what an undo has to take back besides them."""

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
from memories.models.folding import refusal_of_key, refusal_of_text
from memories.models.ids import new_id
from memories.pipeline.redaction import redact_text

LIVE = (Status.ACTIVE, Status.PENDING)


def still_ahead(moment: datetime | None, *, now: datetime) -> datetime | None:
    """The date at which what is restored expires; one that is over is none, else the next pass would take it again."""
    return moment if moment and moment > now else None


@dataclass
class ChangeSet:
    """One decision under way: who decides, when and why; `traces` are ids, versions and keyed hashes, and of an
    episode, which has no revisions, what it said before."""

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
        """What an undo goes by: the versions that facts were left at, what was made and lifted, what an episode was."""
        names = ("versions", "refused", "lifted", "evidence", "relations", "episode")
        return {name: getattr(self, name) for name in names}

    @contextmanager
    def changing(self, fact: Fact, verb: str) -> Iterator[None]:
        """Save what the block makes of a locked fact, with its revision. Errors: DuplicateFact."""
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
        """Save what was made of a locked section, as its next version."""
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
        """It no longer holds: it stays, closed, and names its successor."""
        with self.changing(fact, "supersede"):
            fact.status, fact.valid_to, fact.superseded_by = Status.SUPERSEDED, self.now, by

    def refuse(self, fact: Fact, refusals: Sequence[tuple[str, bytes]]) -> None:
        for kind, digest in refusals:
            made_now = {"fact": fact, "created_at": self.now}
            row, made = FactRefusal.objects.get_or_create(
                end_user=fact.end_user, kind=kind, digest=digest, defaults=made_now
            )
            self.refused += [row.pk] if made else []

    def lift_refusals(self, fact: Fact) -> None:
        """Nothing refuses the fact's text and key any more."""
        rows = FactRefusal.objects.filter(
            end_user=fact.end_user, digest__in=[digest for _, digest in refusals_of(fact)]
        )
        for row in rows:
            told = {"kind": row.kind, "digest": bytes(row.digest).hex(), "created_at": row.created_at.isoformat()}
            self.lifted.append({**told, "fact": str(row.fact_id) if row.fact_id else None})
        rows.delete()

    def copy_evidence(self, *, of: Fact, to: Fact) -> None:
        """`to` rests on the turns of `of`, too."""
        # A turn that retention deleted is no turn: a null among them would match nothing.
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
    """What a decision made besides revisions goes, and what it lifted is refused again."""
    FactRefusal.objects.filter(pk__in=traces.get("refused", [])).delete()
    FactEvidence.objects.filter(pk__in=traces.get("evidence", [])).delete()
    FactRelation.objects.filter(pk__in=traces.get("relations", [])).delete()
    lifted = [_refusal(end_user, told) for told in traces.get("lifted", [])]
    FactRefusal.objects.bulk_create(lifted, ignore_conflicts=True)


def refusals_of(fact: Fact) -> list[tuple[str, bytes]]:
    """What stands for the fact's text and, when it has one, its key."""
    text = (FactRefusal.Kind.TEXT, refusal_of_text(fact.content))
    return [text, (FactRefusal.Kind.KEY, refusal_of_key(fact.category, fact.key))] if fact.key else [text]


def refusals_against(fact: Fact) -> list[tuple[str, bytes]]:
    """What refusing the fact rules out: its key only while no other active fact is about that, which could not be
    confirmed any more."""
    same_key = Fact.objects.of(fact.tenant, fact.end_user).filter(category=fact.category, key=fact.key)
    others = same_key.filter(status=Status.ACTIVE).exclude(pk=fact.pk)
    refusals = refusals_of(fact)
    return refusals[:1] if others.exists() else refusals


def _refusal(end_user: EndUser, told: dict[str, Any]) -> FactRefusal:
    of = Fact.objects.filter(pk=told["fact"]).first() if told["fact"] else None
    return FactRefusal(
        end_user=end_user,
        kind=told["kind"],
        digest=bytes.fromhex(told["digest"]),
        fact=of,
        created_at=datetime.fromisoformat(told["created_at"]),
    )


def _save(fact: Fact) -> None:
    try:
        # Its own savepoint: the twin is still to be found.
        with transaction.atomic():
            fact.save()
    except IntegrityError as error:
        # Only fact_text_once can fail here: the person has another live fact with this very text.
        live = Fact.objects.of(fact.tenant, fact.end_user).filter(status__in=LIVE).exclude(pk=fact.pk)
        same = live.filter(agent_id=fact.agent_id, content_hash=fact.content_hash)
        raise DuplicateFact(fact_id=same.values_list("pk", flat=True).first()) from error
