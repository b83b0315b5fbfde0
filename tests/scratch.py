"""Embedded servers of the tests' own: where they lie (in memory if there is room), and a way in."""

import shutil
import tempfile
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo

from memoryhub import embedded_postgres

MEMORY = Path("/dev/shm")
ROOM = 2**30


def scratch_folder() -> Path:
    """A new folder with a short path; as root, the account that runs the server can reach it."""
    roomy = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM
    folder = Path(tempfile.mkdtemp(prefix="mh-", dir=MEMORY if roomy else None))
    folder.chmod(0o711)
    return folder


def connect(home: Path, **changes: str) -> psycopg.Connection:
    """A connection to the home's server, which must be running, in autocommit."""
    conninfo = make_conninfo(**embedded_postgres.connection(home) | changes)
    return psycopg.connect(conninfo, autocommit=True)
