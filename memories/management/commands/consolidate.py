"""`manage.py consolidate`: does what is due of a tenant here and now, in this process, beside any workers."""

import uuid
from argparse import ArgumentParser
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db.models.functions import Now
from django.utils import timezone

from memories import conf
from memories.management.arguments import moment, tenant_of
from memories.models import ExtractionRun, SessionQueue, Tenant, WorkingMemory
from memories.pipeline import compaction, consolidation

MOST = 1_000


class Command(BaseCommand):
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
        runs = list(_runs(tenant, now))
        committed = sum(run.status == ExtractionRun.Status.COMMITTED for run in runs)
        windows = sum(_compacted(tenant, now))
        failed = len(runs) - committed
        self.stdout.write(f"{committed} batches extracted, {failed} failed, {windows} windows looked after.")
        if failed:
            raise CommandError("The admin shows why, under Extraction runs.")


def _runs(tenant: Tenant, now: datetime) -> Iterator[ExtractionRun]:
    """One attempt after another until nothing is due; sessions that a worker has, or that may not be, are left."""
    left: list[uuid.UUID] = []
    for _ in range(MOST):
        session_id = _due(SessionQueue, tenant, now, left)
        if session_id is None:
            return
        run = consolidation.consolidate(session_id=session_id, now=now)
        if run is None or run.status != ExtractionRun.Status.COMMITTED:
            left.append(session_id)
        if run:
            yield run


def _compacted(tenant: Tenant, now: datetime) -> Iterator[bool]:
    left: list[uuid.UUID] = []
    for _ in range(MOST):
        session_id = _due(WorkingMemory, tenant, now, left)
        if session_id is None:
            return
        is_done = compaction.compact(session_id=session_id, now=now)
        left += [] if is_done else [session_id]
        yield is_done


def _due(
    queue: type[SessionQueue] | type[WorkingMemory], tenant: Tenant, now: datetime, left: list[uuid.UUID]
) -> uuid.UUID | None:
    """The session that is first in line by `now`, but for those in `left`."""
    rows = queue._default_manager.filter(session__tenant=tenant, parked_at=None, due_at__lte=now)
    session_id = rows.exclude(pk__in=left).order_by("due_at").values_list("pk", flat=True).first()
    # A claim goes by the database's clock.
    rows.filter(pk=session_id, due_at__gt=Now()).update(due_at=Now())
    return session_id
