"""32 clients on one session, 30 % of their posts doubled: every turn once, without gaps, replays to the byte."""

import http.client
import json
import random
import shutil
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from memoryhub import embedded_postgres
from tests.commands.hub import RUNNING, Hub
from tests.faults.conftest import Note
from tests.faults.hubs import assert_sound
from tests.scratch import connect, scratch_folder

pytestmark = pytest.mark.soak

CLIENTS, TURNS, DOUBLED = 32, 25, 0.3


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes


@pytest.fixture(scope="module")
def hub() -> Iterator[Hub]:
    folder = scratch_folder()
    hub = Hub(folder / "home")
    hub.run("up", MEMORYHUB_LLM="off")
    try:
        hub.wait_for(RUNNING)
        yield hub
    finally:
        hub.end()
        embedded_postgres.stop(hub.home)
        shutil.rmtree(folder)


def post(hub: Hub, key: str, once: str, body: bytes) -> Answer:
    """One request on a connection of its own, which is made again when the hub says that the first is not done."""
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json", "Idempotency-Key": once}
    while True:
        client = http.client.HTTPConnection("127.0.0.1", hub.port, timeout=60)
        client.request("POST", "/api/v1/turns", body, headers)
        response = client.getresponse()
        answer = Answer(response.status, response.read())
        client.close()
        if answer.status != 409:
            return answer


def talk(hub: Hub, key: str, client: int) -> list[tuple[int, list[Answer]]]:
    """The turns of one client in order, with all answers to each; doubles go out beside the first."""
    dice = random.Random(client)
    said: list[tuple[int, list[Answer]]] = []
    with ThreadPoolExecutor(2) as pool:
        for number in range(TURNS):
            message = {"role": "user", "content": f"client {client} says {number} 好"}
            body = json.dumps({"user_id": "crowd", "session_id": "s", "messages": [message]}).encode()
            once = str(uuid.UUID(int=dice.getrandbits(128)))
            posts = 2 if dice.random() < DOUBLED else 1
            said.append((number, list(pool.map(lambda _, o=once, b=body: post(hub, key, o, b), range(posts)))))
    return said


def test_one_session_by_many(hub: Hub, note: Note) -> None:
    key = json.loads((hub.home / "demo.json").read_text(encoding="utf-8"))["api_key"]
    begun = time.monotonic()
    with ThreadPoolExecutor(CLIENTS) as pool:
        talks = list(pool.map(lambda client: talk(hub, key, client), range(CLIENTS)))
    seconds = time.monotonic() - begun
    answers = [answers for said in talks for _, answers in said]
    doubled = [pair for pair in answers if len(pair) == 2]
    note("32 clients on one session", seconds, f"{len(answers)} turns, {len(doubled)} of them doubled")
    assert {answer.status for each in answers for answer in each} == {202}
    assert len(doubled) > 0.2 * len(answers)
    assert all(first == second for first, second in doubled), "a replay is the first answer to the byte"
    numbers = [[json.loads(each[0].body)["turns"][0]["number"] for _, each in said] for said in talks]
    assert all(own == sorted(own) for own in numbers), "each client's own order is kept"
    assert sorted(number for own in numbers for number in own) == list(range(1, CLIENTS * TURNS + 1))
    with connect(hub.home) as database:
        stored = database.execute(
            "SELECT number, content FROM memories_turn WHERE content LIKE 'client %' ORDER BY number"
        ).fetchall()
    told = [(number, f"client {c} says {n} 好") for c, own in enumerate(numbers) for n, number in enumerate(own)]
    assert stored == sorted(told)
    assert_sound(hub, MEMORYHUB_LLM="off")
