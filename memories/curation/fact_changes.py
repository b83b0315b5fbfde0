"""The frame of every verb on a fact, and the refusals that some of them leave behind."""

import uuid
from collections.abc import Callable
from datetime import datetime

from django.db import IntegrityError, transaction

from memories import audit
from memories.audit import Actor
from memories.exceptions import DuplicateFact, NotFound, OperatorWord, PersonRestricted, PreconditionFailed
from memories.models import Fact, FactRefusal, Tenant
from memories.models.folding import refusal_of_key, refusal_of_text
from memories.pipeline.redaction import redact_text


def change_fact(
    fact_id: uuid.UUID,
    tenant: Tenant | None,
    verb: str,
    change: Callable[[Fact], None],
    *,
    actor: Actor,
    now: datetime,
    expected_version: int | None,
    reason: str,
) -> Fact:
    """The frame of every verb: lock, check, change, save, revise, record; all or nothing."""
    try:
        with transaction.atomic():
            fact = locked(fact_id, tenant)
            check_allowed(fact, actor=actor, expected_version=expected_version)
            before = audit.snapshot(fact)
            change(fact)
            _save(fact, now=now)
            audit.revise(fact=fact, verb=verb, actor=actor, before=before, reason=redact_text(reason)[0], now=now)
            audit.record(actor=actor, verb=verb, target=fact, object_id=fact.pk, tenant=fact.tenant, now=now)
    except IntegrityError as error:
        # Only fact_text_once can fail here: the person has another live fact with this very text.
        raise DuplicateFact from error
    return fact


def locked(fact_id: uuid.UUID, tenant: Tenant | None) -> Fact:
    facts = Fact.objects.select_for_update(of=("self",), no_key=True).select_related("tenant", "end_user")
    if tenant is not None:
        facts = facts.filter(tenant=tenant)
    fact = facts.filter(pk=fact_id).first()
    if fact is None:
        raise NotFound
    return fact


def check_allowed(fact: Fact, *, actor: Actor, expected_version: int | None) -> None:
    if fact.end_user.restricted_at and not actor.is_operator:
        raise PersonRestricted
    if fact.binding and not actor.is_operator:
        raise OperatorWord
    if expected_version is not None and expected_version != fact.version:
        raise PreconditionFailed


def _save(fact: Fact, *, now: datetime) -> None:
    fact.version += 1
    fact.updated_at = now
    fact.refresh_decay(now=now)
    fact.save()


def refusals_of(fact: Fact) -> list[tuple[str, bytes]]:
    """What stands for the fact's text and, when it has one, its key."""
    text = (FactRefusal.Kind.TEXT, refusal_of_text(fact.content))
    return [text, (FactRefusal.Kind.KEY, refusal_of_key(fact.category, fact.key))] if fact.key else [text]


def refuse(fact: Fact, refusals: list[tuple[str, bytes]], *, now: datetime) -> None:
    rows = [
        FactRefusal(end_user=fact.end_user, kind=kind, digest=digest, fact=fact, created_at=now)
        for kind, digest in refusals
    ]
    FactRefusal.objects.bulk_create(rows, ignore_conflicts=True)


def lift_refusals(fact: Fact) -> None:
    digests = [digest for _, digest in refusals_of(fact)]
    FactRefusal.objects.filter(end_user=fact.end_user, digest__in=digests).delete()
