"""Rows about questions: searches among few and many turns, and beside a large neighbour."""

import statistics
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from benchmarks import load
from benchmarks.figures import Figure, at_most
from benchmarks.load import Measured
from benchmarks.rows import CLIENTS, row
from benchmarks.stage import Stage

if TYPE_CHECKING:
    # Django is set up only when a hub runs.
    from benchmarks.crowding import Draw

# Turns of a person → p50 in ms, to reach and beyond.
MARKS = {600: (10, 5), 6_000: (15, 8), 20_000: (30, 15)}
SEARCH, CONTEXT = "/api/v1/search", "/api/v1/context"
# Each is dear: fewer of them.
BIG_ROUNDS, BIG_COUNT = 3, 12
BIG_TURNS, BIG_FACTS = 20_000, 5_000
# A long life, of which a context tells a part.
FILLED_TURNS = 600
QUESTIONS = (
    "Where does the commute to the office end, and how long does it take?",
    "我下周要去哪里出差？",
    "Which query returned every order twice?",
    "最早的一班高铁是几点？",
)


@row("search")
def search(stage: Stage) -> Iterator[Figure]:
    """One client, facts and turns, the question embedded by the local model; each question is a new one."""
    for turns, marks in MARKS.items():
        scaled = max(1, turns // stage.size.shrink)
        name = f"talker-{scaled}"
        make_person(stage, name, turns=scaled)
        asked(stage, SEARCH, name)
        p50 = statistics.median(asked(stage, SEARCH, name, turn=turn).p50 for turn in range(stage.size.rounds))
        yield Figure(f"search p50, {scaled:,} turns, with the question's embedding", p50, "ms", at_most(*marks))


@row("filled")
def filled(stage: Stage) -> Iterator[Figure]:
    """Contexts with a question that turns fill up to 2,000 tokens, and by turns the same with the ten best turns and
    with none: what it costs that contexts are filled."""
    turns = FILLED_TURNS // stage.size.shrink
    make_person(stage, f"talker-{turns}", turns=turns)

    recalled: tuple[dict[str, Any], ...] = (
        {"fill": "budget"},
        {"fill": "budget", "limits": {"turns": 10}},
        {"fill": "budget", "limits": {"turns": 0}},
    )

    def spans(clients: int) -> list[list[Measured]]:
        """Of each turn: filled, ten turns, none."""
        return [
            [
                asked(stage, CONTEXT, f"talker-{turns}", clients=clients, turn=3 * turn + place, **given)
                for place, given in enumerate(recalled)
            ]
            for turn in range(stage.size.rounds + 1)
        ][1:]

    for clients in (1, CLIENTS):
        measured = spans(clients)
        label = f"context with a query, {turns:,} turns, {clients} client{'s'[: clients > 1]}"
        for which, target in (("p50", at_most(1.3, 1.15)), ("p95", at_most(1.3, 1.15))):
            full, ten, none = (statistics.median(getattr(one[at], which) for one in measured) for at in range(3))
            yield Figure(f"{label}, {which}: filled ÷ ten recalled turns", full, "ms", target, ten)
            yield Figure(f"{label}, {which}: ten recalled turns ÷ none", ten, "ms", None, none)


@row("big")
def big(stage: Stage) -> Iterator[Figure]:
    """A person with 20,000 turns and 5,000 facts beside another tenant's facts: searches and contexts."""
    turns, facts = BIG_TURNS // stage.size.shrink, BIG_FACTS // stage.size.shrink
    make_neighbours(stage)
    make_person(stage, "big", turns=turns, facts=facts)
    for what, path in (("search", SEARCH), ("context with a query", CONTEXT)):
        for clients in (1, CLIENTS):
            # The first turn is warm-up.
            turns_of_it = range(1 + min(BIG_ROUNDS, stage.size.rounds))
            spans = [asked(stage, path, "big", clients=clients, turn=turn, count=BIG_COUNT) for turn in turns_of_it][1:]
            label = f"{what}, {turns:,} turns and {facts:,} facts, {clients} client{'s'[: clients > 1]}"
            yield Figure(f"{label}, p50", statistics.median(one.p50 for one in spans), "ms")
            yield Figure(f"{label}, p95", statistics.median(one.p95 for one in spans), "ms")


def asked(
    stage: Stage,
    path: str,
    name: str,
    *,
    clients: int = 1,
    turn: int = -1,
    count: int = 0,
    questions: Sequence[str] = QUESTIONS,
    **given: Any,
) -> Measured:
    """Questions about one person; no two are the same, so that no embedding of one is at hand."""

    def question(client: int, place: int) -> dict[str, Any]:
        return {"user_id": name, "query": f"{questions[place % len(questions)]} ({turn}.{client}.{place})", **given}

    count = count or max(4, stage.size.requests // 2)
    return load.run(
        stage.hub,
        [
            [stage.hub.request("POST", path, question(client, place)) for place in range(count)]
            for client in range(clients)
        ],
    )


def make_person(stage: Stage, name: str, *, turns: int, facts: int = 0, draw: "Draw | None" = None) -> None:
    """A person of the tenant that is measured, once; `draw`: as crowding.person()."""
    # Django is set up only when a stage is open.
    from benchmarks import crowding
    from memories.models import Tenant

    crowding.person(Tenant.objects.get(slug="bench"), name, turns=turns, facts=facts, draw=draw)


def make_neighbours(stage: Stage) -> None:
    """Another tenant's people, with 100,000 facts at full size, once."""
    from benchmarks import seeding
    from memories.models import Tenant
    from tests import factories

    found = Tenant.objects.filter(slug="neighbour").first() or factories.tenant(slug="neighbour")
    seeding.people(found, stage.size.people)
