"""The row about memory files: lists, patterns and literal searches among ten thousand files of one person."""

import statistics
from collections.abc import Iterator, Sequence

from django.db import connection, connections

from benchmarks import load
from benchmarks.figures import Figure, at_most
from benchmarks.rows import alternately, row, rows
from benchmarks.stage import Stage

FILES, FOLDERS, LINES = 10_000, 100, 8
GLOB, GREP = "/api/v1/files/glob", "/api/v1/files/grep"


@row("files")
def files(stage: Stage) -> Iterator[Figure]:
    """One client; half of the files match `*.md`, one in a thousand `*/n*77.md`, and every one has "tea"."""
    count = FILES if stage.size.shrink <= 4 else FILES // stage.size.shrink
    _fill(count)
    who = {"user_id": "librarian", "path": "/"}
    asked = {
        "list of 100 folders": stage.hub.request("GET", "/api/v1/files?user_id=librarian&path=/"),
        f"glob with {count // 2:,} hits": stage.hub.request("POST", GLOB, {**who, "pattern": "*.md"}),
        "glob with few hits": stage.hub.request("POST", GLOB, {**who, "pattern": "**/n*77.md"}),
        "grep with few hits": stage.hub.request("POST", GREP, {**who, "pattern": "note 77 "}),
        f"grep with {min(count * LINES, 10_000):,} hits": stage.hub.request("POST", GREP, {**who, "pattern": "tea"}),
    }
    bare = stage.floor.request("GET", "/rows?owner=bench")
    load.run(stage.floor, [rows(stage)])
    floors = []
    for what, request in asked.items():
        requests = max(4, stage.size.requests // 4)

        def of_floor(_turn: int, script: Sequence[bytes] = (bare,) * requests) -> float:
            return load.run(stage.floor, [script]).p50

        def of_hub(_turn: int, script: Sequence[bytes] = (request,) * requests) -> float:
            return load.run(stage.hub, [script]).p50

        floor, hub = alternately(stage, of_floor, of_hub)
        floors.append(floor)
        yield Figure(f"memory files, {count:,} of a person: {what}, p50", hub, "ms", at_most(50, 25))
    yield Figure(
        "for comparison with the files: bare DRF GET of 20 rows, 1 client, p50", statistics.median(floors), "ms"
    )


def _fill(count: int) -> None:
    # Django is set up only when a stage is open.
    from memories.models import MemoryFile, Tenant
    from tests import factories
    from tests.factories import NOW

    tenant = Tenant.objects.get(slug="bench")
    person = factories.end_user(tenant, external_id="librarian")
    MemoryFile.objects.bulk_create(
        MemoryFile(
            tenant=tenant,
            end_user=person,
            path=f"/d{number % FOLDERS:02}/n{number}.{'md' if number // FOLDERS % 2 else 'txt'}",
            content=f"note {number} is about tea and bread\n" * LINES,
            size=200,
            actor_kind="key",
            trust="user",
            created_at=NOW,
            updated_at=NOW,
        )
        for number in range(count)
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    # The clients are forked: they must not share a connection.
    connections.close_all()
