"""Checking a chain of the audit trail: recompute all of it, and name the first place that does not hold."""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from django.db import transaction
from django.db.models import Max
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from memories.models import AuditEvent, AuditSeal
from memories.privacy.trail import chain, heads, sealing


class Flaw(StrEnum):
    CHANGED = "changed"
    MISSING = "missing"
    INSERTED = "inserted"
    SEAL_CHANGED = "seal_changed"
    SEAL_MISSING = "seal_missing"
    TAIL_MISSING = "tail_missing"


SAID: dict[Flaw, str | Promise] = {
    Flaw.CHANGED: _("An event was changed after it was sealed."),
    Flaw.MISSING: _("An event that was sealed is gone."),
    Flaw.INSERTED: _("An event stands where none was sealed: it was inserted later, or its seal was taken away."),
    Flaw.SEAL_CHANGED: _("A seal was changed, or made without the hub's pepper."),
    Flaw.SEAL_MISSING: _("A seal was taken out of the chain."),
    Flaw.TAIL_MISSING: _("The chain ends before the seal that was noted apart from the database."),
}


@dataclass(frozen=True)
class Broken:
    """The first place that does not hold: in or before which seal, and which event where it is about one."""

    flaw: Flaw
    number: int
    event_id: int | None = None

    def __str__(self) -> str:
        where = f" (seal {self.number}" + (f", event {self.event_id})" if self.event_id else ")")
        return f"{SAID[self.flaw]}{where}"


@dataclass(frozen=True)
class Report:
    """What was found of a chain: its links, its sealed events, those deleted by retention, those not sealed yet."""

    tenant_uuid: uuid.UUID | None
    links: int
    sealed: int
    pruned: int
    unsealed: int
    broken: Broken | None


def chains() -> list[uuid.UUID | None]:
    """Every chain that has events or seals; the one without a tenant last."""
    found = set(AuditEvent.objects.order_by().values_list("tenant_uuid", flat=True).distinct())
    found |= set(AuditSeal.objects.order_by().values_list("tenant_uuid", flat=True).distinct())
    noted = {None if key == heads.NOBODY else uuid.UUID(key) for key in heads.noted()}
    return sorted(found | noted, key=lambda one: (one is None, str(one)))


def check(tenant_uuid: uuid.UUID | None, *, newest: int | None = None) -> Report:
    """Recompute the chain, or its `newest` links alone; meanwhile nothing is sealed or pruned. Reads, writes nothing.

    Errors: ValueError, when the file of noted heads is none of ours.
    """
    with transaction.atomic():
        sealing.keep_still()
        walk = _Walk(tenant_uuid, newest)
        broken = walk.broken()
        links = chain.of(tenant_uuid)
        sealed = sum(links.filter(kind=AuditSeal.Kind.SEAL).values_list("count", flat=True))
        pruned = sum(links.filter(kind=AuditSeal.Kind.PRUNING).values_list("count", flat=True))
        unsealed = walk.events.filter(pk__gt=sealing.sealed_up_to()).count()
        return Report(tenant_uuid, links.count(), sealed, pruned, unsealed, broken)


class _Walk:
    """From one link to the next; `reached` is the id up to which the chain has told of all events."""

    def __init__(self, tenant_uuid: uuid.UUID | None, newest: int | None) -> None:
        self.tenant_uuid = tenant_uuid
        self.events = chain.belonging(AuditEvent.objects.order_by("pk"), tenant_uuid)
        self.links = chain.of(tenant_uuid).order_by("number")
        prunings = self.links.filter(kind=AuditSeal.Kind.PRUNING)
        # A pruning that was forged is found when the walk comes to it.
        self.pruned_up_to: int = prunings.aggregate(last=Max("last_id"))["last"] or 0
        self.number, self.digest, self.reached = 0, b"", 0
        last = chain.last_of(tenant_uuid)
        if newest is not None and last is not None and last.number > newest:
            self._begin_before(last.number - newest + 1)

    def _begin_before(self, number: int) -> None:
        """Take what stands before that link for granted."""
        self.links = self.links.filter(number__gte=number)
        before = chain.of(self.tenant_uuid).filter(number__lt=number)
        self.number = number - 1
        self.digest = bytes(before.filter(number=number - 1).values_list("digest", flat=True).first() or b"")
        seals = before.filter(kind=AuditSeal.Kind.SEAL)
        self.reached = seals.aggregate(last=Max("last_id"))["last"] or 0

    def broken(self) -> Broken | None:
        for link in self.links.iterator(chunk_size=50):
            if found := self._at(link):
                return found
        return self._beyond()

    def _at(self, link: AuditSeal) -> Broken | None:
        if link.number != self.number + 1:
            return Broken(Flaw.SEAL_MISSING, self.number + 1)
        if bytes(link.previous) != self.digest or bytes(link.digest) != chain.digest_of(link):
            return Broken(Flaw.SEAL_CHANGED, link.number)
        found = self._events_of(link) if link.kind == AuditSeal.Kind.SEAL else None
        self.number, self.digest = link.number, bytes(link.digest)
        return found

    def _events_of(self, seal: AuditSeal) -> Broken | None:
        """Hold the events since the seal before against the seal's leaves."""
        stored = {
            event.pk: chain.leaf(event) for event in self.events.filter(pk__gt=self.reached, pk__lte=seal.last_id)
        }
        sealed = {key: leaf for key, leaf in chain.leaves_of(seal).items() if key > self.pruned_up_to}
        self.reached = seal.last_id
        return _first(seal.number, {*stored, *sealed}, stored, sealed)

    def _beyond(self) -> Broken | None:
        """What was recorded before the end of all seals is in one; and the chain is as long as it is known to be."""
        left = self.events.filter(pk__gt=self.reached, pk__lte=sealing.sealed_up_to()).first()
        if left is not None:
            return Broken(Flaw.INSERTED, self.number + 1, left.pk)
        key = heads.key_of(self.tenant_uuid)
        head = heads.noted().get(key)
        if head is not None and not heads.stands(key, head):
            return Broken(Flaw.TAIL_MISSING, head.number)
        return None


def _first(number: int, ids: Iterable[int], stored: dict[int, bytes], sealed: dict[int, bytes]) -> Broken | None:
    for key in sorted(ids):
        if stored.get(key) != sealed.get(key):
            flaw = Flaw.INSERTED if key not in sealed else Flaw.MISSING if key not in stored else Flaw.CHANGED
            return Broken(flaw, number, key)
    return None
