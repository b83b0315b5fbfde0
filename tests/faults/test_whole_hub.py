"""`manage.py up` with its database or its worker killed while turns come in: what was accepted is there, once."""

import http.client
import itertools
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from memoryhub.embedded_postgres.place import locate
from tests.commands.hub import Hub, wait_until
from tests.e2e.test_main_path import Client
from tests.faults.hubs import hub_asking
from tests.faults.parrot import repeat

HEALED_SECONDS = 60.0


@pytest.fixture(scope="module")
def hub() -> Iterator[Hub]:
    with hub_asking(repeat) as hub:
        yield hub


def answered(client: Client, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """The status, which is 0 where no answer came, and what was answered."""
    try:
        return client.call(method, path, body)
    except (OSError, http.client.HTTPException):
        return 0, {}


class Talk(threading.Thread):
    """Posts one round after another to a session, each until it is accepted; notes every answer."""

    said = "I keep cat {number} 猫"

    def __init__(self, hub: Hub, user: str) -> None:
        super().__init__(daemon=True)
        demo = json.loads((hub.home / "demo.json").read_text(encoding="utf-8"))
        self.client, self.user = Client(hub, demo["api_key"]), user
        self.statuses: list[int] = []
        self.rounds = 0
        self._enough = threading.Event()

    def run(self) -> None:
        for number in itertools.count(1):
            if self._enough.is_set():
                return
            while self._post(number) != 202:
                time.sleep(0.1)
            self.rounds = number

    def end(self) -> None:
        self._enough.set()
        self.join(HEALED_SECONDS)
        assert not self.is_alive()

    def read(self, path: str) -> Any:
        return answered(self.client, "GET", f"{path}?user_id={self.user}")

    def _post(self, number: int) -> int:
        said = [("user", self.said.format(number=number), "u"), ("assistant", "Noted", "a")]
        messages = [{"role": role, "content": text, "external_id": f"{who}{number}"} for role, text, who in said]
        body = {"user_id": self.user, "session_id": "s", "messages": messages}
        self.statuses.append(answered(self.client, "POST", "/api/v1/turns", body)[0])
        return self.statuses[-1]


def kill_database(hub: Hub) -> None:
    lines = (locate(hub.home).data / "postmaster.pid").read_text(encoding="utf-8").splitlines()
    os.kill(int(lines[0]), signal.SIGKILL)


def kill_worker(hub: Hub) -> None:
    os.kill(hub.pid("worker"), signal.SIGKILL)


@pytest.mark.parametrize("kill", [kill_database, kill_worker])
def test_killed_during_ingest(hub: Hub, kill: Any) -> None:
    talk = Talk(hub, kill.__name__)
    talk.start()
    wait_until(lambda: talk.rounds > 20)
    kill(hub)
    killed_at, rounds = time.monotonic(), talk.rounds
    wait_until(lambda: talk.rounds > rounds + 20)
    talk.end()
    print(f"accepting again {time.monotonic() - killed_at:.1f} s after the kill")  # noqa: T201
    assert set(talk.statuses) <= {202, 503}, "an outage is told as one"

    def is_done() -> bool:
        status, detail = talk.read("/api/v1/users/detail")
        return bool(status == 200 and detail["pending"]["extraction"] == 0)

    wait_until(is_done)
    seconds = time.monotonic() - killed_at
    print(f"all extracted {seconds:.1f} s after the kill")  # noqa: T201
    assert seconds < HEALED_SECONDS
    counts = talk.read("/api/v1/users/detail")[1]["counts"]
    assert counts["turns"] == 2 * talk.rounds
    runs = [run for run in talk.read("/api/v1/extractions")[1]["results"] if run["status"] == "committed"]
    ranges = sorted((run["range"]["first"], run["range"]["last"]) for run in runs)
    covered = [number for first, last in ranges for number in range(first, last + 1)]
    assert covered == list(range(1, counts["turns"] + 1))
    wait_until(lambda: talk.read("/readyz")[0] == 200)
