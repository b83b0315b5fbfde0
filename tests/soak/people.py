"""Those who talk: over REST, with keys and without, and through the gateway with the whole conversation each time."""

import random
import uuid
from dataclasses import dataclass, field
from typing import Any

from tests.soak.asking import Answer, Caller
from tests.soak.journal import mark, marks

ROUNDS_OF_A_SESSION = 15
# Of accepted posts: sent once more, as a client does that did not hear the answer.
RESENT = 0.1
EXCHANGES = 8
PLACES = ("Leiden", "Utrecht", "Delft", "东京", "Ghent", "Malmö")
ANIMALS = ("cat", "dog", "hedgehog", "parrot", "tortoise", "goat")
DONE = "data: [DONE]"


@dataclass(frozen=True)
class Person:
    """`prefix` is in every mark of theirs; the id is another person's in another tenant, too."""

    tenant: str
    user_id: str
    prefix: str


class Talker:
    """Posts rounds of one person. Odd people have idempotency keys, even ones ids of messages."""

    def __init__(self, caller: Caller, person: Person, seed: str) -> None:
        self._caller, self.person = caller, person
        self._dice = random.Random(seed)
        self._keyed = int(person.prefix[2:]) % 2 == 1
        self._number = 0

    def step(self) -> None:
        session, self._number = f"talk-{self._number // ROUNDS_OF_A_SESSION}", self._number + 1
        self.post(session, self._number)
        if self._number % ROUNDS_OF_A_SESSION == 0:
            body = {"user_id": self.person.user_id, "session_id": session}
            self._caller.until_accepted("end", "POST", "/api/v1/sessions/end", body)

    def post(self, session: str, number: int, *, with_file: bool = False) -> Answer:
        said, replied = (mark(self.person.prefix, kind, number) for kind in "nr")
        text = f"I keep a {self._dice.choice(ANIMALS)} called {said} in {self._dice.choice(PLACES)}."
        messages: list[dict[str, Any]] = [
            {"role": "user", "content": text},
            {"role": "assistant", "content": f"Noted, {replied}."},
        ]
        if with_file:
            messages[0]["attachments"] = [_document(mark(self.person.prefix, "d", number))]
        headers = {}
        if self._keyed:
            headers["Idempotency-Key"] = str(uuid.UUID(int=self._dice.getrandbits(128)))
        else:
            messages = [{**message, "external_id": f"m{2 * number + at}"} for at, message in enumerate(messages)]
        body = {"user_id": self.person.user_id, "session_id": session, "messages": messages}
        noted: dict[str, Any] = {
            "headers": headers,
            "told": _numbers,
            "person": self.person.prefix,
            "session": session,
            "marks": [said, replied],
        }
        answer = self._caller.until_accepted("turns", "POST", "/api/v1/turns", body, **noted)
        if answer.is_accepted and self._dice.random() < RESENT:
            self._caller.ask("turns", "POST", "/api/v1/turns", body, **noted)
        if answer.is_accepted and with_file:
            named = mark(self.person.prefix, "d", number)
            self._caller.journal.note(do="filed", person=self.person.prefix, mark=named)
        return answer


def _document(named: str) -> dict[str, str]:
    """A file that comes with a message."""
    text = f"# Lease\n\n## Deposit\n\nThe deposit of the flat {named} is 2,400 euros."
    return {"name": f"{named}.md", "media_type": "text/markdown", "text": text}


def _numbers(answer: Answer) -> dict[str, Any]:
    return {"numbers": [turn["number"] for turn in answer.body["turns"]]} if answer.status == 202 else {}


@dataclass
class Conversation:
    """What the client has of it: marks of the person's messages, and all messages with whole answers."""

    name: str
    marks: list[str] = field(default_factory=list)
    messages: list[dict[str, str]] = field(default_factory=list)


class Chatter:
    """An application behind the gateway: an exchange at a time, each request with all that was said."""

    def __init__(self, caller: Caller, person: Person) -> None:
        self._caller, self.person = caller, person
        self._number = 0
        self.talks: list[Conversation] = []

    def step(self) -> None:
        if self._number % EXCHANGES == 0:
            self.talks.append(Conversation(f"chat-{len(self.talks)}"))
        self._exchange(self.talks[-1])

    def close(self) -> None:
        """Go on with each conversation once, in calm: what the hub missed of it while it was hurt is in the request."""
        for talk in self.talks:
            self._exchange(talk)
            self._caller.journal.note(do="talked", person=self.person.prefix, session=talk.name, marks=talk.marks)

    def _exchange(self, talk: Conversation) -> None:
        self._number += 1
        said = mark(self.person.prefix, "n", self._number)
        asked = {"role": "user", "content": f"I saw a bird called {said} today."}
        body = {"model": "soak", "stream": True, "messages": [*talk.messages, asked]}
        headers = {"X-Memory-User": self.person.user_id, "X-Memory-Session": talk.name}
        noted = {"person": self.person.prefix, "session": talk.name, "headers": headers, "told": _streamed}
        # A stream that was cut is asked for again, as is what the endpoint refused: both are told as such.
        for _ in range(200):
            answer = self._caller.until_accepted("chat", "POST", "/v1/chat/completions", body, **noted)
            if answer.is_accepted and DONE in str(answer.body):
                break
            self._caller.journal.note(do="again", person=self.person.prefix)
        else:
            raise TimeoutError("no answer through the gateway")
        talk.marks.append(said)
        talk.messages += [asked, {"role": "assistant", "content": reply_to(said)}]


def reply_to(said: str) -> str:
    """What the model answers through the gateway."""
    return f"A fine bird, {said}."


def _streamed(answer: Answer) -> dict[str, Any]:
    text = str(answer.body)
    shown = {"reason": answer.headers.get("x-memory-reason", ""), "is_whole": DONE in text}
    # The endpoint's own refusal is passed on as it is.
    return {**shown, "passed_on": '"type": "t"' in text or "'type': 't'" in text, "others": marks(text)}
