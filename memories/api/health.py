"""/healthz says that the process is up, /readyz whether the hub can do its work; neither needs a key or a model."""

from datetime import timedelta
from functools import cache
from typing import Any

from django.db import InterfaceError, OperationalError, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.models.functions import Now
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from memories import conf
from memories.exceptions import MemoryHubError
from memories.llm import embeddings
from memories.models import WorkerHeartbeat, WorkerKind
from memories.pipeline import backlog, spaces

HEARTBEAT = timedelta(seconds=15)
OVERDUE_SECONDS = 60.0


class MigrationsMissing(MemoryHubError):
    """The database lacks migrations: run manage.py migrate."""


@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """The process answers."""
    return JsonResponse({"status": "ok"})


@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """200 when everything that work needs is there, else 503 with the reasons."""
    embedding: dict[str, Any] = {}
    try:
        checks = _checks()
        embedding = {} if checks["migrations"] else _embedding()
    except (OperationalError, InterfaceError):
        checks = {"database": "The database cannot be reached."}
    reasons = [reason for reason in checks.values() if reason]
    document: dict[str, Any] = {
        "status": "not ready" if reasons else "ready",
        "checks": {name: reason or "ok" for name, reason in checks.items()},
        "reasons": reasons,
        "llm": conf.llm().mode,
        "embedding": embedding,
    }
    return JsonResponse(document, status=503 if reasons else 200)


def _checks() -> dict[str, str]:
    """Name of each check → why it fails, "" when it does not; later ones need the tables."""
    checks = {"database": "", "vector": _vector(), "migrations": _migrations()}
    if not checks["migrations"]:
        checks |= {"worker": _worker(WorkerKind.CLUSTER), "queue": _queue()}
        checks["embedding"] = _worker(WorkerKind.EMBEDDER)
    return checks


def _vector() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_extension WHERE extname = 'vector'")
        return "" if cursor.fetchone() else "The database lacks the extension vector: run manage.py migrate."


def _migrations() -> str:
    try:
        _require_migrations()
    except MigrationsMissing as error:
        return error.detail
    return ""


@cache
def _require_migrations() -> None:
    # Only success is cached: it cannot be undone under a running process, while a failure is about to be mended.
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise MigrationsMissing


def _worker(kind: WorkerKind) -> str:
    """An embedder gives signs of life once its embedding is loaded."""
    alive = WorkerHeartbeat.objects.filter(kind=kind, beat_at__gt=Now() - HEARTBEAT).exists()
    name = "embedder" if kind == WorkerKind.EMBEDDER else "worker"
    return "" if alive else f"No {name} has given a sign of life for {HEARTBEAT.seconds} s."


def _embedding() -> dict[str, Any]:
    """What makes vectors. An endpoint that fails is no reason to be unready: memories are found by their words."""
    space, configured = spaces.serving(), embeddings.current_model()
    told: dict[str, Any] = {"configured": configured, "serving": space.model if space else None}
    if space:
        told |= {"failure": space.failure, "refused": space.refused}
    if space and space.model != configured:
        told["note"] = "Another model is configured than serves: run manage.py reembed."
    return told


def _queue() -> str:
    overdue = backlog.overdue_seconds()
    return f"The oldest work is overdue by {overdue:.0f} s." if overdue > OVERDUE_SECONDS else ""
