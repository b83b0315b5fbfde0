"""`make distributed`: build a Citus cluster, put a hub on it, and show what it does there.

The main job goes through web and worker: turns, extraction by rules, context, search, a correction, an erasure. Then
agents post without a pause while their tenant moves from node to node, and each accepted turn must be there afterwards.
Operations of a later version's migrations run, and tests of the API.
Then posts and contexts are counted with 1, 2 and 3 nodes: on one machine that shows what it costs, not growth.
"""

import argparse
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tests.distributed import backups
from tests.distributed.cluster import Cluster, build, running
from tests.ports import free_port

PROJECT = Path(__file__).resolve().parent.parent.parent
RUNTIME = "memoryhub_runtime"
PATIENCE_SECONDS = 300.0
SECONDS = 15.0
CLIENTS = 4
SCOPES = "ingest,read,write,privacy"
# Tests of the API that are run on a cluster; the others of the folder read no rows of tenants or start hubs.
TESTS = ("tests/api/v1", "tests/api/test_isolation.py", "tests/api/test_idempotency.py")


PARTS = ("job", "move", "later", "tests", "restore", "throughput")
# Turns that are posted before the point to which all nodes go back.
AT_LEAST = 5
# Of the findings of a verification.
READ = ("tables", "rows", "bytes", "hits", "mentions")


class Answer(NamedTuple):
    status: int
    body: Any


class Hub:
    """Web and worker on a cluster's database."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster, self.port = cluster, free_port()
        self._folder = folder
        self._environ = {name: value for name, value in os.environ.items() if not name.startswith("MEMORYHUB_")} | {
            "DATABASE_URL": cluster.nodes[0].url(user=RUNTIME),
            "MEMORYHUB_OWNER_URL": cluster.nodes[0].url(),
            "MEMORYHUB_DISTRIBUTED": "1",
            "MEMORYHUB_HOME": str(folder / "home"),
            "MEMORYHUB_PORT": str(self.port),
            "MEMORYHUB_LLM": "rules",
            "MEMORYHUB_DEBOUNCE_SECONDS": "1",
        }

    def manage(self, *arguments: str) -> str:
        """What the command prints. Errors: SystemExit."""
        return self.run("manage.py", *arguments)

    def run(self, *arguments: str) -> str:
        """What this Python program prints. Errors: SystemExit."""
        done = self._run(*arguments)
        if done.returncode:
            raise SystemExit(f"{' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    def refused(self, *arguments: str) -> str:
        """Why the command does not do it. Errors: SystemExit when it does."""
        done = self._run("manage.py", *arguments)
        if not done.returncode:
            raise SystemExit(f"manage.py {' '.join(arguments)} did not fail:\n{done.stdout}")
        return done.stderr.strip()

    def _run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=PROJECT,
            env=self._environ,
            capture_output=True,
            text=True,
            check=False,
        )

    @contextmanager
    def serving(self, *commands: str) -> Iterator[None]:
        """These commands of manage.py run; web answers."""
        with ExitStack() as stack:
            for command in commands:
                log = stack.enter_context((self._folder / f"{command}.log").open("a"))
                process = subprocess.Popen(
                    [sys.executable, "manage.py", command], cwd=PROJECT, env=self._environ, stdout=log, stderr=log
                )
                stack.callback(process.wait)
                stack.callback(process.terminate)
            wait_until(self._answers)
            yield

    def key(self, tenant: str) -> str:
        return self.manage("create_api_key", "--tenant", tenant, "--scopes", SCOPES).strip()

    def call(self, key: str, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Errors: OSError, HTTPException."""
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            content = None if body is None else json.dumps(body)
            all_headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json", **headers}
            client.request(method, f"/api/v1{path}", content, all_headers)
            answer = client.getresponse()
            text = answer.read()
            return Answer(answer.status, json.loads(text) if text else None)
        finally:
            client.close()

    def _answers(self) -> bool:
        try:
            return self.call("none", "GET", "/users").status == 401
        except (OSError, http.client.HTTPException):
            return False


def wait_until(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise SystemExit(f"Waited {PATIENCE_SECONDS:.0f} s in vain: {condition}")
        time.sleep(0.2)
    return found


def check(what: str, holds: Any, shown: Any = "") -> None:
    """Say whether it holds. Errors: SystemExit."""
    sys.stdout.write(f"{'ok  ' if holds else 'FAIL'} {what} {shown}\n")
    sys.stdout.flush()
    if not holds:
        raise SystemExit(1)


def prepared(cluster: Cluster, folder: Path) -> Hub:
    """A hub with its tables distributed."""
    hub = Hub(cluster, folder)
    hub.manage("migrate", "--verbosity", "0")
    check("tables:", placed := hub.manage("distribute").strip(), placed)
    return hub


def main_job(hub: Hub, key: str) -> None:
    """What a person says becomes a memory, is served, corrected and erased."""
    said = {"role": "user", "content": "Please remember that I am allergic to peanuts."}
    posted = hub.call(key, "POST", "/turns", {"user_id": "u1", "session_id": "s1", "messages": [said], "flush": True})
    check("POST /turns is accepted", posted.status in (200, 201, 202), posted.status)
    facts = wait_until(lambda: hub.call(key, "GET", "/facts?user_id=u1").body["results"])
    check("rules extract a fact", "peanuts" in facts[0]["content"], facts[0]["content"])
    context = hub.call(key, "POST", "/context", {"user_id": "u1", "query": "What must I not eat?"})
    check("POST /context serves it", "peanuts" in json.dumps(context.body))
    hits = wait_until(lambda: hub.call(key, "POST", "/search", {"user_id": "u1", "query": "peanuts"}).body["results"])
    check("POST /search finds it", "peanuts" in json.dumps(hits))
    address = f"/facts/{facts[0]['id']}"
    once = {"If-Match": '"1"', "Idempotency-Key": "first-correction"}
    changed = hub.call(key, "PATCH", address, {"content": "Is allergic to walnuts."}, **once)
    check("PATCH /facts corrects it", changed.status == 200, changed.status)
    context = hub.call(key, "POST", "/context", {"user_id": "u1"})
    check("the correction is served", "walnuts" in json.dumps(context.body))
    check("check_memory finds nothing wrong", sound := hub.manage("check_memory").strip(), sound)
    erase(hub, key)


def erase(hub: Hub, key: str) -> None:
    """The verification reads each node: it finds what is in no table of the coordinator."""
    with hub.cluster.nodes[0].connect() as connection:
        [tenant_id] = connection.execute("SELECT id FROM memories_tenant WHERE slug = 'first'").fetchone() or [None]
        shard, port = _place(connection, tenant_id)
    node = next(node for node in hub.cluster.nodes if node.port == port)
    with node.connect() as connection:
        # As a move leaves it until Citus cleans up.
        connection.execute(f"CREATE TABLE memories_turn_999999 AS SELECT * FROM memories_turn_{shard}")
        connection.execute(f"GRANT SELECT ON memories_turn_999999 TO {RUNTIME}")
    command = ["erase_user", "--tenant", "first", "--user", "u1"]
    refused = hub.refused(*command)
    check("an erasure finds what was planted on a node", "memories.Turn.content" in refused, refused)
    check("no fact is served", not hub.call(key, "GET", "/facts?user_id=u1").body["results"])
    with node.connect() as connection:
        connection.execute("DROP TABLE memories_turn_999999")
    receipt = Path(hub.manage(*command).strip())
    check("without it the erasure is complete", receipt.is_file(), receipt.suffix)
    with hub.cluster.nodes[0].connect() as connection:
        done = connection.execute("SELECT findings FROM memories_privacycase WHERE step = 'done'").fetchall()
    [read] = [findings for (findings,) in done if findings]
    check("it read all nodes", read["tables"] > 200 and not read["hits"], {name: read[name] for name in READ})


def migrate_later(hub: Hub) -> None:
    """What the next versions' migrations do works on distributed tables."""
    shown = hub.run("-m", "tests.distributed.later")
    check("a new table lies with its tenants' rows", "1 row of the person" in shown, "\n" + shown)


class Agent(threading.Thread):
    """Posts one turn after the other, and keeps what was accepted."""

    def __init__(self, hub: Hub, key: str, name: str) -> None:
        super().__init__(daemon=True)
        self.accepted: list[str] = []
        self.failures: list[str] = []
        # Seconds that each of them took, with what was sent again.
        self.waits: list[float] = []
        self._ended = threading.Event()
        self._hub, self._key, self._name = hub, key, name

    def run(self) -> None:
        number = 0
        while not self._ended.is_set():
            number += 1
            external_id = f"{self._name}-{number}"
            message = {"role": "user", "content": f"Turn {external_id}", "external_id": external_id}
            body = {"user_id": self._name, "session_id": f"s-{self._name}", "messages": [message]}
            begun = time.monotonic()
            # As clients do: what got no answer is sent again.
            while not self._post(body, external_id):
                time.sleep(0.1)
            self.waits.append(time.monotonic() - begun)

    def has_posted(self, beside: int) -> bool:
        return len(self.waits) > beside

    def end(self) -> None:
        self._ended.set()
        self.join(PATIENCE_SECONDS)

    def _post(self, body: Any, external_id: str) -> bool:
        try:
            answer = self._hub.call(self._key, "POST", "/turns", body)
        except (OSError, http.client.HTTPException) as error:
            self.failures.append(type(error).__name__)
            return False
        if answer.status != 202:
            self.failures.append(str(answer.status))
            return False
        self.accepted.append(external_id)
        return True


def move(hub: Hub, key: str, tenant: str, rounds: int) -> None:
    """The tenant gets a shard of its own, which moves between the nodes while agents post to it."""
    agents = [Agent(hub, key, f"{tenant}-{place}") for place in range(CLIENTS)]
    for agent in agents:
        agent.start()
    with hub.cluster.nodes[0].connect() as connection:
        found = connection.execute("SELECT id FROM memories_tenant WHERE slug = %s", [tenant]).fetchone()
        [tenant_id] = found or [None]
        with timed("the tenant has a shard of its own", agents):
            connection.execute(
                # Not 'force_logical': what Citus sets up for it does not catch up with these servers.
                "SELECT isolate_tenant_to_new_shard('memories_turn', %s::uuid, 'CASCADE', shard_transfer_mode => %s)",
                [tenant_id, "block_writes"],
            )
        for _ in range(rounds):
            with timed("Citus has removed what was left on a node", agents):
                # It is in the way of the next move.
                wait_until(partial(_is_clean, connection))
            shard, source = _place(connection, tenant_id)
            target = next(node for node in hub.cluster.nodes[1:] if node.port != source)
            with timed(f"the tenant is on {target.name}", agents):
                connection.execute(
                    "SELECT citus_move_shard_placement(%s, '127.0.0.1', %s, '127.0.0.1', %s, 'force_logical')",
                    [shard, source, target.port],
                )
            check("its rows are there", _place(connection, tenant_id)[1] == target.port)
        for agent in agents:
            agent.end()
        rows = connection.execute("SELECT external_id FROM memories_turn WHERE tenant_id = %s", [tenant_id]).fetchall()
    there = {name for (name,) in rows}
    said = {name for agent in agents for name in agent.accepted}
    failed = [failure for agent in agents for failure in agent.failures]
    lost, doubled = sorted(said - there), len(rows) - len(there)
    what = f"{len(lost)} are not, {lost[:5]}; {doubled} more than once" if lost or doubled else ""
    check(f"all of {len(said)} accepted turns are there, each once", not what, what)
    sys.stdout.write(f"     {len(failed)} posts failed meanwhile and were sent again: {sorted(set(failed))}\n")


@contextmanager
def timed(what: str, agents: list[Agent]) -> Iterator[None]:
    """Say how long it took, and how long the posts that ended meanwhile did, with one that still waits then."""
    for agent in agents:
        agent.waits.clear()
    begun = time.monotonic()
    yield
    took = time.monotonic() - begun
    for agent in agents:
        wait_until(partial(agent.has_posted, beside=len(agent.waits)))
    waits = sorted(wait for agent in agents for wait in agent.waits)
    check(what, True, f"after {took:.1f} s; posts took {waits[len(waits) // 2]:.2f} s, one {waits[-1]:.1f} s")


def _is_clean(connection: Any) -> bool:
    return bool(connection.execute("SELECT count(*) FROM pg_dist_cleanup").fetchone() == (0,))


def _place(connection: Any, tenant_id: Any) -> tuple[int, int]:
    """The shard of the tenant's turns, and the port of its node."""
    found = connection.execute(
        "SELECT shardid, nodeport FROM pg_dist_shard_placement "
        "WHERE shardid = get_shard_id_for_distribution_column('memories_turn', %s::uuid)",
        [tenant_id],
    ).fetchone()
    return int(found[0]), int(found[1])


def throughput(hub: Hub, keys: list[str]) -> tuple[float, float]:
    """Posts and contexts a second, of some clients at once, each of another tenant."""

    def rate(work: Callable[[str, int], Answer]) -> float:
        counts = [0] * len(keys)
        until = time.monotonic() + SECONDS

        def run(place: int) -> None:
            while time.monotonic() < until:
                answer = work(keys[place], counts[place])
                assert answer.status < 300, answer
                counts[place] += 1

        threads = [threading.Thread(target=run, args=[place]) for place in range(len(keys))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(counts) / SECONDS

    def post(key: str, number: int) -> Answer:
        message = {"role": "user", "content": f"I walked {number} miles."}
        return hub.call(
            key, "POST", "/turns", {"user_id": "t1", "session_id": f"s{number // 50}", "messages": [message]}
        )

    def context(key: str, _number: int) -> Answer:
        return hub.call(key, "POST", "/context", {"user_id": "t1", "query": "How far did I walk?"})

    return rate(post), rate(context)


def run_tests(cluster: Cluster, paths: list[str]) -> int:
    """The tests of these paths on a database of the cluster."""
    cluster.database("test_memoryhub")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "--reuse-db", *paths]
    return subprocess.run(
        command, cwd=PROJECT, env={**os.environ, "TESTS_DISTRIBUTED": cluster.nodes[0].url()}, check=False
    ).returncode


def on_two_workers(programs: Path, folder: Path, options: argparse.Namespace) -> None:
    """What is shown with a coordinator and two workers. Errors: SystemExit."""
    wanted = set(options.only)
    with running(programs, folder / "cluster", workers=2) as cluster:
        if wanted & {"job", "move", "later"}:
            hub = prepared(cluster, folder)
            key, other = hub.key("first"), hub.key("second")
            with hub.serving("web", "worker"):
                if wanted & {"job", "later"}:
                    main_job(hub, key)
                if "move" in wanted:
                    move(hub, other, "second", options.rounds)
        if "later" in wanted:
            migrate_later(hub)
        if "tests" in wanted and run_tests(cluster, options.tests):
            raise SystemExit(1)


def restore(programs: Path, folder: Path) -> None:
    """All nodes go back to one point: what was accepted before it is there, and nothing of after it."""
    kept = folder / "kept"
    with running(programs, folder / "before", workers=2) as cluster:
        hub = prepared(cluster, folder)
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


def on_one_to_three(programs: Path, folder: Path) -> None:
    """How much a hub does with so many nodes that hold rows."""
    for workers in (0, 1, 2):
        home = folder / f"hub{workers}"
        home.mkdir(mode=0o711)
        with running(programs, folder / f"cluster{workers}", workers=workers, holds=True, fast=False) as cluster:
            hub = prepared(cluster, home)
            keys = [hub.key(f"tenant-{place}") for place in range(CLIENTS)]
            with hub.serving("web"):
                posts, contexts = throughput(hub, keys)
            sys.stdout.write(f"     {workers + 1} nodes: {posts:.0f} posts/s, {contexts:.0f} contexts/s\n")


def main() -> None:
    parser = argparse.ArgumentParser(prog="make distributed", description=__doc__)
    parser.add_argument("--citus", type=Path, required=True, help="The source tree of Citus 14.")
    parser.add_argument("--build", type=Path, help="Where it is built, and kept; a temporary folder without it.")
    parser.add_argument("--only", choices=PARTS, nargs="*", default=list(PARTS))
    parser.add_argument("--rounds", type=int, default=4, help="How often the tenant moves.")
    parser.add_argument("--tests", nargs="*", default=list(TESTS), help="The tests that are run on the cluster.")
    options = parser.parse_args()
    # The nodes end with us, however we end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="mh-citus-") as temporary:
        folder = Path(temporary)
        folder.chmod(0o711)
        programs = build(options.citus.absolute(), (options.build or folder / "server").absolute())
        if set(options.only) - {"restore", "throughput"}:
            on_two_workers(programs, folder, options)
        if "restore" in options.only:
            restore(programs, folder)
        if "throughput" in options.only:
            on_one_to_three(programs, folder)


if __name__ == "__main__":
    main()
