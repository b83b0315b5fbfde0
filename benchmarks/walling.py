"""The row about row level security: the same requests to a hub that has it and to one that has not, by turns."""

from collections.abc import Callable, Iterator

from benchmarks import load
from benchmarks.figures import Figure, at_most
from benchmarks.load import Server
from benchmarks.rows import alternately, body, row, text
from benchmarks.stage import Stage, another

PEOPLE, FACTS = 20, 50


@row("wall")
def wall(stage: Stage) -> Iterator[Figure]:
    """One client and 20 people with 50 facts each, on both hubs. The floor of each figure is the hub without."""
    with another({"MEMORYHUB_ROW_SECURITY": "on"}) as guarded:
        for server in (stage.hub, guarded):
            load.answers(server, _facts(server, PEOPLE * FACTS // stage.size.shrink))
        for what, asked in ASKED.items():
            without, behind = alternately(stage, _p50(stage, stage.hub, asked), _p50(stage, guarded, asked))
            yield Figure(f"{what}, p50, with row level security ÷ without", behind, "ms", at_most(1.25, 1.1), without)


def _p50(stage: Stage, server: Server, asked: Callable[[Server, str], bytes]) -> Callable[[int], float]:
    """Of one turn's requests; each has a number of its own."""

    def measured(turn: int) -> float:
        requests = [asked(server, f"{turn}.{place}") for place in range(stage.size.requests)]
        return load.run(server, [requests]).p50

    return measured


def _facts(server: Server, count: int) -> list[bytes]:
    stated = (
        {"user_id": _somebody(f".{n}"), "content": f"{text(n)} ({n})", "category": "context"} for n in range(count)
    )
    return [server.request("POST", "/api/v1/facts", given) for given in stated]


def _post(server: Server, number: str) -> bytes:
    return server.request("POST", "/api/v1/turns", body(f"wall-talk-{number}"))


def _context(server: Server, number: str) -> bytes:
    return server.request("POST", "/api/v1/context", {"user_id": _somebody(number)})


def _search(server: Server, number: str) -> bytes:
    """With a query of its own, so that no embedding of one is at hand."""
    return server.request(
        "POST", "/api/v1/search", {"user_id": _somebody(number), "query": f"Who likes tea? [{number}]"}
    )


def _listed(server: Server, number: str) -> bytes:
    return server.request("GET", f"/api/v1/facts?user_id={_somebody(number)}")


def _somebody(number: str) -> str:
    return f"wall-{int(number.rpartition('.')[2]) % PEOPLE}"


ASKED = {"POST of one turn": _post, "context (50 facts)": _context, "search": _search, "a list of facts": _listed}
