"""A client's requests: each is made once or until it is accepted, and every answer is noted."""

import http.client
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.soak.journal import Journal

REQUEST_SECONDS = 25.0
# A request that was refused is made again until then; what is not accepted by then is lost by the hub's fault.
LANDED_SECONDS = 180.0
AGAIN_SECONDS = 0.4
# What a worker was asked to do is done by then, faults and new attempts included.
WORKED_SECONDS = 300.0
# 0 is no answer at all.
AGAIN = (0, 429, 503)
BUSY = "idempotency_key_busy"


@dataclass(frozen=True)
class Answer:
    """Status 0: the connection was refused, or ended before the answer did."""

    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_accepted(self) -> bool:
        return 200 <= self.status < 300

    @property
    def code(self) -> str:
        return str(self.body.get("code", "")) if isinstance(self.body, dict) else ""

    @property
    def is_to_be_repeated(self) -> bool:
        return self.status in AGAIN or self.code == BUSY


class Caller:
    """One key, one journal."""

    def __init__(self, port: int, key: str, journal: Journal) -> None:
        self.journal = journal
        self._port, self._key = port, key

    def ask(
        self,
        do: str,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        told: Callable[[Answer], dict[str, Any]] = lambda answer: {},
        **noted: Any,
    ) -> Answer:
        """Make one request. `noted` stands in the journal beside the answer, and so does what `told` reads of it."""
        begun = time.monotonic()
        answer = self.send(method, path, body, headers or {})
        line = {"do": do, "status": answer.status, "ms": round((time.monotonic() - begun) * 1000), **noted}
        if answer.status >= 400:
            line |= {"code": answer.code, "retry_after": answer.headers.get("retry-after", "")}
        self.journal.note(**line, **told(answer))
        return answer

    def until_accepted(self, do: str, method: str, path: str, body: Any = None, **more: Any) -> Answer:
        """Repeat it while the hub says that it may be repeated, to the byte, a bounded time."""
        deadline = time.monotonic() + LANDED_SECONDS
        while True:
            answer = self.ask(do, method, path, body, **more)
            if not answer.is_to_be_repeated or time.monotonic() > deadline:
                return answer
            time.sleep(AGAIN_SECONDS)

    def send(self, method: str, path: str, body: Any, headers: Mapping[str, str]) -> Answer:
        content = body if body is None or isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
        sent = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json", **headers}
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=REQUEST_SECONDS)
        try:
            connection.request(method, path, content, sent)
            response = connection.getresponse()
            raw = response.read()
        except (OSError, http.client.HTTPException):
            return Answer(0)
        finally:
            connection.close()
        named = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, _read(raw), named)


def _read(raw: bytes) -> Any:
    """A document, or the text of a stream or page."""
    try:
        return json.loads(raw) if raw else None
    except ValueError:
        return raw.decode(errors="replace")


class Client(threading.Thread):
    """Takes one step after another at its own pace until it is told to end; a step that has begun is ended.

    The pace is bounded: what a fault held up is not made up for, so that the calm rate is the same before and after.
    """

    def __init__(self, name: str, step: Callable[[], None], *, every: float) -> None:
        super().__init__(name=name, daemon=True)
        self.error: Exception | None = None
        self._step, self._every = step, every
        self._enough = threading.Event()

    def run(self) -> None:
        try:
            while not self._enough.is_set():
                begun = time.monotonic()
                self._step()
                self._enough.wait(max(0.0, begun + self._every - time.monotonic()))
        except Exception as error:  # noqa: BLE001  (raised by who ends it)
            self.error = error

    def stop(self) -> None:
        self._enough.set()

    def end(self) -> None:
        self.join(WORKED_SECONDS + 2 * REQUEST_SECONDS)
        if self.is_alive():
            raise TimeoutError(f"{self.name} does not end")
        if self.error:
            raise RuntimeError(f"{self.name} broke off") from self.error
