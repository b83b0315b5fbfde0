"""Where processes keep what they count: a folder of the hub's home with a slot of files for each process.

A process takes the first free slot with its first count. The kernel frees it when the process ends, however it ends,
and the next process goes on counting in the same files. So nothing is lost with a killed process, no sum ever falls,
and there are never more files than there were processes at once.
"""

import fcntl
import logging
import os
import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from django.conf import settings
from prometheus_client.multiprocess import MultiProcessCollector

MOST = 256
# The byte of the lock file behind those of the slots: who holds it takes a slot, or removes files.
DOOR = MOST
# Room for every series of the families. A file that had to grow could kill its process on a full disk, by SIGBUS.
SIZES = {"counter": 256 * 1024, "histogram": 1024 * 1024}
# What a file can cause that is gone meanwhile, or was torn by a loss of power.
UNREADABLE = (OSError, RuntimeError, ValueError, struct.error)

# The library has no types.
_merge: Callable[[list[str]], Iterable[Any]] = MultiProcessCollector.merge

logger = logging.getLogger(__name__)


class Slot:
    """The slot of this process; each forked process has its own."""

    def __init__(self) -> None:
        self._process = 0
        self._name = ""
        # Kept open: the lock ends with it.
        self._lock = -1

    def name(self) -> str:
        """The name of its files, or "" when it cannot have any: then it counts nothing."""
        process = os.getpid()
        if self._process != process:
            # Locks are a process's own: a forked one has none, and its parent keeps this one.
            self._name = self._take()
            self._process = process
        return self._name

    @property
    def is_taken(self) -> bool:
        return self._process == os.getpid() and bool(self._name)

    def _take(self) -> str:
        place = folder()
        try:
            self._lock = _open_lock(place)
            name = _first_free(self._lock)
            for kind, size in SIZES.items():
                _make_room(place / f"{kind}_{name}.db", size)
        except OSError as error:
            logger.warning("Process %d counts nothing for /metrics: %s", os.getpid(), error.strerror)
            return ""
        # Where the library makes its files.
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(place)
        return name


own = Slot()


def folder() -> Path:
    return Path(settings.HOME) / "metrics"


def sweep() -> None:
    """At the start of a program, remove what an earlier run has counted, unless a process still counts there."""
    if own.is_taken:
        # To close the file of locks would give the own one back.
        return
    place = folder()
    try:
        lock = _open_lock(place)
    except OSError:
        # A process that counts says so.
        return
    try:
        fcntl.lockf(lock, fcntl.LOCK_EX, 1, DOOR)
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB, MOST, 0)
        for path in place.glob("*.db"):
            path.unlink(missing_ok=True)
    except OSError:
        return
    finally:
        os.close(lock)


def counted() -> list[Any]:
    """The sums of all processes of this home, as families. Files that cannot be read are left out."""
    files = sorted(str(path) for path in folder().glob("*.db"))
    if not files:
        return []
    try:
        return list(_merge(files))
    except UNREADABLE:
        return list(_merge([file for file in files if _is_readable(file)]))


def _is_readable(file: str) -> bool:
    try:
        _merge([file])
    except UNREADABLE:
        return False
    return True


def _made(place: Path) -> Path:
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    return place


def _open_lock(place: Path) -> int:
    return os.open(_made(place) / "slots", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _first_free(lock: int) -> str:
    """Lock the first byte that nobody has. Errors: OSError."""
    fcntl.lockf(lock, fcntl.LOCK_EX, 1, DOOR)
    try:
        for number in range(MOST):
            try:
                fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
            except OSError:
                continue
            return str(number)
    finally:
        fcntl.lockf(lock, fcntl.LOCK_UN, 1, DOOR)
    raise OSError(0, "all slots are taken")


def _make_room(path: Path, size: int) -> None:
    """Write zeros, which take their place on the disk now. Errors: OSError."""
    if path.exists() and path.stat().st_size >= size:
        return
    try:
        path.write_bytes(bytes(size))
    except OSError:
        path.unlink(missing_ok=True)
        raise
