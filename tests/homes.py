"""Homes in which `manage.py migrate` has been: one is made and kept for the code that makes tables, others are copies.

To make a database and to migrate it takes ten seconds of the processor, to copy the home a fiftieth of that. Standard
library only: the settings of the tests need a home before Django is set up. `python -m tests.homes FOLDER` fills one.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path

from memoryhub.embedded_postgres.locks import exclusive

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / ".pytest_cache" / "migrated"
# What tables, types, permissions, roles and rights of a new database come from.
MAKES_TABLES = ("memories/db", "memories/management", "memories/migrations", "memories/models", "memoryhub")


def make(home: Path) -> Path:
    """Fill the new home of a hub with what `manage.py migrate` leaves there, and return it."""
    KEPT.mkdir(parents=True, exist_ok=True)
    with exclusive(KEPT / "lock"):
        if made := kept():
            _copy(made, home)
        else:
            _migrate(home)
            # Its socket or its data may lie elsewhere, where a copy would find them, too.
            if not (home / "postgres.json").exists():
                _keep(home)
    return home


def kept() -> Path | None:
    """The home that is kept for this code."""
    found = KEPT / _digest()
    return found if found.is_dir() else None


def _keep(home: Path) -> None:
    for outdated in KEPT.iterdir():
        if outdated.is_dir():
            shutil.rmtree(outdated)
    half = KEPT / "half"
    _copy(home, half)
    half.rename(KEPT / _digest())


def _copy(made: Path, home: Path) -> None:
    # The account that runs the server for root keeps its files. The folder itself may be there already.
    subprocess.run(["cp", "-a", f"{made}/.", home], check=True)


def _migrate(home: Path) -> None:
    environ = {**os.environ, "DJANGO_SETTINGS_MODULE": "memoryhub.settings", "MEMORYHUB_HOME": str(home)}
    command = [sys.executable, "manage.py", "migrate"]
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@cache
def _digest() -> str:
    """Of all that decides what a migrated home holds, and who can read it."""
    found = hashlib.sha256()
    for path in sorted(_sources()):
        found.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    row_security = os.environ.get("MEMORYHUB_ROW_SECURITY", "off")
    found.update(f"{os.geteuid()} {row_security} {version('embedded-postgres')}".encode())
    return found.hexdigest()[:16]


def _sources() -> Iterator[Path]:
    yield ROOT / "requirements.lock"
    for folder in MAKES_TABLES:
        yield from (ROOT / folder).rglob("*.py")


if __name__ == "__main__":
    make(Path(sys.argv[1]))
