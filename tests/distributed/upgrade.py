"""Versions of before on a cluster, with data: this version migrates them, and its tables are as if made anew.

The versions come out of the repository's history, each with its own libraries, commands, web and worker.
"""

from http.client import HTTPException
from pathlib import Path
from typing import Any

from tests import older
from tests.distributed.cluster import Cluster
from tests.distributed.hub import Hub, check, prepared, wait_until
from tests.distributed.shape import Shape, flaws, shape

# The newest migration that it has → the commit.
VERSIONS = {"0031": "9055fbbd^", "0041": "d3799ded^"}
FRESH = "fresh"
# Of each tenant; four tenants lie on both workers.
TENANTS, PEOPLE = 4, 3


def upgrade(cluster: Cluster, folder: Path, version: str) -> None:
    """Errors: SystemExit."""
    code = older.checkout(folder / "code", VERSIONS[version])
    old = prepared(Hub(cluster, folder, project=code, python=older.python(code)))
    old.manage("seed_demo")
    keys = [old.key(f"tenant-{place}") for place in range(TENANTS)]
    with old.serving("web", "worker"):
        before = {(key, name): _talk(old, key, name) for key in keys for name in _names()}
    new = Hub(cluster, folder)
    new.manage("migrate", "--verbosity", "0")
    check(
        f"tables of {version} are migrated with their rows",
        wrong := not flaws(cluster),
        "" if wrong else flaws(cluster),
    )
    anew, found = _fresh(cluster, folder), shape(cluster)
    check("they are as tables that were made anew", found == anew, _difference(found, anew))
    check("check_memory finds nothing wrong", sound := new.manage("check_memory").strip(), sound)
    with new.serving("web", "worker"):
        after = {(key, name): _facts(new, key, name) for key, name in before}
        check(f"facts of {len(before)} people are there", after == before, "" if after == before else after)
        for key in keys:
            _talk(new, key, "later")
    check("and again", sound := new.manage("check_memory").strip(), sound)


def _names() -> list[str]:
    return [f"person-{place}" for place in range(PEOPLE)]


def _talk(hub: Hub, key: str, name: str) -> list[str]:
    """Turns, a fact that was corrected, one of a group, a file, an item and a context; the facts of the person."""
    said = [{"role": "user", "content": f"Please remember that I, {name}, am allergic to peanuts."}]
    turns = {"user_id": name, "session_id": f"s-{name}", "messages": said, "flush": True}
    check_status(hub.call(key, "POST", "/turns", turns).status)
    listed = f"/facts?user_id={name}"
    fact = wait_until(lambda: (_whole(hub, key, listed) or {}).get("results"))[0]
    path, once = f"/facts/{fact['id']}", {"If-Match": f'"{fact["version"]}"'}
    check_status(hub.call(key, "PATCH", path, {"content": f"{name} is allergic to walnuts."}, **once).status)
    group = hub.call(key, "POST", "/groups", {"name": f"Team of {name}", "kind": "team"}).body["id"]
    check_status(hub.call(key, "PUT", f"/groups/{group}/members", {"user_id": name}).status)
    stated = {"user_id": name, "content": "The oven takes an hour on Mondays", "about_user_id": name}
    check_status(hub.call(key, "POST", f"/groups/{group}/facts", stated).status)
    context = hub.call(key, "POST", "/context", {"user_id": name, "query": "What must I not eat? And the oven?"})
    check_status(context.status)
    access = {"user_id": name, "type": "access"}
    check_status(hub.call(key, "POST", "/privacy/requests", access).status)
    return _facts(hub, key, name)


def check_status(status: int) -> None:
    if status not in (200, 201, 202, 204):
        raise SystemExit(f"The hub answered {status}.")


def _facts(hub: Hub, key: str, name: str) -> list[str]:
    found = wait_until(lambda: _whole(hub, key, f"/facts?user_id={name}"))
    return sorted(fact["content"] for fact in found["results"])


def _whole(hub: Hub, key: str, path: str) -> Any:
    """What is there. On a busy machine the first requests may get no answer."""
    try:
        answer = hub.call(key, "GET", path)
    except (OSError, HTTPException):
        return None
    return answer.body if answer.status == 200 else None


def _fresh(cluster: Cluster, folder: Path) -> Shape:
    """Of a database of this version that was never another's."""
    cluster.database(FRESH)
    hub = Hub(cluster, folder, database=FRESH)
    hub.manage("migrate", "--verbosity", "0")
    hub.manage("distribute")
    return shape(cluster, FRESH)


def _difference(one: Shape, other: Shape) -> str:
    lines = [f"- {line}" for line in sorted(other - one)] + [f"+ {line}" for line in sorted(one - other)]
    return "\n" + "\n".join(lines) if lines else ""
