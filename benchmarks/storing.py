"""The row about LangGraph's store: items put and read beside the floor, and searches among many items of others."""

import statistics
import uuid
from collections.abc import Iterator
from typing import Any

from benchmarks import load
from benchmarks.figures import Figure, at_most
from benchmarks.rows import alternately, row, rows, text
from benchmarks.stage import Stage

ITEMS = "/api/v1/store/items"
# Beside these a heavy user searches among the own ones.
OTHERS, OWN = 55_000, 2_000
PEOPLE = 500


@row("store")
def store(stage: Stage) -> Iterator[Figure]:
    """One client: a put and a get of one item; then a heavy user's searches beside 55,000 items of 500 others."""
    floor, hub = alternately(
        stage,
        lambda _: load.run(stage.floor, [rows(stage)]).p50,
        lambda turn: load.run(stage.hub, [puts(stage, turn)]).p50,
    )
    yield Figure("store: put of one item, p50 ÷ bare DRF POST with one INSERT", hub, "ms", at_most(4, 3), floor)
    bare = [stage.floor.request("GET", "/rows?owner=bench")] * stage.size.requests
    read = [stage.hub.request("GET", f"{ITEMS}?namespace=memories.keeper&key=k0")] * stage.size.requests
    floor, hub = alternately(
        stage, lambda _: load.run(stage.floor, [bare]).p50, lambda _: load.run(stage.hub, [read]).p50
    )
    yield Figure("store: get of one item, p50 ÷ bare DRF GET of 20 rows", hub, "ms", at_most(2, 1.25), floor)
    others, own = OTHERS // stage.size.shrink, OWN // stage.size.shrink
    make_items(others=others, own=own)
    for what, name in ((f"{own:,} of its own", "heavy"), (f"{others // min(PEOPLE, others):,} of its own", "other-0")):
        searched(stage, name, turn=-1)
        p50 = statistics.median(searched(stage, name, turn=turn) for turn in range(stage.size.rounds))
        yield Figure(f"store: search p50 of somebody with {what}, among {others + own:,} items", p50, "ms")


def puts(stage: Stage, turn: int) -> list[bytes]:
    bodies = (
        {"namespace": ["memories", "keeper"], "key": f"k{place}", "value": {"text": f"{text(place)} ({turn})"}}
        for place in range(stage.size.requests)
    )
    return [stage.hub.request("PUT", ITEMS, given) for given in bodies]


def searched(stage: Stage, name: str, *, turn: int) -> float:
    """The p50 of searches, each with a query of its own, so that no embedding of one is at hand."""

    def asked(place: int) -> dict[str, Any]:
        return {"namespace_prefix": ["memories", name], "query": f"{text(place)} [{turn}.{place}]"}

    count = max(4, stage.size.requests // 2)
    requests = [stage.hub.request("POST", f"{ITEMS}/search", asked(place)) for place in range(count)]
    return load.run(stage.hub, [requests]).p50


def make_items(*, others: int, own: int) -> None:
    """Items with random unit vectors: what a search costs depends on how many there are, not on what they say."""
    # Django is set up only when a stage is open.
    import numpy as np
    from django.db import connection, connections
    from pgvector import HalfVector

    from memories.embedding import spaces
    from memories.models import EndUser, StoreItem, StoreItemVector, Tenant
    from memories.text import value_texts
    from tests import factories
    from tests.factories import NOW

    tenant = Tenant.objects.get(slug="bench")
    if EndUser.objects.of(tenant).filter(external_id="heavy").exists():
        return
    space = spaces.serving() or spaces.first_space()
    dice = np.random.default_rng(own)
    names = ["heavy", *(f"other-{number}" for number in range(min(PEOPLE, others)))]
    people = [factories.end_user(tenant, external_id=name) for name in names]
    owners = [people[0]] * own + [people[1 + place % (len(people) - 1)] for place in range(others)]
    for first in range(0, len(owners), 1_000):
        items: list[StoreItem] = []
        vectors: list[StoreItemVector] = []
        for place, owner in enumerate(owners[first : first + 1_000], first):
            value = {"text": f"{text(place)} ({place})"}
            digest = value_texts.digest([value["text"]])
            item = StoreItem(
                id=uuid.uuid4(), tenant=tenant, end_user=owner, namespace=f"memories.{owner.external_id}",
                key=f"k{place}", value=value, index_paths=["text"], content_hash=digest, embedded_hash=digest,
                created_at=NOW, updated_at=NOW,
            )  # fmt: skip
            unit = dice.standard_normal(space.dimensions)
            vector = HalfVector((unit / np.linalg.norm(unit)).tolist())
            items.append(item)
            vectors.append(
                StoreItemVector(space=space, tenant=tenant, item=item, place=0, text_digest=digest, vector=vector)
            )
        StoreItem.objects.bulk_create(items)
        StoreItemVector.objects.bulk_create(vectors)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE memories_storeitem, memories_storeitemvector, memories_enduser")
    # The clients are forked: they must not share a connection.
    connections.close_all()
