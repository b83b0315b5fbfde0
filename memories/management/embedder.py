"""The embedder: one process beside the cluster, so that no text waits behind a worker that waits for a model."""

import logging
import os
import socket
import threading
import time
import uuid

from django.db import DatabaseError, InterfaceError, close_old_connections, connections
from django.utils import timezone

from memories.exceptions import EmbeddingError
from memories.llm import embeddings
from memories.management.supervision import StopRequests
from memories.models import EmbeddingSpace, WorkerHeartbeat, WorkerKind
from memories.pipeline import spaces, vectors
from memories.pipeline.embedding import Round

LOOK_SECONDS = 1.0
BEAT_SECONDS = 5.0
# A session that somebody held all the time is looked at again after so long.
PASSED_OVER_SECONDS = 10.0
OUTAGE_PAUSE_SECONDS = 1.0
NO_SPACE_PAUSE_SECONDS = 10.0
# Longer than any batch takes: it is stuck, and a new process does better.
STUCK_SECONDS = 1_200.0

logger = logging.getLogger(__name__)


class Embedder:
    """Embeds what waits until it is asked to stop. Of all embedders of a database one works, the others stand by."""

    def __init__(self) -> None:
        self.turned_at = time.monotonic()
        self._in_charge = False
        self._passed_over: dict[uuid.UUID, float] = {}
        self._failure = ""

    def run(self) -> None:
        """Blocks until a signal asks for the end; a batch at work is finished before."""
        with StopRequests() as requests:
            self._load()
            Pulse(self).start()
            while not requests.count:
                pause = self.turn()
                self._wait(requests, pause)

    def turn(self) -> float:
        """One batch, or a look at nothing to do; returns the seconds to wait before the next one."""
        self.turned_at = time.monotonic()
        try:
            self._in_charge = self._in_charge or spaces.try_lock(spaces.EMBEDDING)
            done = vectors.embed_some(passing_over=self._held()) if self._in_charge else Round()
        except (DatabaseError, InterfaceError) as error:
            # The lock went with the connection.
            logger.warning("The embedder cannot use the database: %s", type(error).__name__)
            connections.close_all()
            self._in_charge = False
            return OUTAGE_PAUSE_SECONDS
        except EmbeddingError as error:
            self._note(error.code)
            return NO_SPACE_PAUSE_SECONDS
        self._note(done.failure)
        self._passed_over |= dict.fromkeys(done.held, time.monotonic() + PASSED_OVER_SECONDS)
        return 0.0 if done.moved else LOOK_SECONDS

    def _load(self) -> None:
        try:
            embeddings.warm(_model())
        except EmbeddingError as error:
            self._note(error.code)

    def _held(self) -> list[uuid.UUID]:
        now = time.monotonic()
        self._passed_over = {session: until for session, until in self._passed_over.items() if until > now}
        return list(self._passed_over)

    def _note(self, failure: str) -> None:
        """Once for each change: an outage of hours is one line."""
        if failure and failure != self._failure:
            logger.warning("Texts cannot be embedded (%s): they are found by their words until they are", failure)
        self._failure = failure

    def _wait(self, requests: StopRequests, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not requests.count and time.monotonic() < until:
            time.sleep(0.1)


class Pulse(threading.Thread):
    """Writes the embedder's sign of life, for as long as it turns."""

    def __init__(self, embedder: Embedder) -> None:
        super().__init__(name="pulse", daemon=True)
        self._embedder = embedder
        self._name = f"{socket.gethostname()}:{os.getpid()}:embedder"
        self._started_at = timezone.now()

    def run(self) -> None:
        while True:
            if time.monotonic() - self._embedder.turned_at > STUCK_SECONDS:
                logger.error("The embedder is stuck: ending it")
                os._exit(1)
            try:
                close_old_connections()
                self.beat()
            except (DatabaseError, InterfaceError):
                connections.close_all()
            time.sleep(BEAT_SECONDS)

    def beat(self) -> None:
        """Note that the embedder lives."""
        now = timezone.now()
        WorkerHeartbeat.objects.update_or_create(
            name=self._name,
            defaults={"beat_at": now},
            create_defaults={"beat_at": now, "started_at": self._started_at, "kind": WorkerKind.EMBEDDER},
        )


def _model() -> str:
    """The one that serves, if this environment has it, else the configured one."""
    try:
        model = EmbeddingSpace.objects.serving().values_list("model", flat=True).first()
    except (DatabaseError, InterfaceError):
        connections.close_all()
        model = None
    return model if model and embeddings.is_available(model) else embeddings.current_model()
