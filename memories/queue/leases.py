"""Leases: a worker claims a row with a token, renews it and gives it back; when the worker dies, another takes over.

Leases follow the database's clock, so hosts whose clocks differ agree on them. The token alone decides: whoever is late
still commits, as long as nobody else claimed the row. It tells which process made it, so that others on its machine see
when that one cannot come any more. An attempt is counted and committed before the work begins, so a row that kills its
worker does not do so for ever; work that gets on sets the count to 0.
"""

import hashlib
import logging
import os
import secrets
import socket
import threading
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

from django.apps import apps
from django.db import DatabaseError, InterfaceError, connection, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from memories.exceptions import LeaseLost
from memories.models.leases import Leased, LeasedQuerySet

# For steps that end within seconds.
LEASE = timedelta(seconds=60)
MOST_ATTEMPTS = 5
# Failure code of a row whose worker ended in each attempt.
WORKER_LOST = "worker_lost"
# The bits of a token, from the left: the machine, the process, chance. 2^22 is the most that Linux numbers processes.
MACHINE_BITS, PROCESS_BITS, RANDOM_BITS = 48, 24, 56
# keep_alive() renews a lease so often while it lasts.
RENEWALS = 3

Row = TypeVar("Row", bound=Leased)

logger = logging.getLogger(__name__)


@dataclass(kw_only=True)
class Lease(Generic[Row]):
    """The right to work on a row, for as long as the row has the token; the row as it was at the claim."""

    row: Row
    token: uuid.UUID
    lasts: timedelta = LEASE
    is_lost: threading.Event = field(default_factory=threading.Event, repr=False)

    @property
    def ours(self) -> QuerySet[Row]:
        """The row, unless the lease is lost."""
        return type(self.row)._default_manager.filter(pk=self.row.pk, lease_token=self.token)

    def progress(self) -> dict[str, Any]:
        """What each renewal stores."""
        return {}

    def progress_amid(self) -> dict[str, Any]:
        """What keep_alive() stores while a step goes on, in another thread."""
        return {}

    def check(self) -> None:
        """Say whether keep_alive() found the lease lost. Errors: LeaseLost."""
        if self.is_lost.is_set():
            raise LeaseLost


def lock(rows: LeasedQuerySet[Row], key: uuid.UUID) -> Row | None:
    """Lock the row, with its clock; None when it is not among these `rows`, or somebody else holds it."""
    return rows.with_clock().select_for_update(skip_locked=True, of=("self",)).filter(pk=key).first()


def take(
    row: Row,
    *,
    give_up: Callable[[Row], object],
    lasts: timedelta = LEASE,
    most_attempts: int = MOST_ATTEMPTS,
    admit: Callable[[], bool] = lambda: True,
    **changes: Any,
) -> uuid.UUID | None:
    """Count the attempt and begin the lease of a row, in the transaction that locked it; its token.

    None when it has had too many attempts, and `give_up` ends it, or when the work is not admitted now.
    """
    if row.attempts >= most_attempts:
        # It ended each of its workers: it must not end the next one.
        give_up(row)
        return None
    if not admit():
        return None
    token = new_token()
    changes |= {"attempts": row.attempts + 1, "lease_token": token, "lease_until": row.clock + lasts}
    for name, value in changes.items():
        setattr(row, name, value)
    row.save(update_fields=changes)
    return token


def renew(lease: Lease[Any], **changes: Any) -> None:
    """Prolong the lease and store the progress; in the transaction of a step it is the step's fence.

    Errors: LeaseLost.
    """
    if not lease.ours.update(**{"lease_until": Now() + lease.lasts, **lease.progress(), **changes}):
        raise LeaseLost


def fence(lease: Lease[Row]) -> Row:
    """Lock the row, with its clock, for the commit of an attempt. Errors: LeaseLost."""
    row = lease.ours.annotate(clock=Now()).select_for_update(of=("self",)).first()
    if row is None:
        raise LeaseLost
    return row


def release(lease: Lease[Any], *, pause: timedelta | None = None, **changes: Any) -> None:
    """End the lease: another worker may go on at once, or after a pause. Errors: LeaseLost."""
    renew(lease, lease_token=None, lease_until=Now() + pause if pause else None, **changes)


def revoke(rows: QuerySet[Any], **changes: Any) -> int:
    """Take the leases away: whoever works on one of the `rows` loses its work. Returns how many rows."""
    return rows.update(lease_token=None, lease_until=None, **changes)


def orphaned() -> list[uuid.UUID]:
    """The tokens of leases whose processes are gone, on rows of every kind, with one statement."""
    first, *others = (
        model._default_manager.filter(model.IN_WORK, lease_token__isnull=False, lease_until__gt=Now())
        .order_by()
        .values_list("lease_token", flat=True)
        for model in _leased_models()
    )
    return [token for token in first.union(*others, all=True) if token and is_orphaned(token)]


def end_orphaned(tokens: Collection[uuid.UUID], *, wake: Callable[[type[Leased]], object]) -> int:
    """End leases whose processes are gone, so that their rows need not wait until they run out; how many ended.

    `wake` sends workers to rows of a kind, in the transaction that ended their leases. Only after a first attempt: a
    row that has lost a worker before may be what kills them. A row that somebody else claimed meanwhile has another
    token, and one that is locked is looked at again: a statement of the dead may still run, or another watchdog was
    first.
    """
    ended = 0
    for model in _leased_models() if tokens else ():
        rows = model._default_manager.filter(model.IN_WORK, lease_token__in=tokens, attempts__lte=1)
        with transaction.atomic():
            if keys := list(rows.select_for_update(skip_locked=True, of=("self",)).values_list("pk", flat=True)):
                ended += revoke(model._default_manager.filter(pk__in=keys))
                wake(model)
    return ended


def new_token() -> uuid.UUID:
    """A token of this process."""
    machine = _machine()
    if machine is None:
        return uuid.uuid4()
    return uuid.UUID(int=(machine << PROCESS_BITS | os.getpid()) << RANDOM_BITS | secrets.randbits(RANDOM_BITS))


def is_orphaned(token: uuid.UUID) -> bool:
    """Whether it is certain that the process with this token has ended: it was one of this machine, and no process has
    its number."""
    rest, process = divmod(token.int >> RANDOM_BITS, 1 << PROCESS_BITS)
    if rest != _machine():
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except OSError:
        # It is somebody else's.
        return False
    return False


@cache
def _leased_models() -> list[type[Leased]]:
    return [model for model in apps.get_models() if issubclass(model, Leased)]


@cache
def _machine() -> int | None:
    """This start of this machine, and the numbering of processes in which this one is: that of a container is its own.
    None where nobody tells, as on macOS."""
    try:
        start = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
        numbering = Path("/proc/self/ns/pid").readlink()
    except OSError:
        return None
    identity = f"{socket.gethostname()} {start} {numbering}".encode()
    return int.from_bytes(hashlib.sha256(identity).digest()[: MACHINE_BITS // 8])


@contextmanager
def keep_alive(lease: Lease[Any]) -> Iterator[None]:
    """Renew the lease during the block, for a step may take long; a process that dies renews nothing."""
    ended = threading.Event()
    thread = threading.Thread(target=_renew_until, args=(lease, ended), name="lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _renew_until(lease: Lease[Any], ended: threading.Event) -> None:
    while not ended.wait((lease.lasts / RENEWALS).total_seconds()):
        try:
            # Without progress(), which the step may be changing.
            if not lease.ours.update(lease_until=Now() + lease.lasts, **lease.progress_amid()):
                lease.is_lost.set()
                return
        except (DatabaseError, InterfaceError) as error:
            # The worker itself meets the same error, or the next renewal comes before the lease is over.
            logger.warning("The lease of %s could not be renewed: %s", lease.row.pk, type(error).__name__)
        finally:
            connection.close()
