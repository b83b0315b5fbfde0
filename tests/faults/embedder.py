"""An embedding endpoint on loopback, an embedder as a thread, and clients that search meanwhile."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.db import connection

from memories.embedding import vectors
from tests.api.client import HubClient

PATIENCE = 60.0


class Background(threading.Thread):
    """Does `step` again and again until told to end; what it raises is raised by `end`."""

    def __init__(self, step: Callable[[], Any], *, pause: float = 0.02) -> None:
        super().__init__(daemon=True)
        self._step, self._pause = step, pause
        self._enough = threading.Event()
        self._error: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            while not self._enough.wait(self._pause):
                self._step()
        except Exception as error:  # noqa: BLE001  (handed to the test)
            self._error = error
        finally:
            connection.close()

    def end(self) -> None:
        self._enough.set()
        self.join(PATIENCE)
        assert not self.is_alive()
        if self._error:
            raise self._error


def embedder() -> Background:
    """The embedder's loop, without its charge and its sign of life."""
    return Background(vectors.embed_some)


@dataclass
class Answered:
    """One answer: how it ended, its seconds, and of a search the model and the best text."""

    what: str
    status: int
    seconds: float
    model: str | None = None
    best: str = ""


@dataclass
class Visitor:
    """A caller that notes every answer."""

    key: str
    answers: list[Answered] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._client = HubClient(self.key)

    def post(self, text: str) -> None:
        self._call("/turns", {"user_id": "u1", "session_id": "s1", "messages": [{"role": "user", "content": text}]})

    def context(self, query: str) -> None:
        self._call("/context", {"user_id": "u1", "query": query})

    def search(self, query: str) -> None:
        body = {"user_id": "u1", "query": query, "kinds": ["turn"], "limit": 1, "explain": True}
        found = self._call("/search", body)
        self.answers[-1].model = found["explain"]["embedding_model"]
        self.answers[-1].best = found["results"][0]["text"] if found["results"] else ""

    def pending(self) -> int:
        waiting: int = self._client.get("/users/detail", user_id="u1").json()["pending"]["embedding"]
        return waiting

    def _call(self, path: str, body: dict[str, Any]) -> Any:
        begun = time.monotonic()
        answer = self._client.post(path, body)
        self.answers.append(Answered(path, answer.status_code, time.monotonic() - begun))
        return answer.json()
