"""/healthz: the process runs. /readyz: the hub can do its work. Neither needs a key or a model."""

from datetime import timedelta
from functools import cache
from typing import Any

from django.conf import settings
from django.db import InterfaceError, OperationalError, ProgrammingError, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.models.functions import Now
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe
from psycopg.errors import InsufficientPrivilege

from memories import conf
from memories.db import tenancy
from memories.embedding import spaces
from memories.exceptions import MemoryHubError
from memories.llm import embeddings
from memories.models import AuditEvent, Tenant, WorkerHeartbeat, WorkerKind
from memories.queue import backlog

HEARTBEAT = timedelta(seconds=15)
OVERDUE_SECONDS = 60.0
OWNING = (
    "The role of the web server owns the tables: anything that runs SQL as it can change the audit trail. Set "
    "DATABASE_URL to a role of its own and MEMORYHUB_OWNER_URL to the owner (docs/operating.md), then run manage.py "
    "migrate."
)
RIGHTLESS = "The role of DATABASE_URL has no rights on the tables: run manage.py migrate with MEMORYHUB_OWNER_URL."
UNSAID = (
    "Policies show the role of DATABASE_URL nothing, as MEMORYHUB_ROW_SECURITY is off here: set it to on and start "
    "again, or run manage.py migrate with off and MEMORYHUB_OWNER_URL."
)
_POLICIES = """
    SELECT coalesce(row_security_active(to_regclass(%s)::oid), false),
        (SELECT count(*) FROM pg_roles r WHERE r.rolname = ANY(%s) AND pg_has_role(r.oid, 'SET'))
"""
_OWNS = "SELECT 1 FROM pg_class WHERE oid = to_regclass(%s) AND pg_has_role(relowner, 'MEMBER')"


class MigrationsMissing(MemoryHubError):
    """The database lacks migrations: run manage.py migrate."""


@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """The process answers."""
    return JsonResponse({"status": "ok"})


@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """200 when the hub can work, else 503 with the reasons."""
    embedding: dict[str, Any] = {}
    note = ""
    try:
        with tenancy.everything():
            checks = _checks()
        embedding = _embedding() if checks.get("migrations") == "" else {}
        note = note_of_roles()
    except (OperationalError, InterfaceError):
        checks = {"database": "The database cannot be reached."}
    reasons = [reason for reason in checks.values() if reason]
    document: dict[str, Any] = {
        "status": "not ready" if reasons else "ready",
        "checks": {name: reason or "ok" for name, reason in checks.items()},
        "reasons": reasons,
        "llm": conf.llm().mode,
        "embedding": embedding,
        **({"note": note} if note else {}),
    }
    return JsonResponse(document, status=503 if reasons else 200)


def _checks() -> dict[str, str]:
    """Name of each check → why it fails, or "". The later checks need the tables."""
    if reason := _row_security():
        # Nothing else can be asked.
        return {"database": "", "row security": reason}
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_extension WHERE extname = 'vector'")
        vector = "" if cursor.fetchone() else "The database lacks the extension vector: run manage.py migrate."
    checks = {"database": "", "vector": vector, "migrations": lacking_migrations()}
    if not checks["migrations"]:
        checks["worker"] = _worker(WorkerKind.CLUSTER)
        overdue = backlog.overdue_seconds()
        checks["queue"] = f"The oldest work is overdue by {overdue:.0f} s." if overdue > OVERDUE_SECONDS else ""
        checks["embedding"] = _worker(WorkerKind.EMBEDDER)
    return checks


def _row_security() -> str:
    """Why the policies show this process nothing, whoever asks, or ""."""
    # Of this hub's database backend. None: this process says nothing.
    sent = connection.sent  # type: ignore[attr-defined]
    others = sent.others if sent else []
    with tenancy.alone(), connection.cursor() as cursor:
        cursor.execute(_POLICIES, [Tenant._meta.db_table, others])
        is_bound, takes = cursor.fetchone()
    if takes < len(others):
        return tenancy.ROLES_LACKING
    return UNSAID if is_bound and not sent else ""


def lacking_migrations() -> str:
    try:
        # As the login itself, whose rights are looked at, too.
        with tenancy.alone():
            _require_migrations()
    except MigrationsMissing as error:
        return error.detail
    except ProgrammingError as error:
        if isinstance(error.__cause__, InsufficientPrivilege):
            return RIGHTLESS
        raise
    return ""


@cache
def _require_migrations() -> None:
    # The cache holds only success: nobody undoes migrations under a running process, but somebody may mend a failure.
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise MigrationsMissing


def _worker(kind: WorkerKind) -> str:
    """An embedder's heartbeat begins once its model is loaded."""
    alive = WorkerHeartbeat.objects.filter(kind=kind, beat_at__gt=Now() - HEARTBEAT).exists()
    name = "embedder" if kind == WorkerKind.EMBEDDER else "worker"
    return "" if alive else f"No {name} has given a sign of life for {HEARTBEAT.seconds} s."


def note_of_roles() -> str:
    """A warning when the web server's role owns the tables: the hub works, but SQL injection could do anything."""
    # There are two roles already with the embedded server, and where both addresses are configured.
    if settings.RUNTIME_ROLE:
        return ""
    # As the login itself.
    with tenancy.alone(), connection.cursor() as cursor:
        cursor.execute(_OWNS, [AuditEvent._meta.db_table])
        return OWNING if cursor.fetchone() else ""


def _embedding() -> dict[str, Any]:
    """The embedding models. A failing endpoint does not make the hub unready: searches go by words meanwhile."""
    space, configured = spaces.serving(), embeddings.current_model()
    state: dict[str, Any] = {"configured": configured, "serving": space.model if space else None}
    if space:
        state |= {"failure": space.failure, "refused": space.refused}
    if space and space.model != configured:
        state["note"] = "Another model is configured than serves: run manage.py reembed."
    return state
