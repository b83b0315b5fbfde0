"""Those who ask: contexts and searches by the API, tools by MCP; each notes whose marks it was shown."""

import json
import random
import time
from collections.abc import Sequence
from typing import Any

import tiktoken

from tests.soak.asking import AGAIN_SECONDS, LANDED_SECONDS, Answer, Caller
from tests.soak.journal import mark, people_in
from tests.soak.people import ANIMALS, PLACES, Person

BUDGETS = (0, 1, 40, 120, 400, 1_000, 2_000, 4_000)
_ENCODING = "o200k_base"


class Reader:
    """Asks about people of one tenant, and by ids that other tenants have, too."""

    def __init__(self, caller: Caller, people: Sequence[Person], seed: str) -> None:
        self._caller, self._people = caller, people
        self._dice = random.Random(seed)
        self._encoding = tiktoken.get_encoding(_ENCODING)

    def step(self) -> None:
        person = self._dice.choice(self._people)
        query = f"Which {self._dice.choice(ANIMALS)} lives in {self._dice.choice(PLACES)}? {self._dice.random():.6f}"
        if self._dice.random() < 0.3:
            body = {"user_id": person.user_id, "query": query, "kinds": ["fact", "episode", "turn"], "limit": 20}
            self._caller.ask("search", "POST", "/api/v1/search", body, told=shown, person=person.prefix)
            return
        budget = self._dice.choice(BUDGETS)
        asked: dict[str, Any] = {
            "user_id": person.user_id,
            "query": query,
            "max_tokens": budget,
            "tokenizer": _ENCODING,
        }
        if self._dice.random() < 0.3:
            asked["include"] = ["profile", "facts", "episodes", "turns", "unextracted"]
        noted: dict[str, Any] = {"person": person.prefix, "budget": budget}
        self._caller.ask("context", "POST", "/api/v1/context", asked, told=self._counted, **noted)

    def _counted(self, answer: Answer) -> dict[str, Any]:
        if answer.status != 200:
            return {}
        return {**shown(answer), "counted": len(self._encoding.encode_ordinary(answer.body["memory"]))}


def shown(answer: Answer) -> dict[str, Any]:
    """Whose marks an answer has."""
    return {"people": people_in(json.dumps(answer.body, ensure_ascii=False))} if answer.status == 200 else {}


class Tools:
    """An agent with a key for one person, by MCP. What it adds is added until it is known."""

    def __init__(self, caller: Caller, person: Person, seed: str) -> None:
        self._caller, self.person = caller, person
        self._dice = random.Random(seed)
        self._number = 0

    def step(self) -> None:
        tool = self._dice.choice(("add_memory", "get_context", "search_memory", "list_memories"))
        if tool == "add_memory":
            self._add()
            return
        query = {} if tool == "list_memories" else {"query": f"Which boat? {self._dice.random():.6f}"}
        self._call(tool, query)

    def _add(self) -> None:
        self._number += 1
        stated = mark(self.person.prefix, "f", self._number)
        deadline = time.monotonic() + LANDED_SECONDS
        while time.monotonic() < deadline:
            answer = self._call("add_memory", {"content": f"Owns a boat called {stated}"}, stated=stated)
            # Added before, when the answer was lost: the fact is there already.
            if is_done(answer) or "already" in str(answer.body):
                self._caller.journal.note(do="added", person=self.person.prefix, mark=stated)
                return
            time.sleep(AGAIN_SECONDS)
        self._caller.journal.note(do="not added", person=self.person.prefix, mark=stated)

    def _call(self, tool: str, arguments: dict[str, Any], **noted: Any) -> Answer:
        called = {"name": tool, "arguments": arguments}
        document = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": called}
        headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
        return self._caller.ask(
            "tool", "POST", "/mcp", document, headers=headers, told=_told, tool=tool, person=self.person.prefix, **noted
        )


def is_done(answer: Answer) -> bool:
    return (
        answer.is_accepted and isinstance(answer.body, dict) and not answer.body.get("result", {}).get("isError", True)
    )


def _told(answer: Answer) -> dict[str, Any]:
    """A result that is an error says what went wrong; a tool has no status."""
    told = shown(answer)
    if answer.status == 200 and not is_done(answer):
        told["error"] = json.dumps(answer.body, ensure_ascii=False)[:300]
    return told
