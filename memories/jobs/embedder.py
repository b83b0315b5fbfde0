"""The embedder: one process beside the cluster, so that no text waits behind a worker that waits for a model."""

import logging
import os
import socket
import threading
import time
import uuid

from django.db import DatabaseError, InterfaceError, close_old_connections, connections
from django.db.models.functions import Now
from django.utils import timezone

from memories.conf import shared_keys
from memories.db.sessions import own_session
from memories.embedding import judging, spaces, vectors
from memories.embedding.batching import Round
from memories.exceptions import EmbeddingError
from memories.jobs.supervision import StopRequests, wait_until
from memories.llm import embeddings
from memories.models import EmbeddingSpace, WorkerHeartbeat, WorkerKind

LOOK_SECONDS = 1.0
BEAT_SECONDS = 5.0
# A session that somebody else held gets its next try after so long.
HELD_SECONDS = 10.0
# Turns without a verdict are looked for again so long after there were no more.
JUDGED_SECONDS = 600.0
OUTAGE_PAUSE_SECONDS = 1.0
NO_SPACE_PAUSE_SECONDS = 10.0
# Longer than any batch takes: the embedder hangs, and a new process does better.
STUCK_SECONDS = 1_200.0

logger = logging.getLogger(__name__)


class Embedder:
    """Embeds waiting texts until a stop signal. Of all embedders of a database one works, the others stand by."""

    def __init__(self) -> None:
        self.active_at = time.monotonic()
        self._is_locked = False
        self._held_until: dict[uuid.UUID, float] = {}
        self._failure = ""
        self._judged_until = judging.FIRST
        self._judge_at = 0.0

    def run(self) -> None:
        """Blocks until a stop signal. A batch that has begun is finished first."""
        # The lock of the one that works is its session's.
        with StopRequests() as requests, own_session():
            try:
                embeddings.preload(_model())
            except EmbeddingError as error:
                self._note(error.code)
            EmbedderPulse(self).start()
            while not requests.count:
                wait_until(lambda: requests.count > 0, self.step())

    def step(self) -> float:
        """Embed one batch, if there is one. Returns the seconds to wait before the next step."""
        self.active_at = now = time.monotonic()
        self._held_until = {session: until for session, until in self._held_until.items() if until > now}
        try:
            self._is_locked = self._is_locked or spaces.try_lock(spaces.EMBEDDING)
            done = vectors.embed_some(passing_over=list(self._held_until)) if self._is_locked else Round()
            has_more = self._is_locked and not done.moved and self._judge()
        except (DatabaseError, InterfaceError) as error:
            # The lock ended with the connection.
            logger.warning("The embedder cannot use the database: %s", type(error).__name__)
            connections.close_all()
            self._is_locked = False
            return OUTAGE_PAUSE_SECONDS
        except EmbeddingError as error:
            self._note(error.code)
            return NO_SPACE_PAUSE_SECONDS
        self._note(done.failure)
        self._held_until |= dict.fromkeys(done.held, time.monotonic() + HELD_SECONDS)
        return 0.0 if done.moved or has_more else LOOK_SECONDS

    def _judge(self) -> bool:
        """Judge some stored turns when nothing waits to be embedded; whether there may be more."""
        if time.monotonic() < self._judge_at:
            return False
        until = judging.judge_some(self._judged_until)
        if until is None:
            self._judge_at = time.monotonic() + JUDGED_SECONDS
            return False
        self._judged_until = until
        return True

    def _note(self, failure: str) -> None:
        """Log each change once: an outage of hours is one line."""
        if failure and failure != self._failure:
            logger.warning("Texts cannot be embedded (%s): they are found by their words until they are", failure)
        self._failure = failure


def _model() -> str:
    """The serving model, if this environment has it, else the configured one."""
    try:
        model = EmbeddingSpace.objects.serving().values_list("model", flat=True).first()
    except (DatabaseError, InterfaceError):
        connections.close_all()
        model = None
    return model if model and embeddings.is_available(model) else embeddings.current_model()


class EmbedderPulse(threading.Thread):
    """Writes the embedder's heartbeat for as long as it is active."""

    def __init__(self, embedder: Embedder) -> None:
        super().__init__(name="pulse", daemon=True)
        self._embedder = embedder
        self._name = f"{socket.gethostname()}:{os.getpid()}:embedder"
        self._started_at = timezone.now()

    def run(self) -> None:
        while True:
            if time.monotonic() - self._embedder.active_at > STUCK_SECONDS:
                logger.error("The embedder is stuck: ending it")
                os._exit(1)
            try:
                close_old_connections()
                self.beat()
            except (DatabaseError, InterfaceError):
                connections.close_all()
            time.sleep(BEAT_SECONDS)

    def beat(self) -> None:
        # By the database's clock: readers of other hosts have clocks of their own.
        WorkerHeartbeat.objects.update_or_create(
            name=self._name,
            defaults={"beat_at": Now()},
            create_defaults={
                "beat_at": Now(),
                "started_at": self._started_at,
                "kind": WorkerKind.EMBEDDER,
                "keys": shared_keys.fingerprints(),
            },
        )
