"""Agents that tell a hub whole conversations, whatever is killed meanwhile, and how long its work takes."""

import http.client
import itertools
import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import psycopg

from evals.talks import Session, Talk
from memoryhub.embedded_postgres import EmbeddedPostgresError
from tests.commands.hub import Hub
from tests.e2e.test_main_path import Client
from tests.faults.workers import wait_until
from tests.scratch import connect

# Few enough for the worker to keep up, so that sessions are worked on while they are posted.
AT_ONCE = 4
# So many rounds of a session are posted at a time, at most, and one pause is as long as another; in the longest one
# what was posted is extracted.
MOST_ROUNDS = 2
PAUSES = (0.0, 0.1, 0.3, 2.0)
# After an answer that is none.
AGAIN_SECONDS = 0.2
DRAINED_WITHIN_SECONDS = 900.0

# Rows that somebody is to look at: also a session that is to fall idle has one.
WAITING = """
    SELECT (SELECT count(*) FROM memories_sessionqueue WHERE due_at IS NOT NULL)
        + (SELECT count(*) FROM memories_workingmemory WHERE due_at IS NOT NULL)
        + (SELECT count(*) FROM memories_session WHERE embedded_number < turn_count)
        + (SELECT count(*) FROM memories_fact
            WHERE status IN ('active', 'pending') AND embedded_hash IS DISTINCT FROM content_hash)
        + (SELECT count(*) FROM memories_episode
            WHERE status <> 'trashed' AND embedded_hash IS DISTINCT FROM content_hash)
"""


@dataclass(frozen=True)
class Took:
    """Seconds until the last message was accepted, and from then on until nothing was left to do."""

    posting: float
    draining: float


def post_all(hub: Hub, talks: Sequence[Talk], *, seed: int = 0) -> Took:
    """Tell all of them, some people at once, and wait until the hub has done its work."""
    key = json.loads((hub.home / "demo.json").read_text(encoding="utf-8"))["api_key"]
    begun = time.monotonic()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda talk: _post_talk(Client(hub, key), talk, random.Random(f"{seed} {talk.person}")), talks))
    posted = time.monotonic()
    return Took(posted - begun, wait_until_drained(hub))


def wait_until_drained(hub: Hub) -> float:
    """The seconds that it took."""
    return wait_until(lambda: is_drained(hub), within=DRAINED_WITHIN_SECONDS)


def is_drained(hub: Hub) -> bool:
    """Nothing is left to do, now or later; False also while the database is away."""
    try:
        with connect(hub.home) as database:
            row = database.execute(WAITING).fetchone()
    except (psycopg.OperationalError, EmbeddedPostgresError, OSError):
        return False
    return row == (0,)


def _post_talk(client: Client, talk: Talk, dice: random.Random) -> None:
    for session in talk.sessions:
        for messages in _parts(session, dice):
            _until_accepted(client, "/api/v1/turns", _named(talk, session, messages=messages))
            time.sleep(dice.choice(PAUSES))
        if session.ends:
            _until_accepted(client, "/api/v1/sessions/end", _named(talk, session))


def _named(talk: Talk, session: Session, **more: Any) -> dict[str, Any]:
    return {"user_id": talk.person, "session_id": session.name, **more}


def _parts(session: Session, dice: random.Random) -> Iterator[list[dict[str, str]]]:
    """Whole rounds: a reply alone, after what it answers was extracted, is passed over (rules.md, 1.3)."""
    rounds = iter(rounds_of(session.messages))
    while some := list(itertools.islice(rounds, dice.randint(1, MOST_ROUNDS))):
        yield list(itertools.chain.from_iterable(some))


def rounds_of(messages: Sequence[dict[str, str]]) -> list[list[dict[str, str]]]:
    """Of a user's turns with the replies to them; what comes before the first belongs to it. By its own id a message
    that is sent again is known."""
    rounds: list[list[dict[str, str]]] = [[]]
    for place, message in enumerate(messages):
        is_next = message["role"] == "user" and any(one["role"] == "user" for one in rounds[-1])
        if is_next and rounds[-1][-1]["role"] != "user":
            rounds.append([])
        rounds[-1].append({**message, "external_id": str(place)})
    return rounds


def _until_accepted(client: Client, path: str, body: dict[str, Any]) -> None:
    deadline = time.monotonic() + DRAINED_WITHIN_SECONDS
    while (status := _status(lambda: client.call("POST", path, body)[0])) not in (200, 202):
        assert status in (0, 503), f"{path} answered {status}"
        assert time.monotonic() < deadline
        time.sleep(AGAIN_SECONDS)


def _status(post: Callable[[], int]) -> int:
    """0 where nobody answered."""
    try:
        return post()
    except (OSError, http.client.HTTPException, json.JSONDecodeError):
        return 0
