"""Agents that post without a pause, and a tenant that moves between the nodes meanwhile."""

import http.client
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from tests.distributed.cluster import Cluster, Node
from tests.distributed.hub import PATIENCE_SECONDS, Hub, check, wait_until

CLIENTS = 4


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
        tenant_id = tenant_id_of(connection, tenant)
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
            shard, source = place_of(connection, tenant_id)
            target = next(node for node in hub.cluster.nodes[1:] if node.port != source)
            with timed(f"the tenant is on {target.name}", agents):
                connection.execute(
                    "SELECT citus_move_shard_placement(%s, '127.0.0.1', %s, '127.0.0.1', %s, 'force_logical')",
                    [shard, source, target.port],
                )
            check("its rows are there", place_of(connection, tenant_id)[1] == target.port)
        for agent in agents:
            agent.end()
    judge(hub.cluster, tenant, agents)


def judge(cluster: Cluster, tenant: str, agents: list[Agent]) -> None:
    """Whether all turns that were accepted of these agents are there, each once. Errors: SystemExit."""
    with cluster.nodes[0].connect() as connection:
        rows = connection.execute(
            "SELECT external_id FROM memories_turn WHERE tenant_id = %s AND external_id LIKE %s",
            [tenant_id_of(connection, tenant), f"{tenant}-%"],
        ).fetchall()
    there = {name for (name,) in rows}
    said = {name for agent in agents for name in agent.accepted}
    failed = [failure for agent in agents for failure in agent.failures]
    lost, doubled = sorted(said - there), len(rows) - len(there)
    what = f"{len(lost)} are not, {lost[:5]}; {doubled} more than once" if lost or doubled else ""
    check(f"all of {len(said)} accepted turns of {tenant} are there, each once", not what, what)
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


def tenant_id_of(connection: Any, slug: str) -> Any:
    [tenant_id] = connection.execute("SELECT id FROM memories_tenant WHERE slug = %s", [slug]).fetchone() or [None]
    return tenant_id


def node_of(cluster: Cluster, slug: str) -> Node:
    """The node that has the tenant's rows."""
    with cluster.nodes[0].connect() as connection:
        _, port = place_of(connection, tenant_id_of(connection, slug))
    return next(node for node in cluster.nodes if node.port == port)


def place_of(connection: Any, tenant_id: Any) -> tuple[int, int]:
    """The shard of the tenant's turns, and the port of its node."""
    found = connection.execute(
        "SELECT shardid, nodeport FROM pg_dist_shard_placement "
        "WHERE shardid = get_shard_id_for_distribution_column('memories_turn', %s::uuid)",
        [tenant_id],
    ).fetchone()
    return int(found[0]), int(found[1])
