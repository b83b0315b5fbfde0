"""The row about what a lively chat costs: calls of the model until all of it is known, by the hub's own numbers."""

import time
from collections.abc import Iterator
from typing import Any

from benchmarks import load
from benchmarks.figures import Figure, at_most
from benchmarks.load import Server
from benchmarks.rows import row
from benchmarks.stage import Stage
from benchmarks.waking import Rig, opened_rig

TURNS = 100
# Its default.
DEBOUNCE_SECONDS = 30
# Seconds from a turn to the next one.
PACES = (1.0, 2.0)
PEOPLE = ("sister", "neighbour", "boss", "dentist", "cousin", "landlord", "coach")
DEEDS = ("repaired my bicycle", "moved to Leiden", "bought a boat", "lent me her car", "learns Chinese")
PLACES = ("in spring", "for the choir", "because of the rain", "near the harbour")


@row("calls")
def calls(stage: Stage) -> Iterator[Figure]:
    """One session, a turn every second or two, then ended; each turn of the user becomes a fact, and is judged."""
    with opened_rig(debounce=DEBOUNCE_SECONDS) as rig:
        for pace in PACES:
            before = rig.model.asked.copy()
            turns = _chat(rig, f"lively-{pace:g}", pace / stage.size.shrink, TURNS // min(stage.size.shrink, 25))
            asked = rig.model.asked - before
            what = f"model calls per 100 turns of lively chat, a turn each {pace:g} s"
            yield Figure(what, 100 * asked.total() / turns, "", at_most(10, 5))
            for name, count in sorted(asked.items()):
                yield Figure(f"of these {name}, a turn each {pace:g} s", 100 * count / turns, "")


def _chat(rig: Rig, name: str, pace: float, turns: int) -> int:
    begun = time.monotonic()
    for place in range(turns):
        time.sleep(max(0.0, begun + place * pace - time.monotonic()))
        _post(rig.hub, "/api/v1/turns", {"user_id": name, "session_id": name, "messages": [_message(place)]})
    _post(rig.hub, "/api/v1/sessions/end", {"user_id": name, "session_id": name})
    load.wait_until(lambda: _is_done(rig.hub, name))
    return turns


def _message(place: int) -> dict[str, str]:
    if place % 2:
        return {"role": "assistant", "content": f"How nice to hear that. What came of it, number {place}?"}
    number = place // 2
    who, what, when = (some[number % len(some)] for some in (PEOPLE, DEEDS, PLACES))
    return {"role": "user", "content": f"My {who} {what} {when} (and that was number {number})."}


def _post(hub: Server, path: str, body: dict[str, Any]) -> None:
    load.call(hub, hub.request("POST", path, body))


def _is_done(hub: Server, name: str) -> bool:
    [listed] = load.call(hub, hub.request("GET", f"/api/v1/sessions?user_id={name}"))["results"]
    session = load.call(hub, hub.request("GET", f"/api/v1/sessions/{listed['id']}"))
    return bool(session["extraction"]["status"] == session["working_memory"]["status"] == "idle")
