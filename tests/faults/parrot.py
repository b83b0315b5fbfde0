"""A model that repeats each user turn as a fact, sums up by its first words, takes its time, and fails, holds or kills
as a test says."""

import json
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from html import unescape

from tests import summaries
from tests.faults.clients import asking
from tests.llm import endpoint as at
from tests.llm.endpoint import Handler, Response

# Of every kind that the hub is to get over by itself.
FAULTS: tuple[Response, ...] = (at.fails(500), at.fails(429), at.resets, at.says('{"new_facts": [{'))


class Parrot:
    """Answers one request; the n-th of a text always alike, whatever comes between."""

    def __init__(self, *, seconds: float = 0.0, faulty: float = 0.0, seed: int = 0) -> None:
        """`seconds` that each answer takes; the share of requests that are `faulty`, chosen by `seed`."""
        self.seconds, self.faulty, self.seed = seconds, faulty, seed
        self.arrivals: list[float] = []
        self.batches: Counter[str] = Counter()
        # All requests, by the name of the format.
        self.asked: Counter[str] = Counter()
        # Answered calls for summaries, by "<name of the format> <user turns>".
        self.summaries: Counter[str] = Counter()
        self.most_at_once = 0
        self.first: Callable[[Handler, str], bool] = lambda handler, said: False
        self._calls: Counter[str] = Counter()
        self._at_once = 0
        self._lock = threading.Lock()

    def __call__(self, handler: Handler) -> None:
        said = handler.asked["messages"][-1]["content"]
        name = format_of(handler)
        with self._lock:
            self.asked[name] += 1
        if said.startswith("<candidates>"):
            # Whether two facts are the same is another question; each is its own.
            at.says('{"judgements": []}')(handler)
            return
        is_summary = name in summaries.NAMES
        with self._lock:
            self.arrivals.append(time.monotonic())
            words = " ".join(text for _, text in summaries.TURN.findall(said))
            key = f"{name} {words}" if is_summary else words
            self._calls[key] += 1
            fault = self._fault(key)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            if self.first(handler, key):
                handler.close_connection = True
                return
            # What a model takes.
            time.sleep(self.seconds)
            (fault or repeat)(handler)
            if not fault and key:
                (self.summaries if is_summary else self.batches)[key] += 1
        finally:
            with self._lock:
                self._at_once -= 1

    def _fault(self, key: str) -> Response | None:
        dice = random.Random(f"{self.seed} {key} {self._calls[key]}")
        return dice.choice(FAULTS) if dice.random() < self.faulty else None


def format_of(handler: Handler) -> str:
    """The name of the answer's format, where the request gives one."""
    schema = handler.asked.get("response_format", {}).get("json_schema", {})
    return str(schema.get("name", ""))


def repeat(handler: Handler) -> None:
    """Take every user turn, word for word, for a fact; no two facts for one; and a summary for its first words."""
    prompt = handler.asked["messages"][-1]["content"]
    summary = summaries.of(format_of(handler), prompt)
    if summary:
        at.says(json.dumps(summary, ensure_ascii=False))(handler)
        return
    if "<candidates>" in prompt:
        at.says('{"judgements": []}')(handler)
        return
    facts = [
        {
            "content": unescape(text),
            "category": "context",
            "confidence": 0.9,
            "importance": 0.6,
            "durability": "durable",
            "about": "user",
            "evidence": [int(number)],
            "quote": unescape(text),
        }
        for number, text in summaries.TURN.findall(prompt)
    ]
    at.says(json.dumps({"new_facts": facts}, ensure_ascii=False))(handler)


class Gate:
    """Holds the first request that has the word, until its client is gone."""

    def __init__(self, word: str) -> None:
        self.word, self.asker = word, 0
        self.asked, self.gone = threading.Event(), threading.Event()

    def __call__(self, handler: Handler, said: str) -> bool:
        if self.word not in said or self.asked.is_set():
            return False
        self.asker = asking(handler)
        self.asked.set()
        assert handler.connection.recv(1) == b""
        self.gone.set()
        return True


class Killer:
    """Kills the process that asks: at the calls of these numbers, or whenever it asks about `word`."""

    def __init__(self, *, calls: Iterable[int] = (), word: str = "") -> None:
        self.calls, self.word, self.killed = set(calls), word, 0
        self._number = 0
        self._lock = threading.Lock()

    def __call__(self, handler: Handler, said: str) -> bool:
        with self._lock:
            self._number += 1
            hit = self._number in self.calls or bool(self.word and self.word in said)
            self.killed += hit
        if hit:
            os.kill(asking(handler), signal.SIGKILL)
        return hit
