"""Which process is at the other end of a connection to a server of the test's own."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.llm.endpoint import Handler

_TABLE = Path("/proc/net/tcp")


def asking(handler: Handler) -> int:
    """The process that made this request, on Linux and macOS alike; LookupError when it is gone."""
    port = handler.client_address[1]
    found = _by_proc(port) if _TABLE.exists() else _by_lsof(port)
    own = os.getpid()
    for process in found:
        if process != own:
            return process
    raise LookupError(port)


def _by_proc(port: int) -> Iterator[int]:
    rows = [line.split() for line in _TABLE.read_text().splitlines()[1:]]
    sockets = {f"socket:[{row[9]}]" for row in rows if int(row[1].rpartition(":")[2], 16) == port}
    for folder in Path("/proc").glob("[0-9]*/fd"):
        try:
            if any(str(entry.readlink()) in sockets for entry in folder.iterdir()):
                yield int(folder.parent.name)
        except OSError:
            # It ended, or is somebody else's.
            continue


def _by_lsof(port: int) -> Iterator[int]:
    said = subprocess.run(["lsof", "-nP", f"-iTCP:{port}", "-Fp"], capture_output=True, text=True, check=False).stdout
    yield from map(int, re.findall(r"^p(\d+)$", said, re.MULTILINE))
