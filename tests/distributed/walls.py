"""Row level security on a cluster: each node shows web and worker's role the rows of the tenant that it is told."""

from typing import Any

import psycopg

from tests.distributed.cluster import Node
from tests.distributed.hub import RUNTIME, Hub, check, wait_until
from tests.distributed.job import SAID
from tests.distributed.moving import place_of, tenant_id_of

_TOLD = "SET LOCAL memoryhub.tenants TO '{}'"


def wall(hub: Hub) -> None:
    """The hub has row level security on. Errors: SystemExit."""
    keys = {slug: hub.key(slug) for slug in ("walled", "other")}
    with hub.serving("web", "worker"):
        for slug, key in keys.items():
            turns = {"user_id": "u1", "session_id": "s1", "messages": [SAID], "flush": True}
            check(f"{slug}: a post is taken", hub.call(key, "POST", "/turns", turns).status == 202)
            facts = wait_until(lambda key=key: hub.call(key, "GET", "/facts?user_id=u1").body["results"])  # type: ignore[misc]  # mypy infers no lambda with a default
            check(f"{slug}: the worker makes a fact, and it is served", len(facts) == 1, facts[0]["content"])
    coordinator = hub.cluster.nodes[0]
    with coordinator.connect() as connection:
        ids = {slug: tenant_id_of(connection, slug) for slug in keys}
    _asked(coordinator, "memories_turn", ids)
    for slug, tenant_id in ids.items():
        with coordinator.connect() as connection:
            shard, port = place_of(connection, tenant_id)
        node = next(node for node in hub.cluster.nodes if node.port == port)
        _on_a_node(node, f"memories_turn_{shard}", slug, ids)
    check("check_memory finds nothing wrong", sound := hub.manage("check_memory").strip(), sound)


def _asked(node: Node, table: str, ids: dict[str, Any]) -> None:
    """A query without a condition, as one that forgot it."""
    everybody = _tenants(node, table, "*")
    check("told that it is for all, the role sees all", everybody == set(ids.values()), len(everybody))
    check("told nothing, it sees nothing", not _tenants(node, table, ""))
    for slug, tenant_id in ids.items():
        check(f"told {slug}, it sees {slug} alone", _tenants(node, table, f"{{{tenant_id}}}") == {tenant_id})


def _on_a_node(node: Node, shard: str, slug: str, ids: dict[str, Any]) -> None:
    """The rows where they lie, past the coordinator. The owner is not bound: the rows of the control are there."""
    own = ids[slug]
    [other] = set(ids.values()) - {own}
    with node.connect() as connection:
        there = {row[0] for row in connection.execute(f"SELECT DISTINCT tenant_id FROM {shard}").fetchall()}
    check(f"{node.name}: {slug}'s rows lie there", own in there)
    check("the role sees them, told the tenant", _tenants(node, shard, f"{{{own}}}") == {own})
    check(
        "and neither told another one nor told nothing",
        own not in _tenants(node, shard, f"{{{other}}}") | _tenants(node, shard, ""),
    )


def _tenants(node: Node, table: str, told: str) -> set[Any]:
    with psycopg.connect(node.url(user=RUNTIME)) as connection:
        connection.execute("SET LOCAL citus.override_table_visibility TO off")
        if told:
            connection.execute(_TOLD.format(told))
        return {row[0] for row in connection.execute(f"SELECT DISTINCT tenant_id FROM {table}").fetchall()}
