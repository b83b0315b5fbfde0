"""Rows about extraction: a hub of its own, whose model is on loopback and takes 50 ms to repeat what was said."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from benchmarks import load
from benchmarks.figures import Figure, at_most
from benchmarks.load import Server
from benchmarks.rows import row
from benchmarks.stage import Stage, another
from tests.faults.parrot import Parrot
from tests.llm import endpoint

MODEL_SECONDS = 0.05
DEBOUNCE_SECONDS = 1
DUE_SESSIONS = 500
A_BULK = 100


class Rig(NamedTuple):
    """A hub with a model, and the model."""

    hub: Server
    model: Parrot


@row("fresh")
def fresh(stage: Stage) -> Iterator[Figure]:
    """From a post to its fact in the person's context, one after the other, beyond the quiet time and the model's."""
    with opened_rig() as rig:
        waited = sorted(_seconds_until_served(rig.hub, place) for place in range(max(2, stage.size.requests // 5)))
    late = waited[int(len(waited) * 0.95)] - DEBOUNCE_SECONDS - MODEL_SECONDS
    yield Figure("from post to fact in context, beyond debounce and model, p95", late, "s", at_most(3, 1))


@row("due")
def due(stage: Stage) -> Iterator[Figure]:
    """Sessions posted within a second or two fall due together: from then on until the model has answered for all."""
    count = max(4, DUE_SESSIONS // stage.size.shrink)
    with opened_rig() as rig:
        conversations = [_conversation(place) for place in range(count)]
        for first in range(0, count, A_BULK):
            some = {"conversations": conversations[first : first + A_BULK]}
            load.call(rig.hub, rig.hub.request("POST", "/api/v1/turns/bulk", some))
        started = time.monotonic() + DEBOUNCE_SECONDS
        load.wait_until(lambda: len(rig.model.batches) >= count)
        seconds = time.monotonic() - started
        for one in conversations:
            load.wait_until(lambda one=one: _is_served(rig.hub, one))  # type: ignore[misc]
    label = f"{count} sessions due at once, a model of {MODEL_SECONDS * 1000:g} ms"
    yield Figure(label, seconds, "s", at_most(60, 25))


@contextmanager
def opened_rig(*, debounce: int = DEBOUNCE_SECONDS) -> Iterator[Rig]:
    """A hub of its own with a model, and so many seconds of quiet time: few, to begin soon."""
    model = Parrot(seconds=MODEL_SECONDS)
    with endpoint.running() as listening:
        listening.responds(model)
        chosen = {
            "MEMORYHUB_LLM": "openai",
            "OPENAI_BASE_URL": listening.url,
            "OPENAI_API_KEY": "none",
            "MEMORYHUB_DEBOUNCE_SECONDS": str(debounce),
        }
        with another(chosen) as hub:
            yield Rig(hub, model)


def _seconds_until_served(hub: Server, place: int) -> float:
    one = _conversation(place)
    started = time.monotonic()
    load.call(hub, hub.request("POST", "/api/v1/turns", one))
    load.wait_until(lambda: _is_served(hub, one))
    return time.monotonic() - started


def _conversation(place: int) -> dict[str, Any]:
    text = f"My boat number {place} lies in the harbour of Leiden."
    messages = [{"role": "user", "content": text}, {"role": "assistant", "content": "How is it called?"}]
    return {"user_id": f"sailor-{place}", "session_id": f"boat-{place}", "messages": messages}


def _is_served(hub: Server, one: dict[str, Any]) -> bool:
    conversations = load.call(hub, hub.request("POST", "/api/v1/context", {"user_id": one["user_id"]}))
    return one["messages"][0]["content"] in json.dumps(conversations["memory"])
