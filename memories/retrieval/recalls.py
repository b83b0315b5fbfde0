"""Recalls of memories: noted in this process and written in the background, because reads do not wait for writes."""

import logging
import threading
import uuid
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from memories import conf
from memories.db.background_writer import BackgroundWriter
from memories.models import Episode, Fact, Tenant
from memories.retrieval import served

FLUSH_SECONDS = 5.0
# Per process; about 10 MB.
MOST = 50_000
# Rows of one transaction.
BATCH = 500
# A memory that is recalled all day long is reinforced once.
AT_MOST_EVERY = timedelta(days=1)
WRITTEN = ("last_recalled_at", "forget_at", "decay_score")
_MODELS: Mapping[str, Any] = {"fact": Fact, "episode": Episode}

logger = logging.getLogger(__name__)

Key = tuple[str, uuid.UUID]


class Buffer:
    """The latest recall of each memory, up to `most` of them; safe under threads."""

    def __init__(self, *, most: int = MOST) -> None:
        self._most = most
        self._lock = threading.Lock()
        # Noted longest ago first.
        self._noted: OrderedDict[Key, datetime] = OrderedDict()
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._noted)

    def note(self, keys: Iterable[Key], *, now: datetime) -> None:
        """Keep these as the latest; beyond the bound the oldest are dropped and counted."""
        with self._lock:
            for key in keys:
                self._noted[key] = now
                self._noted.move_to_end(key)
            self._keep_within()

    def take(self) -> dict[Key, datetime]:
        """Empty the buffer."""
        with self._lock:
            taken, self._noted = self._noted, OrderedDict()
            return taken

    def requeue(self, taken: Mapping[Key, datetime]) -> None:
        """Put back what could not be written, behind nothing that was noted since."""
        with self._lock:
            since, self._noted = self._noted, OrderedDict(taken)
            for key, at in since.items():
                self._noted[key] = at
                self._noted.move_to_end(key)
            self._keep_within()

    def _keep_within(self) -> None:
        while len(self._noted) > self._most:
            self._noted.popitem(last=False)
            self.dropped += 1


_buffer = Buffer()
# One flush at a time: the last one, at the end of the process, waits for the thread's.
_flushing = threading.Lock()


def note(kind: str, ids: Iterable[uuid.UUID], *, now: datetime) -> None:
    """Note that these memories ("fact" or "episode"; other kinds do not fade) answered a query."""
    if kind in _MODELS:
        _buffer.note(((kind, memory_id) for memory_id in ids), now=now)


def note_all(found: Iterable[tuple[str, uuid.UUID]], *, tenant_id: uuid.UUID, now: datetime) -> None:
    """Note what answered one query of a tenant's application, by kind and id, and count it."""
    keys = [key for key in found if key[0] in _MODELS]
    _buffer.note(keys, now=now)
    served.note_recalls(tenant_id, len(keys), now=now)


def flush(*, now: datetime) -> int:
    """Write the buffer; how many memories fade later for it. Versions, revisions and updated_at stay as they are.

    Memories in the trash, locked, of a restricted person or recalled within the last day are left out. In an outage the
    rest stays in the buffer. Errors: DatabaseError, InterfaceError.
    """
    with _flushing:
        waiting = _buffer.take()
        try:
            return sum(_write(kind, ids, waiting, now=now) for kind, ids in _batches(waiting))
        finally:
            _buffer.requeue(waiting)


class RecallWriter(BackgroundWriter):
    """Writes recalls, and the counts of what is served."""

    def __init__(self) -> None:
        super().__init__("recalls", seconds=FLUSH_SECONDS)

    def write(self) -> None:
        dropped, _buffer.dropped = _buffer.dropped, 0
        if dropped:
            logger.warning("%d recalls were dropped: more are noted than written", dropped)
        if len(_buffer) or served.waits():
            flush(now=timezone.now())
            served.flush()


def _batches(waiting: Mapping[Key, datetime]) -> list[tuple[str, Sequence[uuid.UUID]]]:
    by_kind = {kind: sorted(memory_id for one, memory_id in waiting if one == kind) for kind in _MODELS}
    return [(kind, ids[at : at + BATCH]) for kind, ids in by_kind.items() for at in range(0, len(ids), BATCH)]


def _write(kind: str, ids: Sequence[uuid.UUID], waiting: dict[Key, datetime], *, now: datetime) -> int:
    """Reinforce the due ones, and remove `ids` from `waiting`, except rows that somebody else has locked."""
    model = _MODELS[kind]
    with transaction.atomic():
        due = _due(model, ids, now=now)
        wanted = set(due.values_list("pk", flat=True))
        # In order and without waiting: two processes may write the same rows.
        rows = list(due.select_for_update(of=("self",), no_key=True, skip_locked=True).order_by("pk"))
        tenants = Tenant.objects.filter(pk__in={row.tenant_id for row in rows})
        rules = {tenant.pk: conf.rules(tenant) for tenant in tenants}
        for row in rows:
            row.last_recalled_at = min(waiting[kind, row.pk], now)
            row.refresh_decay(now=now, rules=rules[row.tenant_id])
        model.objects.bulk_update(rows, WRITTEN)
    busy = wanted - {row.pk for row in rows}
    for memory_id in ids:
        if memory_id not in busy:
            del waiting[kind, memory_id]
    return len(rows)


def _due(model: Any, ids: Sequence[uuid.UUID], *, now: datetime) -> QuerySet[Any]:
    anew = Q(last_recalled_at=None) | Q(last_recalled_at__lte=now - AT_MOST_EVERY)
    rows: QuerySet[Any] = model.objects.active(now=now).filter(anew, pk__in=ids, end_user__restricted_at=None)
    return rows.filter(locked=False) if model is Fact else rows
