"""`manage.py consolidate`: does a tenant's due work in this process, beside any workers."""

import uuid
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, TypeVar

from django.core.management.base import CommandError
from django.db.models.functions import Now
from django.utils import timezone

from memories import conf
from memories.episodes import compaction
from memories.extraction import consolidation
from memories.management import HubCommand, counted
from memories.management.arguments import moment, tenant_of
from memories.models import ExtractionRun, SessionQueue, Tenant, WorkingMemory

MOST = 1_000
T = TypeVar("T")


class Command(HubCommand):
    help = (
        f"Extract the batches of a tenant that are due, then compact the windows and sum up the sessions that are, at "
        f"most {MOST} of each, without waiting for a worker. Exit code 1 when a batch failed; it waits for its next "
        "attempt."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", required=True, help="The tenant's slug.")
        parser.add_argument("--now", type=moment, help="What is due by this moment; what is learned bears it.")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant, now = tenant_of(options["tenant"]), options["now"] or timezone.now()
        if conf.llm().mode == conf.LLM_OFF:
            raise CommandError("Extraction is switched off: MEMORYHUB_LLM=off.")
        runs = [run for run in _do_due(SessionQueue, tenant, now, consolidation.consolidate, _is_committed) if run]
        committed = sum(map(_is_committed, runs))
        windows = sum(_do_due(WorkingMemory, tenant, now, compaction.compact, bool))
        failed = len(runs) - committed
        batches, looked_after = counted(committed, "batch", "batches"), counted(windows, "window")
        self.stdout.write(f"{batches} extracted, {failed} failed, {looked_after} looked after.")
        if failed:
            raise CommandError("The admin shows why, under Extraction runs.")


def _is_committed(run: ExtractionRun | None) -> bool:
    return run is not None and run.status == ExtractionRun.RunStatus.COMMITTED


def _do_due(
    queue: type[SessionQueue] | type[WorkingMemory],
    tenant: Tenant,
    now: datetime,
    work: Callable[..., T],
    is_done: Callable[[T], bool],
) -> Iterator[T]:
    """Work on one session after another until none is due. Skip those that a worker holds or that fail."""
    left: list[uuid.UUID] = []
    for _ in range(MOST):
        rows = queue._default_manager.filter(session__tenant=tenant, parked_at=None, due_at__lte=now)
        session_id = rows.exclude(pk__in=left).order_by("due_at").values_list("pk", flat=True).first()
        # A claim goes by the database's clock.
        rows.filter(pk=session_id, due_at__gt=Now()).update(due_at=Now())
        if session_id is None:
            return
        result = work(session_id=session_id, now=now)
        if not is_done(result):
            left.append(session_id)
        yield result
