"""The row about a session that never ends: whether its last turns cost what its first ones did."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from benchmarks import load
from benchmarks.figures import Figure, at_most
from benchmarks.load import Measured, Server
from benchmarks.rows import body, row
from benchmarks.searching import CONTEXT, QUESTIONS
from benchmarks.stage import Stage
from benchmarks.waking import opened_rig

# For each of the size's people: 10,000 at full size.
TURNS = 5
# The first and the last of so many parts are compared.
PARTS = 10
# A context after so many turns.
EVERY = 5
NAME = "lasting"


class Part(NamedTuple):
    """A tenth of the session."""

    posts: Measured
    contexts: Measured


@row("long_session")
def long_session(stage: Stage) -> Iterator[Figure]:
    """One client, one turn a POST, and a context with the conversation and a question now and then; a worker extracts
    and compacts meanwhile."""
    each = max(EVERY, stage.size.people * TURNS // PARTS)
    with opened_rig() as rig:
        parts = [_part(rig.hub, part * each, each) for part in range(PARTS)]
        # Quiet now: what the worker had no time for yet comes.
        load.wait_until(lambda: _window(rig.hub)["first_number"] > 1)
        calls = rig.model.summaries.total()
    first, last = parts[0], parts[-1]
    what = f"session of {each * PARTS:,} turns, p95 of the last {each:,} ÷ first"
    yield Figure(f"{what}: POST of one", last.posts.p95, "ms", at_most(1.5, 1.2), first.posts.p95)
    label = f"{what}: context with its messages and a query"
    yield Figure(label, last.contexts.p95, "ms", at_most(1.5, 1.2), first.contexts.p95)
    yield Figure("in this session: summaries by the model, of the window and of episodes", calls, "")


def _part(hub: Server, start: int, count: int) -> Part:
    """So many turns, and what is asked between them."""
    requests: list[bytes] = []
    for place in range(start, start + count):
        requests.append(hub.request("POST", "/api/v1/turns", body(NAME, place)))
        if place % EVERY == EVERY - 1:
            requests.append(hub.request("POST", CONTEXT, _question(place)))
    measured = load.run(hub, [requests])
    return Part(*(_of(measured, is_post=is_post) for is_post in (True, False)))


def _of(measured: Measured, *, is_post: bool) -> Measured:
    """Those of one kind: after EVERY posts came a context."""
    spans = enumerate(measured.milliseconds)
    return Measured(measured.seconds, [one for place, one in spans if (place % (EVERY + 1) < EVERY) is is_post])


def _question(place: int) -> dict[str, Any]:
    """A new question each time, so that no embedding of one is at hand."""
    query = f"{QUESTIONS[place // EVERY % len(QUESTIONS)]} ({place})"
    shown = ["profile", "facts", "episodes", "working_memory"]
    return {"user_id": NAME, "session_id": NAME, "query": query, "include": shown}


def _window(hub: Server) -> dict[str, Any]:
    """What has not left the session's window."""
    [session] = load.call(hub, hub.request("GET", f"/api/v1/sessions?user_id={NAME}"))["results"]
    window: dict[str, Any] = load.call(hub, hub.request("GET", f"/api/v1/sessions/{session['id']}"))["window"]
    return window
