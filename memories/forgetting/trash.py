"""What a pass takes: faded and expired memories go to the trash; later it deletes them from there.

Each step is one short transaction that waits for no lock: the next pass takes what somebody holds now.
"""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet

from memories import outbox
from memories.audit import REVISED_FIELDS, REVISED_MOMENTS
from memories.facts import review_items
from memories.forgetting.decay_passes import Work
from memories.graph import following
from memories.kinds import KINDS
from memories.models import (
    ActorKind,
    Dream,
    EndUser,
    Episode,
    Event,
    Fact,
    FileVersion,
    GraphEntity,
    GroupFact,
    MemoryFile,
    MemoryGroup,
    Status,
    Tenant,
)
from memories.models.memories.dreams import OPEN
from memories.queue import leases

STEP = 500


@dataclass(frozen=True)
class TrashGroup:
    """Memories of one kind that go for one reason: the name of their count, the queryset method that finds them, the
    column with the moment, and the verb and reason of a fact's revision."""

    model: Any
    counted: str
    word: str
    moment: str
    verb: str = ""
    reason: str = ""


EXPIRED = tuple(
    TrashGroup(model, "expired", "expired", "expires_at", "expire", "It was over.") for model in (Fact, Episode)
)
FADED = (
    TrashGroup(Fact, "facts", "faded", "forget_at", "fade", "It did not come up again."),
    TrashGroup(Episode, "episodes", "faded", "forget_at"),
)
PURGED = tuple(TrashGroup(kind.model, "purged", "discarded", "trashed_at") for kind in KINDS if kind.is_purged)
GROUP_FACTS = TrashGroup(GroupFact, "purged", "discarded", "trashed_at")
SCRATCH = TrashGroup(MemoryFile, "purged", "outdated", "expires_at")
# Column → its value in a revision, as audit.snapshot() writes it.
_SNAPSHOT = {name: f"taken.{name}" for name in (*REVISED_FIELDS, *REVISED_MOMENTS)} | {
    "superseded_by": "taken.superseded_by_id"
}
_TRASH_FACTS = f"""
    WITH old AS (SELECT id, status FROM memories_fact WHERE tenant_id = %(tenant)s AND id = ANY(%(ids)s)),
    taken AS (
        UPDATE memories_fact fact
        SET status = 'trashed', trashed_at = %(now)s, updated_at = %(now)s, version = fact.version + 1
        FROM old WHERE fact.tenant_id = %(tenant)s AND fact.id = old.id RETURNING fact.*, old.status AS was
    )
    INSERT INTO memories_factrevision
        (tenant_id, fact_id, version, verb, actor_kind, actor_id, before, after, reason, change_set, created_at)
    SELECT taken.tenant_id, taken.id, taken.version, %(verb)s, %(kind)s, %(actor)s,
        jsonb_build_object('status', taken.was, 'trashed_at', NULL),
        jsonb_build_object({", ".join(f"'{name}', {column}" for name, column in _SNAPSHOT.items())}),
        %(reason)s, %(pass)s, %(now)s
    FROM taken
"""  # noqa: S608 - the columns are ours


def due(group: TrashGroup, tenant: Tenant, *, as_of: datetime) -> QuerySet[Any]:
    """The tenant's memories that go, without those of people under restriction."""
    restricted = EndUser.objects.filter(restricted_at__isnull=False)
    rows: QuerySet[Any] = getattr(group.model.objects, group.word)(now=as_of).filter(tenant=tenant)
    return rows.exclude(end_user__in=restricted)


def trash(work: Work, group: TrashGroup, *, now: datetime) -> Iterator[None]:
    """Move all that is due to the trash, STEP at a time; yields after each step. Errors: LeaseLost."""
    for found in _steps(work, group, as_of=work.row.as_of):
        with transaction.atomic():
            ids = _locked(group, work.row.tenant, found, as_of=work.row.as_of)
            if group.model is Fact:
                _trash_facts(work, group, ids, now=now)
            else:
                episodes = Episode.objects.filter(pk__in=ids)
                episodes.update(status=Status.TRASHED, trashed_at=now, updated_at=now, version=F("version") + 1)
            _count(work, group, len(ids))
        yield


def purge(work: Work, group: TrashGroup) -> Iterator[None]:
    """Delete for good what was in the trash for long enough, and scratch files at once; refusals of facts stay.

    Errors: LeaseLost.
    """
    as_of = work.row.as_of - timedelta(days=0 if group is SCRATCH else work.rules.trash_days)
    for found in _steps(work, group, as_of=as_of):
        with transaction.atomic():
            ids = _locked(group, work.row.tenant, found, as_of=as_of)
            if group.model is Fact:
                review_items.detach_conflicts(ids)
            group.model.objects.filter(pk__in=ids).delete()
            _count(work, group, len(ids))
        yield


def purge_versions(work: Work) -> Iterator[None]:
    """Delete versions of memory files that were replaced long enough ago. Errors: LeaseLost."""
    if not work.rules.version_days:
        return
    as_of = work.row.as_of - timedelta(days=work.rules.version_days)
    replaced = FileVersion.objects.filter(file=OuterRef("file"), version=OuterRef("version") + 1, created_at__lte=as_of)
    restricted = EndUser.objects.filter(restricted_at__isnull=False)
    # What is older than its successor: the range of the index.
    rows = FileVersion.objects.filter(Exists(replaced), tenant=work.row.tenant, created_at__lte=as_of)
    rest = rows = rows.exclude(file__end_user__in=restricted).order_by("created_at", "pk")
    while found := list(rest.values_list("created_at", "pk", "file__end_user")[:STEP]):
        with transaction.atomic():
            # With the person locked nobody restores one of them, or takes it back, meanwhile.
            people = EndUser.objects.select_for_update(no_key=True, skip_locked=True).filter(restricted_at=None)
            locked = list(
                people.filter(pk__in={person for *_, person in found}).order_by("pk").values_list("pk", flat=True)
            )
            going = FileVersion.objects.filter(pk__in=[pk for _, pk, _ in found], file__end_user__in=locked)
            going.delete()
            leases.renew(work)
        yield
        moment, last, _ = found[-1]
        rest = rows.filter(created_at__gte=moment).exclude(created_at=moment, pk__lte=last)


def purge_entities(work: Work) -> Iterator[None]:
    """Delete entities that no triple is about any more, nor one of their other names. Errors: LeaseLost."""
    unused = GraphEntity.objects.filter(tenant=work.row.tenant, outgoing=None, incoming=None, aliases=None)
    alone = Q(merged_into=None) | Q(merged_into__outgoing=None, merged_into__incoming=None)
    unused = unused.filter(alone).exclude(end_user__in=EndUser.objects.filter(restricted_at__isnull=False))
    rest = unused.order_by("pk")
    while found := list(rest.values_list("pk", "end_user")[:STEP]):
        with transaction.atomic():
            # With the person locked nobody states something about one of them meanwhile.
            people = EndUser.objects.select_for_update(no_key=True, skip_locked=True)
            people = people.filter(pk__in={person for _, person in found}).order_by("pk")
            locked = list(people.values_list("pk", flat=True))
            unused.filter(pk__in=[pk for pk, _ in found], end_user__in=locked).delete()
            leases.renew(work)
        yield
        rest = unused.filter(pk__gt=found[-1][0]).order_by("pk")


def purge_group_facts(work: Work) -> Iterator[None]:
    """Delete for good the facts of groups that were in the trash for long enough, by themselves or with their group,
    but none that a restricted person said or that is about one. Errors: LeaseLost."""
    as_of = work.row.as_of - timedelta(days=work.rules.trash_days)
    restricted = EndUser.objects.filter(restricted_at__isnull=False)
    due_now = GroupFact.objects.discarded(now=as_of).filter(tenant=work.row.tenant)
    due_now = due_now.exclude(evidence__end_user__in=restricted).exclude(about__in=restricted)
    rest = due_now.order_by("pk")
    while found := list(rest.values_list("pk", "group")[:STEP]):
        with transaction.atomic():
            # With the group locked nobody restores one of them meanwhile.
            groups = MemoryGroup.objects.select_for_update(no_key=True, skip_locked=True).order_by("pk")
            locked = list(groups.filter(pk__in={group for _, group in found}).values_list("pk", flat=True))
            going = due_now.filter(pk__in=[pk for pk, _ in found], group__in=locked)
            ids = list(going.values_list("pk", flat=True))
            GroupFact.objects.filter(pk__in=ids).delete()
            _count(work, GROUP_FACTS, len(ids))
        yield
        rest = due_now.filter(pk__gt=found[-1][0]).order_by("pk")


def purge_groups(work: Work) -> Iterator[None]:
    """Delete for good the groups that were in the trash for long enough, after their facts, with their members, but
    none that a restricted person belongs to. Errors: LeaseLost."""
    as_of = work.row.as_of - timedelta(days=work.rules.trash_days)
    restricted = EndUser.objects.filter(restricted_at__isnull=False)
    rows = MemoryGroup.objects.filter(tenant=work.row.tenant, trashed_at__lte=as_of, facts=None)
    rest = rows = rows.exclude(members__end_user__in=restricted).order_by("pk")
    while found := list(rest.values_list("pk", flat=True)[:STEP]):
        with transaction.atomic():
            # With the group locked nobody restores it meanwhile.
            groups = MemoryGroup.objects.select_for_update(no_key=True, skip_locked=True).order_by("pk")
            locked = list(groups.filter(pk__in=found).values_list("pk", flat=True))
            going = list(rows.filter(pk__in=locked).values_list("pk", flat=True))
            MemoryGroup.objects.filter(pk__in=going).delete()
            leases.renew(work)
        yield
        rest = rows.filter(pk__gt=found[-1])


def purge_dreams(work: Work) -> Iterator[None]:
    """Delete dreams as old as the versions that go; what they read stays read. Errors: LeaseLost.

    The last reflection about somebody stays: it says which episodes are new. So does what somebody is to look at.
    """
    if not work.rules.version_days:
        return
    as_of = work.row.as_of - timedelta(days=work.rules.version_days)
    restricted = EndUser.objects.filter(restricted_at__isnull=False)
    rows = Dream.objects.filter(tenant=work.row.tenant, started_at__lte=as_of, doubted_at=None)
    rows = rows.exclude(state__in=OPEN)
    named = {"end_user": OuterRef("end_user"), "agent_id": OuterRef("agent_id"), "kind": Dream.Kind.REFLECTION}
    carried_out = [Dream.State.APPLIED, Dream.State.UNCHANGED]
    later = Dream.objects.filter(**named, state__in=carried_out, started_at__gt=OuterRef("started_at"))
    rows = rows.exclude(Q(kind=Dream.Kind.REFLECTION, state__in=carried_out) & ~Exists(later))
    rows = rows.exclude(end_user__in=restricted).order_by("started_at", "pk")
    while found := list(rows.values_list("pk", flat=True)[:STEP]):
        with transaction.atomic():
            Dream.objects.filter(pk__in=found).delete()
            leases.renew(work)
        yield


def _steps(work: Work, group: TrashGroup, *, as_of: datetime) -> Iterator[list[tuple[datetime, uuid.UUID, uuid.UUID]]]:
    """(moment, memory, person) of what is due, the longest due first, STEP at a time; each row comes once."""
    rows = due(group, work.row.tenant, as_of=as_of).order_by(group.moment, "pk")
    rest = rows
    while found := list(rest.values_list(group.moment, "pk", "end_user_id")[:STEP]):
        yield found
        moment, last, _ = found[-1]
        rest = rows.filter(**{f"{group.moment}__gte": moment}).exclude(**{group.moment: moment, "pk__lte": last})


def _locked(
    group: TrashGroup, tenant: Tenant, found: Sequence[tuple[datetime, uuid.UUID, uuid.UUID]], *, as_of: datetime
) -> list[uuid.UUID]:
    """Lock those that are still due: one that was edited, recalled, pinned or restored meanwhile is not.

    People are locked first, as everywhere, so that decisions about these facts and their review items are serialized.
    """
    people = EndUser.objects.select_for_update(no_key=True, skip_locked=True).filter(restricted_at=None)
    locked = list(people.filter(pk__in={person for _, _, person in found}).order_by("pk").values_list("pk", flat=True))
    rows = due(group, tenant, as_of=as_of).filter(pk__in=[memory for _, memory, _ in found], end_user__in=locked)
    rows = rows.select_for_update(of=("self",), skip_locked=True)
    return list(rows.order_by("pk").values_list("pk", flat=True))


def _trash_facts(work: Work, group: TrashGroup, ids: Sequence[uuid.UUID], *, now: datetime) -> None:
    change_set, tenant = work.row.pk, work.row.tenant
    if outbox.is_wanted(tenant, Event.FACT_FORGOTTEN):
        used = Fact.objects.filter(pk__in=ids, status=Status.ACTIVE).values_list("pk", "end_user")
        outbox.facts_gone(tenant, used, now=now)
    given: dict[str, Any] = {
        "tenant": tenant.pk,
        "ids": list(ids),
        "now": now,
        "verb": group.verb,
        "reason": group.reason,
    }
    with connection.cursor() as cursor:
        cursor.execute(_TRASH_FACTS, {**given, "kind": ActorKind.DECAY, "actor": str(change_set), "pass": change_set})
    following.forget(ids)
    review_items.close_answered_items(ids, now=now, change_set=change_set)


def _count(work: Work, group: TrashGroup, number: int) -> None:
    work.counts[group.counted] += number
    leases.renew(work)
