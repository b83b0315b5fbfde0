"""The embedded PostgreSQL: one private server per MEMORYHUB_HOME, shared by all processes of the hub.

Whoever needs it attaches; the first one in starts it, the last one out stops it. Standard library only:
settings, manage.py and the commands import this before Django is set up.
"""

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from memoryhub.embedded_postgres import archive, locks, recovery, server
from memoryhub.embedded_postgres.errors import EmbeddedPostgresError
from memoryhub.embedded_postgres.place import PORT, Place, locate
from memoryhub.embedded_postgres.programs import ENVIRONMENT, client_program

__all__ = [
    "ENVIRONMENT",
    "EmbeddedPostgresError",
    "archive",
    "attached",
    "client_program",
    "connection",
    "ensure_running",
    "folder",
    "home_from_environ",
    "is_running",
    "recovery",
    "renew",
    "runtime_connection",
    "stop",
]

PROJECT = Path(__file__).resolve().parent.parent.parent


def home_from_environ(environ: Mapping[str, str]) -> Path:
    """MEMORYHUB_HOME as an absolute path; by default `.memoryhub` in a checkout, else a folder of the user."""
    named = environ.get("MEMORYHUB_HOME")
    if named:
        return Path(named).expanduser().absolute()
    if (PROJECT / "manage.py").is_file():
        return PROJECT / ".memoryhub"
    return Path(environ.get("XDG_DATA_HOME") or "~/.local/share").expanduser() / "memory-hub"


def connection(home: Path) -> dict[str, str]:
    """How the owner connects: host (the socket's folder), port, user, password, dbname. Starts nothing."""
    place = locate(home)
    return _connection(place, server.USER, place.password)


def runtime_connection(home: Path) -> dict[str, str]:
    """How web and worker connect, as `connection` has it: as the role that may read and write rows alone."""
    place = locate(home)
    return _connection(place, server.RUNTIME_USER, place.runtime_password)


def folder(home: Path) -> Path:
    """Where the data really lies: in `home`, unless the account that runs the server cannot reach it there."""
    return locate(home).base


def is_running(home: Path) -> bool:
    """Does the server of this home accept connections?"""
    return server.ready(locate(home))


def ensure_running(home: Path, *, fast: bool = False) -> None:
    """Start the server of this home, made when missing, unless it runs; `fast` gives up durability (tests).

    :raises EmbeddedPostgresError: it cannot be started; the message shows the end of its log.
    """
    place = locate(home)
    # A hub of an older version may have started it.
    if not (server.ready(place) and place.roles.is_file()):
        server.start(place, fast=fast)


def renew(home: Path) -> None:
    """Start the server of this home anew if it runs with another archive than the one that is set."""
    place = locate(home)
    if not server.runs_as_set(place):
        server.stop(place)
        ensure_running(home)


def stop(home: Path) -> None:
    """Stop the server of this home, whoever uses it."""
    server.stop(locate(home))


@contextmanager
def attached(home: Path, *, fast: bool = False) -> Iterator[None]:
    """A running server for as long as the block lasts; the last one out stops it.

    Users share a lock. A forked child shares its parent's hold and must end before its parent leaves, which
    then decides for both; leaving the block in the child itself changes nothing.
    """
    place = locate(home)
    users = locks.open_lock(place.users_lock)
    pid = os.getpid()
    try:
        # Waits while the last user of before is stopping the server.
        fcntl.flock(users, fcntl.LOCK_SH)
        ensure_running(home, fast=fast)
        yield
    finally:
        if os.getpid() == pid:
            _leave(place, users)
        os.close(users)


def _connection(place: Place, user: str, password: Path) -> dict[str, str]:
    return {
        "host": str(place.sockets),
        "port": str(PORT),
        "user": user,
        "password": password.read_text(),
        "dbname": server.DATABASE,
    }


def _leave(place: Place, users: int) -> None:
    # Given up first, not upgraded: two leaving at once would each see the other and both leave the server on.
    fcntl.flock(users, fcntl.LOCK_UN)
    if locks.try_lock(users):
        server.stop(place)
