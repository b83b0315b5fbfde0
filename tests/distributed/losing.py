"""A worker node is lost with its disk: what the hub answers meanwhile, and the node comes back from its backup and WAL.

Commits wait for the receiver of the WAL, so what was accepted is in it.
"""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.distributed import backups
from tests.distributed.cluster import Node, kill, running
from tests.distributed.hub import Hub, check, prepared, wait_until
from tests.distributed.moving import Agent, judge, node_of

# Turns that an agent posts before the loss, while the node is away, and afterwards.
AT_LEAST = 5
MOST_TENANTS = 100
SAID = {"role": "user", "content": "Please remember that I am allergic to peanuts."}


def lose(programs: Path, folder: Path) -> None:
    """Errors: SystemExit."""
    with running(programs, folder / "cluster", workers=2) as cluster:
        lose_one(programs, prepared(Hub(cluster, folder)), folder / "kept")


def lose_one(programs: Path, hub: Hub, kept: Path) -> None:
    """Of a cluster of two workers the second. `kept`: where backups and WAL lie. Errors: SystemExit."""
    cluster = hub.cluster
    [(_, stays, safe), (lost, misses, missed)] = _tenant_on_each(hub)
    beside, gone = Agent(hub, safe, stays), Agent(hub, missed, misses)
    with backups.archived(programs, cluster, kept, waits=True), hub.serving("web", "worker"):
        for agent in (beside, gone):
            agent.start()
            wait_until(lambda agent=agent: len(agent.accepted) > AT_LEAST)  # type: ignore[misc]  # mypy infers no lambda with a default
        kill(programs, cluster.data(lost))
        shutil.rmtree(cluster.data(lost))
        _while_away(hub, safe, missed, beside, gone)
        backups.restore_node(programs, cluster, lost, kept, wait_until)
        before = len(gone.accepted)
        wait_until(lambda: len(gone.accepted) > before + AT_LEAST)
        facts = wait_until(lambda: hub.call(safe, "GET", "/facts?user_id=u1").body["results"])
        check("what was posted meanwhile is extracted", facts, facts[0]["content"])
        for agent in (beside, gone):
            agent.end()
    for slug, agent in ((stays, beside), (misses, gone)):
        judge(cluster, slug, [agent])
    check("nobody was answered that the hub is at fault", "500" not in beside.failures + gone.failures)
    check("check_memory finds nothing wrong", sound := hub.manage("check_memory").strip(), sound)


def _tenant_on_each(hub: Hub) -> Iterator[tuple[Node, str, str]]:
    """Each worker with a tenant that lies there, and the tenant's key."""
    for node in hub.cluster.nodes[1:]:
        for number in range(MOST_TENANTS):
            slug = f"{node.name}-{number}"
            key = hub.key(slug)
            if node_of(hub.cluster, slug) == node:
                yield node, slug, key
                break


def _while_away(hub: Hub, safe: str, missed: str, beside: Agent, gone: Agent) -> None:
    """The node's tenants get 503 and are told to come again; the others are served as always."""
    turns = {"user_id": "u1", "session_id": "s1", "messages": [SAID], "flush": True}
    calls: list[tuple[str, str, Any]] = [
        ("POST", "/turns", turns),
        ("POST", "/context", {"user_id": "u1", "query": "What must I not eat?"}),
        ("POST", "/search", {"user_id": "u1", "query": "peanuts"}),
        ("GET", "/facts?user_id=u1", None),
    ]
    for method, path, body in calls:
        answer = wait_until(lambda call=(method, path, body): _if(hub.call(missed, *call), 503))  # type: ignore[misc]  # mypy infers no lambda with a default
        check(f"{method} {path} of a tenant of the lost node: {answer.status}", answer.retry_after, answer.retry_after)
        answer = hub.call(safe, method, path, body)
        check(f"{method} {path} of another tenant", answer.status in (200, 202), answer.status)
    before = len(beside.accepted)
    wait_until(lambda: len(beside.accepted) > before + AT_LEAST)
    check("the other tenant's agent goes on; the lost one's was told", set(gone.failures), sorted(set(gone.failures)))
    extracted = hub.call(safe, "GET", "/facts?user_id=u1").body["results"]
    sys.stdout.write(f"     the worker extracted for the other tenant meanwhile: {'yes' if extracted else 'no'}\n")


def _if(answer: Any, status: int) -> Any:
    return answer if answer.status == status else None
