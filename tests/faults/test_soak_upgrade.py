"""The version from before turns had authors is replaced by this one, on its data and while agents talk to it."""

import shutil
import time
from collections.abc import Iterator

import pytest

from memoryhub import embedded_postgres
from tests import older
from tests.commands.hub import RUNNING, Hub
from tests.faults.conftest import Note
from tests.faults.hubs import assert_sound
from tests.faults.test_whole_hub import Talk, answered
from tests.faults.workers import wait_until
from tests.scratch import connect, scratch_folder

pytestmark = pytest.mark.soak

AGENTS = 4
# Rounds of each before the old version ends, and with the new one.
AT_LEAST = 40
PATIENCE = 600.0
RULES = {"MEMORYHUB_LLM": "rules", "MEMORYHUB_DEBOUNCE_SECONDS": "1"}
# An answer of a hub that ends or begins, and none.
AWAY = {503, 0}


class Agent(Talk):
    """Asks for a context after each round, too."""

    said = "Please remember that I keep cat {number} 猫"

    def _post(self, number: int) -> int:
        if (status := super()._post(number)) == 202:
            self.statuses.append(answered(self.client, "POST", "/api/v1/context", asking(self.user))[0])
        return status


def asking(person: str) -> dict[str, str]:
    return {"user_id": person, "query": "Which cats do I keep?"}


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


def facts_of(agent: Agent) -> dict[str, str]:
    status, body = agent.read("/api/v1/facts")
    assert status == 200, body
    return {fact["id"]: fact["content"] for fact in body["results"]}


def is_extracted(agent: Agent) -> bool:
    status, detail = agent.read("/api/v1/users/detail")
    return bool(status == 200 and detail["pending"]["extraction"] == 0)


def test_it_is_replaced_while_agents_talk_to_it(old: Hub, note: Note) -> None:
    agents = [Agent(old, f"person-{number}") for number in range(AGENTS)]
    for agent in agents:
        agent.start()
    wait_until(lambda: min(agent.rounds for agent in agents) >= AT_LEAST, within=PATIENCE)
    wait_until(lambda: all(map(facts_of, agents)), within=PATIENCE)
    before = {agent.user: facts_of(agent) for agent in agents}
    begun = time.monotonic()
    old.end()
    new = Hub(old.home)
    new.port = old.port
    new.run("up", **RULES)
    try:
        new.wait_for(RUNNING)
        note("an upgrade from the version without authors", time.monotonic() - begun, "until all runs again")
        then = {agent.user: agent.rounds for agent in agents}
        wait_until(lambda: all(one.rounds >= then[one.user] + AT_LEAST for one in agents), within=PATIENCE)
        for agent in agents:
            agent.end()
        wait_until(lambda: all(map(is_extracted, agents)), within=PATIENCE)
        for agent in agents:
            assert set(agent.statuses) <= {200, 202} | AWAY
            for name, content in before[agent.user].items():
                assert agent.client.call("GET", f"/api/v1/facts/{name}")[1]["content"] == content
            status, context = agent.client.call("POST", "/api/v1/context", asking(agent.user))
            assert (status, "cat" in context["memory"]) == (200, True), context
        with connect(new.home) as database:
            rows = database.execute(
                "SELECT p.external_id, t.external_id FROM memories_turn t "
                "JOIN memories_enduser p ON p.id = t.end_user_id WHERE p.external_id ^@ 'person-'"
            ).fetchall()
        numbers = {agent.user: range(1, agent.rounds + 1) for agent in agents}
        told = [(user, f"{who}{number}") for user, all_of in numbers.items() for number in all_of for who in "ua"]
        assert sorted(rows) == sorted(told)
        assert_sound(new)
    finally:
        new.end()
