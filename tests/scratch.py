"""Folders for servers of the tests: in memory where there is room for it, and open to pass through."""

import shutil
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
ROOM = 2**30


def scratch_folder() -> Path:
    """A new folder with a short path; as root, the account that runs the server can reach it."""
    roomy = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM
    folder = Path(tempfile.mkdtemp(prefix="mh-", dir=MEMORY if roomy else None))
    folder.chmod(0o711)
    return folder
