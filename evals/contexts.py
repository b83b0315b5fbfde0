"""`python -m evals.contexts --data FOLDER`: is the evidence in the context that an agent gets by default?

Of LoCoMo each life whole, and each session alone as a person of its own; of PrefEval people of one to eight turns. Each
question asks for a context of a hub that is started for it: the share of questions of which all evidence, any of it, or
nothing at all is told, and the tokens of a context. With --ended each session has ended before, and its facts and
episodes are made without a model, as a new hub makes them; without it there are turns alone.
"""

import argparse
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from evals import hub, metrics
from evals.corpora import SETS, Corpus, Question
from evals.hub import Hub
from evals.rest import EMBEDDED_WITHIN_SECONDS, LOOK_SECONDS, fill, wait_for_vectors

SIZES = (1, 2, 4, 8)


def main() -> None:
    """Print a line for each kind of people."""
    parser = argparse.ArgumentParser(prog="python -m evals.contexts", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the evaluation sets")
    parser.add_argument("--first", type=int, help="so many lives of LoCoMo; all")
    parser.add_argument("--tokens", type=int, default=2000, help="the budget of a context; 2,000")
    parser.add_argument("--ended", action="store_true", help="ask when the sessions have ended")
    arguments = parser.parse_args()
    with hub.started(**({"MEMORYHUB_LLM": "rules"} if arguments.ended else {})) as started:
        for name, people in _groups(arguments.data, arguments.first):
            rows = [row for one in people for row in _asked(started, f"{name}, {one.id}", one, arguments)]
            sys.stdout.write(f"{name}, {len(rows)} questions: {metrics.mean(rows)}\n")
            sys.stdout.flush()


def _groups(data: Path, first: int | None) -> Iterator[tuple[str, list[Corpus]]]:
    lives = list(islice(SETS["locomo-turn"](data), first))
    yield "whole conversations", lives
    yield "one session", [alone for life in lives for alone in _sessions(life)]
    small = list(islice(SETS["prefeval"](data), 2))
    for size in SIZES:
        yield f"{size} turns", [person for store in small for person in _small(store, size)]


def _sessions(life: Corpus) -> Iterator[Corpus]:
    """Each session with the questions whose evidence is in it."""
    for session in dict.fromkeys(unit.session for unit in life.units):
        units = [unit for unit in life.units if unit.session == session]
        have = {unit.id for unit in units}
        asked = [question for question in life.questions if question.gold and question.gold <= have]
        if asked:
            yield Corpus(f"{life.id}-{session}", "turn", units, asked)


def _small(store: Corpus, size: int) -> Iterator[Corpus]:
    """For each question a person who said what answers it last, and so much before."""
    for place, question in enumerate(store.questions):
        cited = [unit for unit in store.units if unit.id in question.gold][:1]
        others = [unit for unit in store.units if unit.id not in question.gold][: size - 1]
        if cited:
            asked = Question(question.text, question.category, frozenset({cited[0].id}))
            yield Corpus(f"{store.id}-{place}-{size}", "turn", others + cited, [asked])


def _asked(started: Hub, person: str, corpus: Corpus, arguments: argparse.Namespace) -> Iterator[metrics.Row]:
    ids = fill(started, person, corpus.units)
    if arguments.ended:
        _end(started, person, dict.fromkeys(unit.session for unit in corpus.units))
    for question in corpus.questions:
        # Nothing is to be found for what nobody said.
        if question.gold and question.category != "adversarial":
            body = {"user_id": person, "query": question.text, "max_tokens": arguments.tokens}
            answer = started.call("POST", "/context", body)
            served = {item["id"] for item in answer["items"]}
            found = [ids[unit] in served for unit in question.gold]
            yield {
                "all": float(all(found)),
                "any": float(any(found)),
                "empty": float(not served),
                "tokens": float(answer["token_count"]),
            }


def _end(started: Hub, person: str, sessions: Iterable[str]) -> None:
    """End the sessions, and wait until what is made of them is made and has its vectors."""
    ended = [started.call("POST", "/sessions/end", {"user_id": person, "session_id": one}) for one in sessions]
    deadline = time.monotonic() + EMBEDDED_WITHIN_SECONDS
    for one in ended:
        while not _is_done(started.call("GET", f"/sessions/{one['session']['id']}")):
            if time.monotonic() > deadline:
                raise SystemExit(f"The sessions of {person} are at work after {EMBEDDED_WITHIN_SECONDS:g} s.")
            time.sleep(LOOK_SECONDS)
    wait_for_vectors(started, person)


def _is_done(session: dict[str, Any]) -> bool:
    return {session[name]["status"] for name in ("extraction", "working_memory")} == {"idle"}


if __name__ == "__main__":
    main()
