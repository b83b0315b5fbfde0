"""Files, trajectories, skills, imports, groups, answers and the person's page; then an erasure of all that."""

import http.client
import json
from functools import partial
from pathlib import Path
from typing import Any

from tests.distributed.cluster import Cluster, Node
from tests.distributed.hub import RUNTIME, Hub, check, wait_until
from tests.distributed.moving import tenant_id_of

SLUG = "features"
LEASE = "# Lease\n\n## Deposit\n\nThe deposit for the flat in Ghent is 2,400 euros."
# Steps that tell success from failure, as the hub's rules look for them.
GOOD = (("open_project", {"clean": True}), ("run_migrations", {"target": "latest"}), ("run_tests", {"suite": "all"}))
BAD: tuple[tuple[str, dict[str, object]], ...] = (
    ("open_project", {"clean": True}),
    ("skip_migrations", {}),
    ("push", {"force": True}),
)
FAMILY = "release service"
# The worker looks for skills every five minutes; an operator approves them in the admin.
_SKILLS = """
import django; django.setup()
from django.utils import timezone
from memories.audit import Actor
from memories.curation.skills import deciding, proposing
from memories.models import ActorKind, Skill
proposing.run_slice(now=timezone.now(), seconds=60)
[skill] = Skill.objects.filter(tenant__slug="features")
deciding.approve(skill_id=skill.pk, actor=Actor(kind=ActorKind.COMMAND), now=timezone.now())
print(skill.name)
"""
# What is planted on a node, as a move leaves it until Citus cleans up: table → what the verification calls the place.
PLANTED = {
    "memories_turn": "memories.Turn.content",
    "memories_passage": "memories.Passage.content",
    "memories_trajectorystep": "memories.TrajectoryStep.content",
    "memories_groupfact": "memories.GroupFact.content",
}
_SWITCHED_ON = (
    "UPDATE memories_tenant SET person_page = true, numbers = jsonb_build_object('skills', true) WHERE slug = %s"
)
# Of the findings of a verification.
READ = ("tables", "rows", "bytes", "hits", "mentions")


def use(hub: Hub) -> None:
    """Errors: SystemExit."""
    key = hub.key(SLUG)
    with hub.cluster.nodes[0].connect() as connection:
        connection.execute(_SWITCHED_ON, [SLUG])
    with hub.serving("web", "worker"):
        for name in ("u1", "u2"):
            _post(hub, key, name)
        _documents(hub, key)
        _skills(hub, key)
        _imported(hub, key)
        _shared(hub, key)
        _answered(hub, key)
        _own_page(hub, key)
        _erased(hub, key)
    check("check_memory finds nothing wrong", sound := hub.manage("check_memory").strip(), sound)


def _done(answer: Any) -> Any:
    if answer.status not in (200, 201, 202, 204):
        raise SystemExit(f"The hub answered {answer.status}: {answer.body}")
    return answer.body


def _post(hub: Hub, key: str, name: str) -> None:
    file = {"name": "lease.md", "media_type": "text/markdown", "text": LEASE}
    said = {"role": "user", "content": "Please remember that I moved to Ghent in May.", "attachments": [file]}
    turns = {"user_id": name, "session_id": f"s-{name}", "messages": [said], "flush": True}
    _done(hub.call(key, "POST", "/turns", turns))
    for calls, outcome in ((GOOD, "succeeded"), (GOOD, "succeeded"), (BAD, "failed")):
        steps: list[dict[str, Any]] = [{"kind": "message", "content": f"I begin for {name} in the harbour office."}]
        for at, (tool, arguments) in enumerate(calls):
            call = {"kind": "tool_call", "tool": tool, "call_id": f"c{at}", "arguments": arguments}
            steps += [call, {"kind": "tool_result", "call_id": f"c{at}", "content": "done"}]
        task = {"user_id": name, "task": "Release the service", "family": FAMILY, "steps": steps, "outcome": outcome}
        _done(hub.call(key, "POST", "/trajectories", task))


def _documents(hub: Hub, key: str) -> None:
    query = {"user_id": "u1", "query": "How much is the deposit?", "kinds": ["document"]}
    found = wait_until(lambda: hub.call(key, "POST", "/search", query).body["results"])
    check("a file's passage is found", "2,400 euros" in json.dumps(found))
    facts = wait_until(lambda: hub.call(key, "GET", "/facts?user_id=u1").body["results"])
    check("a fact is extracted", "Ghent" in facts[0]["content"], facts[0]["content"])


def _skills(hub: Hub, key: str) -> None:
    name = hub.run("-c", _SKILLS).strip()
    path = f"/skills/{name}/SKILL.md"
    served = hub.call(key, "GET", f"/files/content?user_id=u1&path={path}")
    check("trajectories become a skill, which is served as a file", "run_migrations" in json.dumps(served.body), name)


def _imported(hub: Hub, key: str) -> None:
    row = {"text": "Keeps bees behind the flat in Ghent", "category": "other"}
    begun = _done(hub.call(key, "POST", "/imports?user_id=u1&source=facts", row))
    ends = ("done", "failed")
    found = wait_until(lambda: _if_in(hub.call(key, "GET", f"/imports/{begun['id']}").body, ends))
    check("an import is carried out", found["status"] == "done", found["status"])


def _if_in(found: Any, statuses: tuple[str, ...]) -> Any:
    return found if found["status"] in statuses else None


def _shared(hub: Hub, key: str) -> None:
    group = _done(hub.call(key, "POST", "/groups", {"name": "Harbour", "kind": "team"}))["id"]
    for name in ("u1", "u2"):
        _done(hub.call(key, "PUT", f"/groups/{group}/members", {"user_id": name}))
    stated = {"user_id": "u2", "content": "The one with the flat in Ghent opens at six", "about_user_id": "u1"}
    _done(hub.call(key, "POST", f"/groups/{group}/facts", stated))
    context = _done(hub.call(key, "POST", "/context", {"user_id": "u2", "query": "Who opens at six?"}))
    check("a group's fact is in a member's context", "opens at six" in json.dumps(context))


def _answered(hub: Hub, key: str) -> None:
    answer = _done(hub.call(key, "POST", "/answer", {"user_id": "u1", "question": "Where did I move to?"}))
    check("a question is answered with its evidence", "Ghent" in json.dumps(answer["evidence"]), answer["status"])


def _own_page(hub: Hub, key: str) -> None:
    link = _done(hub.call(key, "POST", "/person-links", {"user_id": "u1"}))["url"]
    client = http.client.HTTPConnection("127.0.0.1", hub.port, timeout=60)
    client.request("GET", "/me/open/" + link.rpartition("/")[2])
    opened = client.getresponse()
    opened.read()
    cookie = opened.headers.get("Set-Cookie", "").partition(";")[0]
    client.request("GET", "/me/", headers={"Cookie": cookie})
    page = client.getresponse()
    text = page.read().decode()
    client.close()
    check("the person's page tells what is remembered", (opened.status, "Ghent" in text) == (303, True), page.status)


def _erased(hub: Hub, key: str) -> None:
    """Copies that are in no table of the coordinator are found on their node; without them the erasure is complete."""
    cluster = hub.cluster
    node, shards = _shards(cluster)
    with node.connect() as connection:
        for table, shard in shards.items():
            connection.execute(f"CREATE TABLE {table}_999999 AS SELECT * FROM {shard}")
            connection.execute(f"GRANT SELECT ON {table}_999999 TO {RUNTIME}")
    command = ["erase_user", "--tenant", SLUG, "--user", "u1"]
    refused = hub.refused(*command)
    missed = [place for place in PLANTED.values() if place not in refused]
    check("an erasure finds each of the copies that were planted on a node", not missed, missed or refused)
    check("nothing is served", not hub.call(key, "GET", "/facts?user_id=u1").body["results"])
    with node.connect() as connection:
        for table in PLANTED:
            connection.execute(f"DROP TABLE {table}_999999")
    receipt = Path(hub.manage(*command).strip())
    check("without them the erasure is complete", receipt.is_file(), receipt.suffix)
    with cluster.nodes[0].connect() as connection:
        done = connection.execute("SELECT findings FROM memories_privacycase WHERE step = 'done'").fetchall()
    [read] = [findings for (findings,) in done if findings]
    check("it read all nodes", read["tables"] > 200 and not read["hits"], {name: read[name] for name in READ})
    left = hub.call(key, "GET", "/facts?user_id=u2").body["results"]
    check("the other person's memory is there", "Ghent" in json.dumps(left))


def _shards(cluster: Cluster) -> tuple[Node, dict[str, str]]:
    """The node of the tenant's rows, and of each planted table its part there."""
    with cluster.nodes[0].connect() as connection:
        tenant_id = tenant_id_of(connection, SLUG)
        ask = partial(connection.execute, "SELECT get_shard_id_for_distribution_column(%s, %s::uuid)")
        shards = {table: f"{table}_{(ask([table, tenant_id]).fetchone() or [0])[0]}" for table in PLANTED}
        found = connection.execute(
            "SELECT nodeport FROM pg_dist_shard_placement WHERE shardid = %s",
            [int(shards["memories_turn"].rpartition("_")[2])],
        ).fetchone()
    [port] = found or [0]
    return next(node for node in cluster.nodes if node.port == port), shards
