"""Checks a chain of the audit trail: recomputes all of it, and names the first place that is wrong."""

import uuid
from dataclasses import dataclass
from enum import StrEnum

from django.db import transaction
from django.db.models import Max
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from memories.models import AuditEvent, AuditSeal
from memories.privacy.trail import chain, heads, sealing


class ChainFlaw(StrEnum):
    CHANGED = "changed"
    MISSING = "missing"
    INSERTED = "inserted"
    SEAL_CHANGED = "seal_changed"
    SEAL_MISSING = "seal_missing"
    TAIL_MISSING = "tail_missing"


DESCRIPTIONS: dict[ChainFlaw, str | Promise] = {
    ChainFlaw.CHANGED: _("An event was changed after it was sealed."),
    ChainFlaw.MISSING: _("A sealed event is missing."),
    ChainFlaw.INSERTED: _("An event has no seal: it was inserted later, or its seal was removed."),
    ChainFlaw.SEAL_CHANGED: _("A seal was changed, or was made without the hub's pepper."),
    ChainFlaw.SEAL_MISSING: _("A seal was removed from the chain."),
    ChainFlaw.TAIL_MISSING: _("The chain ends before the seal that is recorded outside the database."),
}


@dataclass(frozen=True)
class BrokenSeal:
    """The first wrong place: in or before which seal and, where it is about one, which event."""

    flaw: ChainFlaw
    number: int
    event_id: int | None = None

    def __str__(self) -> str:
        where = f" (seal {self.number}" + (f", event {self.event_id})" if self.event_id else ")")
        return f"{DESCRIPTIONS[self.flaw]}{where}"


@dataclass(frozen=True)
class Report:
    """Counts of a chain: links, sealed events, events deleted by retention, events not sealed yet."""

    tenant_uuid: uuid.UUID | None
    links: int
    sealed: int
    pruned: int
    unsealed: int
    broken: BrokenSeal | None


def chains() -> list[uuid.UUID | None]:
    """Every chain that has events or seals; the one without a tenant last."""
    found = set(AuditEvent.objects.order_by().values_list("tenant_uuid", flat=True).distinct())
    found |= set(AuditSeal.objects.order_by().values_list("tenant_uuid", flat=True).distinct())
    noted = {None if key == heads.NOBODY else uuid.UUID(key) for key in heads.noted()}
    return sorted(found | noted, key=lambda one: (one is None, str(one)))


def check(tenant_uuid: uuid.UUID | None, *, newest: int | None = None) -> Report:
    """Recompute the chain, or its `newest` links alone; meanwhile nothing is sealed or pruned. Writes nothing.

    Errors: ValueError, when the file of noted heads is not the hub's.
    """
    with transaction.atomic():
        sealing.lock_shared()
        check = _ChainCheck(tenant_uuid, newest)
        broken = check.broken()
        links = chain.of(tenant_uuid)
        sealed = sum(links.filter(kind=AuditSeal.SealKind.SEAL).values_list("count", flat=True))
        pruned = sum(links.filter(kind=AuditSeal.SealKind.PRUNING).values_list("count", flat=True))
        unsealed = check.events.filter(pk__gt=sealing.sealed_up_to()).count()
        return Report(tenant_uuid, links.count(), sealed, pruned, unsealed, broken)


class _ChainCheck:
    """Goes from link to link; `upto` is the id up to which all events have been checked."""

    def __init__(self, tenant_uuid: uuid.UUID | None, newest: int | None) -> None:
        self.tenant_uuid = tenant_uuid
        self.events = chain.of_chain(AuditEvent.objects.order_by("pk"), tenant_uuid)
        self.links = chain.of(tenant_uuid).order_by("number")
        prunings = self.links.filter(kind=AuditSeal.SealKind.PRUNING)
        # A forged pruning is found when the check comes to it.
        self.pruned_up_to: int = prunings.aggregate(last=Max("last_id"))["last"] or 0
        self.number, self.digest, self.upto = 0, b"", 0
        last = chain.last_of(tenant_uuid)
        if newest is not None and last is not None and last.number > newest:
            # The links before the newest ones are taken for granted.
            first = last.number - newest + 1
            self.links = self.links.filter(number__gte=first)
            before = chain.of(tenant_uuid).filter(number__lt=first)
            self.number = first - 1
            self.digest = bytes(before.filter(number=first - 1).values_list("digest", flat=True).first() or b"")
            seals = before.filter(kind=AuditSeal.SealKind.SEAL)
            self.upto = seals.aggregate(last=Max("last_id"))["last"] or 0

    def broken(self) -> BrokenSeal | None:
        for link in self.links.iterator(chunk_size=50):
            if found := self._check_link(link):
                return found
        # All events before the end of all seals are in one, and the chain is as long as was noted.
        left = self.events.filter(pk__gt=self.upto, pk__lte=sealing.sealed_up_to()).first()
        if left is not None:
            return BrokenSeal(ChainFlaw.INSERTED, self.number + 1, left.pk)
        key = heads.key_of(self.tenant_uuid)
        head = heads.noted().get(key)
        if head is not None and not heads.is_in_chain(key, head):
            return BrokenSeal(ChainFlaw.TAIL_MISSING, head.number)
        return None

    def _check_link(self, link: AuditSeal) -> BrokenSeal | None:
        if link.number != self.number + 1:
            return BrokenSeal(ChainFlaw.SEAL_MISSING, self.number + 1)
        if bytes(link.previous) != self.digest or bytes(link.digest) != chain.digest_of(link):
            return BrokenSeal(ChainFlaw.SEAL_CHANGED, link.number)
        found = self._check_events(link) if link.kind == AuditSeal.SealKind.SEAL else None
        self.number, self.digest = link.number, bytes(link.digest)
        return found

    def _check_events(self, seal: AuditSeal) -> BrokenSeal | None:
        """Compare the events since the seal before with the leaves of the seal."""
        stored = {event.pk: chain.leaf(event) for event in self.events.filter(pk__gt=self.upto, pk__lte=seal.last_id)}
        sealed = {key: leaf for key, leaf in chain.leaves_of(seal).items() if key > self.pruned_up_to}
        self.upto = seal.last_id
        for key in sorted({*stored, *sealed}):
            if key not in sealed:
                return BrokenSeal(ChainFlaw.INSERTED, seal.number, key)
            if key not in stored:
                return BrokenSeal(ChainFlaw.MISSING, seal.number, key)
            if stored[key] != sealed[key]:
                return BrokenSeal(ChainFlaw.CHANGED, seal.number, key)
        return None
