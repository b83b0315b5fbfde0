"""Keeps the lease of a case while its export is read: the snapshot's own connection may write nothing."""

import time
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType

from django.db import connections

from memories.privacy.erasure.case_leases import Work, keep

# A lease is much longer.
PROLONGED_EVERY_SECONDS = 10.0


class Lease:
    """Renews it on a connection of its own, by a thread that does nothing else."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._elsewhere = ThreadPoolExecutor(1, thread_name_prefix="lease")
        self._renewed_at = time.monotonic()

    def __enter__(self) -> "Lease":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._elsewhere.submit(connections.close_all).result()
        self._elsewhere.shutdown()

    def prolong(self) -> None:
        """Renew the lease if it is time. Errors: LeaseLost, whatever was made is of no use then."""
        if time.monotonic() - self._renewed_at < PROLONGED_EVERY_SECONDS:
            return
        self._elsewhere.submit(keep, self._work).result()
        self._renewed_at = time.monotonic()
