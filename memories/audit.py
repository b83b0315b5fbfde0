"""Actors, events of the audit trail without content, revisions of facts and profiles."""

import re
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from memories import conf, outbox
from memories.graph import following
from memories.models import (
    ActorKind,
    AuditEvent,
    ExtractionRun,
    Fact,
    FactRevision,
    Operator,
    ProfileRevision,
    ProfileSection,
    Tenant,
)

# A revision keeps these and a restore brings them back: the statement, and what decides whether it is served.
REVISED_FIELDS = (
    "content", "category", "key", "value", "confidence", "stated_confidence", "importance", "tags", "raw", "source",
    "source_error", "trust", "structured", "triples", "status", "flags", "pinned", "locked", "binding", "scope",
    "agent_id", "allowed_users", "allowed_roles", "mentions",
)  # fmt: skip
REVISED_MOMENTS = (
    "first_observed_at", "last_confirmed_at", "valid_from", "valid_to", "expires_at", "trashed_at"
)  # fmt: skip

# Random ids, as programs make them.
_RANDOM_ID = re.compile(r"[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


@dataclass(frozen=True)
class Actor:
    """Who acts: an operator, an API key, an extraction run, a command or the person on their own page.

    `id` is the hub's, never a name. `request_id` comes from kept_request_id().
    """

    kind: ActorKind
    id: str = ""
    request_id: str = field(default="", compare=False)

    @classmethod
    def operator(cls, operator: Operator, *, request_id: str = "") -> "Actor":
        return cls(kind=ActorKind.OPERATOR, id=str(operator.pk), request_id=request_id)

    @classmethod
    def run(cls, run: ExtractionRun) -> "Actor":
        return cls(kind=ActorKind.RUN, id=str(run.pk))

    @property
    def is_operator(self) -> bool:
        return self.kind == ActorKind.OPERATOR

    @property
    def is_person(self) -> bool:
        """Whether the end user acts, on their own page."""
        return self.kind == ActorKind.PERSON


def kept_request_id(given: str) -> str:
    """The id of a request as the trail keeps it, forever.

    A caller's own id may name a person ("anna-7:1"), so the trail keeps a keyed hash of it.
    """
    if not given or _RANDOM_ID.fullmatch(given):
        return given
    return conf.digest("request", given.encode()).hex()[:32]


def record(
    *,
    actor: Actor,
    verb: str,
    target: Any,
    now: datetime,
    object_id: uuid.UUID | None = None,
    tenant: Tenant | None = None,
    counts: dict[str, int] | None = None,
    case: uuid.UUID | None = None,
) -> AuditEvent:
    """Write one audit event about the `target`. Call it inside the change's transaction.

    It is a row, with its tenant if it has one, or with an `object_id` and a `tenant` any object or its class. `case` is
    the privacy case of the change.
    """
    if object_id is None:
        object_id, tenant = target.pk, getattr(target, "tenant", None)
    kind = target if isinstance(target, type) else type(target)
    return AuditEvent.objects.create(
        tenant_uuid=tenant.pk if tenant else None,
        actor_kind=actor.kind,
        actor_id=actor.id,
        verb=verb,
        object_type=kind.__name__,
        object_id=object_id,
        request_id=actor.request_id,
        case_uuid=case,
        counts=counts or {},
        created_at=now,
    )


def snapshot(fact: Fact) -> dict[str, Any]:
    """The revised fields of a fact as they are now: moments as ISO-8601 text, its successor as the id's text."""
    state = {name: getattr(fact, name) for name in REVISED_FIELDS}
    for name in REVISED_MOMENTS:
        moment = getattr(fact, name)
        state[name] = moment.isoformat() if moment else None
    return {**state, "superseded_by": str(fact.superseded_by_id) if fact.superseded_by_id else None}


def restore_state(fact: Fact, state: dict[str, Any]) -> None:
    """Set the fact's fields to a snapshot, or to a part of one: the inverse of snapshot()."""
    for name, value in state.items():
        if name in REVISED_MOMENTS:
            setattr(fact, name, datetime.fromisoformat(value) if value else None)
        elif name == "superseded_by":
            fact.superseded_by_id = uuid.UUID(value) if value else None
        else:
            setattr(fact, name, value)
    fact.set_text(fact.content)


def revise(
    *,
    fact: Fact,
    verb: str,
    actor: Actor,
    before: dict[str, Any],
    reason: str,
    now: datetime,
    change_set: uuid.UUID | None = None,
) -> FactRevision:
    """Write the revision of the fact's present version. `before` is its snapshot prior to the change ({} when new).

    The revisions of one decision share a `change_set`.
    """
    return revise_all([fact], verb=verb, actor=actor, before=[before], reason=reason, now=now, change_set=change_set)[0]


def revise_all(
    facts: Sequence[Fact],
    *,
    verb: str,
    actor: Actor,
    before: Sequence[dict[str, Any]],
    reason: str,
    now: datetime,
    change_set: uuid.UUID | None = None,
) -> list[FactRevision]:
    """revise() for each of these facts, `before` in their order, in one statement. Their triples follow them,
    and webhooks are told."""
    states = [(fact, was, snapshot(fact)) for fact, was in zip(facts, before, strict=True)]
    followed = [fact for fact, was, after in states if following.affects_triples(was, after)]
    following.sync_triples(
        followed, now=now, retold=[fact.pk for fact, was, after in states if following.text_changed(was, after)]
    )
    outbox.facts_changed([(fact, was) for fact, was, _ in states], now=now)
    return FactRevision.objects.bulk_create(
        FactRevision(
            tenant_id=fact.tenant_id,
            fact=fact,
            version=fact.version,
            verb=verb,
            actor_kind=actor.kind,
            actor_id=actor.id,
            before={name: value for name, value in was.items() if after[name] != value},
            after=after,
            reason=reason,
            change_set=change_set,
            created_at=now,
        )
        for fact, was, after in states
    )


def revise_new(facts: Iterable[Fact], *, verb: str, actor: Actor) -> None:
    """Write the first revision of each of these facts, as of its creation, in one statement. Triples follow them."""
    facts = list(facts)
    if keyed := [fact for fact in facts if fact.key or fact.triples]:
        following.sync_triples(keyed, now=keyed[0].created_at)
    if facts:
        outbox.facts_changed([(fact, {}) for fact in facts], now=facts[0].created_at)
    FactRevision.objects.bulk_create(
        FactRevision(
            tenant_id=fact.tenant_id,
            fact=fact,
            version=fact.version,
            verb=verb,
            actor_kind=actor.kind,
            actor_id=actor.id,
            after=snapshot(fact),
            created_at=fact.created_at,
        )
        for fact in facts
    )


def revise_section(
    *,
    row: ProfileSection,
    verb: str,
    actor: Actor,
    before: ProfileSection,
    now: datetime,
    reason: str = "",
    change_set: uuid.UUID | None = None,
) -> ProfileRevision:
    """Write the revision of a section's present version. `before` is the section as it was, empty when it is new.

    The extraction run of `row` is its evidence. `change_set` as in revise().
    """
    return ProfileRevision.objects.create(
        tenant_id=row.tenant_id,
        end_user=row.end_user,
        agent_id=row.agent_id,
        section=row.section,
        version=row.version,
        verb=verb,
        actor_kind=actor.kind,
        actor_id=actor.id,
        before=before.summary,
        after=row.summary,
        binding_before=before.binding,
        extraction=row.extraction,
        trust=row.trust,
        evidence=row.evidence,
        reason=reason,
        change_set=change_set,
        created_at=now,
    )
