"""The rows of the table. Another one is a function that yields its figures, under `@row` with its name."""

import statistics
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

from django.db import connections

from benchmarks import load
from benchmarks.figures import Figure, at_least, at_most
from benchmarks.stage import Stage

Row = Callable[[Stage], Iterator[Figure]]
ROWS: dict[str, Row] = {}

CLIENTS = 8
CROWD = 32
BATCH = 50
# A new session after so many posts of a client, as conversations are.
TALK = 50
TEXTS = (
    "I moved to Leiden last month, and the commute to the office takes forty minutes by train.",
    "Noted. Shall I plan the stand-up for half past nine from now on, or leave it at nine?",
    "我下周要去杭州出差，请帮我看看高铁票，最好是上午出发的。",
    "好的，上午有三班车，最早的一班是八点零五分，需要我帮你订吗？",
    "Could you look over the query once more? It returns every order twice when an invoice was cancelled.",
    "The join multiplies rows: an order with a cancelled invoice has two. Filter on the status before joining.",
)


def row(name: str) -> Callable[[Row], Row]:
    def register(function: Row) -> Row:
        ROWS[name] = function
        return function

    return register


@row("ingest")
def ingest(stage: Stage) -> Iterator[Figure]:
    """One turn per POST, 8 clients, sessions of their own."""
    floor, hub = alternately(
        stage,
        lambda _: load.run(stage.floor, [rows(stage)] * CLIENTS).per_second,
        lambda turn: load.run(stage.hub, [posts(stage, f"{turn}-{n}") for n in range(CLIENTS)]).per_second,
    )
    what = "ingest, one turn per POST, 8 clients"
    yield Figure(f"{what} ÷ bare DRF POST with one INSERT", hub, "posts/s", at_least(0.40, 0.60), floor)
    yield Figure(what, hub, "posts/s", at_least(250, 450))


@row("post")
def post(stage: Stage) -> Iterator[Figure]:
    """One turn per POST, one client."""
    floor, hub = alternately(
        stage,
        lambda _: load.run(stage.floor, [rows(stage)]).p50,
        lambda turn: load.run(stage.hub, [posts(stage, f"alone-{turn}")]).p50,
    )
    yield Figure("POST of one turn, p50 ÷ bare DRF POST with one INSERT", hub, "ms", at_most(3, 2), floor)


@row("session")
def session(stage: Stage) -> Iterator[Figure]:
    """32 clients on one session, each with 25 turns, three of ten sent twice at once under one key."""

    def rate(turn: int) -> float:
        name = f"crowd-{turn}"
        count = max(1, stage.size.requests // 4)
        measured = load.run(stage.hub, [doubled(stage, name, client, count) for client in range(CROWD)])
        stored = len(turns_of(stage, name))
        if stored != CROWD * count:
            raise load.RefusedError(f"{stored} turns are stored where {CROWD * count} were posted.")
        return stored / measured.seconds

    yield Figure("one session, 32 clients, 30 % doubled keys", repeated(stage, rate), "turns/s", at_least(100, 200))


@row("batches")
def batches(stage: Stage) -> Iterator[Figure]:
    """50 turns per POST, 8 clients."""

    def rate(turn: int) -> float:
        return load.run(stage.hub, batch_posts(stage, f"b{turn}")).per_second * BATCH

    yield Figure("batches of 50 turns, 8 clients", repeated(stage, rate), "turns/s", at_least(2_500, 5_000))


@row("context")
def context(stage: Stage) -> Iterator[Figure]:
    """No query, 50 facts a person: one client beside the floor, then 8 clients among all people's facts, while the
    embedder works on what one more round of batches left, and when it has ended that."""
    load.run(stage.floor, [rows(stage)] * CLIENTS)
    asked = contexts(stage)
    load.run(stage.hub, batch_posts(stage, "before-context"))
    beside = load.run(stage.hub, asked)
    wait_for_the_embedder()
    bare = [stage.floor.request("GET", "/rows?owner=bench")] * len(asked[0])
    floor, hub = alternately(
        stage,
        lambda _: load.run(stage.floor, [bare]).p50,
        lambda _: load.run(stage.hub, asked[:1]).p50,
    )
    yield Figure("context p50 (50 facts, no query) ÷ bare DRF GET of 20 rows", hub, "ms", at_most(4, 2.5), floor)
    measured = [load.run(stage.hub, asked) for _ in range(stage.size.rounds)]
    what = f"context, 8 clients, {stage.size.people * 50:,} facts"
    yield Figure(f"{what}, p50", statistics.median(one.p50 for one in measured), "ms", at_most(15, 8))
    yield Figure(f"{what}, p95", statistics.median(one.p95 for one in measured), "ms", at_most(60, 25))
    what = f"{what}, beside an embedder at work"
    yield Figure(f"{what}, p50", beside.p50, "ms")
    yield Figure(f"{what}, p95", beside.p95, "ms")
    crowded = [load.run(stage.floor, [bare] * CLIENTS) for _ in range(stage.size.rounds)]
    what = "for comparison: bare DRF GET of 20 rows, 8 clients"
    yield Figure(f"{what}, p50", statistics.median(one.p50 for one in crowded), "ms")
    yield Figure(f"{what}, p95", statistics.median(one.p95 for one in crowded), "ms")


def alternately(stage: Stage, floor: Callable[[int], float], hub: Callable[[int], float]) -> tuple[float, float]:
    """The medians of both, by turns: what else the machine does hits both. The first turn is warm-up."""
    pairs = [(floor(turn), hub(turn)) for turn in range(stage.size.rounds + 1)][1:]
    return statistics.median(pair[0] for pair in pairs), statistics.median(pair[1] for pair in pairs)


def repeated(stage: Stage, measure: Callable[[int], float]) -> float:
    """The median of several turns."""
    return statistics.median(measure(turn) for turn in range(stage.size.rounds))


def beside(stage: Stage, what: str) -> Figure:
    """The bare view now: how fast the machine was while `what`, which has no floor of its own, was measured."""
    load.run(stage.floor, [rows(stage)])
    bare = [stage.floor.request("GET", "/rows?owner=bench")] * stage.size.requests
    taken = repeated(stage, lambda _: load.run(stage.floor, [bare]).p50)
    return Figure(f"for comparison with {what}: bare DRF GET of 20 rows, 1 client, p50", taken, "ms")


def rows(stage: Stage) -> list[bytes]:
    """What the floor is posted: the same texts."""
    bodies = ({"owner": "bench", "role": "user", "content": text(place)} for place in range(stage.size.requests))
    return [stage.floor.request("POST", "/rows", given) for given in bodies]


def posts(stage: Stage, name: str) -> list[bytes]:
    """One turn after another, in a new session now and then."""
    bodies = (body(f"{name}-{place // TALK}", place) for place in range(stage.size.requests))
    return [stage.hub.request("POST", "/api/v1/turns", given) for given in bodies]


def doubled(stage: Stage, name: str, client: int, count: int) -> list[bytes]:
    """A client's own posts, and three of ten of its neighbour's at the moment when that one sends them too."""

    def sent(by: int, place: int) -> bytes:
        own = {"Idempotency-Key": f"{name}-{by}-{place}"}
        return stage.hub.request("POST", "/api/v1/turns", body(name, place, by=by), **own)

    pairs = ([sent(client, place), sent((client + 1) % CROWD, place)] for place in range(count))
    return list(chain.from_iterable(pair if place % 10 < 3 else pair[:1] for place, pair in enumerate(pairs)))


def contexts(stage: Stage) -> list[list[bytes]]:
    """For each client requests for people far apart."""
    # Django is set up only when a stage is open.
    from benchmarks import seeding
    from memories.models import Tenant

    people = seeding.people(Tenant.objects.get(slug="bench"), stage.size.people)
    asked = [stage.hub.request("POST", "/api/v1/context", {"user_id": name}) for name in people]
    return [
        [asked[(client + CLIENTS * place) * 37 % len(asked)] for place in range(stage.size.requests)]
        for client in range(CLIENTS)
    ]


def batch_posts(stage: Stage, name: str) -> list[list[bytes]]:
    """For each client a session in POSTs of 50 turns."""
    count = max(1, stage.size.requests // 10)
    return [
        [stage.hub.request("POST", "/api/v1/turns", body(f"{name}-{n}", size=BATCH)) for _ in range(count)]
        for n in range(CLIENTS)
    ]


def wait_for_the_embedder() -> None:
    """Return once no turn waits for its vector."""
    # Django is set up only when a stage is open.
    from memories.models import Session

    load.wait_until(lambda: not Session.objects.unembedded().exists())
    # The clients are forked: they must not share a connection.
    connections.close_all()


def turns_of(stage: Stage, name: str) -> list[int]:
    """The numbers of a session's turns. Errors: RefusedError when they have a gap."""
    from memories.models import Turn

    numbers = list(Turn.objects.filter(session__external_id=name).order_by("number").values_list("number", flat=True))
    if numbers != list(range(1, len(numbers) + 1)):
        raise load.RefusedError("The numbers of a session's turns have a gap.")
    return numbers


def body(name: str, place: int = 0, *, by: int = 0, size: int = 1) -> dict[str, Any]:
    """A post to the session of that name; its person has the same."""
    messages = [
        {"role": ("user", "assistant")[(place + n) % 2], "content": f"{text(place + n)} ({by}.{place})"}
        for n in range(size)
    ]
    return {"user_id": name, "session_id": name, "messages": messages}


def text(place: int) -> str:
    return TEXTS[place % len(TEXTS)]
