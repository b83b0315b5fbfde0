"""What a pass takes: memories that have faded or expired go to the trash, and from there, in time, for good.

Each step is one short transaction that waits for nobody: what somebody holds is left to the next pass.
"""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import F, QuerySet

from memories.audit import REVISED_FIELDS, REVISED_MOMENTS
from memories.models import ActorKind, EndUser, Episode, Fact, Status, Tenant
from memories.pipeline import pass_leases, review_items
from memories.pipeline.decay_passes import Work

STEP = 500


@dataclass(frozen=True)
class Lot:
    """Memories of one kind that go for one reason: what they are counted as, the queryset's word for them, the column
    that says when, and how a fact's revision tells it."""

    model: Any
    counted: str
    word: str
    moment: str
    verb: str = ""
    reason: str = ""


EXPIRED = tuple(Lot(model, "expired", "expired", "expires_at", "expire", "It was over.") for model in (Fact, Episode))
FADED = (
    Lot(Fact, "facts", "faded", "forget_at", "fade", "It did not come up again."),
    Lot(Episode, "episodes", "faded", "forget_at"),
)
PURGED = tuple(Lot(model, "purged", "discarded", "trashed_at") for model in (Fact, Episode))
# Name of a column → how a revision tells it: as audit.snapshot() does.
_TOLD = {name: f"taken.{name}" for name in (*REVISED_FIELDS, *REVISED_MOMENTS)} | {
    "superseded_by": "taken.superseded_by_id"
}
_TRASH_FACTS = f"""
    WITH old AS (SELECT id, status FROM memories_fact WHERE id = ANY(%(ids)s)),
    taken AS (
        UPDATE memories_fact fact
        SET status = 'trashed', trashed_at = %(now)s, updated_at = %(now)s, version = fact.version + 1
        FROM old WHERE fact.id = old.id RETURNING fact.*, old.status AS was
    )
    INSERT INTO memories_factrevision
        (fact_id, version, verb, actor_kind, actor_id, before, after, reason, change_set, created_at)
    SELECT taken.id, taken.version, %(verb)s, %(kind)s, %(actor)s,
        jsonb_build_object('status', taken.was, 'trashed_at', NULL),
        jsonb_build_object({", ".join(f"'{name}', {column}" for name, column in _TOLD.items())}),
        %(reason)s, %(pass)s, %(now)s
    FROM taken
"""  # noqa: S608 - the columns are ours


def due(lot: Lot, tenant: Tenant, *, as_of: datetime) -> QuerySet[Any]:
    """What of the tenant goes; nothing of people under restriction, whose memories are not touched."""
    restricted = EndUser.objects.filter(restricted_at__isnull=False)
    rows: QuerySet[Any] = getattr(lot.model.objects, lot.word)(now=as_of).filter(tenant=tenant)
    return rows.exclude(end_user__in=restricted)


def trash(work: Work, lot: Lot, *, now: datetime) -> Iterator[None]:
    """Move all that is due to the trash, some hundred at a time; yields after each step. Errors: LeaseLost."""
    for found in _steps(work, lot, as_of=work.row.as_of):
        with transaction.atomic():
            ids = _locked(lot, work.row.tenant, found, as_of=work.row.as_of)
            if lot.model is Fact:
                _trash_facts(work, lot, ids, now=now)
            else:
                _trash_episodes(ids, now=now)
            _count(work, lot, len(ids))
        yield


def purge(work: Work, lot: Lot) -> Iterator[None]:
    """Delete for good what has been in the trash for long enough; refusals of it stay. Errors: LeaseLost."""
    as_of = work.row.as_of - timedelta(days=work.rules.trash_days)
    for found in _steps(work, lot, as_of=as_of):
        with transaction.atomic():
            ids = _locked(lot, work.row.tenant, found, as_of=as_of)
            if lot.model is Fact:
                review_items.part(ids)
            lot.model.objects.filter(pk__in=ids).delete()
            _count(work, lot, len(ids))
        yield


def _steps(work: Work, lot: Lot, *, as_of: datetime) -> Iterator[list[tuple[datetime, uuid.UUID, uuid.UUID]]]:
    """(moment, memory, person) of what is due, the longest first, STEP at a time; each is met once."""
    rows = due(lot, work.row.tenant, as_of=as_of).order_by(lot.moment, "pk")
    rest = rows
    while found := list(rest.values_list(lot.moment, "pk", "end_user_id")[:STEP]):
        yield found
        moment, last, _ = found[-1]
        rest = rows.filter(**{f"{lot.moment}__gte": moment}).exclude(**{lot.moment: moment, "pk__lte": last})


def _locked(
    lot: Lot, tenant: Tenant, found: Sequence[tuple[datetime, uuid.UUID, uuid.UUID]], *, as_of: datetime
) -> list[uuid.UUID]:
    """Those that still go, locked: edited, recalled, pinned or restored meanwhile, one is not due any more.

    People come first, as everywhere, so that decisions about these facts and their questions follow each other.
    """
    people = EndUser.objects.select_for_update(no_key=True, skip_locked=True).filter(restricted_at=None)
    ours = list(people.filter(pk__in={person for _, _, person in found}).order_by("pk").values_list("pk", flat=True))
    rows = due(lot, tenant, as_of=as_of).filter(pk__in=[memory for _, memory, _ in found], end_user__in=ours)
    rows = rows.select_for_update(of=("self",), skip_locked=True)
    return list(rows.order_by("pk").values_list("pk", flat=True))


def _trash_facts(work: Work, lot: Lot, ids: Sequence[uuid.UUID], *, now: datetime) -> None:
    change_set = work.row.pk
    told: dict[str, Any] = {"ids": list(ids), "now": now, "verb": lot.verb, "reason": lot.reason}
    with connection.cursor() as cursor:
        cursor.execute(_TRASH_FACTS, {**told, "kind": ActorKind.DECAY, "actor": str(change_set), "pass": change_set})
    review_items.settle(ids, now=now, change_set=change_set)


def _trash_episodes(ids: Sequence[uuid.UUID], *, now: datetime) -> None:
    taken = Episode.objects.filter(pk__in=ids)
    taken.update(status=Status.TRASHED, trashed_at=now, updated_at=now, version=F("version") + 1)


def _count(work: Work, lot: Lot, number: int) -> None:
    work.counts[lot.counted] += number
    pass_leases.keep(work)
