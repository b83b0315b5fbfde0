"""Hundreds of sessions that are due at one moment, and how they are worked off."""

import time

from django.db import connection
from django.db.models.functions import Now
from pytest_django import Settings

from memories import invariants
from memories.models import ExtractionRun, Session, SessionQueue
from tests import factories
from tests.faults.evidence import wrong

# A lease cannot be shorter than a call.
SHORT = {
    "MEMORYHUB_DEBOUNCE_SECONDS": "1",
    "MEMORYHUB_LEASE_SECONDS": "4",
    "MEMORYHUB_LLM_TIMEOUT": "3",
    "MEMORYHUB_LLM_CONCURRENCY": "1",
    "MEMORYHUB_LLM": "openai",
}


class Crowd:
    """Sessions of one turn and its reply, each of a person of its own; `mark` is in what these say, and nobody else."""

    def __init__(self, settings: Settings, size: int, mark: str) -> None:
        self.mark, self.size = mark, size
        self.done: list[float] = []
        self.begun = 0.0
        with_model, settings.MEMORYHUB_LLM = settings.MEMORYHUB_LLM, "off"
        tenant = factories.tenant()
        for number in range(size):
            said = (("user", f"I keep {mark} {number} 猫"), ("assistant", "Noted"))
            factories.session(factories.end_user(tenant), said)
        settings.MEMORYHUB_LLM = with_model
        self.sessions = Session.objects.filter(tenant=tenant)

    def become_due(self) -> None:
        """All of them, in one statement."""
        self.begun = time.monotonic()
        SessionQueue.objects.filter(session__in=self.sessions).update(due_at=Now())

    def work_off(self, *, within: float) -> float:
        """Wait until all are extracted or parked; returns the seconds since they became due."""
        while len(self.done) < self.size:
            assert time.monotonic() - self.begun < within, f"{len(self.done)} of {self.size} after {within} s"
            time.sleep(0.05)
            self.look()
        return self.done[-1]

    def look(self) -> None:
        """Note when how many were done."""
        waiting = SessionQueue.objects.filter(session__in=self.sessions, due_at__isnull=False).count()
        self.done += [time.monotonic() - self.begun] * (self.size - waiting - len(self.done))

    def seconds_for(self, share: float) -> float:
        """Until this share of them was done, without the tail that waits for back-offs."""
        return self.done[int(share * self.size) - 1]

    def wrong(self) -> dict[str, object]:
        """What is wrong with them; parked ones as well."""
        with connection.cursor() as cursor:
            found: dict[str, object] = dict(wrong(cursor, self.mark))
        return found | {broken.name: broken.ids for broken in invariants.check()}

    def runs(self, **conditions: object) -> int:
        return ExtractionRun.objects.filter(session__in=self.sessions, **conditions).count()
