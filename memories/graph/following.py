"""Triples of facts: what their key and value say of the person, and what a model stated with them, for as long as the
fact holds.

`sync_triples()` comes with every revision of a fact, in its transaction, so no writer of facts has to think of the
graph.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from memories.graph import naming
from memories.models import Fact, GraphTriple, Status

# What of a fact a triple says; a change of anything else leaves the triple as it is.
_FOLLOWED = (
    "key", "value", "triples", "status", "agent_id", "confidence", "trust", "valid_from", "valid_to", "expires_at"
)  # fmt: skip
_ENDED = (Status.SUPERSEDED, Status.ARCHIVED)
_KEPT = (
    "agent_id", "subject", "predicate", "object", "valid_from", "valid_to", "dated_at", "confidence", "trust",
    "extractor", "updated_at",
)  # fmt: skip

# Rows of one statement, which has at most 65,535 values.
STEP = 500


def affects_triples(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether triples may have to follow this change of a fact, by the snapshots of its revision."""
    if not any((after["key"], before.get("key"), after["triples"], before.get("triples"))):
        return False
    return any(before.get(name) != after[name] for name in _FOLLOWED)


def text_changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether a fact with triples of a model's says other things now, so that those from before go."""
    return bool(before.get("triples")) and any(before[name] != after[name] for name in ("key", "value", "triples"))


def sync_triples(facts: Sequence[Fact], *, now: datetime, retold: Collection[Any] = ()) -> None:
    """Make the triples of these facts what the facts say by now. Doing it twice does it once.

    Those of the facts `retold` are made anew.
    """
    sources = [fact for fact in facts if makes_triples(fact)]
    gone = {*retold, *(fact.pk for fact in facts if not makes_triples(fact))}
    if gone:
        forget(gone)
    by_person: dict[Any, list[Fact]] = {}
    for fact in sources:
        by_person.setdefault((fact.tenant_id, fact.end_user_id), []).append(fact)
    for (tenant_id, person_id), own in by_person.items():
        found = [(fact, *one) for fact in own for one in triples_of(fact)]
        names = [name for _, _, *between, _ in found for name in between]
        entities = naming.ensure(tenant_id, person_id, names, now=now)
        GraphTriple.objects.bulk_create(
            [
                GraphTriple(
                    tenant_id=tenant_id,
                    end_user_id=person_id,
                    subject=entities[naming.digest_of(subject)],
                    object=entities[naming.digest_of(object_)],
                    fact=fact,
                    place=place,
                    created_at=now,
                    updated_at=now,
                    agent_id=fact.agent_id,
                    confidence=fact.confidence,
                    trust=fact.trust,
                    extractor=fact.extractor,
                    **values,
                )
                for fact, place, subject, object_, values in found
            ],
            batch_size=STEP,
            update_conflicts=True,
            unique_fields=["fact", "place", "tenant"],
            update_fields=_KEPT,
        )


def forget(facts: Collection[Any]) -> None:
    """Remove the triples of these facts: they are in the trash, refused, or wait."""
    GraphTriple.objects.filter(fact__in=facts).delete()


def makes_triples(fact: Fact) -> bool:
    """Whether there are triples of the fact: it has a key and a value or says so in parts, and holds or held."""
    held = fact.status == Status.ACTIVE or (fact.status in _ENDED and fact.valid_to is not None)
    return held and bool((fact.key and fact.value) or fact.triples)


def triples_of(fact: Fact) -> Iterator[tuple[int, str, str, dict[str, Any]]]:
    """What the fact says: place, names of subject and object, and the other fields of each triple."""
    if fact.key and fact.value:
        predicate = naming.predicate_of(fact.key)
        yield 0, naming.SELF, fact.value, {"predicate": predicate, **_times(fact, None, None)}
    for place, one in enumerate(fact.triples or (), start=1):
        times = _times(fact, _midnight(one["valid_from"]), _midnight(one["valid_to"]))
        yield place, one["subject"], one["object"], {"predicate": one["predicate"], **times}


def _times(fact: Fact, since: datetime | None, until: datetime | None) -> dict[str, Any]:
    """When a triple holds that is said to hold then: no longer than the fact does."""
    if since is None and (until is None or until > fact.valid_from):
        # Of what was over when the fact began nobody knows since when it held.
        since = fact.valid_from
    ends = [moment for moment in (until, fact.valid_to, fact.expires_at) if moment]
    until = min(ends) if ends else None
    return {
        "valid_from": since,
        "valid_to": max(until, since) if until and since else until,
        "dated_at": since or fact.valid_from,
    }


def _midnight(day: str | None) -> datetime | None:
    return datetime.fromisoformat(day).replace(tzinfo=UTC) if day else None
