"""Triples of facts: each says of the person what the fact's key and value say, for as long as the fact holds.

`follow()` comes with every revision of a fact, in its transaction, so no writer of facts has to think of the graph.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from memories.graph import naming
from memories.models import Fact, GraphTriple, Status

# What of a fact a triple says; a change of anything else leaves the triple as it is.
_TOLD = (
    "key", "value", "status", "agent_id", "confidence", "trust", "valid_from", "valid_to", "expires_at"
)  # fmt: skip
_ENDED = (Status.SUPERSEDED, Status.ARCHIVED)
_KEPT = (
    "agent_id", "subject", "predicate", "object", "valid_from", "valid_to", "dated_at", "confidence", "trust",
    "extractor", "updated_at",
)  # fmt: skip

# Rows of one statement, which has at most 65,535 values.
STEP = 500


def concerns(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether a triple may have to follow this change of a fact, by the snapshots of its revision."""
    if not (after["key"] or before.get("key")):
        return False
    return any(before.get(name) != after[name] for name in _TOLD)


def follow(facts: Sequence[Fact], *, now: datetime) -> None:
    """Make the triples of these facts what the facts say by now. Doing it twice does it once."""
    telling = [fact for fact in facts if tells(fact)]
    silent = [fact.pk for fact in facts if not tells(fact)]
    if silent:
        forget(silent)
    by_person: dict[Any, list[Fact]] = {}
    for fact in telling:
        by_person.setdefault((fact.tenant_id, fact.end_user_id), []).append(fact)
    for (tenant_id, person_id), own in by_person.items():
        names = [naming.SELF, *(fact.value for fact in own)]
        entities = naming.ensure(tenant_id, person_id, names, now=now)
        subject = entities[naming.digest_of(naming.SELF)]
        GraphTriple.objects.bulk_create(
            [
                GraphTriple(
                    tenant_id=tenant_id,
                    end_user_id=person_id,
                    subject=subject,
                    object=entities[naming.digest_of(fact.value)],
                    fact=fact,
                    created_at=now,
                    updated_at=now,
                    **said_by(fact),
                )
                for fact in own
            ],
            batch_size=STEP,
            update_conflicts=True,
            unique_fields=["fact", "tenant"],
            update_fields=_KEPT,
        )


def forget(facts: Collection[Any]) -> None:
    """Remove the triples of these facts: they are in the trash, refused, or wait."""
    GraphTriple.objects.filter(fact__in=facts).delete()


def tells(fact: Fact) -> bool:
    """Whether there is a triple of the fact: it has a key and a value, and holds or held."""
    held = fact.status == Status.ACTIVE or (fact.status in _ENDED and fact.valid_to is not None)
    return bool(held and fact.key and fact.value)


def said_by(fact: Fact) -> dict[str, Any]:
    """Fields of the triple of a fact, but for its entities."""
    ends = [moment for moment in (fact.valid_to, fact.expires_at) if moment]
    return {
        "agent_id": fact.agent_id,
        "predicate": naming.predicate_of(fact.key),
        "valid_from": fact.valid_from,
        "valid_to": max(fact.valid_from, min(ends)) if ends else None,
        "dated_at": fact.valid_from,
        "confidence": fact.confidence,
        "trust": fact.trust,
        "extractor": fact.extractor,
    }
