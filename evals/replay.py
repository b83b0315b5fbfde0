"""`python -m evals.replay --data FOLDER`: three LoCoMo conversations told to a hub whose model is a Gossip.

What the model said, what of it is active at the end, and why the rest is not, as a page of Markdown.
"""

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby, islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

from evals import hub
from evals.corpora import Corpus, locomo
from evals.gossip import JUNK, Gossip
from evals.hub import Hub
from evals.talks import message, speaker
from tests.llm.endpoint import running

PEOPLE = 3
INTRODUCTION = """\
This page shows what the hub stores and serves when its model makes many mistakes. The tool posts three LoCoMo
conversations to a hub turn by turn, session after session. The hub's model is scripted (`evals/gossip.py`). It states
what the person says as facts, repeats known facts as new, gives the person another home town every few turns,
confirms and removes facts without a reason, judges pairs that nobody asked about, and adds one piece of junk for
every turn. `python -m evals.replay --data FOLDER --write docs/replay.md` writes this page.
"""
DRAINED_WITHIN_SECONDS = 600.0
MARK = re.compile(r"\[([a-z-]+) \d+\] ")


@dataclass
class Replay:
    """One conversation: its size, what the model said by kind, and what became of it."""

    name: str
    turns: int
    sessions: int
    stated: Counter[str]
    outcome: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    # Status → kind of what the fact says.
    kept: dict[str, Counter[str]] = field(default_factory=dict)
    homes: list[str] = field(default_factory=list)


def main() -> None:
    """Replay and print the page."""
    parser = argparse.ArgumentParser(prog="python -m evals.replay", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the evaluation sets")
    parser.add_argument("--write", type=Path, help="write the page to this file")
    arguments = parser.parse_args()
    page = "\n".join(_page(list(replayed(arguments.data))))
    if arguments.write:
        arguments.write.write_text(page, encoding="utf-8")
    sys.stdout.write(page)


def replayed(data: Path, people: int = PEOPLE) -> Iterator[Replay]:
    """The first conversations, one after another, each of a person of its own on one hub."""
    with running() as endpoint:
        endpoint.responds(gossip := Gossip())
        environ = {"MEMORYHUB_LLM": "openai", "OPENAI_BASE_URL": endpoint.url, "MEMORYHUB_LLM_CONCURRENCY": "2"}
        with hub.started(**environ) as own:
            for corpus in islice(locomo(data, "turn"), people):
                gossip.stated = Counter()
                yield _replay(own, corpus, gossip)


def _replay(own: Hub, corpus: Corpus, gossip: Gossip) -> Replay:
    sessions = [(name, list(units)) for name, units in groupby(corpus.units, key=lambda unit: unit.session)]
    person = speaker(corpus)
    for name, units in sessions:
        messages = [message(unit, person) for unit in units]
        body = {"user_id": corpus.id, "session_id": name, "messages": messages, "flush": True}
        own.call("POST", "/turns", body)
        # In their order, as they were held.
        _drain(own, corpus.id)
    replay = Replay(corpus.id, len(corpus.units), len(sessions), gossip.stated)
    _look(own, replay)
    return replay


def _drain(own: Hub, person: str) -> None:
    deadline = time.monotonic() + DRAINED_WITHIN_SECONDS
    while own.call("GET", f"/users/detail?user_id={quote(person)}")["pending"] != {"extraction": 0, "embedding": 0}:
        if time.monotonic() > deadline:
            raise SystemExit(f"{person} is not extracted after {DRAINED_WITHIN_SECONDS:g} s.")
        time.sleep(0.1)


def _look(own: Hub, replay: Replay) -> None:
    for run in _all(own, f"/extractions?user_id={quote(replay.name)}&status=committed"):
        replay.outcome.update(run["outcome"])
        replay.refusals.update(run["refusals"])
        replay.calls += run["calls"]
    for fact in _all(own, f"/facts?user_id={quote(replay.name)}&status=all"):
        replay.kept.setdefault(fact["status"], Counter())[_kind(fact)] += 1
        if fact["key"] == "home_city" and fact["status"] == "active":
            replay.homes.append(fact["value"])


def _kind(fact: dict[str, Any]) -> str:
    mark = MARK.match(fact["content"])
    if mark:
        return mark[1]
    return "city" if fact["key"] == "home_city" else "honest"


def _all(own: Hub, path: str) -> Iterator[dict[str, Any]]:
    answer = own.call("GET", f"{path}&page_size=200")
    yield from answer["results"]
    while answer["next"]:
        answer = own.call("GET", answer["next"].split("/api/v1", 1)[1])
        yield from answer["results"]


def _page(replays: list[Replay]) -> Iterator[str]:
    yield "# Replay with a model that makes mistakes"
    yield INTRODUCTION
    yield _table(("conversation", "turns", "sessions", "model calls"), [_size(replay) for replay in replays])
    total: Counter[str] = sum((replay.stated for replay in replays), Counter())
    yield "## What the model stated, and what is served\n"
    rows = [_outcome(kind, total, replays) for kind in total]
    yield _table(("kind", "stated", "active", "waits for review", "other"), rows)
    junk = sum(total[kind] for kind in JUNK)
    served = sum(replay.kept.get("active", Counter())[kind] for replay in replays for kind in JUNK)
    yield f"The hub serves {served} of {junk} pieces of junk."
    yield "Home towns active at the end: " + "; ".join(f"{replay.name}: {replay.homes}" for replay in replays) + ".\n"
    yield "## Outcome of the candidates\n"
    outcome: Counter[str] = sum((replay.outcome for replay in replays), Counter())
    yield _table(("outcome", "count"), list(outcome.most_common()))
    yield "## Refusals by reason\n"
    refusals: Counter[str] = sum((replay.refusals for replay in replays), Counter())
    yield _table(("reason", "count"), [row for row in refusals.most_common() if row[1]])


def _size(replay: Replay) -> tuple[object, ...]:
    return replay.name, replay.turns, replay.sessions, replay.calls


def _outcome(kind: str, stated: Counter[str], replays: list[Replay]) -> tuple[object, ...]:
    statuses: Counter[str] = Counter()
    for replay in replays:
        statuses.update({status: kinds[kind] for status, kinds in replay.kept.items()})
    active, waiting = statuses["active"], statuses["pending"]
    shown = f"**{active}**" if kind in JUNK and active else active
    return kind, stated[kind], shown, waiting, statuses.total() - active - waiting


def _table(head: tuple[str, ...], rows: list[Any]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


if __name__ == "__main__":
    main()
