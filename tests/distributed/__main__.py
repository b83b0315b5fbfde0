"""`make distributed`: build a Citus cluster, put a hub on it, and show what it does there.

Each part has a module of its own here, which says what it shows; this one has their order.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.distributed import backups
from tests.distributed.cluster import Cluster, build, running
from tests.distributed.features import use
from tests.distributed.heavy import move_heavy
from tests.distributed.hub import PROJECT, Hub, check, prepared, wait_until
from tests.distributed.job import main_job
from tests.distributed.losing import lose
from tests.distributed.moving import Agent, move
from tests.distributed.scaling import scale
from tests.distributed.upgrade import VERSIONS, upgrade
from tests.distributed.walls import wall

# Tests of the API that are run on a cluster; the others of the folder read no rows of tenants or start hubs.
TESTS = ("tests/api/v1", "tests/api/test_isolation.py", "tests/api/test_idempotency.py")
# What cannot hold there → why.
NOT_THERE = {
    "tests/api/v1/test_operators.py::test_two_make_the_same_at_once": "both change a table of all nodes, by turns",
    "tests/api/test_idempotency.py::TestADay::test_a_first_request_costs_six_statements": "one more, to a local table",
    "tests/api/test_isolation.py::test_behind_the_wall_no_statement_has_to_name_its_tenant": "walls.py shows it there",
}
PARTS = ("job", "features", "move", "later", "tests", "heavy", "upgrade", "walls", "restore", "lose", "throughput")
# With row level security on.
WALL_TESTS = ("tests/api/test_isolation.py", "tests/api/test_access.py")
# Turns that are posted before the point to which all nodes go back.
AT_LEAST = 5


def migrate_later(hub: Hub) -> None:
    """What the next versions' migrations do works on distributed tables."""
    shown = hub.run("-m", "tests.distributed.later")
    check("a new table lies with its tenants' rows", "1 row of the person" in shown, "\n" + shown)


def run_tests(cluster: Cluster, paths: list[str], **environ: str) -> int:
    """The tests of these paths on a database of the cluster."""
    cluster.database("test_memoryhub")
    away = [f"--deselect={name}" for name in NOT_THERE]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "--reuse-db", *away, *paths]
    return subprocess.run(
        command, cwd=PROJECT, env={**os.environ, **environ, "TESTS_DISTRIBUTED": cluster.nodes[0].url()}, check=False
    ).returncode


def on_two_workers(programs: Path, folder: Path, options: argparse.Namespace) -> None:
    """What is shown with a coordinator and two workers. Errors: SystemExit."""
    wanted = set(options.only)
    with running(programs, folder / "cluster", workers=2) as cluster:
        if wanted & {"job", "features", "move", "later"}:
            hub = prepared(Hub(cluster, folder))
            first, second = hub.key("first"), hub.key("second")
            with hub.serving("web", "worker"):
                if wanted & {"job", "later"}:
                    main_job(hub, first)
                if "move" in wanted:
                    move(hub, second, "second", options.rounds)
            if "features" in wanted:
                use(hub)
        if "later" in wanted:
            migrate_later(hub)
        if "tests" in wanted and run_tests(cluster, options.tests):
            raise SystemExit(1)


def heavy(programs: Path, folder: Path, options: argparse.Namespace) -> None:
    """A heavy person's tenant moves. Errors: SystemExit."""
    with running(programs, folder / "cluster", workers=2) as cluster:
        # Cheap vectors: what they say is not what is shown here.
        hub = prepared(Hub(cluster, folder, MEMORYHUB_EMBEDDINGS="hashed"))
        move_heavy(hub, hub.key("heavy"), "heavy", options.rounds)


def walls(programs: Path, folder: Path, options: argparse.Namespace) -> None:
    """Row level security. Errors: SystemExit."""
    with running(programs, folder / "cluster", workers=2) as cluster:
        wall(prepared(Hub(cluster, folder, MEMORYHUB_ROW_SECURITY="on")))
        if run_tests(cluster, list(WALL_TESTS), MEMORYHUB_ROW_SECURITY="on"):
            raise SystemExit(1)


def upgrades(programs: Path, folder: Path, options: argparse.Namespace) -> None:
    """Versions of before are migrated on a cluster that has their rows. Errors: SystemExit."""
    for version in VERSIONS:
        home = folder / version
        home.mkdir(mode=0o711)
        with running(programs, home / "cluster", workers=2) as cluster:
            upgrade(cluster, home, version)


def restore(programs: Path, folder: Path, _options: argparse.Namespace) -> None:
    """All nodes go back to one point: what was accepted before it is there, and nothing of after it."""
    kept = folder / "kept"
    with running(programs, folder / "before", workers=2) as cluster:
        hub = prepared(Hub(cluster, folder))
        key = hub.key("first")
        with hub.serving("web"), backups.archived(programs, cluster, kept):
            agent = Agent(hub, key, "before")
            agent.start()
            wait_until(lambda: len(agent.accepted) > AT_LEAST)
            backups.note_point(cluster, kept, wait_until)
            agent.end()
            later = Agent(hub, key, "after")
            later.start()
            wait_until(lambda: later.accepted)
            later.end()
            hub.manage("erase_user", "--tenant", "first", "--user", "before")
    with backups.restored(programs, cluster, kept, wait_until), hub.serving("web"):
        there = _turns(cluster)
        check("turns of before the point are there", len(there) >= AT_LEAST, len(there))
        check("nothing is between them or after it", there == agent.accepted[: len(there)], len(agent.accepted))
        check("check_memory finds nothing wrong", sound := hub.manage("check_memory").strip(), sound)
        hub.manage("replay_erasures")
        check("who was erased after the point is erased again", _turns(cluster) == [])
        again = Agent(hub, key, "again")
        again.start()
        check("posts are taken again", wait_until(lambda: again.accepted))
        again.end()


def _turns(cluster: Cluster) -> list[str]:
    with cluster.nodes[0].connect() as connection:
        rows = connection.execute("SELECT external_id FROM memories_turn ORDER BY number").fetchall()
    return [name for (name,) in rows]


def throughput(programs: Path, folder: Path, options: argparse.Namespace) -> None:
    """With one node, two and three. Errors: SystemExit."""
    scale(programs, folder, seconds=options.seconds, rounds=options.rounds, share=options.share)


ALONE = {
    "heavy": heavy,
    "upgrade": upgrades,
    "walls": walls,
    "restore": restore,
    "lose": lambda programs, folder, _options: lose(programs, folder),
    "throughput": throughput,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="make distributed", description=__doc__)
    parser.add_argument("--citus", type=Path, required=True, help="The source tree of Citus 14.")
    parser.add_argument("--build", type=Path, help="Where it is built, and kept; a temporary folder without it.")
    parser.add_argument("--only", choices=PARTS, nargs="*", default=list(PARTS))
    parser.add_argument("--rounds", type=int, default=4, help="How often the tenant moves, and throughput is measured.")
    parser.add_argument("--seconds", type=float, default=10, help="For how long each kind of request is counted.")
    parser.add_argument("--share", type=float, default=0.05, help="Of a processor, for each node that holds rows.")
    parser.add_argument("--tests", nargs="*", default=list(TESTS), help="The tests that are run on the cluster.")
    options = parser.parse_args()
    # The nodes end with us, however we end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="mh-citus-") as temporary:
        folder = Path(temporary)
        folder.chmod(0o711)
        programs = build(options.citus.absolute(), (options.build or folder / "server").absolute())
        if set(options.only) - ALONE.keys():
            on_two_workers(programs, folder, options)
        for part in (part for part in ALONE if part in options.only):
            home = folder / part
            home.mkdir(mode=0o711)
            ALONE[part](programs, home, options)


if __name__ == "__main__":
    main()
