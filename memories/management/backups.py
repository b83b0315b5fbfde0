"""Backup and restore of the whole database with PostgreSQL's own programs. A restore is one transaction."""

import hashlib
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from django.core.management import CommandError
from django.db import DatabaseError, connection
from psycopg.conninfo import make_conninfo

from memories.db import tenancy
from memories.db.tenancy import Policies
from memories.management import distributing, merged_migrations
from memories.models import Backup, Operator, Tenant
from memoryhub import embedded_postgres

RESTORE = ("--no-owner", "--no-privileges", "--no-comments", "--file=-")
# pg_restore does not notice that the end of a file is missing, and ignores what stands behind its own data.
SEAL = b"\nMEMORYHUB-SHA256:"
SEAL_BYTES = len(SEAL) + 64
CHUNK_BYTES = 1 << 20
# Lines of a backup's list of contents.
_POLICY = re.compile(rb"\d+; \d+ \d+ (?:POLICY|ROW SECURITY) ")
# libpq does not know these options.
OPTIONS_OF_DJANGO = ("server_side_binding", "prepare_threshold")
# psql must not quote a failing row.
PSQL = ("--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--set=VERBOSITY=terse", "--set=SHOW_CONTEXT=never")
# Extensions stay: the hub's account may lack the right to create them.
EMPTY = """
BEGIN;
SET lock_timeout = '30s';
SET client_min_messages = warning;
DO $$
DECLARE thing text;
BEGIN
    FOR thing IN SELECT format('TABLE %s', c.oid::regclass) FROM pg_class c
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
        AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')
    UNION ALL SELECT format('FUNCTION %s', p.oid::regprocedure) FROM pg_proc p
        WHERE p.pronamespace = 'public'::regnamespace
        AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')
    LOOP
        EXECUTE format('DROP %s CASCADE', thing);
    END LOOP;
END $$;
"""


def write(path: Path) -> int:
    """Write a backup of one snapshot to `path`: complete or not at all, mode 0600. Returns its size in bytes.

    Errors: CommandError when the folder or the database refuses, or the rows are on several nodes.
    """
    distributing.require_one_server("A dump would have no rows of tenants.")
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}.") from error
    try:
        with os.fdopen(descriptor, "r+b") as file:
            options = ("--format=custom", "--no-unlogged-table-data", f"--exclude-table-data={Backup._meta.db_table}")
            _run("pg_dump", *options, *_seeing_all(), _conninfo(), stdout=file.fileno())
            size = file.seek(0, os.SEEK_END)
            file.write(_seal(file, size))
            file.flush()
            os.fsync(file.fileno())
        return draft.replace(path).stat().st_size
    finally:
        draft.unlink(missing_ok=True)


def read(path: Path) -> None:
    """Replace all that the database holds by the backup, or change nothing when it fails.

    Errors: CommandError when the file is no backup, is of a newer or too old a hub, the database refuses, or its rows
    are on several nodes.
    """
    distributing.require_one_server("Nothing was restored: a backup goes into one server.")
    if not path.is_file():
        raise CommandError(f"There is no file {path}.")
    _require_whole(path)
    _require_known_migrations(path)
    connection.close()
    psql = subprocess.Popen(
        [embedded_postgres.client_program("psql"), *PSQL, _conninfo()],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=_environment(),
    )
    failure = _send_script(psql, path)
    if failure:
        raise CommandError(f"Nothing was restored: {failure}")


@contextmanager
def scratch_database() -> Iterator[None]:
    """An empty database beside the hub's, to which the connection leads within the block; afterwards it is gone.

    That of a process that was killed stays until the next. Errors: CommandError when the server refuses, or one is in
    use.
    """
    own = connection.settings_dict["NAME"]
    scratch = f"{own[:50]}_drill"
    connection.close()
    _on_the_server("DROP DATABASE IF EXISTS", scratch)
    _on_the_server("CREATE DATABASE", scratch)
    connection.settings_dict["NAME"] = scratch
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict["NAME"] = own
        _on_the_server("DROP DATABASE", scratch)


def what_is_there() -> str:
    """Why the database does not count as empty, or ""."""
    tables = set(connection.introspection.table_names())
    foreign = sorted(tables - set(connection.introspection.django_table_names()) - {"django_migrations"})
    if foreign:
        return f"tables that are not the hub's ({', '.join(foreign[:3])})"
    for model in (Tenant, Operator):
        if model._meta.db_table in tables and model._default_manager.exists():
            return str(model._meta.verbose_name_plural)
    return ""


def _on_the_server(statement: str, database: str) -> None:
    try:
        with connection._nodb_cursor() as cursor:
            cursor.execute(f"{statement} {connection.ops.quote_name(database)}")
    except DatabaseError as error:
        raise CommandError(f"{statement} {database}: {str(error).strip()}") from error


def _send_script(psql: "subprocess.Popen[bytes]", path: Path) -> str:
    """Send the script to psql, and then the commit if the script is complete. Returns the error message, or ""."""
    if psql.stdin is None:
        raise TypeError("psql was started without a pipe")
    failure = ""
    try:
        psql.stdin.write(EMPTY.encode())
        psql.stdin.flush()
        # All but policies: `migrate` makes them, for the roles that this server has.
        lines = _run("pg_restore", "--list", str(path)).splitlines(keepends=True)
        contents = b"".join(line for line in lines if not _POLICY.match(line))
        _run("pg_restore", *RESTORE, "--use-list=/dev/stdin", str(path), stdout=psql.stdin.fileno(), given=contents)
        psql.stdin.write(b"\nCOMMIT;\n")
    except BrokenPipeError:
        failure = "psql ended early"
    except CommandError as error:
        failure = str(error)
    # Without the commit, psql rolls back at the end of its input.
    _, errors = psql.communicate()
    message = errors.decode(errors="replace").strip()[-500:]
    return (message or "psql failed") if psql.returncode else failure


def _require_whole(path: Path) -> None:
    with path.open("rb") as file:
        size = max(file.seek(0, os.SEEK_END) - SEAL_BYTES, 0)
        expected = _seal(file, size)
        if file.read(SEAL_BYTES + 1) != expected:
            raise CommandError(f"{path} is not a backup of a hub, or not whole.")


def _seal(file: BinaryIO, size: int) -> bytes:
    """The end of a backup: the SHA-256 of its first `size` bytes. The file's position is then behind them."""
    digest = hashlib.sha256()
    file.seek(0)
    while chunk := file.read(min(CHUNK_BYTES, size)):
        digest.update(chunk)
        size -= len(chunk)
    return SEAL + digest.hexdigest().encode()


def _require_known_migrations(path: Path) -> None:
    """This version would misread the tables of a newer hub, and cannot migrate those of one that is too old."""
    data = _run("pg_restore", "--data-only", "--table=django_migrations", "--file=-", str(path)).decode()
    applied = set(re.findall(r"^\d+\tmemories\t(\w+)\t", data, re.MULTILINE))
    if not applied:
        raise CommandError(f"{path} is not a backup of a hub.")
    newer = applied - merged_migrations.known()
    if newer:
        raise CommandError(f"{path} is of a newer hub (it has {', '.join(sorted(newer))}): update this one first.")
    lacking = merged_migrations.lacking(applied)
    if lacking:
        raise CommandError(
            f"{path} is of a hub that is too old (it lacks {lacking}): restore and migrate it with the last version "
            "that has this migration, and make a backup of that."
        )


def _run(program: str, *arguments: str, stdout: int = subprocess.PIPE, given: bytes = b"") -> bytes:
    command = [str(embedded_postgres.client_program(program)), *arguments]
    done = subprocess.run(command, input=given, stdout=stdout, stderr=subprocess.PIPE, check=False, env=_environment())
    if done.returncode:
        raise CommandError(f"{program} failed: {done.stderr.decode(errors='replace').strip()[-500:]}")
    return done.stdout or b""


def _seeing_all() -> list[str]:
    """Options for a login that policies bind. Errors: CommandError.

    pg_dump refuses such a login, lest a part looks like the whole. So policies are looked at first: whether any hides a
    row from the role that it takes.
    """
    # Of this hub's database backend. None: policies do not bind the owner.
    sent = connection.sent  # type: ignore[attr-defined]
    if sent is None:
        return []
    role = sent.role_of(Policies.ALL)
    with tenancy.everything(), connection.cursor() as cursor:
        cursor.execute(_HIDING, [role])
        hiding = [table for (table,) in cursor.fetchall()]
    if hiding:
        raise CommandError(f"Policies hide rows of {', '.join(hiding[:3])} from {role}: run manage.py migrate first.")
    return [f"--role={role}", "--enable-row-security"]


# Tables that do not show the role all they hold.
_HIDING = """
    SELECT c.relname FROM pg_class c WHERE c.relkind IN ('r', 'p') AND row_security_active(c.oid) AND NOT EXISTS (
        SELECT FROM pg_policy p WHERE p.polrelid = c.oid AND p.polpermissive AND p.polcmd IN ('*', 'r')
        AND pg_get_expr(p.polqual, p.polrelid) = 'true'
        AND EXISTS (SELECT FROM pg_roles r WHERE r.rolname = %s AND r.oid = ANY(p.polroles))
    ) OR row_security_active(c.oid) AND EXISTS (
        SELECT FROM pg_policy p WHERE p.polrelid = c.oid AND NOT p.polpermissive
    )
    ORDER BY 1
"""


def _conninfo() -> str:
    """How to reach the database, without the password: everybody on the machine can read arguments."""
    given = connection.settings_dict
    named = {"host": given["HOST"], "port": given["PORT"], "user": given["USER"], "dbname": given["NAME"]}
    options = {name: value for name, value in given["OPTIONS"].items() if name not in OPTIONS_OF_DJANGO}
    return "--dbname=" + make_conninfo("", **{name: value for name, value in {**named, **options}.items() if value})


def _environment() -> dict[str, str]:
    return {**embedded_postgres.ENVIRONMENT, "PGPASSWORD": connection.settings_dict["PASSWORD"]}
