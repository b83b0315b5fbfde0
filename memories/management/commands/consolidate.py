"""`manage.py consolidate`: extracts what is due of a tenant here and now, in this process, beside any workers."""

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
from memories.models import ExtractionRun, SessionQueue, Tenant
from memories.pipeline import consolidation

MOST_BATCHES = 1_000


class Command(BaseCommand):
    help = (
        f"Extract the batches of a tenant that are due, at most {MOST_BATCHES}, without waiting for a worker. "
        "Exit code 1 when one of them failed; it waits for its next attempt."
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
        self.stdout.write(f"{committed} batches extracted, {len(runs) - committed} failed.")
        if committed < len(runs):
            raise CommandError("The admin shows why, under Extraction runs.")


def _runs(tenant: Tenant, now: datetime) -> Iterator[ExtractionRun]:
    """One attempt after another until nothing is due; sessions that a worker has, or that may not be, are left."""
    left: list[uuid.UUID] = []
    for _ in range(MOST_BATCHES):
        waiting = SessionQueue.objects.filter(session__tenant=tenant, parked_at=None, due_at__lte=now)
        session_id = waiting.exclude(pk__in=left).order_by("due_at").values_list("pk", flat=True).first()
        if session_id is None:
            return
        # A claim goes by the database's clock.
        SessionQueue.objects.filter(pk=session_id, due_at__gt=Now(), due_at__lte=now).update(due_at=Now())
        run = consolidation.consolidate(session_id=session_id, now=now)
        if run is None or run.status != ExtractionRun.Status.COMMITTED:
            left.append(session_id)
        if run:
            yield run
