"""Make, start, watch and stop the server of one place."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from memoryhub.embedded_postgres import archive, locks
from memoryhub.embedded_postgres.errors import EmbeddedPostgresError
from memoryhub.embedded_postgres.place import PORT, RESTORED, Place, as_account
from memoryhub.embedded_postgres.programs import ENVIRONMENT, client_program, programs, run

# The cluster's first role: its superuser, the owner of all tables.
USER = "memoryhub"
# Web and worker: they may read and write rows.
RUNTIME_USER = "memoryhub_runtime"
DATABASE = "memoryhub"
# Recovery after an unclean stop replays up to max_wal_size.
START_SECONDS = 120
STOP_SECONDS = 30
KILL_SECONDS = 10
LOOK_SECONDS = 0.02

SETTINGS = {
    "listen_addresses": "",
    "port": str(PORT),
    "unix_socket_permissions": "0700",
    "cluster_name": "memoryhub",
    "shared_buffers": "128MB",
    "max_connections": "100",
    # Short statements on a small machine: neither compiling nor parallel workers pay, and the latter need
    # more of /dev/shm than a container gives.
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # People's words never reach the log: no statements, no parameters, no details, no failed rows.
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_parameter_max_length": "0",
    "log_parameter_max_length_on_error": "0",
}
# For clusters whose data may be lost (tests).
FAST_SETTINGS = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}

# Servers this process started: kept so that they are reaped when they end before it.
_started: list[subprocess.Popen[bytes]] = []


def ready(place: Place) -> bool:
    """Does the server accept connections? Costs one connect and one small file."""
    return _status(place) == "ready" and _listening(place)


def start(place: Place, *, fast: bool) -> None:
    """Make the cluster when missing, start the server when it is not running, wait until it is ready.

    :raises EmbeddedPostgresError: it ended or did not get ready within START_SECONDS; shows the log's end.
    """
    with locks.exclusive(place.start_lock):
        if not place.data.is_dir():
            restored = place.with_data(RESTORED).data
            # A restore was killed between two renames.
            restored.rename(place.data) if restored.is_dir() else _initialise(place, fast=fast)
        kept = archive.folder()
        if kept:
            # If something is wrong the server starts all the same. It keeps its WAL, and /metrics and the doctor tell.
            archive.prepare(place, kept)
        settings = SETTINGS | archive.settings_of(place) | (FAST_SETTINGS if fast else {})
        deadline = time.monotonic() + START_SECONDS
        process = None
        while not ready(place):
            # None: the processes of an earlier server are not gone yet, or are starting; look again.
            process = process or _launch(place, settings)
            if process and process.poll() is not None:
                raise EmbeddedPostgresError(f"PostgreSQL ended at once.{_log_tail(place)}")
            if time.monotonic() > deadline:
                raise EmbeddedPostgresError(
                    f"PostgreSQL is not ready after {START_SECONDS} s "
                    f"(process {_pid(place) or 'unknown'}).{_log_tail(place)}"
                )
            time.sleep(LOOK_SECONDS)
        _give_role(place)


def stop(place: Place) -> None:
    """Stop the server: its clients are cut off, what they committed is safe. Does nothing when none runs.

    :raises EmbeddedPostgresError: it is still there after STOP_SECONDS + KILL_SECONDS.
    """
    with locks.exclusive(place.start_lock):
        pid = _pid(place)
        # Only a live postmaster listens: after a kill its number may belong to anyone.
        if pid is None or not _listening(place):
            return
        os.kill(pid, signal.SIGINT)
        if not _gone(place, STOP_SECONDS) and _pid(place) == pid:
            os.kill(pid, signal.SIGQUIT)
        if not _gone(place, KILL_SECONDS):
            raise EmbeddedPostgresError(f"PostgreSQL (process {pid}) does not stop.{_log_tail(place)}")


def runs_as_set(place: Place) -> bool:
    """Whether the running server was started with the archive that is set now."""
    try:
        given = (place.data / "postmaster.opts").read_text()
    except FileNotFoundError:
        return True
    # As the server writes its own command line: each argument in double quotes, nothing escaped.
    wanted = [f"--{name}={value}" for name, value in archive.settings_of(place).items()]
    return all(one in given for one in wanted) if wanted else "--archive_mode=" not in given


def recover(place: Place, settings: dict[str, str]) -> None:
    """Start a server that recovers, and wait until it takes writes, however long that is.

    :raises EmbeddedPostgresError: it ended before; shows the log's end.
    """
    with locks.exclusive(place.start_lock):
        process = _launch(place, SETTINGS | settings)
        while process is None:
            time.sleep(LOOK_SECONDS)
            process = _launch(place, SETTINGS | settings)
        while not ready(place):
            if process.poll() is not None:
                raise EmbeddedPostgresError(f"PostgreSQL could not recover.{_log_tail(place)}")
            time.sleep(LOOK_SECONDS)
        # A cluster of another home has other passwords than those beside it now.
        password = place.password.read_text()
        _ask(place, f"ALTER ROLE {USER} PASSWORD '{password}'")
        place.roles.unlink(missing_ok=True)
        _give_role(place)


def _give_role(place: Place) -> None:
    """The second role, also in clusters made before there was one; its rights come with migrations."""
    if place.roles.is_file():
        return
    password = place.runtime_password.read_text()
    statements = f"""
        DO $$ BEGIN
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{RUNTIME_USER}') THEN
                CREATE ROLE {RUNTIME_USER};
            END IF;
        END $$;
        ALTER ROLE {RUNTIME_USER} NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS LOGIN
            PASSWORD '{password}';
    """
    _ask(place, statements)
    place.roles.touch(mode=0o600)


def _initialise(place: Place, *, fast: bool) -> None:
    """Make the cluster beside its final name, so that a half-made one is never taken for whole."""
    folder = programs(place)
    fresh = place.base / "data.new"
    shutil.rmtree(fresh, ignore_errors=True)
    run(
        place,
        folder / "initdb",
        f"--pgdata={fresh}",
        f"--username={USER}",
        f"--pwfile={place.password}",
        "--auth-local=scram-sha-256",
        "--auth-host=scram-sha-256",
        "--encoding=UTF8",
        "--locale-provider=builtin",
        "--builtin-locale=C.UTF-8",
        "--no-instructions",
        *(["--no-sync"] if fast else []),
    )
    create = f"CREATE DATABASE {DATABASE};\n"
    run(place, folder / "postgres", "--single", "-D", fresh, "postgres", stdin=create)
    # Of a cluster that was deleted by hand.
    place.roles.unlink(missing_ok=True)
    fresh.rename(place.data)


def _ask(place: Place, statements: str) -> None:
    """Run SQL as the owner, in one transaction."""
    socket_and_role = f"host='{place.sockets}' port={PORT} user={USER} dbname={DATABASE}"
    answer = subprocess.run(
        [
            client_program("psql"),
            "--no-psqlrc",
            "--quiet",
            "--single-transaction",
            "--set=ON_ERROR_STOP=1",
            socket_and_role,
        ],
        input=statements,
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        env={**ENVIRONMENT, "PGPASSWORD": place.password.read_text()},
    )
    if answer.returncode != 0:
        raise EmbeddedPostgresError(f"psql failed ({answer.returncode}): {answer.stderr.strip()[-2000:]}")


def _launch(place: Place, settings: Mapping[str, str]) -> subprocess.Popen[bytes] | None:
    """Start the server; None while any process of an earlier one is alive.

    The server inherits the lock that tells so. It replaces all questions about process numbers, which after
    a kill or a reboot may belong to somebody else: when the lock is free, what is written in the old
    postmaster.pid and socket lock is stale, and the server would refuse to start because of it.
    """
    guard = locks.open_lock(place.server_lock)
    try:
        if not locks.try_lock(guard):
            return None
        for stale in (place.data / "postmaster.pid", place.socket, Path(f"{place.socket}.lock")):
            stale.unlink(missing_ok=True)
        with _fresh_log(place) as log:
            # Files, not pipes, and a session of its own: no reader is needed and Ctrl-C does not reach it.
            process = subprocess.Popen(
                _command(place, settings),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=ENVIRONMENT,
                pass_fds=(guard,),
                start_new_session=True,
                **as_account(place.account),
            )
    finally:
        os.close(guard)
    _started.append(process)
    return process


def _command(place: Place, settings: Mapping[str, str]) -> list[str]:
    quoted = str(place.sockets).replace('"', '""')
    options = [f"--{name}={value}" for name, value in {"unix_socket_directories": f'"{quoted}"', **settings}.items()]
    return [str(programs(place) / "postgres"), "-D", str(place.data), *options]


def _fresh_log(place: Place) -> BinaryIO:
    """An empty log; the one of the start before is kept beside it."""
    if place.log.exists():
        place.log.rename(place.log.with_suffix(".log.old"))
    descriptor = os.open(place.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    if place.account:
        place.account.give(place.log)
    return os.fdopen(descriptor, "ab")


def _log_tail(place: Place) -> str:
    if not place.log.is_file():
        return ""
    lines = place.log.read_text(errors="replace").splitlines()[-15:]
    return f" The end of {place.log}:\n" + "\n".join(lines)


def _postmaster_lines(place: Place) -> list[str]:
    try:
        return (place.data / "postmaster.pid").read_text().splitlines()
    except FileNotFoundError:
        return []


def _pid(place: Place) -> int | None:
    lines = _postmaster_lines(place)
    return int(lines[0]) if lines else None


def _status(place: Place) -> str:
    """The word in line 8 of postmaster.pid: starting, ready, stopping; it outlives a killed server."""
    lines = _postmaster_lines(place)
    return lines[7].strip() if len(lines) > 7 else ""


def _listening(place: Place) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1)
        try:
            probe.connect(str(place.socket))
        except BlockingIOError:  # a full backlog is a listener, too
            return True
        except OSError:
            return False
    return True


def _gone(place: Place, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while locks.is_held(place.server_lock):
        if time.monotonic() > deadline:
            return False
        time.sleep(LOOK_SECONDS)
    _started[:] = [process for process in _started if process.poll() is None]
    return True
