"""The tenant of a heavy person moves under load: no turn is lost or doubled, and the file of turns is still right."""

import shutil
from typing import Any

from tests.distributed.hub import Hub, check, wait_until
from tests.distributed.moving import move

TURNS, IN_ONE = 20_000, 500
# The people of the tenant that moves. Of one with so many turns searches map a file.
PERSON = "heavy"
QUESTIONS = ("the ferry to Texel", "which number has the crate", "what did I pay for glass", "kiln", "19,984")
_WORDS = ("ferry", "crate", "kiln", "glass", "harbour", "ledger", "orchard", "engine", "letter", "bridge", "winter")
_WAIT = (
    "SELECT count(*) FROM memories_turnvector v JOIN memories_turn t ON t.tenant_id = v.tenant_id AND t.id = v.turn_id"
)


def move_heavy(hub: Hub, key: str, tenant: str, rounds: int) -> None:
    """Errors: SystemExit."""
    with hub.serving("web", "worker"):
        for first in range(0, TURNS, IN_ONE):
            said = [{"role": "user", "content": _said(number)} for number in range(first, first + IN_ONE)]
            posted = hub.call(key, "POST", "/turns", {"user_id": PERSON, "session_id": f"s{first}", "messages": said})
            if posted.status != 202:
                raise SystemExit(f"POST /turns: {posted.status} {posted.body}")
        with hub.cluster.nodes[0].connect() as connection:
            wait_until(lambda: (connection.execute(_WAIT).fetchone() or [0])[0] >= TURNS, seconds=3_600)
        _found(hub, key)
        files = sorted((hub.folder / "home" / "indexes").rglob("*"))
        check(f"searches map a file of {TURNS} turns", files, sum(one.stat().st_size for one in files if one.is_file()))
        move(hub, key, tenant, rounds)
        mapped = _found(hub, key)
    shutil.rmtree(hub.folder / "home" / "indexes")
    with hub.serving("web", "worker"):
        anew = _found(hub, key)
    check("searches find what they find with a file that is made anew", mapped == anew, "" if mapped == anew else anew)
    check("and something", all(anew.values()), [len(found) for found in anew.values()])


def _said(number: int) -> str:
    """Each turn says something else."""
    words = [_WORDS[(number // step) % len(_WORDS)] for step in (1, 11, 121)]
    return f"Number {number:,}: the {words[0]} by the {words[1]}, and the {words[2]} of day {number % 365}"


def _found(hub: Hub, key: str) -> dict[str, Any]:
    """Question → the ids of what is found, once an answer is of all turns."""
    found = {}
    for question in QUESTIONS:
        query = {"user_id": PERSON, "query": question, "kinds": ["turn"]}
        answer = wait_until(lambda query=query: _whole(hub.call(key, "POST", "/search", query)), seconds=900)  # type: ignore[misc]  # mypy infers no lambda with a default
        found[question] = [hit["id"] for hit in answer["results"]]
    return found


def _whole(answer: Any) -> Any:
    return answer.body if answer.status == 200 and not answer.body.get("degraded") else None
