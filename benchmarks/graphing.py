"""The row about the graph: an entity and the timeline of a person with 5,000 triples, half of them of facts."""

from collections.abc import Iterator
from datetime import timedelta
from functools import partial

from benchmarks import load
from benchmarks.figures import Figure, at_most
from benchmarks.rows import alternately, row
from benchmarks.stage import Stage

TRIPLES = 5_000
ASKED = {
    "an entity": ("/entities?user_id=related&name=Max", at_most(30, 20)),
    "the timeline": ("/timeline?user_id=related", at_most(45, 30)),
}


@row("graph")
def graph(stage: Stage) -> Iterator[Figure]:
    """One client reads pages of 50 triples."""
    triples = TRIPLES // stage.size.shrink
    make_triples(triples)
    for what, (path, aim) in ASKED.items():
        asked = [stage.hub.request("GET", f"/api/v1/graph{path}")] * stage.size.requests
        bare = [stage.floor.request("GET", "/rows?owner=bench")] * stage.size.requests
        floor, hub = alternately(stage, partial(_p50, stage.floor, bare), partial(_p50, stage.hub, asked))
        yield Figure(f"graph: {what} of somebody with {triples:,} triples, p50", hub, "ms", aim)
        yield Figure("for comparison with the graph: bare DRF GET of 20 rows, p50", floor, "ms")


def _p50(server: load.Server, requests: list[bytes], _turn: int) -> float:
    return load.run(server, [requests]).p50


def make_triples(count: int) -> None:
    # Django is set up only when a stage is open.
    from django.db import connection, connections

    from memories.graph import following, naming
    from memories.models import EndUser, Fact, GraphTriple, Tenant
    from tests import factories
    from tests.factories import NOW

    tenant = Tenant.objects.get(slug="bench")
    if EndUser.objects.of(tenant).filter(external_id="related").exists():
        return
    person = factories.end_user(tenant, external_id="related")
    names = [f"Person {number}" for number in range(count // 2)]
    entities = naming.ensure(tenant.pk, person.pk, ["Max", *names], now=NOW)
    first = factories.triple(person, "Max", "knows", names[0])
    GraphTriple.objects.bulk_create(
        [
            GraphTriple(
                tenant=tenant, end_user=person, subject=first.subject, predicate="knows",
                object=entities[naming.digest_of(name)], valid_from=NOW - timedelta(hours=place),
                dated_at=NOW - timedelta(hours=place), confidence=0.9, trust=first.trust, extractor="api",
                created_at=NOW, updated_at=NOW,
            )
            for place, name in enumerate(names[1:], 1)
        ]
    )  # fmt: skip
    for number in range(count - len(names)):
        factories.fact(person, f"Keeps thing {number}", key=f"keeps_{number}", value=f"Thing {number}", confidence=0.9)
    following.sync_triples(list(Fact.objects.filter(end_user=person)), now=NOW)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE memories_graphtriple, memories_graphentity, memories_fact, memories_enduser")
    # The clients are forked: they must not share a connection.
    connections.close_all()
