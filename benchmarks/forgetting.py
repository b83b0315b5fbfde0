"""The row about a pass of forgetting over ten times the facts of the row about contexts, and contexts meanwhile."""

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from benchmarks import load
from benchmarks.figures import Figure, at_most
from benchmarks.load import Measured, Server
from benchmarks.rows import CLIENTS, row
from benchmarks.stage import ROOT, Stage

FACTS_EACH = 50
TIMES = 10
SLUG = "aging"
# By when as much again is due as today (`manage.py seed_facts`).
LATER = timedelta(days=9)


class Passed(NamedTuple):
    """One pass: its seconds, its counts, and the contexts that were asked for while it ran."""

    seconds: float
    counts: dict[str, int]
    contexts: Measured


@row("decay")
def decay(stage: Stage) -> Iterator[Figure]:
    """Contexts among few and ten times as many facts of the same kind, then two passes, each beside more clients."""
    hub, few = _tenant(stage), stage.size.people
    many = few * TIMES
    _seed(few)
    alone = _p50(stage, hub, few)
    _seed(many - few)
    among = _p50(stage, hub, many)
    facts = f"{many * FACTS_EACH:,} facts"
    yield Figure(f"context p50, {facts} ÷ {few * FACTS_EACH:,}, 1 client", among, "ms", at_most(1.3, 1.1), alone)
    for clients, later in ((1, timedelta()), (CLIENTS, LATER)):
        yield from _beside(stage, hub, many, clients, later)


def _beside(stage: Stage, hub: Server, people: int, clients: int, later: timedelta) -> Iterator[Figure]:
    facts = f"{people * FACTS_EACH:,} facts"
    beside = f"contexts of {clients} client{'s'[: clients > 1]}"
    before = _pooled([_asked(stage, hub, people, clients) for _ in range(1 + stage.size.rounds)][1:])
    passed = _passed(stage, hub, people, clients, datetime.now(UTC) + later)
    counts = passed.counts
    # With eight clients it has a fraction of the machine.
    target = at_most(120, 45) if clients == 1 else None
    yield Figure(f"a pass of forgetting over {facts}, beside {beside}", passed.seconds, "s", target)
    yield Figure("in this pass: facts moved to the trash", counts["facts"] + counts["expired"], "")
    yield Figure("in this pass: facts deleted for good", counts["purged"], "")
    yield Figure("in this pass: scores written again", counts["refreshed"], "")
    yield Figure(f"{beside} meanwhile, p95 ÷ before", passed.contexts.p95, "ms", at_most(2, 1.3), before.p95)


def _tenant(stage: Stage) -> Server:
    """A tenant of its own, whose nights the hub's worker leaves alone, and the hub with its key."""
    # Django is set up only when a stage is open.
    from django.db import connections

    from tests import factories

    beyond = datetime.now(UTC).date() + timedelta(days=30)
    _, key = factories.api_key(factories.tenant(slug=SLUG, decayed_on=beyond))
    connections.close_all()
    return Server(stage.hub.port, key)


def _seed(people: int) -> None:
    """By the command that is documented; then what autovacuum would do some time later, perhaps while one measures."""
    from django.db import connection, connections

    given = ["--tenant", SLUG, "--people", str(people), "--facts-per-person", str(FACTS_EACH), "--force"]
    _run("seed_facts", *given)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM (ANALYZE)")
    # The clients are forked: they must not share a connection.
    connections.close_all()


def _p50(stage: Stage, hub: Server, people: int) -> float:
    """Of one client; the first turn is warm-up."""
    turns = [_asked(stage, hub, people, 1) for _ in range(1 + stage.size.rounds)][1:]
    return statistics.median(turn.p50 for turn in turns)


def _asked(stage: Stage, hub: Server, people: int, clients: int) -> Measured:
    """Contexts of people far apart."""
    count = stage.size.requests
    names = [
        [f"seeded-{(client + clients * place) * 37 % people}" for place in range(count)] for client in range(clients)
    ]
    return load.run(hub, [[hub.request("POST", "/api/v1/context", {"user_id": name}) for name in one] for one in names])


def _passed(stage: Stage, hub: Server, people: int, clients: int, as_of: datetime) -> Passed:
    """A pass as an operator runs it, in a process of its own, and contexts until it ends."""
    meanwhile = []
    with ThreadPoolExecutor(1) as beside:
        passing = beside.submit(_run, "decay", "--tenant", SLUG, "--now", as_of.isoformat())
        while not passing.done():
            meanwhile.append(_asked(stage, hub, people, clients))
    return Passed(passing.result(), _counts(), _pooled(meanwhile))


def _run(*arguments: str) -> float:
    """Seconds that the command takes, its start included."""
    started = time.monotonic()
    command = [sys.executable, "manage.py", *arguments]
    subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    return time.monotonic() - started


def _counts() -> dict[str, int]:
    """What the newest pass did."""
    from django.db import connections

    from memories.models import DecayPass

    counts: dict[str, int] = DecayPass.objects.filter(tenant__slug=SLUG).latest("started_at").counts
    connections.close_all()
    return counts


def _pooled(turns: list[Measured]) -> Measured:
    spans = [one for turn in turns for one in turn.milliseconds]
    return Measured(sum(turn.seconds for turn in turns), spans)
