"""File locks (flock) that end by themselves with the processes that hold them, however those die.

A lock belongs to the open file description: a forked child shares its parent's lock, a program started
with exec does not, because Python opens files close-on-exec.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def open_lock(path: Path) -> int:
    """A descriptor to lock the folder or file `path` with; a missing file is made."""
    if path.is_dir():
        return os.open(path, os.O_RDONLY)
    descriptor = os.open(path, os.O_RDONLY | os.O_CREAT, 0o600)
    if os.geteuid() == 0:
        # Root may be a guest in this folder: its owner must be able to open the lock later.
        folder = path.parent.stat()
        os.fchown(descriptor, folder.st_uid, folder.st_gid)
    return descriptor


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Wait until nobody else is in here."""
    descriptor = open_lock(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def try_lock(descriptor: int, *, shared: bool = False) -> bool:
    """Take the lock if nobody stands in the way; False otherwise."""
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_held(path: Path, *, by_anyone: bool = False) -> bool:
    """Does any process hold the exclusive lock on `path` (`by_anyone`: or a shared one)?"""
    if not path.exists():
        return False
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return not try_lock(descriptor, shared=not by_anyone)
    finally:
        os.close(descriptor)
