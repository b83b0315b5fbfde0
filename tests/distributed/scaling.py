"""Posts, contexts and searches a second of tenants that lie on 1, 2 and 3 nodes, as ratios of one run.

Each node has the same share of a processor (a control group), small enough that the nodes are what is waited for: so a
machine with two cores shows what more machines would. The coordinator is not limited; what it needs for a request is
told, because it bounds how many nodes are of use. Numbers of nodes are measured by turns, and the medians compared.
"""

import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.distributed.cluster import Cluster, Node, running
from tests.distributed.hub import Answer, Hub, check, prepared
from tests.distributed.moving import node_of

NODES = (1, 2, 3)
# Of each of them half belongs to one node of two, a third to one of three.
CLIENTS = 12
TENANTS = 72
PERIOD_MICROSECONDS = 20_000
_GROUPS = Path("/sys/fs/cgroup")
_TENANTS = f"""
import django; django.setup()
from django.utils import timezone
from memories.audit import Actor
from memories.curation.access import keys
from memories.models import ActorKind, Tenant
for place in range({TENANTS}):
    now = timezone.now()
    tenant = Tenant.objects.create(slug=f"tenant-{{place}}", name=f"tenant-{{place}}", created_at=now)
    given = {{"tenant": tenant, "name": "load", "scopes": ["ingest", "read", "write"], "now": now}}
    print(tenant.slug, keys.create_api_key(actor=Actor(kind=ActorKind.COMMAND), **given)[1])
"""


@dataclass
class Stage:
    """Tenants that lie on so many nodes, and what was measured: kind of request → so many a second, each time."""

    nodes: int
    hub: Hub
    keys: list[str] = field(default_factory=list)
    rates: dict[str, list[float]] = field(default_factory=dict)
    # Processor's milliseconds a request: of all nodes together, and of the coordinator.
    spent: dict[str, list[tuple[float, float]]] = field(default_factory=dict)


def scale(programs: Path, folder: Path, *, seconds: float, rounds: int, share: float) -> None:
    """Errors: SystemExit where nodes cannot be limited."""
    with running(programs, folder / "cluster", workers=max(NODES), fast=False) as cluster:
        measure(prepared(Hub(cluster, folder)), seconds=seconds, rounds=rounds, share=share)


def measure(hub: Hub, *, seconds: float, rounds: int, share: float) -> None:
    """Of a cluster with three workers. Errors: SystemExit where nodes cannot be limited."""
    cluster = hub.cluster
    made = dict(line.split() for line in hub.run("-c", _TENANTS).splitlines())
    of_nodes: dict[str, list[str]] = {node.name: [] for node in cluster.nodes[1:]}
    for slug, key in made.items():
        of_nodes[node_of(cluster, slug).name].append(key)
    stages = [Stage(nodes, hub, _spread(of_nodes, nodes)) for nodes in NODES]
    with ExitStack() as stack:
        for node in cluster.nodes[1:]:
            stack.enter_context(limited(_postmaster(cluster, node), f"memoryhub-{node.name}", share))
        stack.enter_context(hub.serving("web"))
        # The first round warms up, and what is searched later is posted in it.
        for number in range(rounds + 1):
            for stage in stages:
                for kind, request in KINDS.items():
                    _measure(stage, kind, request, seconds, is_kept=number > 0)
    _report(stages, share)


def _spread(of_nodes: dict[str, list[str]], nodes: int) -> list[str]:
    """Keys of tenants of which each of so many nodes has as many."""
    each = CLIENTS // nodes
    found = [key for keys in list(of_nodes.values())[:nodes] for key in keys[:each]]
    check(f"each of {nodes} nodes has {each} of the tenants that are asked", len(found) == CLIENTS)
    return found


def _post(key: str, number: int, hub: Hub) -> Answer:
    said = {"role": "user", "content": f"I walked {number} miles along the canal."}
    return hub.call(key, "POST", "/turns", {"user_id": "t1", "session_id": f"s{number // 50}", "messages": [said]})


def _context(key: str, number: int, hub: Hub) -> Answer:
    return hub.call(key, "POST", "/context", {"user_id": "t1", "query": f"Did I walk {number} miles?"})


def _search(key: str, number: int, hub: Hub) -> Answer:
    return hub.call(key, "POST", "/search", {"user_id": "t1", "query": f"{number} miles along the canal"})


Request = Callable[[str, int, Hub], Answer]
KINDS: dict[str, Request] = {"posts": _post, "contexts": _context, "searches": _search}


def _postmaster(cluster: Cluster, node: Node) -> int:
    return int((cluster.data(node) / "postmaster.pid").read_text().split()[0])


@contextmanager
def limited(process: int, name: str, share: float) -> Iterator[None]:
    """The server and its children have this share of one processor. Errors: SystemExit without the rights."""
    quota = str(round(PERIOD_MICROSECONDS * share))
    first = (_GROUPS / "cpu").is_dir()
    group = _GROUPS / ("cpu" if first else "") / name
    try:
        group.mkdir()
        if first:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_MICROSECONDS))
            (group / "cpu.cfs_quota_us").write_text(quota)
        else:
            (group / "cpu.max").write_text(f"{quota} {PERIOD_MICROSECONDS}")
        for one in _family(process):
            (group / "cgroup.procs").write_text(str(one.pid))
    except OSError as error:
        raise SystemExit(f"Nodes cannot be limited to a share of a processor: {error}") from error
    try:
        yield
    finally:
        for one in _family(process):
            (group.parent / "cgroup.procs").write_text(str(one.pid))
        group.rmdir()


def _family(process: int) -> list[psutil.Process]:
    server = psutil.Process(process)
    return [server, *server.children(recursive=True)]


def _spent(cluster: Cluster, nodes: list[Node]) -> float:
    """Milliseconds of processors that these servers have used."""
    spent = 0.0
    for node in nodes:
        server, *children = _family(_postmaster(cluster, node))
        for one in children:
            with suppress(psutil.NoSuchProcess):
                times = one.cpu_times()
                spent += times.user + times.system
        # Last: of a child that has ended meanwhile it has the time.
        times = server.cpu_times()
        spent += times.user + times.system + times.children_user + times.children_system
    return 1_000 * spent


def _measure(stage: Stage, kind: str, request: Request, seconds: float, *, is_kept: bool) -> None:
    cluster = stage.hub.cluster
    parts = (cluster.nodes[1 : stage.nodes + 1], cluster.nodes[:1])
    before = [_spent(cluster, part) for part in parts]
    counts, faults = [0] * CLIENTS, [0] * CLIENTS
    begun = time.monotonic()

    def run(place: int) -> None:
        while time.monotonic() < begun + seconds:
            answer = request(stage.keys[place], counts[place], stage.hub)
            counts[place] += answer.status < 300
            faults[place] += answer.status >= 300

    threads = [threading.Thread(target=run, args=[place]) for place in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done, took = max(1, sum(counts)), time.monotonic() - begun
    nodes, coordinator = ((_spent(cluster, part) - was) / done for part, was in zip(parts, before, strict=True))
    if is_kept:
        stage.rates.setdefault(kind, []).append(done / took)
        stage.spent.setdefault(kind, []).append((nodes, coordinator))
    check(f"{stage.nodes} nodes: {done / took:.1f} {kind} a second", not sum(faults), sum(faults) or "")


def _report(stages: list[Stage], share: float) -> None:
    sys.stdout.write(f"     nodes of {share:.2f} processors each, medians; processor's time of nodes and coordinator\n")
    one = stages[0]
    for kind in KINDS:
        first = statistics.median(one.rates[kind])
        for stage in stages:
            rate = statistics.median(stage.rates[kind])
            nodes, coordinator = (statistics.median(each) for each in zip(*stage.spent[kind], strict=True))
            ratio = f"{rate / first:.2f} × one node"
            spent = f"{nodes:.1f} ms + {coordinator:.1f} ms"
            sys.stdout.write(f"     {kind:<8} {stage.nodes} nodes {rate:6.1f}/s {ratio}, {spent}\n")
