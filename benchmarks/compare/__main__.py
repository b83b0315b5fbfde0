"""`python -m benchmarks.compare [PEER …] [--sizes 600 …] [--write FILE]`: the hub beside its peers, see the package."""

import argparse
import json
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import date
from pathlib import Path
from subprocess import SubprocessError
from typing import Any

import psycopg

from benchmarks import load, report, rows
from benchmarks.compare import answering, breaking, ground, page, searching, shared_sets
from benchmarks.compare.figures import HUB, Row
from benchmarks.compare.products import (
    FILL_SECONDS,
    PEERS,
    Hub,
    Peer,
    Product,
    environment,
    opened_hub,
    opened_peer,
    temporary,
)
from benchmarks.compare.searching import Course
from benchmarks.compare.shared_sets import SharedSets
from tests.clients_suite import environments

SIZES = (600, 20_000, 120_000)
SETTLING_SECONDS = 5.0
MEGABYTE = 1_000_000
WITHOUT_DATA = "Shared sets: no folder was named for them (DATA=…), so nothing was asked of their lives and beliefs."


def main() -> None:
    given = _arguments()
    chosen = {name: says for name, says in _peers().items() if not given.peers or name in given.peers}
    unable = {name: says for name, says in chosen.items() if "not_run" in says}
    chosen = {name: says for name, says in chosen.items() if name not in unable}
    failures = [f"{says['title']} {says['version']}: {says['not_run']}" for says in unable.values()]
    failures += [] if given.data else [WITHOUT_DATA]
    sets = shared_sets.read(given.data, given.first) if given.data else shared_sets.NONE
    installed = _installed(chosen, failures)
    with ExitStack() as stack:
        hub = stack.enter_context(opened_hub())
        idle: dict[str, float | None] = {HUB: _settled(hub)}
        made = _ground(stack, given.sizes, sets)
        opened = [
            stack.enter_context(opened_peer(name, says, hub, made, given.fill_seconds)) for name, says in chosen.items()
        ]
        indexed: dict[str, float | None] = {}
        course = Course([hub, *_loaded(opened, idle, indexed, failures)], made, given.rounds, failures)
        indexed[HUB] = sum(searching.seconds_until_whole(hub, made, size) for size in given.sizes)
        found = [*installed, Row("memory when idle and empty", "MB", idle)]
        found.append(Row("indexes after the bulk load, until searches read all rows", "s", indexed))
        for row in _measured(course, given.sizes, sets):
            found.append(row)
            report.say(page.table([row], {one.name: one.title for one in course.products}))
        versions = _versions(hub)
    titles = {HUB: hub.title, **{name: says["title"] for name, says in chosen.items()}}
    made_page = page.page(
        found,
        titles,
        day=date.today(),
        machine=report.machine(versions["postgres"]),
        ground=_said(given.sizes),
        questions=len(made.questions),
        rounds=given.rounds,
        fill_seconds=given.fill_seconds,
        limits=_limits(chosen),
        peers=_terms(chosen, versions),
        failures=failures,
    )
    report.say(made_page)
    if given.write:
        given.write.write_text(made_page, encoding="utf-8")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__)
    parser.add_argument("peers", nargs="*", help=f"{', '.join(_peers())}; all when none is named")
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES, help="rows of one person; %(default)s")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="the sets of `make eval`, and PrecisionMemBench")
    parser.add_argument("--first", type=int, default=2, help="so many lives of each set; %(default)s")
    parser.add_argument("--fill-seconds", type=float, default=FILL_SECONDS, help="for a peer that is filled row by row")
    parser.add_argument("--write", type=Path, metavar="FILE", help="also write the page")
    given = parser.parse_args()
    if unknown := set(given.peers) - set(_peers()):
        parser.error(f"There is no peer {', '.join(sorted(unknown))}.")
    return given


def _peers() -> dict[str, dict[str, Any]]:
    return {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(PEERS.glob("*.json"))}


def _installed(chosen: Mapping[str, Mapping[str, Any]], failures: list[str]) -> list[Row]:
    """What the environments took. Each is made once; a peer that cannot be installed is left out by its loading."""
    seconds: dict[str, float | None] = {}
    sizes: dict[str, float | None] = {}
    hub = {"packages": ["-r", str(Path("requirements.lock").absolute())]}
    for name, says in {HUB: hub, **chosen}.items():
        folder = environments.CACHE / f"compare-{name}"
        noted, began = folder / "seconds", time.monotonic()
        was_made = noted.exists()
        try:
            environment(name, says)
        except (SubprocessError, OSError) as error:
            failures.append(f"{name} cannot be installed: {error}")
            continue
        if not was_made or not noted.exists():
            noted.write_text(f"{time.monotonic() - began}")
        seconds[name] = float(noted.read_text())
        sizes[name] = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / MEGABYTE
    what = "packages in an environment of their own"
    return [Row(f"{what}: installing, once", "s", seconds), Row(f"{what}: on the disk", "MB", sizes)]


def _ground(stack: ExitStack, sizes: Sequence[int], sets: SharedSets) -> ground.Ground:
    folder = Path(temporary("compare-ground-"))
    stack.callback(shutil.rmtree, folder)
    report.say(f"Making rows: {_said(sizes)} …")
    passages = list(dict.fromkeys(sets.passages()))
    questions = dict.fromkeys([*answering.UNRELATED, *sets.questions()])
    return ground.make(folder, sizes, passages, [text for text in questions if text not in set(passages)])


def _loaded(
    peers: Sequence[Peer], idle: dict[str, float | None], indexed: dict[str, float | None], failures: list[str]
) -> Iterator[Product]:
    """Those that run and have all rows; what they take when empty, and the seconds of their indexes."""
    for peer in peers:
        try:
            peer.setup()
            peer.start()
            idle[peer.name] = _settled(peer)
            peer.kill()
            report.say(f"Loading {peer.title} …")
            began = time.monotonic()
            index = indexed[peer.name] = peer.load()
            report.say(f"{peer.title}: {time.monotonic() - began:.0f} s, of which its index took {index:.0f} s.")
            if peer.rows < (wanted := len(peer.ground.texts)):
                said = f"it took {peer.rows:,} of {wanted:,} rows in {peer.fill_seconds:,.0f} s"
                failures.append(f"{peer.title}: {said}; it is asked about people whose rows are all among them.")
            peer.start()
        except (load.RefusedError, SubprocessError, OSError, TimeoutError) as error:
            failures.append(f"{peer.title} did not run: {searching.told(error)}")
        else:
            yield peer


def _measured(course: Course, sizes: Sequence[int], sets: SharedSets) -> Iterator[Row]:
    for size in sizes:
        yield from searching.at_size(course, size)
    full = {one.name: one.megabytes() for one in course.products}
    yield Row(f"memory after searches of {max(sizes):,} rows", "MB", full)
    person, label = ground.name_of(min(sizes)), f"a person of {min(sizes):,} rows"
    yield from answering.about(course, person, label, course.ground.questions)
    yield from answering.about_sets(course, sets)
    yield from searching.adding(course, "nobody-yet", "into an empty person")
    for size in sizes:
        rows.wait_for_the_embedder()
        yield from searching.adding(course, ground.name_of(size), f"beside {size:,} rows")
    yield from breaking.erasing(course)
    rows.wait_for_the_embedder()
    yield from breaking.killing(course)


def _settled(product: Product) -> float:
    time.sleep(SETTLING_SECONDS)
    return product.megabytes()


def _said(sizes: Sequence[int]) -> str:
    listed = ", ".join(f"{size:,}" for size in sizes)
    people = f"People of {listed} rows" if len(sizes) > 1 else f"A person of {listed} rows"
    return f"{people}, beside {ground.OTHERS} others with {ground.ROWS_OF_OTHERS} each"


def _limits(chosen: Mapping[str, Mapping[str, Any]]) -> str:
    return ", ".join(
        f"{says['title']}: {says.get('default_context', says['default_limit'])}" for says in chosen.values()
    )


def _versions(hub: Hub) -> dict[str, str]:
    with psycopg.connect(hub.database()) as connection:
        asked = "SELECT current_setting('server_version'), extversion FROM pg_extension WHERE extname = 'vector'"
        found = connection.execute(asked).fetchone()
    assert found
    return {"postgres": found[0], "pgvector": found[1]}


def _terms(chosen: Mapping[str, Mapping[str, Any]], versions: Mapping[str, str]) -> list[str]:
    lines = [
        f"- **{says['title']}** {says['version']} (`{'`, `'.join(says['packages'])}`). {says['terms']}"
        for says in chosen.values()
    ]
    return [f"PostgreSQL {versions['postgres']} with pgvector {versions['pgvector']}.", *lines]


if __name__ == "__main__":
    main()
