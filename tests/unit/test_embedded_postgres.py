"""The embedded PostgreSQL is there while somebody uses it, private, and back after any kind of death."""

import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from memoryhub import embedded_postgres
from memoryhub.embedded_postgres import EmbeddedPostgresError, attached, locks, place, programs
from memoryhub.embedded_postgres.place import Place, locate
from tests.each import each
from tests.scratch import connect, scratch_folder

PROJECT = Path(__file__).resolve().parents[2]
USE_UNTIL_STDIN_ENDS = """
import sys
from pathlib import Path
from memoryhub import embedded_postgres
with embedded_postgres.attached(Path(sys.argv[1]), fast=True):
    print("in", flush=True)
    sys.stdin.read()
"""
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root lends the server to another account")


@pytest.fixture
def parent() -> Iterator[Path]:
    """A folder as people have them: short, and open to pass through (pytest's own is neither for root)."""
    folder = scratch_folder()
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def empty(parent: Path) -> Iterator[Path]:
    """A home in which nothing was made yet."""
    home = parent / "home"
    yield home
    _remove(home)


@pytest.fixture(scope="module")
def made() -> Iterator[Path]:
    folder = scratch_folder()
    with attached(folder / "home", fast=True):
        pass
    yield folder / "home"
    shutil.rmtree(folder)


@pytest.fixture
def home(empty: Path, made: Path) -> Path:
    """A home whose cluster was made, and its server stopped, before."""
    subprocess.run(["cp", "-a", made, empty], check=True)
    return empty


def _remove(home: Path) -> None:
    where = locate(home)
    embedded_postgres.stop(home)
    for folder in {where.base, where.sockets, home}:
        shutil.rmtree(folder, ignore_errors=True)


def query(home: Path, statement: str, password: str = "") -> list[tuple[object, ...]]:
    with connect(home, **({"password": password} if password else {})) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


@contextmanager
def user(home: Path) -> Iterator["subprocess.Popen[str]"]:
    """Another process that uses the server until its standard input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", USE_UNTIL_STDIN_ENDS, str(home)],
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin
    assert process.stdout
    try:
        assert process.stdout.readline() == "in\n"
        yield process
    finally:
        process.stdin.close()
        process.wait(timeout=30)
        process.stdout.close()


def postmaster(where: Place) -> int:
    return int((where.data / "postmaster.pid").read_text().split()[0])


def kill_postmaster(where: Place) -> None:
    """What a power cut does: its children find its pipe closed and end without another write."""
    os.kill(postmaster(where), signal.SIGKILL)
    while locks.is_held(where.server_lock):
        time.sleep(0.01)


def test_connection_is_known_before_anything_runs(empty: Path) -> None:
    before = embedded_postgres.connection(empty)
    assert not embedded_postgres.is_running(empty)
    assert not locate(empty).data.exists()
    with attached(empty, fast=True):
        assert embedded_postgres.connection(empty) == before
        assert embedded_postgres.is_running(empty)
    assert not embedded_postgres.is_running(empty)


def as_runtime(home: Path) -> tuple[object, ...]:
    with psycopg.connect(make_conninfo(**embedded_postgres.runtime_connection(home))) as connection:
        found = connection.execute("SELECT current_user::text, current_setting('is_superuser')").fetchone()
        assert found
        return found


def test_it_is_private_speaks_every_language_and_its_log_holds_no_values(home: Path) -> None:
    where = locate(home)
    assert where.password.read_text() != where.runtime_password.read_text()
    for path, mode in ((where.password, 0o600), (where.runtime_password, 0o600), (where.base, 0o700)):
        assert stat.S_IMODE(path.stat().st_mode) == mode
    with attached(home, fast=True):
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            query(home, "SELECT 1", password="guessed")
        assert as_runtime(home) == ("memoryhub_runtime", "off")
        settings = "SELECT current_setting('server_encoding'), current_setting('data_checksums')"
        assert query(home, settings) == [("UTF8", "on")]
        assert query(home, "SELECT lower('ÄÖ 记住'), length('记住我')") == [("äö 记住", 3)]
        query(home, "CREATE EXTENSION vector")
        assert query(home, "SELECT '[1,2]'::vector <=> '[1,2]'::vector") == [(0.0,)]
        query(home, "CREATE TABLE people (name text PRIMARY KEY)")
        query(home, "INSERT INTO people VALUES ('Wei Lin')")
        with pytest.raises(psycopg.errors.UniqueViolation):
            query(home, "INSERT INTO people VALUES ('Wei Lin')")
        with pytest.raises(psycopg.errors.InvalidTextRepresentation):
            query(home, "SELECT 'Wei Lin'::int")
        log = where.log.read_text()
        if where.account:
            # Root never runs it as root.
            assert where.account.uid == where.data.stat().st_uid != 0
    assert "ready to accept connections" in log
    assert not any(secret in log for secret in ("Wei Lin", where.password.read_text()))


def _as_before(where: Place) -> None:
    """What an older hub left: one role, one password."""
    for path in (where.runtime_password, where.roles):
        path.unlink()


def test_a_cluster_of_an_older_hub_gets_the_role(home: Path) -> None:
    where = locate(home)
    with attached(home, fast=True):
        query(home, "CREATE TABLE kept AS SELECT '记住' AS word")
        query(home, "DROP ROLE memoryhub_runtime")
        _as_before(where)
        # While it still runs, and at its next start.
        with attached(home, fast=True):
            assert as_runtime(home) == ("memoryhub_runtime", "off")
        query(home, "DROP ROLE memoryhub_runtime")
    _as_before(where)
    with attached(home, fast=True):
        assert as_runtime(home) == ("memoryhub_runtime", "off")
        assert query(home, "SELECT word FROM kept") == [("记住",)]


def test_the_last_one_out_stops_it_and_a_killed_user_does_not_keep_it_on(home: Path) -> None:
    with user(home):
        with attached(home, fast=True):
            with attached(home, fast=True):
                pass
            assert embedded_postgres.is_running(home)
        assert embedded_postgres.is_running(home)
    assert not embedded_postgres.is_running(home)
    with user(home) as process:
        process.kill()
        process.wait()
        assert embedded_postgres.is_running(home)
        with attached(home, fast=True):
            pass
        assert not embedded_postgres.is_running(home)


def test_a_forked_child_that_leaves_does_not_leave_for_its_parent(home: Path) -> None:
    with attached(home, fast=True):
        read_end, write_end = os.pipe()
        block = attached(home, fast=True)
        block.__enter__()
        child = os.fork()
        if child == 0:
            try:
                with attached(home, fast=True):
                    pass
                block.__exit__(None, None, None)
                os.write(write_end, b"x")
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        os.close(write_end)
        assert os.read(read_end, 1) == b"x"
        os.close(read_end)
        assert embedded_postgres.is_running(home)
        assert not locks.try_lock(locks.open_lock(locate(home).users_lock))
        block.__exit__(None, None, None)


def test_many_start_it_at_the_same_moment(empty: Path) -> None:
    once = USE_UNTIL_STDIN_ENDS.replace("    sys.stdin.read()\n", "")
    command = [sys.executable, "-c", f"for _ in range(3):\n    exec({once!r})", str(empty)]
    crowd = [subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    for process in crowd:
        output, _ = process.communicate(timeout=60)
        assert (process.returncode, output) == (0, "in\n" * 3)
    assert not embedded_postgres.is_running(empty)
    with attached(empty, fast=True):
        assert query(empty, "SELECT 1") == [(1,)]


def test_it_is_back_after_the_death_of_all(home: Path) -> None:
    where = locate(home)
    embedded_postgres.ensure_running(home)
    query(home, "CREATE TABLE kept AS SELECT '记住' AS word")
    kill_postmaster(where)
    assert not embedded_postgres.is_running(home)
    # After a reboot the old numbers belong to somebody else: here to a process of the same account.
    stranger = subprocess.Popen(["sleep", "60"], **place.as_account(where.account))
    for path in (where.data / "postmaster.pid", Path(f"{where.socket}.lock")):
        _, rest = path.read_text().split("\n", 1)
        path.write_text(f"{stranger.pid}\n{rest}")
    try:
        embedded_postgres.stop(home)
        assert stranger.poll() is None
        embedded_postgres.ensure_running(home)
        assert query(home, "SELECT word FROM kept") == [("记住",)]
        assert postmaster(where) != stranger.pid
    finally:
        stranger.kill()
        stranger.wait()


def test_it_waits_for_what_outlives_the_postmaster(home: Path) -> None:
    with attached(home, fast=True), closing(connect(home)) as busy:
        # Counting does not notice the postmaster's death, and until it ends the data is not free.
        busy.pgconn.send_query(b"SELECT count(*) FROM generate_series(1, 3000000)")
        os.kill(postmaster(locate(home)), signal.SIGKILL)
        while embedded_postgres.is_running(home):
            time.sleep(0.01)
        embedded_postgres.ensure_running(home)
        assert query(home, "SELECT 1") == [(1,)]


def test_a_half_made_cluster_is_made_again(empty: Path) -> None:
    half_made = locate(empty).base / "data.new"
    half_made.mkdir()
    (half_made / "PG_VERSION").write_text("18")
    with attached(empty, fast=True):
        assert query(empty, "SELECT 1") == [(1,)]


def test_a_failed_start_shows_the_log(home: Path) -> None:
    with (locate(home).data / "postgresql.conf").open("a") as file:
        file.write("\nno_such_setting = 1\n")
    with pytest.raises(EmbeddedPostgresError, match="no_such_setting"), attached(home, fast=True):
        pytest.fail("it started")


@pytest.mark.parametrize("name", ["x" * 90, "a, b"], ids=["too long", "a comma"])
def test_a_path_no_socket_can_have(parent: Path, name: str) -> None:
    home = parent / name / "home"
    try:
        with attached(home, fast=True):
            assert query(home, "SELECT 1") == [(1,)]
        where = locate(home)
        assert where.base == home / "postgres"
        assert stat.S_IMODE(where.sockets.stat().st_mode) == 0o700
        # A reboot empties the temporary folder.
        where.sockets.rmdir()
        with attached(home, fast=True):
            assert query(home, "SELECT 1") == [(1,)]
        assert locate(home).sockets != where.sockets
    finally:
        _remove(home)


def test_a_socket_folder_that_others_can_write_to_is_not_used(parent: Path) -> None:
    home = parent / ("x" * 90) / "home"
    first = locate(home).sockets
    try:
        assert locate(home).sockets == first
        first.chmod(0o777)
        assert locate(home).sockets != first
    finally:
        first.rmdir()
        _remove(home)


@as_root
def test_root_keeps_data_and_programs_where_the_account_can_reach_them(
    parent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    private = parent / "private"
    private.mkdir(mode=0o700)
    outside = parent / "outside"
    outside.mkdir(mode=0o711)
    package = programs._package()
    for folder in (package, package.with_name("embedded_postgres.libs")):
        shutil.copytree(folder, private / folder.name, ignore=programs.LEFT_BEHIND)
    monkeypatch.setattr(programs, "_package", lambda: private / package.name)
    monkeypatch.setattr(place, "OUTSIDE", (outside,))
    home = private / "home"
    try:
        with attached(home, fast=True):
            assert query(home, "SELECT 1") == [(1,)]
        where = locate(home)
        assert where.base.parent == outside
        assert where.base.stat().st_uid != 0
        assert stat.S_IMODE(private.stat().st_mode) == 0o700
        assert len(list(where.base.glob("programs-*"))) == 1
        _remove(home)
        assert locate(home).base != where.base
    finally:
        _remove(home)


def test_a_lost_data_folder_is_not_replaced_in_silence(parent: Path) -> None:
    home = parent / "home"
    home.mkdir()
    (home / "postgres.json").write_text('{"base": "/nowhere/memoryhub"}')
    with pytest.raises(EmbeddedPostgresError, match="/nowhere/memoryhub is gone"):
        embedded_postgres.connection(home)


def test_a_lost_password_is_not_replaced_in_silence(home: Path) -> None:
    password = locate(home).password
    password.rename(password.with_suffix(".away"))
    with pytest.raises(EmbeddedPostgresError, match="password is gone"):
        embedded_postgres.connection(home)
    password.with_suffix(".away").rename(password)


def test_another_users_folder_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locate(home)
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: 4_242)
        with pytest.raises(EmbeddedPostgresError, match="Start the hub as that user"):
            embedded_postgres.connection(home)


def test_a_home_that_cannot_be_made_is_named(parent: Path) -> None:
    (parent / "file").write_text("")
    with pytest.raises(EmbeddedPostgresError, match="file/home cannot be used: Not a directory"):
        embedded_postgres.connection(parent / "file" / "home")


@each(
    ("environ", "home"),
    [
        ({}, PROJECT / ".memoryhub"),
        ({"MEMORYHUB_HOME": ""}, PROJECT / ".memoryhub"),
        ({"MEMORYHUB_HOME": "/srv/hub"}, Path("/srv/hub")),
        ({"MEMORYHUB_HOME": "hub"}, Path.cwd() / "hub"),
    ],
)
def test_home_from_environ(environ: dict[str, str], home: Path) -> None:
    assert embedded_postgres.home_from_environ(environ) == home
