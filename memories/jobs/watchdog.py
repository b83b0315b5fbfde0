"""Notices a django-q2 cluster that hangs: it looks alive and takes no work. Ends leases of processes that are gone."""

import logging
import threading
import time
from collections import deque
from collections.abc import Sequence

from django.db import DatabaseError, InterfaceError, connections
from django_q.tasks import async_task

from memories.attachments import reading
from memories.curation import policy_trials
from memories.curation.imports import verbs
from memories.curation.skills import proposing
from memories.dream import dreaming
from memories.forgetting import decay, upkeep
from memories.models import (
    Attachment,
    DecayPass,
    Dream,
    Import,
    OperatorMail,
    PolicyTrial,
    PrivacyCase,
    RetentionPass,
    SkillPass,
    WebhookDelivery,
)
from memories.models.leases import Leased
from memories.privacy import case_leases, reminders, retention, running
from memories.queue import backlog, leases
from memories.queue.backlog import Backlog
from memories.webhooks import delivering

LOOK_SECONDS = 1.0
# So many looks in a row must agree. A single one may fall between two batches, or just after an outage.
LOOKS = 8
OVERDUE_SECONDS = 12.0
BEAT_SECONDS = 15.0
# The tasks that look for rows whose lease has ended. Sessions need none: the broker sweeps them twice a second.
LOOKING_FOR: dict[type[Leased], tuple[str, ...]] = {
    DecayPass: (decay.FORGET_TASK, upkeep.UPKEEP_TASK),
    RetentionPass: (retention.TASK,),
    Dream: (dreaming.TASK,),
    WebhookDelivery: (delivering.TASK,),
    OperatorMail: (reminders.TASK,),
    PolicyTrial: (policy_trials.TASK,),
    Import: (verbs.TASK,),
    Attachment: (reading.TASK,),
    SkillPass: (proposing.TASK,),
}

logger = logging.getLogger(__name__)


def is_wedged(looks: Sequence[Backlog], *, pool: int) -> bool:
    """Whether a cluster of `pool` processes hangs, by the last LOOKS at the queue, about a second apart.

    Two signs: the same work stays first in line although a process is free, or the heartbeat stopped. The heartbeat
    stops when the cluster's own pool takes no work, so a hanging cluster shows beside another one that does all work.
    """
    if len(looks) < LOOKS:
        return False
    silent = all(look.beat_age is None or look.beat_age > BEAT_SECONDS for look in looks)
    # Leases of other clusters count as well: the mistake is then to wait longer.
    stuck = all(look.first == looks[0].first and look.claimed < pool for look in looks)
    return silent or (stuck and looks[0].first is not None and looks[-1].waited > OVERDUE_SECONDS)


def end_orphaned() -> int:
    """End leases of processes of this machine that are gone, and send workers to their rows; how many ended."""
    return leases.end_orphaned(leases.orphaned(), wake=_enqueue)


def _enqueue(model: type[Leased]) -> None:
    for task in LOOKING_FOR.get(model, ()):
        async_task(task)
    if model is PrivacyCase:
        for case_id in running.waiting():
            case_leases.enqueue(case_id)


class Watchdog(threading.Thread):
    """Looks at the queue while a cluster runs. It is a thread because a database that hangs must not delay signals."""

    def __init__(self, *, cluster: str, pool: int) -> None:
        """`cluster` is the name of its heartbeat."""
        super().__init__(name="watchdog", daemon=True)
        self.wedged = threading.Event()
        self._ended = threading.Event()
        self._cluster, self._pool = cluster, pool
        self._looks: deque[Backlog] = deque(maxlen=LOOKS)
        # A cluster that still starts has no heartbeat yet.
        self._starting_until = time.monotonic() + BEAT_SECONDS

    def run(self) -> None:
        while not self._ended.wait(LOOK_SECONDS) and not self.wedged.is_set():
            self._look()
        connections.close_all()

    def end(self) -> None:
        self._ended.set()

    def _look(self) -> None:
        try:
            look = backlog.look(cluster=self._cluster)
            # Of a process of the pool, or of the cluster before this one.
            if ended := end_orphaned():
                logger.info("%d leases have ended: the processes that held them are gone", ended)
        except (DatabaseError, InterfaceError):
            # An outage does not show whether the cluster hangs. Begin anew, so that the cluster notices its end first.
            self._looks.clear()
            connections.close_all()
            return
        if look.beat_age is None and time.monotonic() < self._starting_until:
            return
        self._looks.append(look)
        if is_wedged(self._looks, pool=self._pool):
            self.wedged.set()
