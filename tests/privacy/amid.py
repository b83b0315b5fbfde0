"""Rounds of an erasure while a poster, an extractor and an embedder are at work, with pauses drawn by the number.

Whatever the order, nothing of the person is left or comes back. The erasure begins once each has done something, and
the round ends once the poster was refused for good: none is a round in which nobody was in the way.
"""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.db import connections
from django.utils import timezone

from memories.capture import ingest
from memories.capture.ingest import PostedMessage
from memories.embedding import vectors
from memories.episodes import compaction
from memories.exceptions import MemoryHubError
from memories.extraction import consolidation
from memories.models import EndUser, PrivacyCase, Session, SessionQueue, Tenant
from memories.privacy import cases, running
from tests import factories
from tests.database import PATIENCE
from tests.factories import COMMAND
from tests.model import candidate
from tests.privacy.scan import marks_in

LONGEST_PAUSE = 0.03
WORDS = ("otters", "水獭", "bakery", "面包店", "harbour", "港口")


# Of the rounds so far, for the model.
marks: list[str] = []


@dataclass
class Round:
    """One person, and who is at work on them."""

    number: int
    tenant: Tenant = field(default_factory=factories.tenant)
    done: threading.Event = field(default_factory=threading.Event)
    said: list[str] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.user_id = f"round-{self.number:03}-nobody"
        self.mark = f"zorro{self.number:03}marker"
        marks.append(self.mark)

    def chance(self, who: str) -> random.Random:
        return random.Random(f"{self.number}-{who}")

    def post(self, chance: random.Random) -> None:
        """A turn; refused while the person is restricted, and for good afterwards."""
        text = f"{self.mark} {chance.choice(WORDS)} {chance.random()}"
        message = PostedMessage(role=chance.choice(["user", "assistant"]), content=text)
        session = f"{self.mark}-session-{chance.randrange(3)}"
        ingest.store_turns(
            tenant=self.tenant, user_id=self.user_id, messages=[message], session_id=session, agent_id=""
        )
        self.seen["posted"] += 1

    def extract(self, chance: random.Random) -> None:
        sessions = list(Session.objects.filter(tenant=self.tenant))
        if sessions:
            chosen = chance.choice(sessions)
            SessionQueue.objects.filter(pk=chosen.pk).update(due_at=timezone.now() - timedelta(hours=1))
            run = consolidation.consolidate(session_id=chosen.pk, now=timezone.now())
            self.seen["extracted"] += bool(run and run.status == "committed")
            compaction.compact(session_id=chosen.pk, now=timezone.now())

    def embed(self, chance: random.Random) -> None:
        self.seen["embedded"] += bool(vectors.embed_some().moved)

    def erase(self) -> PrivacyCase:
        given: dict[str, Any] = {"actor": COMMAND, "now": timezone.now()}
        case = cases.open_case(tenant=self.tenant, user_id=self.user_id, type="erasure", **given)
        steps: list[tuple[Callable[..., PrivacyCase], dict[str, Any]]] = [
            (cases.verify_identity, {"how": "shell"}),
            (cases.scope_case, {"policy": "refuse"}),
            (cases.approve_case, {"typed_id": ""}),
        ]
        for verb, more in steps:
            time.sleep(self.chance("erasure").uniform(0, LONGEST_PAUSE))
            verb(case_id=case.pk, expected_version=None, **more, **given)
        return running.carry_out(case_id=case.pk, now=timezone.now())

    def wait_for(self, *what: str) -> None:
        """Until each of these has happened in this round."""
        patient_until = time.monotonic() + PATIENCE
        while not all(self.seen[one] for one in what):
            assert time.monotonic() < patient_until, self.seen
            time.sleep(0.005)

    def work(self, who: str, act: Callable[[random.Random], None]) -> None:
        """Again and again until the round is over; what is refused is refused."""
        chance = self.chance(who)
        try:
            while not self.done.is_set():
                try:
                    act(chance)
                except MemoryHubError as error:
                    self.seen[type(error).__name__] += 1
                time.sleep(chance.uniform(0, LONGEST_PAUSE))
        finally:
            connections.close_all()


def play(number: int, home: Path) -> Counter[str]:
    """One round; what happened in it. Errors: AssertionError when anything is left, or came back."""
    one = Round(number)
    workers = {"poster": one.post, "extractor": one.extract, "embedder": one.embed}
    with ThreadPoolExecutor(len(workers)) as pool:
        futures = [pool.submit(one.work, who, act) for who, act in workers.items()]
        try:
            one.wait_for("posted", "extracted", "embedded")
            time.sleep(one.chance("beginning").uniform(0, LONGEST_PAUSE))
            case = one.erase()
            one.wait_for("Erased")
        finally:
            one.done.set()
        for future in futures:
            future.result()
    assert case.state == "completed", (number, case.state, case.failure, case.findings)
    assert marks_in([one.mark, one.user_id], home) == {}, number
    assert not EndUser.objects.filter(tenant=one.tenant).exists(), number
    return one.seen


def answer() -> dict[str, Any]:
    """What the scripted model says: it repeats the round's marker, after a moment in which much may happen."""
    time.sleep(random.uniform(0, LONGEST_PAUSE))
    return {"new_facts": [candidate(f"{marks[-1]} keeps {random.random()} otters")]}
