"""The version from before turns had authors is replaced by this one, on its data and while agents talk to it."""

import json
import shutil
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from memoryhub import embedded_postgres
from tests import older
from tests.commands.hub import RUNNING, Hub
from tests.e2e.test_main_path import Client
from tests.faults.conftest import Note
from tests.faults.hubs import assert_sound
from tests.faults.workers import wait_until
from tests.scratch import connect, scratch_folder

pytestmark = pytest.mark.soak

AGENTS = 4
# Turns of each before the old version ends, and with the new one.
AT_LEAST = 40
PAUSE_SECONDS, AGAIN_SECONDS = 0.05, 0.2
PATIENCE = 600.0
RULES = {"MEMORYHUB_LLM": "rules", "MEMORYHUB_DEBOUNCE_SECONDS": "1"}
# Each states something else.
HABITS = ("row on the canal", "bake rye bread", "mend clocks", "paint doors")
# An answer of a hub that ends or begins, and none.
AWAY = {"503", "URLError", "ConnectionResetError", "RemoteDisconnected", "TimeoutError"}


class Agent(threading.Thread):
    """Posts turns of one person one after the other, each until it is accepted, and asks for contexts between them."""

    def __init__(self, client: Client, number: int) -> None:
        super().__init__(daemon=True)
        self.person = f"person-{number}"
        self.accepted: list[str] = []
        self.refused: Counter[str] = Counter()
        # The longest time until a turn was accepted, in seconds.
        self.longest = 0.0
        self._client, self._habit, self._ended = client, HABITS[number], threading.Event()

    def run(self) -> None:
        number = 0
        while not self._ended.is_set():
            number += 1
            begun = time.monotonic()
            name = f"{self.person}-{number}"
            said = f"Please remember that I {self._habit} on day {number}." if number % 10 == 1 else f"Turn {number}."
            message = {"role": "user", "content": said, "external_id": name}
            body = {
                "user_id": self.person,
                "session_id": f"{self.person}-{number // 20}",
                "messages": [message],
                "flush": True,
            }
            while self._asked("/api/v1/turns", body) is None:
                time.sleep(AGAIN_SECONDS)
            self.accepted.append(name)
            self.longest = max(self.longest, time.monotonic() - begun)
            self._asked("/api/v1/context", {"user_id": self.person, "query": f"Do I {self._habit}?"})
            time.sleep(PAUSE_SECONDS)

    def end(self) -> None:
        self._ended.set()
        self.join(PATIENCE)

    def _asked(self, path: str, body: Any) -> Any:
        try:
            status, answer = self._client.call("POST", path, body)
        except (OSError, ValueError) as error:
            self.refused[type(error).__name__] += 1
            return None
        if status in (200, 202):
            return answer
        self.refused[str(status)] += 1
        return None


@pytest.fixture
def old() -> Iterator[Hub]:
    """A hub of the version of before, with its demo."""
    folder = scratch_folder()
    code = older.checkout(folder / "code", older.WITHOUT_AUTHORS)
    (folder / "home").mkdir(mode=0o711)
    hub = Hub(folder / "home", program=(older.python(code), str(code / "manage.py")))
    hub.run("up", **RULES)
    try:
        hub.wait_for(RUNNING)
        yield hub
    finally:
        hub.end()
        embedded_postgres.stop(hub.home)
        shutil.rmtree(folder)


def facts_of(client: Client, person: str) -> dict[str, str]:
    status, body = client.call("GET", f"/api/v1/facts?user_id={person}")
    assert status == 200, body
    return {fact["id"]: fact["content"] for fact in body["results"]}


def is_extracted(hub: Hub) -> bool:
    with connect(hub.home) as database:
        return database.execute("SELECT FROM memories_sessionqueue WHERE due_at IS NOT NULL").fetchone() is None


def test_it_is_replaced_while_agents_talk_to_it(old: Hub, note: Note) -> None:
    client = Client(old, json.loads((old.home / "demo.json").read_text(encoding="utf-8"))["api_key"])
    agents = [Agent(client, number) for number in range(AGENTS)]
    for agent in agents:
        agent.start()
    wait_until(lambda: min(len(agent.accepted) for agent in agents) >= AT_LEAST, within=PATIENCE)
    wait_until(lambda: all(facts_of(client, agent.person) for agent in agents), within=PATIENCE)
    before = {agent.person: facts_of(client, agent.person) for agent in agents}
    begun = time.monotonic()
    old.end()
    new = Hub(old.home)
    new.port = old.port
    new.run("up", **RULES)
    try:
        new.wait_for(RUNNING)
        note("an upgrade from the version without authors", time.monotonic() - begun, "until all runs again")
        then = {agent.person: len(agent.accepted) for agent in agents}
        wait_until(lambda: all(len(a.accepted) >= then[a.person] + AT_LEAST for a in agents), within=PATIENCE)
        for agent in agents:
            agent.end()
        wait_until(lambda: is_extracted(new), within=PATIENCE)
        for agent in agents:
            after = facts_of(client, agent.person)
            assert before[agent.person].items() <= after.items(), (before[agent.person], after)
            assert len(after) > len(before[agent.person])
            asked = {"user_id": agent.person, "query": f"Do I {HABITS[agents.index(agent)]}?"}
            status, context = client.call("POST", "/api/v1/context", asked)
            assert (status, HABITS[agents.index(agent)] in context["memory"]) == (200, True), context
            assert set(agent.refused) <= AWAY, agent.refused
        with connect(new.home) as database:
            rows = database.execute("SELECT external_id FROM memories_turn WHERE external_id ^@ 'person-'").fetchall()
        assert sorted(name for (name,) in rows) == sorted(name for agent in agents for name in agent.accepted)
        assert_sound(new)
    finally:
        new.end()
    longest = max(agent.longest for agent in agents)
    note("the longest post during it", longest, f"{sum(len(a.accepted) for a in agents)} turns, none lost or doubled")
