"""`memoryhub doctor`: looks at what the hub needs, one line each, and says what to do about what is wrong."""

import json
import platform
import shutil
import socket
import urllib.error
import urllib.request
from collections.abc import Callable
from datetime import UTC, timedelta
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import psycopg
from django.conf import settings
from django.core import checks
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection
from django.db.models.functions import Now
from django.utils import timezone

from memories import conf
from memories.api import health
from memories.conf import shared_keys
from memories.exceptions import MemoryHubError
from memories.llm import client, embeddings, tokenizers
from memories.management import base_backups, policies
from memories.models import Backup, WorkerHeartbeat
from memoryhub import VERSION
from memoryhub.embedded_postgres import archive
from memoryhub.embedded_postgres.place import locate

# With less a PostgreSQL that is busy can come to a halt.
FREE_BYTES = 2**30
# Leases and days are counted by the database's clock, requests by the hosts'.
CLOCK_SECONDS = 5.0
VECTOR = (0, 8)
# As the alert has it.
BACKUP_AGE = timedelta(hours=36)
PATIENCE_SECONDS = 5.0
# A pooler may happen to give a connection the same process again.
LOOKS_AT_SESSIONS = 5


class Wrong(Exception):
    """What is wrong, and what to do about it."""


class Command(BaseCommand):
    help = "Check what the hub needs, from disk to model, and say what to do. Exit code 1: something is wrong."
    # They are one of its lines.
    requires_system_checks: list[str] = []

    def handle(self, **_options: Any) -> None:
        wrong = 0
        for name, look in LOOKS.items():
            try:
                self.stdout.write(f"ok     {name}: {look()}")
            except Wrong as error:
                wrong += 1
                self.stdout.write(f"wrong  {name}: {error}")
            except DatabaseError as error:
                wrong += 1
                self.stdout.write(f"wrong  {name}: the database refused it ({type(error).__name__}).")
        if wrong:
            raise CommandError(f"{wrong} of {len(LOOKS)} lines say that something is wrong.")


def package() -> str:
    """Another product is called memoryhub: both install a folder of that name."""
    try:
        other = version("memoryhub")
    except PackageNotFoundError:
        return f"memory-hub {VERSION}, Python {platform.python_version()}"
    raise Wrong(
        f"the package memoryhub {other} is installed beside memory-hub: another product whose files have the same "
        "names. Uninstall both, then install memory-hub alone."
    )


def configuration() -> str:
    found = [problem for problem in checks.run_checks() if problem.level >= checks.ERROR]
    if found:
        raise Wrong(" ".join(f"{problem.msg} {problem.hint or ''}".strip() for problem in found))
    return f"{settings.HOME}"


def disk() -> str:
    free = shutil.disk_usage(settings.HOME).free
    if free < FREE_BYTES:
        raise Wrong(f"{_size(free)} free in {settings.HOME}. Free some, or set MEMORYHUB_HOME to another disk.")
    return f"{_size(free)} free"


def database() -> str:
    try:
        connection.ensure_connection()
    except DatabaseError as error:
        raise Wrong(f"it cannot be reached. Is DATABASE_URL right, and does the server run? {error}".strip()) from error
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        return f"PostgreSQL {cursor.fetchone()[0]}"


def extension() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT installed_version, default_version FROM pg_available_extensions WHERE name = 'vector'")
        found = cursor.fetchone()
    if found is None:
        raise Wrong("the server has no extension vector. Install pgvector on its host.")
    installed = found[0] or found[1]
    if tuple(int(part) for part in installed.split(".")[:2]) < VECTOR:
        raise Wrong(f"pgvector {installed} is too old. Install 0.8 or newer and run ALTER EXTENSION vector UPDATE.")
    return f"pgvector {installed}"


def tables() -> str:
    problem = health.lacking_migrations()
    if problem:
        raise Wrong(problem)
    return "all migrations are applied"


def roles() -> str:
    problem = health.note_of_roles()
    if problem:
        raise Wrong(problem)
    return "web and worker may read and write rows alone"


def row_security() -> str:
    """Whether policies hold, as the setting says, and bind the role of web and worker."""
    mode = settings.MEMORYHUB_ROW_SECURITY
    tables = {one.table: policies.current_policies().get(one.table) for one in policies.guarded()}
    enforced = [table for table, held in tables.items() if held and held.is_enforced]
    if mode != "on":
        if enforced:
            # Web and worker do not say whose rows they ask for, or will not after their next start.
            raise Wrong(
                f"{len(enforced)} tables show web and worker nothing, as MEMORYHUB_ROW_SECURITY is {mode}: set it to "
                "on, or run manage.py migrate."
            )
        return mode if mode == "off" else "prepared: run manage.py migrate with MEMORYHUB_ROW_SECURITY=on next"
    lacking = sorted(tables.keys() - set(enforced))
    if lacking:
        raise Wrong(f"no policies are enforced on {', '.join(lacking[:3])} …: run manage.py migrate.")
    role, _ = settings.RUNTIME_ROLE or (settings.RUNTIME["user"], "")
    passed = policies.ways_round(role)
    if passed:
        raise Wrong(f"policies do not bind {role}: it {', and '.join(passed)}.")
    return f"on, for {len(enforced)} tables; {role} cannot pass it but by naming another role"


def pooler() -> str:
    """Whether the connections of web and worker keep their sessions, as the settings say."""
    if settings.DIRECT is None:
        if not _keeps_sessions(settings.RUNTIME):
            raise Wrong(
                "DATABASE_URL leads through a pooler in transaction mode. Set MEMORYHUB_POOLER=transaction and "
                "MEMORYHUB_DIRECT_URL (docs/operating.md, Several hosts)."
            )
        return "none, or one that keeps sessions"
    if not _keeps_sessions(settings.DIRECT):
        raise Wrong("MEMORYHUB_DIRECT_URL leads through a pooler in transaction mode. Set it to the server itself.")
    if _keeps_sessions(settings.RUNTIME):
        return "MEMORYHUB_POOLER=transaction, though DATABASE_URL keeps sessions: without it statements are prepared"
    return "transactions are pooled, and what needs a session goes past the pooler"


def _keeps_sessions(at: dict[str, Any]) -> bool:
    """Whether a connection stays with one process of the server while another one takes what is free."""
    try:
        with psycopg.connect(**at, autocommit=True) as one, psycopg.connect(**at, autocommit=True) as other:
            one.prepare_threshold = other.prepare_threshold = None
            before = _process_of(one)
            for _look in range(LOOKS_AT_SESSIONS):
                with other.transaction():
                    _process_of(other)
                    if _process_of(one) != before:
                        return False
    except psycopg.OperationalError as error:
        raise Wrong(f"web and worker cannot connect as {at.get('user')}: {error}".strip()) from error
    return True


def _process_of(connection: psycopg.Connection) -> int:
    [process] = connection.execute("SELECT pg_backend_pid()").fetchone() or [0]
    return int(process)


def keys() -> str:
    """Where workers of other hosts live, they have the same."""
    alive = WorkerHeartbeat.objects.filter(beat_at__gt=Now() - health.HEARTBEAT).exclude(keys="")
    for name, theirs in alive.order_by("name").values_list("name", "keys"):
        if differing := shared_keys.that_differ(theirs):
            raise Wrong(f"{', '.join(differing)} differs from that of {name}. Give all hosts of the hub the same.")
    return "as the workers have them" if alive else "no worker lives to compare them with"


def clock() -> str:
    before = timezone.now()
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        (theirs,) = cursor.fetchone()
    apart = abs((theirs - before).total_seconds())
    if apart > CLOCK_SECONDS:
        raise Wrong(f"the database's differs by {apart:.0f} s from this host's. Set both by NTP.")
    return "this host and the database agree"


def port() -> str:
    """Free, or a hub answers there that says of itself whether it can work."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", settings.PORT))
        except OSError:
            return _answer()
    return f"{settings.PORT} is free"


def _answer() -> str:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    # Asked past the proxy. A hub with an https address redirects who does not say what a proxy would.
    address = f"http://127.0.0.1:{settings.PORT}/readyz"
    asked = urllib.request.Request(address, headers={"X-Forwarded-Proto": "https"})
    try:
        with opener.open(asked, timeout=PATIENCE_SECONDS) as answer:
            report = json.load(answer)
    except urllib.error.HTTPError as error:
        try:
            report = json.load(error)
        except ValueError:
            report = None
    except (OSError, ValueError):
        report = None
    if not isinstance(report, dict) or "checks" not in report:
        raise Wrong(f"another program uses {settings.PORT}. End it, or set MEMORYHUB_PORT.")
    if report["reasons"]:
        raise Wrong(f"a hub answers on {settings.PORT} and is not ready: {' '.join(report['reasons'])}")
    return f"a hub answers on {settings.PORT} and is ready"


def model() -> str:
    config = conf.llm()
    if config.mode != conf.LLM_OPENAI:
        return f"none is asked (MEMORYHUB_LLM={config.mode})"
    try:
        client.check(config=config)
    except MemoryHubError as error:
        raise Wrong(f"{config.model} does not answer: {error.detail}") from error
    return f"{config.model} answers"


def embedding() -> str:
    try:
        vectors = embeddings.embed(["doctor"])
    except MemoryHubError as error:
        raise Wrong(f"{embeddings.current_model()}: {error.detail}") from error
    return f"{embeddings.current_model()}, {vectors.shape[1]} dimensions"


def counting() -> str:
    """What contexts can be counted by; an extra that is not installed is nobody's fault."""
    present = tokenizers.installed()
    lacking = [one for one in tokenizers.VOCABULARIES.values() if not one.is_installed]
    extras = ", ".join(sorted({one.extra for one in lacking}))
    others = f"; {', '.join(one.name for one in lacking)} with {extras}" if lacking else ""
    return ", ".join(present) + others


def _size(count: int) -> str:
    return f"{count / 2**30:.1f} GiB"


def backup() -> str:
    """Whether the hub has made the backups that it is to make."""
    last = Backup.objects.made().order_by("started_at").last()
    found = f"the last one is of {last.started_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if last else "none was made"
    if not settings.MEMORYHUB_BACKUP_NIGHTLY:
        return f"{found}; none is made each night (MEMORYHUB_BACKUP_NIGHTLY)"
    failed = Backup.objects.order_by("started_at").last()
    if failed and failed.failed:
        at = f"{failed.started_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        raise Wrong(f"{found}, and one failed at {at}. The worker's log says why, or manage.py backup --nightly.")
    if last is None or timezone.now() - last.started_at > BACKUP_AGE:
        raise Wrong(f"{found}, and one is to be made each night. Does a worker run? Or run manage.py backup --nightly.")
    return found


def archive_of_wal() -> str:
    """Whether the embedded server archives, whether there is room, and whether there is a way back."""
    kept = archive.folder()
    if kept is None:
        return "none (MEMORYHUB_ARCHIVE)"
    problem = archive.prepare(locate(settings.HOME), kept)
    if problem:
        raise Wrong(problem)
    free = shutil.disk_usage(kept).free
    if free < FREE_BYTES:
        raise Wrong(f"{_size(free)} free in {kept}. Free some: the server keeps its WAL until then.")
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('archive_mode'), coalesce(last_failed_time > last_archived_time, "
            "last_failed_time IS NOT NULL) FROM pg_stat_archiver"
        )
        mode, fails = cursor.fetchone()
    if mode == "off":
        raise Wrong("the server runs without it. Stop the hub and all of its commands, and start it again.")
    if fails:
        raise Wrong("the last attempt to archive WAL failed. The end of $MEMORYHUB_HOME/postgres/server.log says why.")
    covered = base_backups.covered(kept)
    if covered is None:
        raise Wrong("it leads nowhere without a base backup. Run manage.py backup --base.")
    return f"leads back to {base_backups.shown(covered[0])}, {_size(free)} free"


LOOKS: dict[str, Callable[[], str]] = {
    "package": package,
    "settings": configuration,
    "disk": disk,
    "database": database,
    "extension": extension,
    "tables": tables,
    "roles": roles,
    "row security": row_security,
    "pooler": pooler,
    "keys": keys,
    "clock": clock,
    "port": port,
    "backup": backup,
    "archive": archive_of_wal,
    "model": model,
    "embedding": embedding,
    "tokenizers": counting,
}
