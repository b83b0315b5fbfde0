"""How the audit trail is sealed: the canonical form of an event, its leaf in a seal, and the digest of a seal; pure.

A leaf is an event's id (8 bytes, big endian) and the first 16 bytes of its keyed digest. It stays when the event is
pruned, so a chain can always be checked, and it shows which event of a seal was changed. All digests are keyed by the
pepper, which is not in the database: write access to the database alone is not enough to make a seal.
"""

import json
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from memories import conf
from memories.models import AuditEvent, AuditSeal

# In the order of AuditEvent's columns; the names are part of what is sealed.
FIELDS = (
    "id", "tenant_uuid", "actor_kind", "actor_id", "verb", "object_type", "object_id", "request_id", "case_uuid",
    "counts", "created_at",
)  # fmt: skip
ID_BYTES, DIGEST_BYTES = 8, 16
LEAF_BYTES = ID_BYTES + DIGEST_BYTES


def fields_of(event: AuditEvent) -> dict[str, Any]:
    """The event as it is sealed and exported: UUIDs as text, the time in UTC with its microseconds."""
    return {name: _plain(getattr(event, name)) for name in FIELDS}


def canonical(value: object) -> bytes:
    """One form for one meaning: JSON with sorted names, without blanks, in UTF-8."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def leaf(event: AuditEvent) -> bytes:
    return event.pk.to_bytes(ID_BYTES) + conf.digest("audit event", canonical(fields_of(event)))[:DIGEST_BYTES]


def leaves_of(seal: AuditSeal) -> dict[int, bytes]:
    """Id of an event → its leaf."""
    raw = bytes(seal.leaves)
    parts = [raw[start : start + LEAF_BYTES] for start in range(0, len(raw), LEAF_BYTES)]
    return {int.from_bytes(part[:ID_BYTES]): part for part in parts}


def digest_of(seal: AuditSeal) -> bytes:
    """The digest that the seal must have, 32 bytes: over all of it and the digest of the seal before."""
    header = {
        "tenant": _plain(seal.tenant_uuid),
        "number": seal.number,
        "kind": str(seal.kind),
        "first": seal.first_id,
        "last": seal.last_id,
        "count": seal.count,
        "newest": _plain(seal.newest_at),
        "sealed": _plain(seal.sealed_at),
    }
    return conf.digest("audit", bytes(seal.previous), canonical(header), bytes(seal.leaves))


def last_of(tenant_uuid: uuid.UUID | None) -> AuditSeal | None:
    """The newest link of the chain."""
    newest: AuditSeal | None = of(tenant_uuid).order_by("-number").first()
    return newest


def of(tenant_uuid: uuid.UUID | None) -> Any:
    """The links of one chain."""
    return of_chain(AuditSeal.objects.all(), tenant_uuid)


def of_chain(rows: Any, tenant_uuid: uuid.UUID | None) -> Any:
    """The events or seals of the tenant's chain; None: those without a tenant."""
    return rows.filter(tenant_uuid=tenant_uuid) if tenant_uuid else rows.filter(tenant_uuid__isnull=True)


def append(
    tenant_uuid: uuid.UUID | None,
    kind: AuditSeal.SealKind,
    *,
    span: tuple[int, int],
    count: int,
    newest_at: datetime,
    leaves: Iterable[bytes] = (),
    now: datetime,
) -> AuditSeal:
    """Write the next link of the chain, under the lock of sealing."""
    last = last_of(tenant_uuid)
    seal = AuditSeal(tenant_uuid=tenant_uuid, kind=kind, count=count, newest_at=newest_at, sealed_at=now)
    seal.number, seal.previous = (last.number + 1, bytes(last.digest)) if last else (1, b"")
    seal.first_id, seal.last_id = span
    seal.leaves = b"".join(leaves)
    seal.digest = digest_of(seal)
    seal.save(force_insert=True)
    return seal


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds")
    return str(value) if isinstance(value, uuid.UUID) else value
