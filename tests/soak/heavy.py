"""Somebody with many turns, which were there before the soak; and people who send files and ask questions."""

import time
from functools import partial
from typing import Any

from tests.soak.asking import Answer, Caller
from tests.soak.journal import mark
from tests.soak.model import vector
from tests.soak.people import ANIMALS, PLACES, ROUNDS_OF_A_SESSION, Person, Talker
from tests.soak.readers import shown

TURNS = 20_000
PATIENCE_SECONDS = 120.0
_BEFORE = "Good morning, is somebody there?"


def seed(caller: Caller, person: Person) -> None:
    """Store the turns with their vectors in the database, beside the running hub."""
    # Django is set up only when the hub runs.
    import numpy as np
    from django.db import connections

    from benchmarks import crowding
    from memories.embedding import spaces
    from memories.models import Role, Session, SessionQueue, Tenant, WorkingMemory

    # The hub makes the space of vectors with the first text that it embeds.
    first = {"user_id": "first", "session_id": "s", "messages": [{"role": "user", "content": _BEFORE}]}
    caller.until_accepted("first", "POST", "/api/v1/turns", first)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while spaces.serving() is None:
        if time.monotonic() > deadline:
            raise TimeoutError("the hub embeds nothing")
        time.sleep(0.5)

    def draw(begin: int, count: int) -> tuple[list[str], Any]:
        texts = [_text(person, number) for number in range(begin + 1, begin + 1 + count)]
        return texts, np.array([vector(text) for text in texts])

    tenant = Tenant.objects.get(slug=person.tenant)
    crowding.person(tenant, person.user_id, turns=TURNS, draw=draw)
    # As if they had been extracted long ago: of so many turns the model would do nothing else.
    sessions = list(Session.objects.filter(tenant=tenant, end_user__external_id=person.user_id))
    for one in sessions:
        one.token_count = sum(one.turns.values_list("token_count", flat=True))
        one.round_count, one.deleted_runs_number = one.turns.filter(role=Role.USER).count(), one.turn_count
    Session.objects.bulk_update(sessions, ["token_count", "round_count", "deleted_runs_number"])
    SessionQueue.objects.bulk_create(
        SessionQueue(tenant=tenant, session=one, extracted_number=one.turn_count) for one in sessions
    )
    WorkingMemory.objects.bulk_create(WorkingMemory(tenant=tenant, session=one) for one in sessions)
    connections.close_all()


def _text(person: Person, number: int) -> str:
    animal, place = ANIMALS[number % len(ANIMALS)], PLACES[number % 5]
    return f"I saw a {animal} called {mark(person.prefix, 'n', number)} in {place}."


class HeavyTalker:
    """Goes on talking after all that."""

    def __init__(self, talker: Talker) -> None:
        self._talker, self._number = talker, TURNS

    def step(self) -> None:
        self._number += 1
        self._talker.post(f"more-{self._number // ROUNDS_OF_A_SESSION}", self._number)


class Asker:
    """Sends a file with what they say, looks for what such files say, and asks a question."""

    def __init__(self, caller: Caller, person: Person, seed: str) -> None:
        self._caller, self._person = caller, person
        self._talker = Talker(caller, person, seed)
        self._number = 0

    def step(self) -> None:
        self._number += 1
        self._talker.post(f"files-{self._number // ROUNDS_OF_A_SESSION}", self._number, with_file=True)
        ask = partial(self._caller.ask, person=self._person.prefix)
        of = {"user_id": self._person.user_id}
        looked = {**of, "query": "How much is the deposit?", "kinds": ["document"]}
        ask("search", "POST", "/api/v1/search", looked, told=shown)
        wanted = ["profile", "facts", "turns", "documents"]
        asked = {**of, "query": "How much is the deposit?", "max_tokens": 2_000, "include": wanted}
        ask("context", "POST", "/api/v1/context", asked, told=shown, budget=2_000)
        said = mark(self._person.prefix, "n", self._number)
        question = {**of, "question": f"Where do I keep the animal called {said}?"}
        ask("answer", "POST", "/api/v1/answer", question, told=_answered)


def _answered(answer: Answer) -> dict[str, Any]:
    """What came of it, beside whose marks it has."""
    return {**shown(answer), "came": answer.body["status"]} if answer.status == 200 else {}
