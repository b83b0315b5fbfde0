"""Where the server of one MEMORYHUB_HOME keeps its data and its socket, and which account runs it.

Normally all of it is in `<home>/postgres`. PostgreSQL refuses to run as root, so root lends the folder to an
unprivileged account; when that account cannot reach the home, the folder lies under /var/lib instead. A
socket whose path is too long goes to a short private folder. `<home>/postgres.json` says what lies elsewhere.
"""

import json
import os
import pwd
import secrets
import stat
import subprocess
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from memoryhub.embedded_postgres.errors import EmbeddedPostgresError
from memoryhub.embedded_postgres.locks import exclusive

PORT = 5432
# macOS allows 103 bytes, Linux 107: the smaller one, so that one home works alike on both.
SOCKET_PATH_LIMIT = 103
# Survives a reboot, on Linux and on macOS.
OUTSIDE = (Path("/var/lib"), Path("/var/db"))
SHORT = "/tmp"  # noqa: S108 (only ever the parent of a mkdtemp)
ACCOUNTS = ("postgres", "nobody")
# Data folders of a restore: not to be used yet, and complete.
RESTORING, RESTORED = "data.restoring", "data.restored"


class Account(NamedTuple):
    """The unprivileged user that runs the server for root."""

    uid: int
    gid: int

    def give(self, path: Path) -> None:
        os.chown(path, self.uid, self.gid)


@dataclass(frozen=True)
class Place:
    """One server's folders, and their owner when that is not the user of this process."""

    base: Path
    sockets: Path
    account: Account | None
    data_name: str = "data"

    @property
    def data(self) -> Path:
        return self.base / self.data_name

    def with_data(self, name: str) -> "Place":
        """The same server with another data folder, as a restore needs it."""
        return replace(self, data_name=name)

    def may_enter(self, folder: Path) -> bool:
        """Whether the account that runs the server reaches the folder."""
        return self.account is None or _may_enter(folder, self.account)

    @property
    def log(self) -> Path:
        return self.base / "server.log"

    @property
    def password(self) -> Path:
        return self.base / "password"

    @property
    def runtime_password(self) -> Path:
        return self.base / "runtime_password"

    @property
    def roles(self) -> Path:
        """There once the cluster was given its second role."""
        return self.base / "roles"

    @property
    def start_lock(self) -> Path:
        """Held while a process makes or starts the server."""
        return self.base / "start.lock"

    @property
    def server_lock(self) -> Path:
        """Held by every process of the server itself, which inherit it from each other."""
        return self.base / "server.lock"

    @property
    def users_lock(self) -> Path:
        """Shared by every process that uses the server."""
        return self.base / "users.lock"

    @property
    def socket(self) -> Path:
        return self.sockets / f".s.PGSQL.{PORT}"


def as_account(account: Account | None) -> dict[str, Any]:
    """The arguments that make subprocess drop to the account, its groups included."""
    return {"user": account.uid, "group": account.gid, "extra_groups": []} if account else {}


def locate(home: Path) -> Place:
    """The place of this home's server, settled once (folders and passwords made) and the same ever after."""
    try:
        _make_home(home)
        place = _settled(home)
        if place is None:
            with exclusive(home):
                place = _settled(home) or _choose_place(home)
    except OSError as error:
        raise EmbeddedPostgresError(
            f"{error.filename or home} cannot be used: {error.strerror}. "
            "Set MEMORYHUB_HOME to a folder that this user may write to."
        ) from error
    return place


def _make_home(home: Path) -> None:
    if home.is_dir():
        return
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    if _is_root():
        home.chmod(0o711)  # the unprivileged account must pass through to its own folder


def _settled(home: Path) -> Place | None:
    pointer = _read_pointer(home)
    base = Path(pointer.get("base", home / "postgres"))
    sockets = Path(pointer.get("sockets", base))
    if "base" in pointer and not base.is_dir():
        raise EmbeddedPostgresError(
            f"The database folder {base} is gone. Bring it back, or delete {_pointer(home)} to start empty."
        )
    if not base.is_dir():
        return None
    place = Place(base, sockets, _account(base))
    passwords = place.password.is_file() and place.runtime_password.is_file()
    complete = passwords and _fits(sockets) and _is_private(sockets, base)
    return place if complete else None


def _choose_place(home: Path) -> Place:
    pointer = _read_pointer(home)
    base = Path(pointer.get("base", home / "postgres"))
    if not base.is_dir():
        base = _make_base(home, pointer)
    account = _account(base)
    pointer.pop("sockets", None)
    if not _fits(base):
        pointer["sockets"] = str(_make_socket_folder(account))
    place = Place(base, Path(pointer.get("sockets", base)), account)
    if not place.password.is_file():
        if place.data.is_dir():
            raise EmbeddedPostgresError(f"{place.password} is gone: nothing else opens the data beside it.")
        _write_private(place.password, secrets.token_urlsafe(32), account)
    if not place.runtime_password.is_file():
        _write_private(place.runtime_password, secrets.token_urlsafe(32), account)
    if pointer:
        _write_private(_pointer(home), json.dumps(pointer), None)
    return place


def _make_base(home: Path, pointer: dict[str, str]) -> Path:
    if not _is_root():
        base = home / "postgres"
        base.mkdir(mode=0o700)
        return base
    account = unprivileged()
    base = home / "postgres"
    if not _may_enter(home, account):
        outside = next(folder for folder in OUTSIDE if folder.is_dir())
        # A random name: a new home at an old path must never find the old one's memories.
        base = outside / f"memoryhub-{secrets.token_hex(6)}"
        pointer["base"] = str(base)
    base.mkdir(mode=0o700)
    account.give(base)
    return base


def _make_socket_folder(account: Account | None) -> Path:
    parent = tempfile.gettempdir()
    # Root's own temporary folder may be closed to the account that runs the server.
    if account or not _fits(Path(parent) / "memoryhub-12345678"):
        parent = SHORT
    folder = Path(tempfile.mkdtemp(prefix="memoryhub-", dir=parent))
    if account:
        account.give(folder)
    return folder


def _account(base: Path) -> Account | None:
    """Whoever owns the folder runs its server: PostgreSQL asks for nothing less."""
    found = base.stat()
    if found.st_uid == os.geteuid() and not _is_root():
        return None
    if not _is_root() or found.st_uid == 0:
        raise EmbeddedPostgresError(
            f"{base} belongs to user {found.st_uid}, this is user {os.geteuid()}. "
            "Start the hub as that user, or set MEMORYHUB_HOME to another folder."
        )
    return Account(found.st_uid, found.st_gid)


def _fits(sockets: Path) -> bool:
    # libpq reads a comma in a host as a list of hosts.
    path = os.fsencode(sockets / f".s.PGSQL.{PORT}")
    return len(path) <= SOCKET_PATH_LIMIT and b"," not in path


def _is_private(sockets: Path, base: Path) -> bool:
    if sockets == base:
        return True
    try:
        found = sockets.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == base.stat().st_uid and not found.st_mode & 0o077


def _is_root() -> bool:
    return os.geteuid() == 0


def unprivileged() -> Account:
    """The account that runs a server for root. Errors: EmbeddedPostgresError."""
    for name in ACCOUNTS:
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(found.pw_uid, found.pw_gid)
    raise EmbeddedPostgresError(
        f"PostgreSQL does not run as root, and there is no user {' or '.join(ACCOUNTS)} to run it."
    )


def _may_enter(folder: Path, account: Account) -> bool:
    """Asked of the system itself, which knows of every parent folder and access list."""
    command = ["/bin/sh", "-c", 'test -x "$0"', str(folder)]
    return subprocess.run(command, cwd="/", check=False, **as_account(account)).returncode == 0


def _pointer(home: Path) -> Path:
    return home / "postgres.json"


def _read_pointer(home: Path) -> dict[str, str]:
    try:
        text = _pointer(home).read_text()
    except FileNotFoundError:
        return {}
    pointer: dict[str, str] = json.loads(text)
    return pointer


def _write_private(path: Path, text: str, account: Account | None) -> None:
    """Readable by its owner alone, and never half written."""
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    fresh.touch(mode=0o600)
    fresh.write_text(text)
    if account:
        account.give(fresh)
    fresh.rename(path)
