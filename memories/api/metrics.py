"""/metrics: what the hub's tables say and its processes have counted, for Prometheus. No metric tells of a person.

Whoever asks from this machine, past every proxy, needs no token. Everybody else sends MEMORYHUB_METRICS_TOKEN as a
bearer token. All figures are read when they are asked for, so any web server answers for the whole hub, and none is
lost with a process. What processes count is of those that share a home (memories/telemetry/). Families with fixed
labels are there from the start, at zero.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.models import Count, F, Max, Min, Q, QuerySet, Sum
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.views.decorators.http import require_safe
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from memories.api.counting import expect_operations
from memories.api.health import HEARTBEAT
from memories.db import tenancy
from memories.kinds import EMBEDDED
from memories.models import (
    CaseState,
    CaseType,
    DecayPass,
    EndpointState,
    LanguageModel,
    ModelUse,
    PrivacyCase,
    ReviewItem,
    Session,
    SessionQueue,
    StoreItem,
    WorkerHeartbeat,
    WorkerKind,
    WorkingMemory,
)
from memories.models.privacy.cases import CLOSED
from memories.queue import backlog, spending
from memories.telemetry import families

# Said by proxies: whose request has one of them does not come from this machine.
FORWARDED = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip", "Via")
QUEUES: Mapping[str, Any] = {"extraction": SessionQueue, "working_memory": WorkingMemory}
# An erasure in these is up to the workers.
AT_WORK = (CaseState.APPROVED, CaseState.RUNNING, CaseState.VERIFYING)
# Age of the last backup; whether WAL is archived, the age of what was archived last, and failures.
BACKUPS = """
    SELECT extract(epoch FROM clock_timestamp() - coalesce(
        (SELECT max(started_at) FROM memories_backup WHERE NOT failed), (SELECT min(applied) FROM django_migrations)
    )), current_setting('archive_mode') <> 'off', greatest(0, extract(epoch FROM clock_timestamp() - greatest(
        last_archived_time, pg_postmaster_start_time()
    ))), failed_count FROM pg_stat_archiver
"""
# Kind → its rows, and since when one says what it says.
_EMBEDDED: Mapping[str, tuple[Any, str]] = {
    **{kind.plural: (kind.rows, kind.embedded.since) for kind in EMBEDDED if kind.embedded},
    "store_items": (StoreItem.objects, "updated_at"),
}


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """The figures in Prometheus's text format; 403 without the right to read them."""
    if not _may_read(request):
        text = "Ask from this machine, past every proxy, or send MEMORYHUB_METRICS_TOKEN as a bearer token.\n"
        return HttpResponse(text, status=403, content_type="text/plain; charset=utf-8")
    registry = CollectorRegistry(auto_describe=False)
    registry.register(HubFigures())
    registry.register(ProcessCounts())
    with tenancy.everything():
        figures = generate_latest(registry)
    return HttpResponse(figures, content_type=CONTENT_TYPE_LATEST)


def _may_read(request: HttpRequest) -> bool:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme:
        expected = settings.MEMORYHUB_METRICS_TOKEN
        return bool(expected) and scheme.lower() == "bearer" and constant_time_compare(token.strip(), expected)
    if any(name in request.headers for name in FORWARDED):
        return False
    try:
        return ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False


class HubFigures(Collector):
    """All families; without a database memoryhub_database_up alone, at 0."""

    def collect(self) -> Iterator[Metric]:
        try:
            found = [family for figures in FIGURES for family in figures()]
        except DatabaseError:
            # Half of the families would read as zero work.
            found = []
        yield _gauge("database_up", "Whether the tables can be read.", [((), int(bool(found)))])
        yield from found

    def describe(self) -> Iterable[Metric]:
        return ()


class ProcessCounts(Collector):
    """What processes have counted; also without a database."""

    def collect(self) -> Iterator[Metric]:
        expect_operations()
        return families.collect()

    def describe(self) -> Iterable[Metric]:
        return ()


def workers() -> Iterator[Metric]:
    samples = _counted(WorkerHeartbeat.objects.filter(beat_at__gt=Now() - HEARTBEAT), "kind", WorkerKind.values)
    yield _gauge("workers", "Clusters and embedders with a sign of life of the last seconds.", samples, "kind")


def queues() -> Iterator[Metric]:
    rows: list[tuple[tuple[str, ...], int]] = []
    parked: list[tuple[tuple[str, ...], int]] = []
    attempts: list[tuple[tuple[str, ...], int]] = []
    for name, model in QUEUES.items():
        reasons = model.objects.filter(parked_at__isnull=False).order_by().values_list("failure").annotate(Count("pk"))
        why = dict(reasons)
        parked += [((name, failure or "unknown"), count) for failure, count in why.items()]
        due = model.objects.due().count()
        armed = model.objects.unclaimed().filter(due_at__isnull=False).count()
        others = model.objects.aggregate(leased=Count("pk", filter=Q(lease_until__gt=Now())), most=Max("attempts"))
        # Those of restricted people wait, though their time has come.
        states = {"waiting": max(0, armed - due), "due": due, "leased": others["leased"], "parked": sum(why.values())}
        rows += [((name, state), count) for state, count in states.items()]
        attempts.append(((name,), others["most"] or 0))
    yield _gauge("queue_sessions", "Sessions with work, by what they wait for.", rows, "queue", "state")
    yield _gauge("queue_parked", "Sessions whose work is parked, by its last failure.", parked, "queue", "reason")
    overdue = backlog.overdue_seconds()
    yield _gauge("queue_overdue_seconds", "For how long the oldest work could have been taken.", [((), overdue)])
    yield _gauge("queue_attempts", "Attempts of the session that was tried most often.", attempts, "queue")


def models() -> Iterator[Metric]:
    paused = EndpointState.objects.filter(Q(until__gt=Now()) | Q(stated_until__gt=Now())).count()
    yield _gauge("endpoints_paused", "Model endpoints that nobody asks for now, because they failed.", [((), paused)])
    used = ModelUse.objects.order_by().values_list("tenant__slug", "purpose")
    sums = list(used.annotate(Sum("calls"), Sum("prompt_tokens"), Sum("completion_tokens"), Sum("cost")))
    calls = [((tenant, purpose), count) for tenant, purpose, count, *_ in sums]
    yield _counter("model_calls", "Calls of language models.", calls, "tenant", "purpose")
    tokens = [((tenant, purpose, "prompt"), read) for tenant, purpose, _, read, _written, _cost in sums]
    tokens += [((tenant, purpose, "completion"), written) for tenant, purpose, _, _read, written, _cost in sums]
    yield _counter("model_tokens", "Tokens that these calls read and wrote.", tokens, "tenant", "purpose", "direction")
    reached = spending.capped(LanguageModel.objects.select_related("tenant"), now=timezone.now())
    yield _gauge("budgets_reached", "Tenants that have used up a cap of their day.", [((), len(reached))])
    cost = [((tenant, purpose), spent) for tenant, purpose, *_, spent in sums if spent is not None]
    yield _counter("model_cost_dollars", "What they cost, where prices are set.", cost, "tenant", "purpose")


def embeddings() -> Iterator[Metric]:
    waiting, lag = [], []
    for kind, (rows, since) in _EMBEDDED.items():
        found = rows.unembedded().aggregate(count=Count("pk"), age=Now() - Min(since))
        waiting.append(((kind,), found["count"]))
        lag.append(((kind,), _seconds(found["age"])))
    found = Session.objects.unembedded().aggregate(
        count=Sum(F("turn_count") - F("embedded_number")), age=Now() - Min("last_turn_at")
    )
    waiting.append((("turns",), found["count"] or 0))
    lag.append((("turns",), _seconds(found["age"])))
    yield _gauge("embedding_waiting", "Texts without a vector: found by their words alone.", waiting, "kind")
    yield _gauge("embedding_lag_seconds", "For how long the oldest of them has waited.", lag, "kind")


def reviews() -> Iterator[Metric]:
    items: QuerySet[Any] = ReviewItem.objects.waiting()
    samples = _counted(items, "kind", ReviewItem.Kind.values)
    yield _gauge("review_items", "Review items that nobody has decided.", samples, "kind")
    age = _seconds(items.aggregate(age=Now() - Min("created_at"))["age"])
    yield _gauge("review_oldest_seconds", "For how long the oldest of them has waited.", [((), age)])


def privacy() -> Iterator[Metric]:
    rows = PrivacyCase.objects.order_by().values_list("type", "state").annotate(Count("pk"))
    counts = {(kind, state): count for kind, state, count in rows}
    samples = [((kind, state), counts.get((kind, state), 0)) for kind in CaseType.values for state in CaseState.values]
    yield _gauge("privacy_cases", "Privacy cases.", samples, "type", "state")
    first = PrivacyCase.objects.exclude(state__in=CLOSED).aggregate(left=Min("due_at") - Now())["left"]
    due = [((), first.total_seconds())] if first is not None else []
    yield _gauge("privacy_case_due_seconds", "Until the first open case is due; below 0: overdue. None: no case.", due)
    at_work = PrivacyCase.objects.filter(type=CaseType.ERASURE, state__in=AT_WORK)
    age = _seconds(at_work.aggregate(age=Now() - Min("approved_at"))["age"])
    yield _gauge("erasure_running_seconds", "Since the oldest erasure was approved that is not done.", [((), age)])


def forgetting() -> Iterator[Metric]:
    samples = _counted(DecayPass.objects.all(), "state", DecayPass.PassState.values)
    yield _gauge("decay_passes", "Passes of forgetting that are kept.", samples, "state")
    last: datetime | None = DecayPass.objects.aggregate(last=Max("finished_at"))["last"]
    ended = [((), last.timestamp())] if last else []
    yield _gauge("decay_last_finished_timestamp_seconds", "When the last one ended. None: none has.", ended)


def database() -> Iterator[Metric]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_database_size(current_database()), (SELECT count(*) FROM pg_stat_activity "
            "WHERE datname = current_database()), current_setting('max_connections')::int"
        )
        size, connections, most = cursor.fetchone()
    yield _gauge("database_bytes", "Size of the database.", [((), size)])
    yield _gauge("database_connections", "Connections to the database.", [((), connections)])
    yield _gauge("database_connections_max", "Connections that the server takes.", [((), most)])


def disk() -> Iterator[Metric]:
    usage = shutil.disk_usage(settings.HOME)
    yield _gauge("disk_bytes", "Size of the disk of MEMORYHUB_HOME.", [((), usage.total)])
    yield _gauge("disk_free_bytes", "What is free of it.", [((), usage.free)])


def backups() -> Iterator[Metric]:
    nightly = int(bool(settings.MEMORYHUB_BACKUP_NIGHTLY))
    yield _gauge("backup_nightly", "Whether the hub is to make a backup each night.", [((), nightly)])
    with connection.cursor() as cursor:
        cursor.execute(BACKUPS)
        age, *archiver = cursor.fetchone()
    says = "Since the last backup was begun; where none was, since the database was made."
    yield _gauge("backup_age_seconds", says, [((), age)])
    is_on, archived, failed = archiver
    if is_on:
        says = "Since WAL was archived, or the server started. None: it is not archived."
        yield _gauge("archive_age_seconds", says, [((), archived)])
        yield _counter("archive_failures", "Attempts to archive WAL that failed. None: likewise.", [((), failed)])


FIGURES: tuple[Callable[[], Iterator[Metric]], ...] = (
    workers,
    queues,
    models,
    embeddings,
    reviews,
    privacy,
    forgetting,
    database,
    disk,
    backups,
)


def _counted(rows: QuerySet[Any], field: str, values: Iterable[str]) -> list[tuple[tuple[str, ...], int]]:
    """How many rows have each value; 0 where none has."""
    counts = dict(rows.order_by().values_list(field).annotate(Count("pk")))
    return [((value,), counts.get(value, 0)) for value in values]


def _gauge(name: str, says: str, samples: Iterable[tuple[tuple[str, ...], Any]], *labels: str) -> Metric:
    return _filled(GaugeMetricFamily(f"memoryhub_{name}", says, labels=labels), samples)


def _counter(name: str, says: str, samples: Iterable[tuple[tuple[str, ...], Any]], *labels: str) -> Metric:
    return _filled(CounterMetricFamily(f"memoryhub_{name}", says, labels=labels), samples)


def _filled(family: Any, samples: Iterable[tuple[tuple[str, ...], Any]]) -> Metric:
    for labels, value in samples:
        family.add_metric(labels, float(value))
    return family  # type: ignore[no-any-return]


def _seconds(age: timedelta | None) -> float:
    return max(0.0, age.total_seconds()) if age else 0.0
