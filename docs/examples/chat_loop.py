"""An agent with a memory. Before each answer it gets a context from the hub; afterwards it stores what was said.

    export MEMORYHUB_KEY=mh_…            a key with the scopes `read` and `ingest`
    python docs/examples/chat_loop.py    talk; an empty line ends the session

OPENAI_API_KEY or OPENAI_BASE_URL (with OPENAI_MODEL) set the model that answers. Without one a stand-in answers. It
knows only what the hub put into its messages, and says the line that fits best, so that you see what the hub returned.
The script needs only Python's standard library. You can pipe in a file with one message a line.
"""

import argparse
import json
import os
import re
import sys
import urllib.request
import uuid
from collections.abc import Iterable, Iterator
from typing import Any

Message = dict[str, Any]
SYSTEM = "You are a friendly assistant. Use what you remember of the user, and say so when you do not know."
TIMEOUT_SECONDS = 60
WORDS = re.compile(r"[a-z0-9]+|[\u4e00-\u9fff]")


class Hub:
    """The two calls that an agent needs, for one person in one session."""

    def __init__(self, address: str, key: str, *, user_id: str, session_id: str) -> None:
        self._address, self._key = address.rstrip("/"), key
        self._whose = {"user_id": user_id, "session_id": session_id}

    def context(self, query: str) -> dict[str, Any]:
        """What is remembered for this question, and the conversation so far, ready for a chat completion."""
        wanted = ["profile", "facts", "episodes", "turns", "working_memory"]
        return self._post("context", {**self._whose, "query": query, "include": wanted})

    def remember(self, messages: Iterable[Message]) -> None:
        """Store what was said. If the request is sent twice, the hub returns the first answer again."""
        self._post("turns", {**self._whose, "messages": list(messages)}, **{"Idempotency-Key": str(uuid.uuid4())})

    def end(self) -> None:
        """End the conversation: the hub extracts and summarizes the rest of it at once."""
        self._post("sessions/end", self._whose)

    def _post(self, path: str, body: dict[str, Any], **headers: str) -> dict[str, Any]:
        return post(f"{self._address}/api/v1/{path}", body, key=self._key, **headers)


def post(address: str, body: dict[str, Any], *, key: str, **headers: str) -> dict[str, Any]:
    headers |= {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    request = urllib.request.Request(address, data=json.dumps(body).encode(), headers=headers)
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def ask_model(messages: list[Message]) -> str:
    """The answer of the configured model, or of the stand-in."""
    base, key = os.environ.get("OPENAI_BASE_URL", ""), os.environ.get("OPENAI_API_KEY", "")
    if not (base or key):
        return stand_in(messages)
    address = (base or "https://api.openai.com/v1").rstrip("/") + "/chat/completions"
    model = os.environ.get("OPENAI_MODEL", "gpt-4o-mini")
    answer = post(address, {"model": model, "messages": messages}, key=key)
    return str(answer["choices"][0]["message"]["content"])


def stand_in(messages: list[Message]) -> str:
    """Answer a question with the line of its messages that shares the most words with it."""
    said = str(messages[-1]["content"])
    if not said.rstrip().endswith(("?", "？")):
        return "I see."
    asked = words(said)
    lines = [line for message in messages[:-1] for line in str(message["content"] or "").splitlines()]
    best = max(lines, key=lambda line: len(asked & words(line)), default="")
    return f"You told me: {best.strip()}" if asked & words(best) else "I do not know."


def words(text: str) -> set[str]:
    return set(WORDS.findall(text.lower()))


def answer(hub: Hub, said: str) -> str:
    """One round: get the context, ask the model, store both messages."""
    context = hub.context(said)
    messages = [{"role": "system", "content": SYSTEM}, *context["messages"], {"role": "user", "content": said}]
    reply = ask_model(messages)
    hub.remember([{"role": "user", "content": said}, {"role": "assistant", "content": reply}])
    return reply


def lines_of(given: Iterable[str]) -> Iterator[str]:
    for line in given:
        if not line.strip():
            return
        yield line.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description="Talk to an assistant that remembers.")
    parser.add_argument("--hub", default="http://127.0.0.1:8000", help="address of the hub")
    parser.add_argument("--user", default="demo-user", help="who is talking")
    parser.add_argument("--session", default=f"chat-{uuid.uuid4()}", help="an earlier one goes on where it stopped")
    chosen = parser.parse_args()
    key = os.environ.get("MEMORYHUB_KEY") or sys.exit("Set MEMORYHUB_KEY to a key of the hub.")
    hub = Hub(chosen.hub, key, user_id=chosen.user, session_id=chosen.session)
    for said in lines_of(sys.stdin):
        sys.stdout.write(f"{answer(hub, said)}\n")
        sys.stdout.flush()
    hub.end()


if __name__ == "__main__":
    main()
