"""Agents of several people who tell what they did, and ask which procedures there are."""

import random
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from tests.soak.asking import Answer, Caller
from tests.soak.journal import mark
from tests.soak.people import RESENT, Person
from tests.soak.readers import shown

# So many trajectories are of one kind of task: each kind is proposed as a skill once.
OF_A_KIND = 12


def post_trajectory(caller: Caller, person: Person, number: int, **more: Any) -> Answer:
    """Until it is accepted; it has an id of its own."""
    named = mark(person.prefix, "t", number)
    body = {
        "user_id": person.user_id,
        "agent_id": "coder",
        "external_id": named,
        "task": f"Release the service for {named}",
        "outcome": "succeeded",
        "steps": [
            {"kind": "tool_call", "tool": "bash", "call_id": "c1", "arguments": {"command": "make test"}},
            {"kind": "tool_result", "call_id": "c1", "content": "3 passed", "exit_code": 0},
            {"kind": "message", "content": "Released after make test"},
        ],
        **more,
    }
    noted = {"person": person.prefix, "mark": named}
    return caller.until_accepted("trajectory", "POST", "/api/v1/trajectories", body, **noted)


class Makers:
    """People of one tenant; each of their sessions may have been given a skill."""

    def __init__(self, caller: Caller, people: Sequence[Person], seed: str) -> None:
        self._caller, self._people = caller, people
        self._dice = random.Random(seed)
        self._number = 0

    def step(self) -> None:
        self._number += 1
        person, number = self._dice.choice(self._people), self._number
        told: dict[str, Any] = {"family": f"release-{number // OF_A_KIND}", "session_id": f"work-{number}"}
        skill = self._asked(person, told["session_id"]) if number % 2 else None
        if skill:
            told |= {"family": skill["family"], "skills": [skill["name"]]}
        answer = post_trajectory(self._caller, person, number, **told)
        if answer.is_accepted and self._dice.random() < RESENT:
            post_trajectory(self._caller, person, number, **told)

    def _asked(self, person: Person, session: str) -> dict[str, Any] | None:
        """Which skills the session is given, and what the first of them says."""
        query = urlencode({"user_id": person.user_id, "agent_id": "coder", "session_id": session})
        noted: dict[str, Any] = {"person": person.prefix, "told": shown}
        listed = self._caller.until_accepted("skills", "GET", f"/api/v1/skills?{query}", **noted)
        found = listed.body["results"] if listed.is_accepted else []
        if not found:
            return None
        read = self._caller.until_accepted("skills", "GET", f"/api/v1/skills/{found[0]['name']}?{query}", **noted)
        return dict(read.body) if read.is_accepted else None
