"""Two hosts on one database, each with a file of its own of a heavy person's turns: what is posted to one is found
by the other, also when one was killed, and of who is erased neither serves or keeps anything."""

import itertools
import json
import shutil
import threading
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import psutil
import pytest

from memories.retrieval.turn_files import FILE_FROM
from memoryhub import embedded_postgres
from tests import homes
from tests.commands.hub import RUNNING, Hub
from tests.e2e.test_main_path import Client
from tests.faults.conftest import Note
from tests.faults.hubs import assert_sound, manage
from tests.faults.test_whole_hub import answered
from tests.faults.workers import as_url, wait_until
from tests.scratch import scratch_folder

pytestmark = pytest.mark.soak

HEAVY, BATCH, AT_LEAST, PATIENCE = FILE_FROM + 1_000, 100, 30, 600.0
OFF = {"MEMORYHUB_LLM": "off"}


class Hosts(NamedTuple):
    """The first has the database, web and worker; the second has a web server alone. The tests' environment gives both
    the same secrets."""

    first: Hub
    second: Hub
    key: str

    def start_second(self) -> None:
        self.second.run("web", DATABASE_URL=as_url(**embedded_postgres.runtime_connection(self.first.home)), **OFF)
        wait_until(lambda: answered(self.client(self.second), "GET", "/healthz")[0] == 200, within=PATIENCE)

    def client(self, hub: Hub) -> Client:
        return Client(hub, self.key)


class Crossing(threading.Thread):
    """Posts a turn to one host and searches for its word on the other, again and again, until it is answered."""

    def __init__(self, name: str, to: Client, at: Client) -> None:
        super().__init__(daemon=True)
        self.who, self.to, self.at = name, to, at
        self.rounds, self.missed = 0, list[str]()
        self.enough = threading.Event()

    def run(self) -> None:
        for number in itertools.count(1):
            if self.enough.is_set():
                return
            word = f"{self.who}{number}"
            said = {"role": "user", "content": f"The lamp {word} hangs in the hall", "external_id": word}
            body = {"user_id": "heavy", "session_id": self.who, "messages": [said]}
            until(self.to, 202, "/api/v1/turns", body)
            found = until(self.at, 200, "/api/v1/search", {"user_id": "heavy", "query": word, "kinds": ["turn"]})
            if word not in [one["external_id"] for one in found["results"]]:
                self.missed.append(word)
            self.rounds = number


def until(client: Client, status: int, path: str, body: Any) -> Any:
    while (answer := answered(client, "POST", path, body))[0] != status:
        assert answer[0] in {503, 0}, answer
        time.sleep(0.1)
    return answer[1]


def files(hub: Hub) -> list[str]:
    return [path.name for path in (hub.home / "indexes").glob("*.turns")]


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    folder = scratch_folder()
    for name in ("first", "second"):
        (folder / name).mkdir(mode=0o711)
    first, second = Hub(homes.make(folder / "first" / "home")), Hub(folder / "second" / "home")
    second.home.mkdir(mode=0o711)
    first.run("up", **OFF)
    try:
        first.wait_for(RUNNING)
        key = json.loads((first.home / "demo.json").read_text(encoding="utf-8"))["api_key"]
        made = Hosts(first, second, key)
        made.start_second()
        yield made
    finally:
        second.end()
        first.end()
        embedded_postgres.stop(first.home)
        shutil.rmtree(folder)


def test_each_finds_what_is_posted_to_the_other_and_nothing_is_left_of_who_is_erased(hosts: Hosts, note: Note) -> None:
    clients = [hosts.client(hosts.first), hosts.client(hosts.second)]
    for start in range(0, HEAVY, BATCH):
        texts = [f"On day {number} I fed cat {number} 猫" for number in range(start, start + BATCH)]
        messages = [{"role": "user", "content": text, "external_id": text} for text in texts]
        until(clients[0], 202, "/api/v1/turns", {"user_id": "heavy", "session_id": f"s{start}", "messages": messages})
    asked = {"user_id": "heavy", "query": "Which cat did I feed on day 77?", "kinds": ["turn"], "limit": 5}

    def is_whole(client: Client) -> bool:
        return "degraded" not in until(client, 200, "/api/v1/search", asked)

    wait_until(lambda: pending(clients[0]) == 0 and all(map(is_whole, clients)), within=PATIENCE)
    wait_until(lambda: files(hosts.first) == files(hosts.second) != [], within=PATIENCE)

    talks = [Crossing("east", *clients), Crossing("west", *reversed(clients))]
    for talk in talks:
        talk.start()
    wait_until(lambda: min(talk.rounds for talk in talks) >= AT_LEAST, within=PATIENCE)
    begun = time.monotonic()
    kill(hosts.second)
    hosts.start_second()
    note("one of two hosts' web servers killed", time.monotonic() - begun, "until it answers again")
    then = [talk.rounds for talk in talks]
    wait_until(
        lambda: all(one.rounds >= rounds + AT_LEAST for one, rounds in zip(talks, then, strict=True)), within=PATIENCE
    )
    for talk in talks:
        talk.enough.set()
        talk.join(PATIENCE)
    assert [talk.missed for talk in talks] == [[], []]
    found = [until(client, 200, "/api/v1/search", asked)["results"] for client in clients]
    assert found[0] == found[1] != []

    manage(hosts.first, "erase_user", "--tenant", "demo", "--user", "heavy")
    assert [until(client, 200, "/api/v1/search", asked)["results"] for client in clients] == [[], []]
    # A host that has web servers alone sweeps when it is asked about somebody, ten minutes after it last did.
    kill(hosts.second)
    hosts.start_second()
    said = {"role": "user", "content": "I feed nobody"}
    until(clients[0], 202, "/api/v1/turns", {"user_id": "other", "session_id": "s", "messages": [said]})
    until(clients[1], 200, "/api/v1/search", asked | {"user_id": "other"})
    wait_until(lambda: files(hosts.first) == files(hosts.second) == [], within=PATIENCE)
    assert_sound(hosts.first, **OFF)


def pending(client: Client) -> int:
    found: int = client.call("GET", "/api/v1/users/detail?user_id=heavy")[1]["pending"]["embedding"]
    return found


def kill(hub: Hub) -> None:
    for process in [*psutil.Process(hub.process.pid).children(recursive=True), psutil.Process(hub.process.pid)]:
        process.kill()
    hub.process.wait()
