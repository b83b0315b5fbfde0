"""The evaluation sets through the API of a hub: turns are posted, embedded by its embedder, and searched."""

import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import groupby
from typing import Any
from urllib.parse import quote

from evals import metrics
from evals.corpora import Corpus, Unit
from evals.hub import Hub
from evals.offline import LIMIT, Measured

MESSAGES_AT_ONCE = 100
LOOK_SECONDS = 0.2
# Of e5, for 3,000 turns.
EMBEDDED_WITHIN_SECONDS = 600.0


def measure(corpora: Iterable[Corpus], hub: Hub, prefix: str) -> Measured:
    """Each corpus is a person, named with `prefix`, of which nothing must be stored yet; every question is searched."""
    measured = Measured()
    fill(hub, "evaluated", [Unit("1", "s", "word", datetime.now(UTC))])
    for corpus in corpora:
        person = f"{prefix}-{corpus.id}"
        fill(hub, person, corpus.units)
        measured.most_units = max(measured.most_units, len(corpus.units))
        for question in (one for one in corpus.questions if one.gold):
            start = time.perf_counter()
            found = _ranked(hub, person, corpus.kind, question.text)
            measured.milliseconds.append(1000 * (time.perf_counter() - start))
            measured.rows.append((question.category, metrics.of_ranking(found, question.gold)))
    return measured


def fill(hub: Hub, person: str, units: Iterable[Unit]) -> dict[str, str]:
    """Post the turns of a person and wait until all have their vectors; the hub's id of each unit."""
    ids: dict[str, str] = {}
    for session, own in groupby(units, key=lambda unit: unit.session):
        for messages in _batches([_message(unit) for unit in own]):
            body = {"user_id": person, "session_id": session, "messages": messages}
            ids |= {turn["external_id"]: turn["id"] for turn in hub.call("POST", "/turns", body)["turns"]}
    wait_for_vectors(hub, person)
    return ids


def wait_for_vectors(hub: Hub, person: str) -> None:
    """Until all that was posted of the person can be found by its meaning."""
    deadline = time.monotonic() + EMBEDDED_WITHIN_SECONDS
    while not _is_embedded(hub, person):
        if time.monotonic() > deadline:
            raise SystemExit(f"The turns of {person} have no vectors after {EMBEDDED_WITHIN_SECONDS:g} s.")
        time.sleep(LOOK_SECONDS)


def model_of(hub: Hub) -> str:
    """The model that a search asks, as the hub itself says; somebody must have turns."""
    body = {"user_id": "evaluated", "query": "word", "explain": True}
    return str(hub.call("POST", "/search", body)["explain"]["embedding_model"])


def _ranked(hub: Hub, person: str, kind: str, query: str) -> list[str]:
    """Ids of the best units or sessions, best first."""
    body = {"user_id": person, "query": query, "kinds": [kind], "limit": LIMIT}
    name = "external_id" if kind == "turn" else "session_id"
    return [one[name] for one in hub.call("POST", "/search", body)["results"]]


def _message(unit: Unit) -> dict[str, Any]:
    return {"role": "user", "content": unit.text, "external_id": unit.id, "timestamp": unit.at.isoformat()}


def _batches(messages: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    for start in range(0, len(messages), MESSAGES_AT_ONCE):
        yield messages[start : start + MESSAGES_AT_ONCE]


def _is_embedded(hub: Hub, person: str) -> bool:
    pending: int = hub.call("GET", f"/users/detail?user_id={quote(person)}")["pending"]["embedding"]
    return pending == 0
