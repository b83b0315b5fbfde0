"""Dry runs of a content policy over what is stored, and the deletion of what one found: jobs of workers, in slices.

A dry run keeps which memory falls under which category, and nothing of what it says. What it found is deleted into the
trash, a change set for each person: one batch, with one undo. Items of the store have no trash, so they are left out.
"""

import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _
from django_q.tasks import async_task

from memories import audit
from memories.audit import Actor
from memories.content_policy import categories
from memories.content_policy.wording import Wordings
from memories.curation import episodes
from memories.curation.change_sets import CLEAR, Changes
from memories.curation.facts.changing import lock_facts
from memories.curation.graph import taking_back
from memories.curation.profile.sections import empty_some
from memories.curation.review import item_states
from memories.curation.rollback import files, groups, plain
from memories.curation.tenants.content_policy import current_policy
from memories.curation.writing import lock_person
from memories.db import tenancy
from memories.exceptions import Conflict, NotFound
from memories.facts import review_items
from memories.facts.write import texts_of
from memories.kinds import PLAIN, Kind
from memories.models import (
    ActorKind,
    Batch,
    ChangeSet,
    EndUser,
    Episode,
    EpisodeStatus,
    Fact,
    GraphTriple,
    GroupEvidence,
    MemoryFile,
    PolicyFinding,
    PolicyTrial,
    ProfileSection,
    Status,
    Tenant,
    TripleStatus,
    Trust,
)
from memories.models.ids import new_id
from memories.queue import leases
from memories.queue.leases import Lease

TASK = "memories.tasks.try_policies"
DELETED = "delete_forbidden"
# Memories of one step, and how many dry runs of a tenant are kept.
STEP, KEPT = 200, 5


def _plain_texts(kind: Kind, row: Any) -> Sequence[str]:
    return [getattr(row, kind.plain.topic), row.content] if kind.plain else []


# Kind → the rows that are looked at, and the texts of a row. Of triples those that somebody stated: those of facts go
# with them; of groups what people said, one by one.
_READ: Mapping[str, tuple[QuerySet[Any], Callable[[Any], Sequence[str]]]] = {
    "fact": (Fact.objects.exclude(status__in=(Status.TRASHED, Status.REJECTED)), texts_of),
    "episode": (
        Episode.objects.filter(status__in=(EpisodeStatus.ACTIVE, EpisodeStatus.PENDING)),
        lambda row: list(row.texts),
    ),
    "profile": (ProfileSection.objects.written(), lambda row: [row.summary]),
    "file": (MemoryFile.objects.filter(trashed_at=None), lambda row: [row.content] if row.is_text else []),
    "triple": (
        GraphTriple.objects.filter(fact=None).exclude(status=TripleStatus.TRASHED).select_related("subject", "object"),
        lambda row: [f"{row.subject.name} {row.predicate.replace('_', ' ')} {row.object.name}"],
    ),
    "group_fact": (
        GroupEvidence.objects.filter(fact__trashed_at=None).select_related("fact"),
        lambda row: [row.fact.content],
    ),
    **{kind.name: (kind.rows.filter(trashed_at=None), partial(_plain_texts, kind)) for kind in PLAIN},
}
KINDS = tuple(_READ)
# Kind → what no key deletes, as in clear_memories(); of the profile empty_some() sees to it.
_NOT_OF_KEYS: Mapping[str, Q] = {
    "fact": Q(binding=True) | Q(locked=True),
    "episode": Q(binding=True),
    "file": Q(locked=True) | Q(trust=Trust.OPERATOR),
    "triple": Q(trust=Trust.OPERATOR),
}


def start_trial(
    *, tenant: Tenant, given: Sequence[Mapping[str, Any]] | None, actor: Actor, now: datetime
) -> PolicyTrial:
    """Have a worker look which memories these categories would not allow; None: those of the policy in force.

    Errors: InvalidInput with all places, Conflict (another one is running).
    """
    policy = current_policy(tenant)
    wanted = categories.checked(given) if given is not None else (policy.categories if policy else [])
    total = sum(rows.filter(tenant=tenant).count() for rows, _texts in _READ.values())
    row = PolicyTrial(tenant=tenant, categories=wanted, kind=KINDS[0], total=total, created_at=now)
    row.actor_kind, row.actor_id = actor.kind, actor.id
    try:
        with transaction.atomic():
            row.save(force_insert=True)
            old = PolicyTrial.objects.filter(tenant=tenant).exclude(ended_at=None).values_list("pk", flat=True)
            PolicyTrial.objects.filter(pk__in=list(old[KEPT - 1 :])).delete()
            audit.record(actor=actor, verb="run", target=row, object_id=row.pk, tenant=tenant, now=now)
            async_task(TASK)
    except IntegrityError as error:
        raise Conflict(_("Another dry run is under way. Wait until it is over.")) from error
    return row


def delete_found(*, trial_id: uuid.UUID, tenant: Tenant, actor: Actor, now: datetime) -> PolicyTrial:
    """Have a worker move what the dry run found to the trash; asked again it goes on. Errors: NotFound, Conflict."""
    with transaction.atomic():
        row = PolicyTrial.objects.select_for_update().filter(pk=trial_id, tenant=tenant).first()
        if row is None:
            raise NotFound
        if row.ended_at is None:
            raise Conflict(_("Another dry run is under way. Wait until it is over."))
        if row.batch:
            return row
        found = row.findings.count()
        row.batch, row.ended_at, row.seen, row.total = new_id(), None, 0, found
        row.actor_kind, row.actor_id = actor.kind, actor.id
        operator = uuid.UUID(actor.id) if actor.is_operator else None
        Batch.objects.create(pk=row.batch, operator_id=operator, verb=DELETED, counts={"asked": found}, created_at=now)
        try:
            with transaction.atomic():
                row.save()
        except IntegrityError as error:
            raise Conflict(_("Another dry run is under way. Wait until it is over.")) from error
        async_task(TASK)
    return row


def counts_of(trial: PolicyTrial) -> dict[str, dict[str, int]]:
    """Category → kind → how many memories the dry run found."""
    found: dict[str, Counter[str]] = {}
    for category, kind in trial.findings.values_list("category", "kind"):
        found.setdefault(category, Counter())[kind] += 1
    return {category: dict(kinds) for category, kinds in sorted(found.items())}


def state_of(trial: PolicyTrial) -> str:
    """running, done, deleting, deleted or failed."""
    if trial.failure and trial.ended_at:
        return "failed"
    if trial.batch:
        return "deleted" if trial.ended_at else "deleting"
    return "done" if trial.ended_at else "running"


def run_slice(*, now: datetime, seconds: float) -> bool:
    """Work for about so long on what nobody holds; True when more is left to do now. Errors: LeaseLost."""
    until = time.monotonic() + seconds
    for pk in list(PolicyTrial.objects.undone().free().order_by("created_at").values_list("pk", flat=True)):
        work = _claim(pk)
        if work is None:
            continue
        with tenancy.of_tenant(work.row.tenant_id):
            # Once: the examples of all categories become vectors.
            wordings = Wordings(categories.wordings(work.row.categories))
            while work.row.ended_at is None:
                _delete_step(work, wordings, now) if work.row.batch else _read_step(work, wordings, now, until=until)
                if time.monotonic() > until and work.row.ended_at is None:
                    leases.release(work)
                    return True
    return False


def enqueue() -> None:
    async_task(TASK)


@transaction.atomic
def _claim(pk: uuid.UUID) -> Lease[PolicyTrial] | None:
    def give_up(row: PolicyTrial) -> None:
        ended = {"failure": leases.WORKER_LOST, "ended_at": row.clock}
        leases.revoke(PolicyTrial.objects.filter(pk=row.pk), attempts=0, **ended)

    row = leases.lock(PolicyTrial.objects.undone().free().select_related("tenant"), pk)
    token = leases.take(row, give_up=give_up) if row else None
    return Lease(row=row, token=token) if row and token else None


def _read_step(work: Lease[PolicyTrial], wordings: Wordings, now: datetime, *, until: float) -> None:
    """Judge the next memories of a kind, without a transaction, and note those that fall under a category.

    Once the slice is over the step ends with the memory that it reads: many long files take longer than a lease.
    """
    row = work.row
    rows, texts = _READ[row.kind]
    some = rows.filter(tenant=row.tenant).order_by("pk")
    found = list((some.filter(pk__gt=row.reached) if row.reached else some)[:STEP])
    judged: list[tuple[Any, str]] = []
    for one in found:
        judged.append((one, wordings.falls_under(text for text in texts(one) if text)))
        if time.monotonic() > until:
            break
    row.seen += len(judged)
    row.reached = judged[-1][0].pk if judged else None
    if len(judged) == len(found) < STEP:
        row.reached, place = None, KINDS.index(row.kind) + 1
        if place < len(KINDS):
            row.kind = KINDS[place]
        else:
            row.ended_at = now
    _store(work, [(one, category) for one, category in judged if category])


def _store(work: Lease[PolicyTrial], found: Sequence[tuple[Any, str]]) -> None:
    row, kind = work.row, work.row.kind
    with transaction.atomic():
        changed = {name: getattr(row, name) for name in ("kind", "reached", "seen", "ended_at")}
        if row.ended_at:
            leases.release(work, attempts=0, **changed)
        else:
            leases.renew(work, attempts=0, **changed)
        # Somebody may have been erased since.
        ids = sorted({one.end_user_id for one, _category in found})
        there = set(EndUser.objects.select_for_update(no_key=True).filter(pk__in=ids).values_list("pk", flat=True))
        PolicyFinding.objects.bulk_create(
            [
                PolicyFinding(
                    tenant_id=row.tenant_id,
                    trial=row,
                    end_user_id=one.end_user_id,
                    kind=_KIND_OF.get(type(one), kind),
                    row=one.pk,
                    category=category,
                )
                for one, category in found
                if one.end_user_id in there
            ],
            ignore_conflicts=True,
        )


_KIND_OF: Mapping[type[Any], str] = {
    Fact: "fact",
    Episode: "episode",
    ProfileSection: "profile",
    MemoryFile: "file",
    GraphTriple: "triple",
    GroupEvidence: "group_fact",
    **{kind.model: kind.name for kind in PLAIN},
}


def _delete_step(work: Lease[PolicyTrial], wordings: Wordings, now: datetime) -> None:
    """Move what was found of the next person to the trash."""
    row = work.row
    person = row.findings.order_by("end_user").values_list("end_user", flat=True).first()
    with transaction.atomic():
        if person is None:
            row.ended_at = now
            done = ChangeSet.objects.filter(batch=row.batch).values_list("counts", flat=True)
            counts = {"asked": row.total, "done": sum(sum(one.values()) for one in done)}
            Batch.objects.filter(pk__in=[row.batch]).update(counts=counts)
            audit.record(
                actor=_actor_of(row),
                verb=DELETED,
                target=row,
                object_id=row.pk,
                tenant=row.tenant,
                now=now,
                counts=counts,
            )
            leases.release(work, attempts=0, ended_at=now)
            return
        mine = row.findings.filter(end_user=person)
        # The person first, as everybody locks. Who was merged since left their memories to another.
        person = lock_person(person)
        ids: dict[str, list[uuid.UUID]] = {}
        for kind, pk in mine.values_list("kind", "row"):
            ids.setdefault(kind, []).append(pk)
        row.seen += sum(map(len, ids.values()))
        leases.renew(work, attempts=0, seen=row.seen)
        # Who was erased took theirs along. A key deletes nothing of whoever is restricted.
        owner = EndUser.objects.select_related("tenant").filter(pk=person).first()
        if owner and (owner.restricted_at is None or _actor_of(row).is_operator):
            _delete_of(owner, ids, row, wordings, now)
        mine.delete()


def _actor_of(row: PolicyTrial) -> Actor:
    return Actor(ActorKind(row.actor_kind), row.actor_id)


def _delete_of(
    person: EndUser, ids: Mapping[str, Sequence[uuid.UUID]], row: PolicyTrial, wordings: Wordings, now: datetime
) -> None:
    """One change set about a locked person, as clear_memories() makes it: of what is still there, still theirs, and
    still falls under a category: somebody may have corrected it. A key leaves what an operator wrote, and what is
    locked."""
    changes = Changes(actor=_actor_of(row), now=now)

    def still(kind: str) -> Any:
        rows, texts = _READ[kind]
        found = rows.filter(tenant=row.tenant, pk__in=ids.get(kind, ()), end_user=person)
        if not changes.actor.is_operator:
            found = found.exclude(_NOT_OF_KEYS.get(kind, Q(pk__in=[])))
        fallen = [one.pk for one in found if wordings.falls_under(text for text in texts(one) if text)]
        return found.filter(pk__in=fallen)

    facts = lock_facts(still("fact").values_list("pk", flat=True))
    changes.trash(facts, "forget")
    changes.counts["facts"] = len(facts)
    changes.counts["episodes"] = sum(_forget(pk, changes) for pk in list(still("episode").values_list("pk", flat=True)))
    changes.counts["sections"] = empty_some(still("profile"), changes)
    changes.counts["triples"] = taking_back.trash(still("triple"), changes)
    changes.counts["files"] = files.clear(still("file"), changes)
    changes.counts["group_facts"] = groups.clear(still("group_fact"), changes)
    for kind in PLAIN:
        changes.counts[kind.plural] = plain.clear(still(kind.name), changes)
    if any(changes.counts.values()):
        item_states.close_answered_items(changes)
        counts = dict(changes.counts)
        changes.record(CLEAR, person, counts=counts)
        ChangeSet.objects.filter(pk=changes.id).update(batch=row.batch)


def _forget(pk: uuid.UUID, changes: Changes) -> int:
    episode = episodes.lock(pk)
    if episode is None:
        return 0
    with episodes.next_version(episode, "forget", changes):
        episode.status, episode.trashed_at = EpisodeStatus.TRASHED, changes.now
    review_items.close_answered_items_of_episode(episode, now=changes.now, change_set=changes.id)
    return 1
