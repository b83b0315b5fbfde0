"""The heartbeat of a cluster, and the errands that run with it.

The watchdog and /readyz read the heartbeat. The errands arm work that waits, ask a failing model endpoint again, look
for privacy cases whose worker died, for webhooks to be told, and delete rows that have expired.
"""

import os
import socket
import threading
import time
from datetime import timedelta

from django.db import DatabaseError, InterfaceError, close_old_connections, connection, connections, transaction
from django.db.models.functions import Now
from django.utils import timezone
from django_q.conf import Conf
from django_q.models import OrmQ, Schedule
from django_q.tasks import async_task

from memories import conf
from memories.attachments import reading
from memories.capture import seen_texts
from memories.conf import shared_keys
from memories.context import sent_blocks
from memories.curation import policy_trials
from memories.curation.access.sign_ins import sweep_sign_ins
from memories.curation.imports import verbs
from memories.curation.people import page_links
from memories.curation.replays import sweep_replays
from memories.curation.skills import proposing
from memories.dream import dreaming
from memories.forgetting import decay
from memories.imports import working
from memories.jobs.roll_call import roll_call
from memories.llm import tokens
from memories.models import WorkerHeartbeat
from memories.privacy import case_leases, reminders, retention, running
from memories.privacy.expiry import store_items
from memories.privacy.exports import downloads
from memories.privacy.stores import unlinked
from memories.queue import circuit_breaker, rearming
from memories.retrieval import turn_files
from memories.webhooks import delivering

BEAT_SECONDS = 5.0
UNWELL_PAUSE_SECONDS = 0.5
EXPIRED_AFTER = timedelta(hours=1)
CASES_SECONDS = 30.0
ASK_TASK = "memories.tasks.ask_endpoint"
SEAL_TASK = "memories.tasks.seal_audit"
# Rows of django-q2: name → task. The tasks find the tenants whose night has come, and seal the audit trail.
FORGETTING = "forgetting"
SCHEDULES = {
    FORGETTING: decay.FORGET_TASK,
    "sealing": SEAL_TASK,
    "retention": retention.TASK,
    "dreams": dreaming.TASK,
    "skills": proposing.TASK,
    "reminders": reminders.TASK,
    "policy_trials": policy_trials.TASK,
    "imports": verbs.TASK,
}
SCHEDULE_MINUTES = 5
# Any number, the same for all: one process at a time repairs a row.
SCHEDULE_LOCK = 6_110_301


def heartbeat_name(sentinel: int) -> str:
    """The name of the heartbeat of this sentinel's cluster (a process id on this host)."""
    return f"{socket.gethostname()}:{sentinel}"


class ClusterPulse(threading.Thread):
    """Beats while the pool takes work. It is a thread because a busy pool makes the pusher wait."""

    def __init__(self) -> None:
        super().__init__(name="pulse", daemon=True)
        # The sentinel's id: it stays when django-q replaces the pusher.
        self._cluster = heartbeat_name(os.getppid())
        self._started_at = timezone.now()
        self._cases_at = 0.0

    def run(self) -> None:
        tokens.preload()
        while True:
            well = roll_call.is_well(now=time.monotonic())
            if well:
                self.once()
            time.sleep(BEAT_SECONDS if well else UNWELL_PAUSE_SECONDS)

    def once(self) -> None:
        """One beat and its errands. After an outage of the database the next beat does them."""
        try:
            close_old_connections()
            self.beat()
            rearming.rearm()
            rearming.rearm_windows()
            ensure_schedules()
            for owner in circuit_breaker.to_probe(lease=timedelta(seconds=conf.hub_rules().lease_seconds)):
                async_task(ASK_TASK, str(owner or ""))
            self.wake_cases()
            # A full queue has a wake-up already, or gets one when it is emptied.
            if delivering.is_due() and OrmQ.objects.count() < Conf.WORKERS:
                delivering.enqueue()
            if reading.is_due() and OrmQ.objects.count() < Conf.WORKERS:
                reading.enqueue()
        except (DatabaseError, InterfaceError):
            connections.close_all()

    def wake_cases(self) -> None:
        """Now and then, wake workers for privacy cases whose worker died or whose wake-up was lost."""
        if time.monotonic() >= self._cases_at:
            self._cases_at = time.monotonic() + CASES_SECONDS
            unlinked.sweep_leftovers()
            turn_files.sweep()
            working.sweep_folders()
            for case_id in running.waiting():
                case_leases.enqueue(case_id)

    def beat(self) -> None:
        """Write the heartbeat; delete those of clusters that ended long ago, and other rows that have expired."""
        now = timezone.now()
        WorkerHeartbeat.objects.update_or_create(
            name=self._cluster,
            # By the database's clock: readers of other hosts have clocks of their own.
            defaults={"beat_at": Now()},
            create_defaults={"beat_at": Now(), "started_at": self._started_at, "keys": shared_keys.fingerprints()},
        )
        WorkerHeartbeat.objects.filter(beat_at__lt=Now() - EXPIRED_AFTER).delete()
        sweep_replays(now=now)
        seen_texts.sweep(now)
        sent_blocks.sweep(now)
        page_links.sweep(now)
        sweep_sign_ins(now=now)
        downloads.sweep_exports(now)
        store_items.sweep_expired(now=now)
        delivering.sweep(now=now)
        verbs.sweep(now=now)


def ensure_schedules() -> None:
    """Make django-q2's rows of schedule as this version wants them: one of each name, though names are not unique."""
    for name, func in SCHEDULES.items():
        wanted = {"func": func, "schedule_type": Schedule.MINUTES, "minutes": SCHEDULE_MINUTES, "repeats": -1}
        rows = Schedule.objects.filter(name=name)
        if list(rows.values(*wanted)) == [wanted]:
            continue
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [SCHEDULE_LOCK])
            # Another process may have repaired the row during the wait.
            if list(rows.values(*wanted)) != [wanted]:
                rows.delete()
                Schedule.objects.create(name=name, **wanted)
